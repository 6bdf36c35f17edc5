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
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// EdgePlacement places objects of its workload workspace on clusters. The hub copies each selected object into the
// mailbox of each SyncTarget of the selected Locations. All EdgePlacements of a workspace add up.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=epl,categories=synchub
// +kubebuilder:printcolumn:name="Locations",type=integer,JSONPath=`.status.matchingLocationCount`
// +kubebuilder:printcolumn:name="Destinations",type=integer,JSONPath=`.status.destinations`
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selected`
// +kubebuilder:printcolumn:name="Placed",type=integer,JSONPath=`.status.placed`
// +kubebuilder:printcolumn:name="Synced",type=integer,JSONPath=`.status.synced`
// +kubebuilder:printcolumn:name="Healthy",type=integer,JSONPath=`.status.healthy`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Rollout",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="RolledOut")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EdgePlacement struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the objects and their destinations.
	// +optional
	Spec EdgePlacementSpec `json:"spec,omitempty"`

	// status reports the progress of the placement.
	// +optional
	Status EdgePlacementStatus `json:"status,omitempty"`
}

// EdgePlacementSpec selects objects of the workspace and the Locations where they go.
//
// +kubebuilder:validation:XValidation:rule="has(self.numberOfClusters) || !has(self.spread) && !has(self.tolerationSeconds)",message="spread and tolerationSeconds need numberOfClusters"
// +kubebuilder:validation:XValidation:rule="!has(self.aggregation) || has(self.upsync) && self.upsync.exists(entry, entry.to == 'Workspace')",message="aggregation needs an entry of upsync with to: Workspace",fieldPath=".aggregation"
type EdgePlacementSpec struct {
	// locationSelectors select Locations by their labels. A Location is selected if any of them matches; an empty
	// selector matches all. Only Locations that are available to this workspace count.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	LocationSelectors []metav1.LabelSelector `json:"locationSelectors,omitempty"`

	// inventoryWorkspaces restrict the selected Locations to Locations in these workspaces, given as paths. An empty list
	// restricts nothing.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	InventoryWorkspaces []string `json:"inventoryWorkspaces,omitempty"`

	// downsync selects objects of the workspace. An object is selected if any of the tests matches.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Downsync []DownsyncObjectTest `json:"downsync,omitempty"`

	// wantSingletonReportedState brings the status of a selected object back into this workspace while the object has
	// exactly one destination. The annotation kubestellar.io/executing-count of the object has the number of its
	// destinations. If any placement that selects the object sets the field, it counts.
	// +optional
	WantSingletonReportedState bool `json:"wantSingletonReportedState,omitempty"`

	// aggregateStatus brings the statuses that a selected object has at its destinations back into this workspace, combined
	// by statusAggregation of the PublishedResource. If any placement that selects the object sets the field, it counts.
	// +optional
	AggregateStatus bool `json:"aggregateStatus,omitempty"`

	// upsync selects objects of the clusters that the hub syncs up to their mailboxes, or on into this workspace. An entry for
	// mailboxes takes precedence over downsync: an object of a name that it selects is not downsynced. Entries apply to
	// Locations of this workspace, and to Locations whose spec.availableTo allows upsync. An entry for the workspace also
	// applies to SyncTargets where each workspace has namespaces of its own. The condition UpsyncDenied names the other
	// destinations.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Upsync []PlacementUpsync `json:"upsync,omitempty"`

	// aggregation combines the objects that upsync brings into this workspace into one value: status.aggregation.
	// +optional
	Aggregation *PlacementAggregation `json:"aggregation,omitempty"`

	// numberOfClusters is the number of matching SyncTargets to use. The hub chooses SyncTargets that are Ready and may get
	// new objects, and keeps them as long as they match and remain Ready and schedulable; the SinglePlacementSlice lists
	// them. A chosen SyncTarget that is cordoned, drained, or not Ready for longer than tolerationSeconds is replaced as soon
	// as another one can take its place. An absent number uses all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// spread lists labels of SyncTargets. The hub spreads the chosen SyncTargets evenly over the values of the first label,
	// and the SyncTargets of each value evenly over the values of the next label. It does not change existing choices to
	// improve the spread.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Spread []SpreadConstraint `json:"spread,omitempty"`

	// tolerationSeconds is how long a chosen SyncTarget may be not Ready before another one replaces it, if there is
	// one. The default is 300.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`

	// rolloutStrategy determines which destinations get a change next. An absent strategy sends every change to all
	// destinations at once. A destination counts as successful once its cluster has all objects of this placement as they are
	// in this workspace, and they are healthy. An object that several placements select goes to a destination as soon as one
	// of them lets it. Deletions and withdrawals do not wait.
	// +optional
	RolloutStrategy *RolloutStrategy `json:"rolloutStrategy,omitempty"`

	// paused stops the rollout: no new object and no change of an object goes to any destination until the field is
	// false again. Deletions and withdrawals do not wait.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// deletionPolicy determines what happens to the copies of an object when no placement selects it any more, when it is
	// deleted, or when a destination is no longer selected. Orphan leaves them in the mailbox and on the target. When
	// placements disagree on an object, Orphan wins.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// PlacementUpsync selects objects of the clusters, and where they go.
type PlacementUpsync struct {
	UpsyncSet `json:",inline"`

	// to is Mailbox or Workspace. With Workspace, the hub copies the objects from the mailboxes into this workspace, with their
	// status: from the namespaces that this workspace has placed on the cluster, into the same namespaces here. The entry's
	// namespaces are names of this workspace. A copy has the name of the object, a dot and the name of the SyncTarget; the hub
	// undoes changes of it, and does not place it.
	// +optional
	// +kubebuilder:default=Mailbox
	To UpsyncDestination `json:"to,omitempty"`
}

// UpsyncDestination is where upsynced objects go.
//
// +kubebuilder:validation:Enum=Mailbox;Workspace
type UpsyncDestination string

const (
	// UpsyncToMailbox leaves the objects in the mailboxes.
	UpsyncToMailbox UpsyncDestination = "Mailbox"
	// UpsyncToWorkspace copies the objects into the workload workspace too.
	UpsyncToWorkspace UpsyncDestination = "Workspace"
)

// PlacementAggregation combines the objects that a placement brings into the workspace.
type PlacementAggregation struct {
	// expression is a CEL expression that returns a map. Its variable objects is the list of the objects that entries in
	// spec.upsync with to: Workspace bring into this workspace, but for Secrets, sorted by kinds and names. Their label
	// synchub.dev/sync-target names the SyncTarget, and synchub.dev/origin-name the object on its cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Expression string `json:"expression"`
}

// RolloutStrategy is the RolloutStrategy of Open Cluster Management, with a label that defines the groups. Destinations are
// taken in the order of their SyncTargets' names.
//
// +kubebuilder:validation:XValidation:rule="has(self.groupBy) || !has(self.type) || self.type != 'ProgressivePerGroup'",message="ProgressivePerGroup needs groupBy"
type RolloutStrategy struct {
	clusterv1alpha1.RolloutStrategy `json:",inline"`

	// groupBy is the key of a label. Its values are the names of the decision groups: the SyncTarget's label counts, or the
	// Location's label if the SyncTarget has none. Groups are taken in the order of their names, numbers by their values;
	// destinations without the label are the last group, whose name is empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	GroupBy string `json:"groupBy,omitempty"`
}

// SpreadConstraint spreads the chosen SyncTargets over the values of a label.
type SpreadConstraint struct {
	// label is the key of a label of SyncTargets. SyncTargets without the label count as one value.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Label string `json:"label"`
}

// DownsyncObjectTest selects the objects that match all of its criteria.
//
// +kubebuilder:validation:XValidation:rule="has(self.apiGroup) || has(self.resources) && self.resources.size() > 0 && self.resources.all(e, e != '*') || has(self.namespaces) && self.namespaces.size() > 0 && self.namespaces.all(e, e != '*') || has(self.objectNames) && self.objectNames.size() > 0 && self.objectNames.all(e, e != '*') || has(self.namespaceSelectors) && self.namespaceSelectors.size() > 0 && self.namespaceSelectors.all(s, (has(s.matchLabels) && s.matchLabels.size() > 0 || has(s.matchExpressions) && s.matchExpressions.size() > 0)) || has(self.labelSelectors) && self.labelSelectors.size() > 0 && self.labelSelectors.all(s, (has(s.matchLabels) && s.matchLabels.size() > 0 || has(s.matchExpressions) && s.matchExpressions.size() > 0))",message="this test selects every object of the workspace: set apiGroup, resources, namespaces, namespaceSelectors, objectNames or labelSelectors so that it does not"
type DownsyncObjectTest struct {
	// apiGroup is the group of the objects. An absent group matches all; an empty one is the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	APIGroup *string `json:"apiGroup,omitempty"`

	// resources are plural names. An empty list, or "*", matches all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	Resources []string `json:"resources,omitempty"`

	// namespaces of the objects. An empty list, or "*", matches all namespaces, and cluster-scoped objects; any other
	// list matches no cluster-scoped object.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	Namespaces []string `json:"namespaces,omitempty"`

	// namespaceSelectors select the namespaces of the objects by their labels. An object matches if any of them does.
	// A cluster-scoped object matches only the empty selector.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`

	// objectNames are names of objects. An empty list, or "*", matches all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[^/%]+$`
	ObjectNames []string `json:"objectNames,omitempty"`

	// labelSelectors select objects by their labels. An object matches if any of them does.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	LabelSelectors []metav1.LabelSelector `json:"labelSelectors,omitempty"`
}

// EdgePlacementStatus reports the progress of an EdgePlacement. The hub writes it at most once in five seconds.
type EdgePlacementStatus struct {
	// conditions of the placement: Ready and Healthy, and, where they apply, RolledOut, UpsyncDenied, UpsyncIncomplete,
	// Aggregated, APIsMissing, TooFewClusters and WithdrawalPending.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// specGeneration is the generation of the placement that this status describes.
	// +optional
	SpecGeneration int32 `json:"specGeneration,omitempty"`

	// matchingLocationCount is the number of Locations that the placement selects and that are available to the
	// workspace.
	// +optional
	MatchingLocationCount int32 `json:"matchingLocationCount"`

	// destinations is the number of SyncTargets of these Locations.
	// +optional
	Destinations int32 `json:"destinations"`

	// selected is the number of objects that the placement selects.
	// +optional
	Selected int64 `json:"selected"`

	// observedObjects identifies the content of the selected objects that the rest of the status is about: a number of
	// objects and a hash of their metadata.
	// +optional
	ObservedObjects string `json:"observedObjects,omitempty"`

	// unplacedResources are the first resources, at most 64, that this workspace has through the hub's export and
	// whose objects no placement selects: the hub reads or writes them for its own use. Each is a name with its
	// group, such as events or leases.coordination.k8s.io.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	UnplacedResources []string `json:"unplacedResources,omitempty"`

	// placed is the number of pairs of a selected object and a destination for which the mailbox of the destination
	// has the object as it is in this workspace.
	// +optional
	Placed int64 `json:"placed"`

	// synced is the number of placed pairs for which the cluster of the destination has the object as it is in this
	// workspace, as the hub has seen it last.
	// +optional
	Synced int64 `json:"synced"`

	// healthy is the number of synced pairs whose object does its work on the cluster: kstatus, or spec.health of its
	// PublishedResource, finds it Current.
	// +optional
	Healthy int64 `json:"healthy"`

	// failed is the number of pairs of a selected object and a destination that the hub cannot place, or bring in sync
	// with the cluster, until someone acts.
	// +optional
	Failed int64 `json:"failed"`

	// upsynced is the number of objects of the clusters that this workspace has, by entries in spec.upsync with to: Workspace.
	// +optional
	Upsynced int64 `json:"upsynced,omitempty"`

	// aggregation is the result of spec.aggregation, without nulls, of at most 16 KiB. It is absent while the condition
	// Aggregated is False.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:XPreserveUnknownFields
	Aggregation *runtime.RawExtension `json:"aggregation,omitempty"`

	// failures describe the first of the failed pairs, of the pairs that are not healthy because the cluster has given up on
	// them, and of the upsynced objects that the hub cannot copy into this workspace, at most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Failures []PlacementPair `json:"failures,omitempty"`

	// rollout counts the destinations by their progress. It is absent without spec.rolloutStrategy and spec.paused.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// progressing describes the first of the pairs that are in progress, at most 10. The reason is WaitingForRollout while
	// the rollout does not let the object go to the destination. It is Placing while the mailbox of the destination does not
	// have the object as it is in this workspace, and Syncing while the cluster does not. It is InProgress or Terminating
	// while the object does not do its work there yet. Pairs in neither list are healthy, if the lists have as many pairs as
	// the counts.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Progressing []PlacementPair `json:"progressing,omitempty"`

	// excluded is the number of objects of the workspace that no EdgePlacement of it places. It counts objects in the
	// namespaces where this placement selects objects, objects in namespaces called kube-, and cluster-scoped objects. It
	// does not count objects that kcp or Kubernetes makes, Namespaces, and objects of APIs that the hub does not publish.
	// +optional
	Excluded int64 `json:"excluded,omitempty"`

	// excludedObjects describe the first of them, at most 10. The reason is NotSelected, SystemName or SystemNamespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	ExcludedObjects []ObjectFailure `json:"excludedObjects,omitempty"`
}

// RolloutStatus counts the destinations of a placement. Each destination is in exactly one of the counts.
type RolloutStatus struct {
	// succeeded destinations have all objects as they are in this workspace, and all are healthy.
	// +optional
	Succeeded int32 `json:"succeeded"`

	// progressing destinations may have all objects as they are in this workspace, and do not have them all yet, or
	// some are not healthy yet.
	// +optional
	Progressing int32 `json:"progressing"`

	// failed destinations have an object that cannot be placed or synced, or whose cluster has given up on it, or
	// they were not successful within progressDeadline.
	// +optional
	Failed int32 `json:"failed"`

	// waiting destinations lack an object, or a change of an object, and do not get it yet.
	// +optional
	Waiting int32 `json:"waiting"`

	// failedClusters are the names of the SyncTargets of the first failed destinations, at most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	FailedClusters []string `json:"failedClusters,omitempty"`

	// revision is the last PlacementRevision that the hub has made.
	// +optional
	Revision *RevisionReference `json:"revision,omitempty"`
}

// RevisionReference names a PlacementRevision.
type RevisionReference struct {
	// revision is the number of the PlacementRevision.
	// +optional
	Revision int64 `json:"revision"`

	// observedObjects identifies the objects that the PlacementRevision keeps.
	// +optional
	ObservedObjects string `json:"observedObjects,omitempty"`
}

// PlacementPair is one object at one destination, with the reason why it is not healthy there.
type PlacementPair struct {
	ObjectFailure `json:",inline"`

	// syncTarget is the name of the destination's SyncTarget.
	// +optional
	SyncTarget string `json:"syncTarget,omitempty"`

	// clusterNamespace is the namespace of the object on the cluster, or the name of the Namespace there, if it is another one than
	// in the workspace.
	// +optional
	ClusterNamespace string `json:"clusterNamespace,omitempty"`
}

// EdgePlacementList is a list of EdgePlacements.
//
// +kubebuilder:object:root=true
type EdgePlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EdgePlacement `json:"items"`
}
