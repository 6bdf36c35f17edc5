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

// MaxFailures is how many failures a SyncerConfigStatus lists; its count of failed objects has no such limit.
const MaxFailures = 10

// SyncerConfigStatus says how far the hub has come with what a SyncerConfig or EdgeSyncConfig selects. It is written
// at most once in five seconds.
type SyncerConfigStatus struct {
	// Conditions: Ready, SelectsNothing, Overlapping, Suspended, NotImplemented.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the config that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Selected is the number of objects that the config selects, in both directions.
	// +optional
	Selected int64 `json:"selected"`

	// Synced is the number of them that are in sync on both sides.
	// +optional
	Synced int64 `json:"synced"`

	// Failed is the number of them that cannot be brought into step until someone acts.
	// +optional
	Failed int64 `json:"failed"`

	// Failures are the first of the failed objects.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Failures []ObjectFailure `json:"failures,omitempty"`

	// LastSyncerHeartbeatTime is when the hub last looked at the config.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, and never set. A heartbeat in each config would be a write where
	// nothing changes; that of the SyncTarget tells whether the hub lives.
	// +optional
	LastSyncerHeartbeatTime *metav1.Time `json:"lastSyncerHeartbeatTime,omitempty"`
}

// ObjectFailure says why one object is not in sync.
type ObjectFailure struct {
	// Group of the object's resource in the mailbox, empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// Resource is the plural name.
	// +required
	Resource string `json:"resource"`

	// Namespace of the object, empty when it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +required
	Name string `json:"name"`

	// Reason is a constant, for example Conflict, NotServed, Forbidden, Invalid or AdmissionDenied.
	// +required
	Reason string `json:"reason"`

	// Message says the same to a human, and what to do about it.
	// +optional
	Message string `json:"message,omitempty"`
}
