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

package v2alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxFailures is the maximum length of status.failures of a config; status.failed counts all failed objects.
const MaxFailures = 10

// SyncerConfigStatus reports how many objects that a SyncerConfig or EdgeSyncConfig selects are in sync, and why the rest are
// not. The hub writes it at most once in five seconds.
type SyncerConfigStatus struct {
	// conditions of the config: Ready, and where they apply APIsMissing, SelectsNothing, Overlapping, FieldsDropped
	// and Suspended.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the config that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// selected is the number of objects that the config selects, in both directions.
	// +optional
	Selected int64 `json:"selected"`

	// synced is the number of selected objects that are in sync on both sides.
	// +optional
	Synced int64 `json:"synced"`

	// ready is the number of synced objects that the hub brought to the target, and that do their work there: kstatus,
	// or spec.health of their PublishedResource, finds them Current.
	// +optional
	Ready int64 `json:"ready"`

	// failed is the number of selected objects that the hub cannot bring in sync until someone acts.
	// +optional
	Failed int64 `json:"failed"`

	// failures describe the first of the failed objects, at most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Failures []ObjectFailure `json:"failures,omitempty"`

	// lastSyncerHeartbeatTime is the time when the hub last observed the config.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, and never set. A heartbeat in each config would cost a
	// write although nothing changed. status.lastSyncerHeartbeatTime of the SyncTarget shows that the hub is alive.
	// +optional
	LastSyncerHeartbeatTime *metav1.Time `json:"lastSyncerHeartbeatTime,omitempty"`
}

// ObjectFailure describes why one object is not in sync.
type ObjectFailure struct {
	// group of the object's resource in the mailbox. Empty means the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// resource is the plural name.
	// +required
	Resource string `json:"resource"`

	// namespace of the object, empty when the object is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +required
	Name string `json:"name"`

	// reason is a constant, for example Conflict, NotServed, Forbidden, Invalid or AdmissionDenied.
	// +required
	Reason string `json:"reason"`

	// message explains the reason to a human, and how to solve the problem.
	// +optional
	Message string `json:"message,omitempty"`

	// differences are the first fields that differ on the cluster, at most 10, if the reason is Drifted or AdoptionReported.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Differences []FieldDifference `json:"differences,omitempty"`
}
