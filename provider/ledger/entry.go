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

package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Entry is the state that the hub keeps of one SyncTarget. Do not change an entry that [Store.Get] returned.
type Entry struct {
	// Name is the name of the SyncTarget, and Inventory the logical cluster of its inventory workspace. They are for people.
	Name      string `json:"name"`
	Inventory string `json:"inventory"`
	// Mailbox is the logical cluster of the mailbox that the hub created last, or empty.
	Mailbox string `json:"mailbox,omitempty"`
	// MailboxBindings is true if the mailbox may have ClusterRoleBindings for spec.mailboxAccess.
	MailboxBindings bool `json:"mailboxBindings,omitempty"`
	// Cluster is the cluster of the SyncTarget. The hub does not sync to another cluster behind its kubeconfig.
	Cluster Cluster `json:"cluster,omitzero"`
	// FormerClusters are earlier clusters of the SyncTarget, the latest last. The hub may have left objects there.
	FormerClusters []FormerCluster `json:"formerClusters,omitempty"`
	// ClusterConflict is true while the hub does not sync the SyncTarget, because an older one of its workspace has the same
	// cluster.
	ClusterConflict bool `json:"refused,omitempty"`
	// VerifiedGeneration is the last generation of the SyncTarget for which the hub knew its cluster, had all permissions and
	// had synced all objects. It is zero if one of these conditions did not hold.
	VerifiedGeneration int64 `json:"verified,omitempty"`
	// Resources are the resources of the cluster whose objects the hub may have written, sorted.
	Resources []Resource `json:"resources,omitempty"`
	// TenantResources are the names of the resources of the objects that the hub may have written for workload workspaces, sorted.
	TenantResources []string `json:"tenants,omitempty"`
	// Namespaces are the namespaces in which the hub may have written these objects, sorted. They include [AllNamespaces] if
	// the hub was not restricted to namespaces before. Empty means the whole cluster.
	Namespaces []string `json:"namespaces,omitempty"`

	// The owner of the SyncTarget reports the other fields to the leader, if the leader is another replica.

	// CleanedUp is true once the owner has finished with the target of a SyncTarget that is being deleted. The owner no longer writes
	// there.
	CleanedUp bool `json:"cleanedUp,omitempty"`
	// Ready is true if the SyncTarget is Ready; nil until an owner has determined that.
	Ready *bool `json:"ready,omitempty"`
	// SyncSummary counts the objects of the SyncTarget; nil until an owner has counted them.
	SyncSummary *SyncSummary `json:"answer,omitempty"`
}

// SyncSummary is the summary that the owner of a SyncTarget gives the leader about its objects. Resources are named as "deployments.apps".
type SyncSummary struct {
	// Synced is true if the owner syncs the SyncTarget. If it does not, the other fields are empty.
	Synced bool `json:"synced,omitempty"`
	// Objects counts the objects on the target, by resource of the mailbox. It has all resources that are synced.
	Objects map[string]int64 `json:"objects,omitempty"`
	// NotServed are the published resources that the mailbox does not serve, sorted. Missing are those that it lacks because
	// their names are taken there.
	NotServed []string `json:"notServed,omitempty"`
	Missing   []string `json:"missing,omitempty"`
	// Unpublished are the UIDs of PublishedResources that are being deleted, and for which no object of the mailbox has the
	// hub's finalizer any more, sorted. They include only PublishedResources that this owner has observed itself, not those
	// that a former owner has observed.
	Unpublished []types.UID `json:"unpublished,omitempty"`
}

// Equal reports whether two summaries are equal. Either may be nil.
func (s *SyncSummary) Equal(other *SyncSummary) bool {
	return s.EqualExceptObjects(other) && (s == nil || maps.Equal(s.Objects, other.Objects))
}

// EqualExceptObjects reports whether two summaries differ at most in the numbers of objects. Either may be nil.
func (s *SyncSummary) EqualExceptObjects(other *SyncSummary) bool {
	if s == nil || other == nil {
		return s == other
	}
	return s.Synced == other.Synced && slices.Equal(s.NotServed, other.NotServed) && slices.Equal(s.Missing, other.Missing) &&
		slices.Equal(s.Unpublished, other.Unpublished)
}

func (s *SyncSummary) clone() *SyncSummary {
	if s == nil {
		return nil
	}
	next := *s
	next.Objects, next.NotServed, next.Missing = maps.Clone(s.Objects), slices.Clone(s.NotServed), slices.Clone(s.Missing)
	next.Unpublished = slices.Clone(s.Unpublished)
	return &next
}

// MayHaveObjects reports whether the SyncTarget has had a mailbox or a cluster, so that objects may be on its target.
func (e *Entry) MayHaveObjects() bool {
	return e.Mailbox != "" || e.Cluster != (Cluster{}) || len(e.Resources) > 0
}

// AllNamespaces stands for all namespaces of a cluster.
const AllNamespaces = "*"

// RecordNamespaces adds the namespaces to which the hub restricts its writes from now on. None means the whole cluster.
// The entry keeps earlier namespaces while the hub may have written objects there.
func (e *Entry) RecordNamespaces(namespaces []string) {
	before := e.Namespaces
	switch {
	case len(namespaces) == 0:
		e.Namespaces = nil
		return
	case len(e.Resources) == 0:
		before = nil
	case len(before) == 0:
		before = []string{AllNamespaces}
	}
	e.Namespaces = slices.Compact(slices.Sorted(slices.Values(slices.Concat(before, namespaces))))
}

// FormerNamespaces returns the recorded namespaces that are not among the given ones. If none are given, the hub writes
// in the whole cluster, and no namespace is a former one.
func (e *Entry) FormerNamespaces(namespaces []string) []string {
	if len(namespaces) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.Namespaces), func(one string) bool { return slices.Contains(namespaces, one) })
}

// Cluster identifies a cluster.
type Cluster struct {
	// ID is the UID of the namespace kube-system, or of a workspace's LogicalCluster. It is empty if the hub may read
	// neither.
	ID string `json:"id,omitempty"`
	// Server is the fingerprint of the address and the certificate authorities when the hub identified the cluster.
	Server string `json:"server,omitempty"`
}

// FormerCluster is the cluster of a SyncTarget until an operator confirmed another one.
type FormerCluster struct {
	Cluster `json:",inline"`
	// Until is the time when the operator confirmed the other cluster.
	Until time.Time `json:"until"`
	// Resources are the resources whose objects the hub may have left there.
	Resources []metav1.GroupResource `json:"resources,omitempty"`
}

// Resource is a resource of the cluster whose objects the hub may have written.
type Resource struct {
	metav1.GroupResource `json:",inline"`
	// Version is the version that the hub uses.
	Version string `json:"version,omitempty"`
	// Direct is true if objects of the same resource in the mailbox are synced to this resource.
	Direct bool `json:"own,omitempty"`
	// ConvertedFrom are the resources in the mailbox whose objects are converted, or are related, to this resource, sorted.
	ConvertedFrom []metav1.GroupResource `json:"convertedFrom,omitempty"`
	// State, Reason and Message are the result of the schema check, as in status.syncedResources. State is empty if there is
	// none.
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Schema is the schema, with its version, that mailboxes had at the check.
	Schema string `json:"schema,omitempty"`
	// Served is true if the cluster has served the resource to the hub before.
	Served bool `json:"served,omitempty"`
}

// maxFormerClusters is the maximum number of former clusters in an entry.
const maxFormerClusters = 8

// ConfirmCluster sets the cluster of the SyncTarget. If objects may be left on the current cluster, that cluster becomes a former
// one.
func (e *Entry) ConfirmCluster(next Cluster, now time.Time) {
	if e.Cluster.ID != "" && e.Cluster.ID != next.ID && len(e.Resources) > 0 {
		former := FormerCluster{Cluster: e.Cluster, Until: now.UTC().Truncate(time.Second)}
		for _, resource := range e.Resources {
			former.Resources = append(former.Resources, resource.GroupResource)
		}
		e.FormerClusters = append(e.FormerClusters, former)
	}
	e.Cluster, e.VerifiedGeneration = next, 0
	// A former cluster that is confirmed again is no longer a former one.
	e.FormerClusters = slices.DeleteFunc(e.FormerClusters, func(former FormerCluster) bool { return former.ID == next.ID })
	if more := len(e.FormerClusters) - maxFormerClusters; more > 0 {
		e.FormerClusters = slices.Delete(e.FormerClusters, 0, more)
	}
}

// clone returns a deep copy of the entry.
func (e *Entry) clone() Entry {
	next := *e
	next.FormerClusters = slices.Clone(e.FormerClusters)
	for i := range next.FormerClusters {
		next.FormerClusters[i].Resources = slices.Clone(next.FormerClusters[i].Resources)
	}
	next.Namespaces, next.TenantResources = slices.Clone(e.Namespaces), slices.Clone(e.TenantResources)
	next.Resources = slices.Clone(e.Resources)
	for i := range next.Resources {
		next.Resources[i].ConvertedFrom = slices.Clone(next.Resources[i].ConvertedFrom)
	}
	if e.Ready != nil {
		next.Ready = new(*e.Ready)
	}
	next.SyncSummary = e.SyncSummary.clone()
	return next
}

// emptyEntry is the encoded zero entry.
var emptyEntry, _ = (&Entry{}).encode()

func (e *Entry) encode() (string, error) {
	data, err := json.Marshal(e)
	return string(data), err
}

// decode returns the entry in a ConfigMap of the ledger.
func decode(stored *corev1.ConfigMap) (Entry, error) {
	var entry Entry
	if err := json.Unmarshal([]byte(stored.Data[entryKey]), &entry); err != nil {
		return Entry{}, fmt.Errorf("cannot decode the ledger entry in the ConfigMap %s/%s: %w", Namespace, stored.Name, err)
	}
	return entry, nil
}
