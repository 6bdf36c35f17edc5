/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package assignment

import (
	"bytes"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// Names of the objects in a mailbox by which the hub and the agent work together. The hub makes all of them.
const (
	// Namespace holds the ServiceAccount, the ConfigMaps and the Lease.
	Namespace = edgev2alpha1.AgentNamespace
	// ServiceAccount is the kcp identity of the agent.
	ServiceAccount = edgev2alpha1.AgentServiceAccount
	// ConfigMap has the assignment. Its key in binaryData is AssignmentKey.
	ConfigMap, AssignmentKey = "assignment", "assignment"
	// SealKey is the key of the seal in the ConfigMap's data.
	SealKey = "seal"
	// CopiesConfigMap has the states of the copies of placements. The agent writes it, see package copystates.
	CopiesConfigMap = "copies"
	// Lease is the heartbeat of the agent. ReportAnnotation and SealAnnotation carry the report.
	Lease            = "synchub-agent"
	ReportAnnotation = "synchub.dev/agent-report"
	SealAnnotation   = "synchub.dev/agent-seal"
)

// Mode says what the agent must do with the objects that it has placed.
type Mode string

const (
	// ModeSync: keep the cluster in sync with the mailbox.
	ModeSync Mode = "Sync"
	// ModeSuspend: write nothing.
	ModeSuspend Mode = "Suspend"
	// ModeDrain: remove everything, since the SyncTarget is drained.
	ModeDrain Mode = "Drain"
	// ModeDelete and ModeOrphan: remove everything, or its marks, since the SyncTarget is being deleted.
	ModeDelete Mode = "Delete"
	ModeOrphan Mode = "Orphan"
)

// Assignment is what the hub tells an agent: its SyncTarget, and the rules by which all mailboxes are synced.
type Assignment struct {
	// Sequence grows with each assignment, also of another hub for the same SyncTarget.
	Sequence int64 `json:"sequence"`
	// Hub is the UID of the provider workspace's LogicalCluster.
	Hub types.UID `json:"hub"`
	// Mailbox is the logical cluster of the mailbox. An assignment that was copied from another mailbox names that one.
	Mailbox string `json:"mailbox"`
	// BindingSelector selects the mailbox's binding of the hub's export.
	BindingSelector string     `json:"bindingSelector"`
	SyncTarget      SyncTarget `json:"syncTarget"`
	// Cluster is the ID of the cluster that the SyncTarget stands for. An agent in another one syncs nothing until an operator has confirmed
	// that cluster. Empty before an agent has synced.
	Cluster string `json:"cluster,omitempty"`
	// ProtectedNamespaces are patterns of the namespaces that the agent uses only if the SyncTarget allows it.
	ProtectedNamespaces []string `json:"protectedNamespaces,omitempty"`
	Mode                Mode     `json:"mode"`
	Rules               Rules    `json:"rules"`
}

// SyncTarget is the part of a SyncTarget that the agent acts on.
type SyncTarget struct {
	Name        string                      `json:"name"`
	UID         types.UID                   `json:"uid"`
	Generation  int64                       `json:"generation"`
	Inventory   string                      `json:"inventory"`
	Labels      map[string]string           `json:"labels,omitempty"`
	Annotations map[string]string           `json:"annotations,omitempty"`
	Spec        edgev2alpha1.SyncTargetSpec `json:"spec"`
}

// Rules are the published rules, as the hub has put them into force.
type Rules struct {
	Resources []Resource `json:"resources,omitempty"`
	Schemas   []Schema   `json:"schemas,omitempty"`
	CRDs      []CRD      `json:"crds,omitempty"`
	// Limits bound the cache of each resource.
	Limits []ResourceLimits `json:"limits,omitempty"`
	// Watched are all resources of the mailbox that are read.
	Watched []schema.GroupVersionResource `json:"watched,omitempty"`
}

// Resource is a resource to sync.
type Resource struct {
	// Published is the PublishedResource; nil for an API that is synced only for related objects.
	Published *Published `json:"published,omitempty"`
	// API is the API in mailboxes.
	API publishedresource.API `json:"api"`
	// Unpublishing is true if only finalizers are removed.
	Unpublishing bool `json:"unpublishing,omitempty"`

	// unknown is the error of a rule that has fields which this version does not know; nil if it has none.
	unknown error
}

// UnmarshalJSON decodes a rule. It notes unknown fields instead of failing, so that they stop this rule only.
func (r *Resource) UnmarshalJSON(content []byte) error {
	type plain Resource
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	unknown := decoder.Decode((*plain)(r))
	if unknown == nil {
		return nil
	}
	*r = Resource{}
	err := json.Unmarshal(content, (*plain)(r))
	r.unknown = unknown
	return err
}

// Published is the part of a PublishedResource that rules are compiled from.
type Published struct {
	Name    string                                `json:"name"`
	Created metav1.Time                           `json:"created"`
	Spec    synchubv1alpha1.PublishedResourceSpec `json:"spec"`
}

// Schema is the schema that mailboxes have of a resource.
type Schema struct {
	Resource schema.GroupResource             `json:"resource"`
	Name     string                           `json:"name"`
	Version  string                           `json:"version"`
	OpenAPI  *apiextensionsv1.JSONSchemaProps `json:"openAPI,omitempty"`
	WarnOnly bool                             `json:"warnOnly,omitempty"`
}

// CRD is a CRD that targets must have.
type CRD struct {
	PublishedResource string                                    `json:"publishedResource"`
	UID               types.UID                                 `json:"uid"`
	CRD               *apiextensionsv1.CustomResourceDefinition `json:"crd"`
	Version           string                                    `json:"version,omitempty"`
}

// ResourceLimits are the limits of a resource for the cache of a mailbox.
type ResourceLimits struct {
	Resource schema.GroupVersionResource `json:"resource"`
	Limits   mailboxes.Limits            `json:"limits"`
}

// Report is what an agent tells the hub. All of it is about the agent's own cluster.
type Report struct {
	// Sequence grows with each report, also over restarts of the agent.
	Sequence int64 `json:"sequence"`
	// Mailbox and SyncTarget say what the report is about.
	Mailbox    string    `json:"mailbox"`
	SyncTarget types.UID `json:"syncTarget"`
	// Assignment is the sequence of the assignment in force.
	Assignment int64 `json:"assignment"`
	// Problem says why the agent does not use the assignment that it last read; empty if it does.
	Problem string `json:"problem,omitempty"`
	// Cluster is the UID of the namespace kube-system of the agent's cluster.
	Cluster string `json:"cluster,omitempty"`
	// Status is the status of the SyncTarget as far as the agent knows it.
	Status edgev2alpha1.SyncTargetStatus `json:"status"`
	// Copies is the sequence of the states in the ConfigMap CopiesConfigMap; zero while the agent has none.
	Copies int64 `json:"copies,omitempty"`
	// Finished is true once a drain or a cleanup has nothing left to do.
	Finished bool `json:"finished,omitempty"`
}
