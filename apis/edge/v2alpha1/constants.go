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

// Wildcard as a name, or as an element of a list, matches every value of the field.
const Wildcard = "*"

// Annotations that KubeStellar 0.14 writes or reads. synchub keeps their keys, so that users of KubeStellar can
// migrate.
const (
	// AnnotationSyncTargetName on a mailbox workspace is the name of its SyncTarget.
	AnnotationSyncTargetName = "edge.kubestellar.io/sync-target-name"

	// AnnotationDownsyncOverwrite with the value "false", set by a user on a mailbox object, makes the hub create the
	// object on the target only once. The hub then leaves the target object alone, even when the mailbox object is
	// deleted.
	AnnotationDownsyncOverwrite = "edge.kubestellar.io/downsync-overwrite"

	// AnnotationDownsynced was set by KubeStellar's syncer on target objects, with the value
	// "<Kind>/<namespace>/<name>". The hub never writes it. The adoption policy KubeStellar reads it.
	AnnotationDownsynced = "edge.kubestellar.io/downsynced"
)

// AnnotationForceRemoval with the value "true", on a SyncTarget that is being deleted, makes the hub finish the
// deletion although the cluster is unreachable. An event lists the objects that stay on the cluster.
const AnnotationForceRemoval = "synchub.dev/force-removal"

// AnnotationConfirmedRestore on a SyncTarget confirms that kcp went back to an earlier state, so that the hub removes and overwrites copies
// on the cluster again. Its value must equal status.storeWentBack.id.
const AnnotationConfirmedRestore = "synchub.dev/confirmed-restore"

// AnnotationConfirmedCluster on a SyncTarget confirms that it now stands for another cluster. Its value must equal
// status.observedClusterID.
const AnnotationConfirmedCluster = "synchub.dev/confirmed-cluster"

// AnnotationExecutingCount is on an object of a workload workspace whose status comes back from its destinations. Its value is
// their number, as in KubeStellar.
const AnnotationExecutingCount = "kubestellar.io/executing-count"

// Annotations on an object of a workload workspace that describe how its copies differ from it, with the keys of KubeStellar.
const (
	// AnnotationExpandParameters with the value "true" makes the hub expand parameters in each text of the object, for each
	// destination. On a Customizer it applies to the Customizer's paths and values.
	AnnotationExpandParameters = "edge.kubestellar.io/expand-parameters"

	// AnnotationCustomizer names the Customizer that changes the copies of the object: one of the same namespace, or
	// "<namespace>/<name>" if the object has no namespace.
	AnnotationCustomizer = "edge.kubestellar.io/customizer"
)

// AnnotationBindCompute is on an EdgePlacement that `kubectl synchub bind compute` made. Its value is the path of the
// inventory workspace. `kubectl synchub unbind compute` uses it to find the EdgePlacement. The hub ignores the annotation.
const AnnotationBindCompute = "synchub.dev/bind-compute"

// AnnotationFormerDestinations on a SinglePlacementSlice lists the former destinations whose copies wait for their withdrawal. After a
// restart, the hub finds them there. An entry is "<logical cluster>/<Location>/<SyncTarget>/<UID>", and commas separate them.
const AnnotationFormerDestinations = "synchub.dev/former-destinations"

// Label and annotation of the Secrets that the hub may read in an inventory workspace. Bindings accept the export's
// claim on Secrets only for LabelCredential, so the hub cannot see a Secret without this label.
const (
	// LabelCredential is the key of the label that specifies which kind of credential a Secret holds.
	LabelCredential = "synchub.dev/credential" //nolint:gosec // the key of a label, not a credential

	// CredentialKubeconfig is the value of LabelCredential for a Secret with the kubeconfig of a target.
	CredentialKubeconfig = "kubeconfig"

	// AnnotationAllowedSyncTargets on a credential Secret lists the SyncTargets of the workspace that may use the
	// Secret, separated by commas. An entry is "<name>/<uid>" for one particular SyncTarget, or "<name>" for any
	// SyncTarget of that name. The hub uses a Secret for no other SyncTarget: spec.kubeconfigSecretRef of a
	// SyncTarget alone grants nothing.
	AnnotationAllowedSyncTargets = "synchub.dev/allowed-sync-targets"
)

// Labels of the objects that an entry of spec.upsync with to: Workspace brings into a workload workspace. A text that is too long
// for a label ends in a hash.
const (
	// LabelSyncTarget is the name of the SyncTarget.
	LabelSyncTarget = "synchub.dev/sync-target"
	// LabelOriginName is the name of the object on the cluster.
	LabelOriginName = "synchub.dev/origin-name"
	// LabelOriginNamespace is the namespace of the object on the cluster, if it is another one than in the workspace.
	LabelOriginNamespace = "synchub.dev/origin-namespace"
)

// LabelPlacement is on PlacementRevisions. Its value is the UID of the EdgePlacement.
const LabelPlacement = "synchub.dev/placement-uid"

// LabelMailboxAccess is on the ClusterRoleBindings that the hub creates in a mailbox from spec.mailboxAccess of its
// SyncTarget. The hub never syncs an object with this label.
const LabelMailboxAccess = "synchub.dev/mailbox-access"

// Defaults of SecretReference, for code that reads an object before the API server has defaulted the fields.
const (
	// DefaultCredentialNamespace is the namespace of the Secret when a SecretReference has no namespace.
	DefaultCredentialNamespace = "default"

	// DefaultCredentialKey is the key in the Secret when a SecretReference has no key.
	DefaultCredentialKey = "kubeconfig"
)

// Condition types of the kinds in this package.
const (
	// ConditionReady is True when the hub has put into effect everything that the object asks for.
	ConditionReady = "Ready"

	// ConditionSyncerReady on a SyncTarget is True while its sync controllers run with synced caches.
	ConditionSyncerReady = "SyncerReady"

	// ConditionHeartbeatHealthy on a SyncTarget is True while the target's API server answers.
	ConditionHeartbeatHealthy = "HeartbeatHealthy"

	// ConditionSyncerAuthorized on a SyncTarget is True when its credentials grant all rights that the synced
	// resources need.
	ConditionSyncerAuthorized = "SyncerAuthorized"

	// ConditionMailboxReady on a SyncTarget is True when its mailbox workspace exists and serves the mailbox APIs.
	ConditionMailboxReady = "MailboxReady"

	// ConditionUndeclaredAccess on a SyncTarget is True while its mailbox has role bindings for subjects to which
	// spec.mailboxAccess does not grant the role. Who could once write there may have made them. The message names the
	// first bindings. The hub reads them only in mailboxes for which spec.mailboxAccess grants or granted something.
	ConditionUndeclaredAccess = "UndeclaredAccess"

	// ConditionClusterShared on a SyncTarget is True while a SyncTarget of another inventory workspace reaches a
	// cluster that reports the same ID. The hub keeps syncing both.
	ConditionClusterShared = "ClusterShared"

	// ConditionTunnelRefused is True while a tunnel with the SyncTarget's token is refused, such as one of another
	// cluster.
	ConditionTunnelRefused = "TunnelRefused"

	// ConditionStoreWentBack on a SyncTarget, a config or an EdgePlacement is True while the hub removes and overwrites
	// nothing on clusters, because kcp went back to an earlier state, as after a restore from a backup. An operator
	// confirms that with `kubectl synchub confirm-restore`.
	ConditionStoreWentBack = "StoreWentBack"

	// ConditionMailboxLimitExceeded on a SyncTarget is True while its mailbox has more objects, objects of one
	// resource, or configs than the hub acts upon. Objects that no config selects count too. The message names the
	// limit.
	ConditionMailboxLimitExceeded = "MailboxLimitExceeded"

	// ConditionAPIsMissing is True while a mailbox lacks an API that a PublishedResource publishes. It is set on the
	// SyncTarget of the mailbox, on the configs in the mailbox, and on the PublishedResource. The message describes how to
	// solve it.
	ConditionAPIsMissing = "APIsMissing"

	// ConditionResourcesUnreadable on a SyncTarget is True while the cluster serves resources that the hub cannot list or
	// watch. The message contains their names and the cluster's answers.
	ConditionResourcesUnreadable = "ResourcesUnreadable"

	// ConditionTenancyNotApplied on a SyncTarget is True while the cluster refuses an object that spec.tenancy asks for in the namespaces of
	// workload workspaces. The message has the cluster's words.
	ConditionTenancyNotApplied = "TenancyNotApplied"

	// ConditionNamespacesLeft on a SyncTarget is True while the hub may have left objects in namespaces that it used
	// before and that spec.namespaces.only does not list. The message names these namespaces.
	ConditionNamespacesLeft = "NamespacesLeft"

	// ConditionDrained on a SyncTarget with spec.drain is True once the cluster has no object left that the hub may
	// remove.
	ConditionDrained = "Drained"

	// ConditionNotImplemented is True when an object sets fields that this release accepts but does not act upon. The
	// message names the fields.
	ConditionNotImplemented = "NotImplemented"

	// ConditionSelectsNothing on a SyncerConfig or EdgeSyncConfig is True when a list that selects objects is absent
	// or empty. The message names the entries. KubeStellar 0.14 took an absent clusterScope.objects for all objects.
	ConditionSelectsNothing = "SelectsNothing"

	// ConditionOverlapping on a SyncerConfig or EdgeSyncConfig is True when other entries of the mailbox overrule
	// this config. The message names the first objects. The reason is one of:
	//   - ConversionOverruled: an older config decides the conversion of objects that this config selects too.
	//   - VersionOverruled: another entry decides the version in which the hub writes a resource to the target.
	//   - SelectedUp: objects are not downsynced, because upsync selects them as well.
	ConditionOverlapping = "Overlapping"

	// ConditionFieldsDropped on a SyncerConfig or EdgeSyncConfig is True when upsync drops fields of target objects,
	// because the schema of the mailbox lacks the fields. The message names the first fields.
	ConditionFieldsDropped = "FieldsDropped"

	// ConditionSuspended is True while the suspend field of the object stops its sync.
	ConditionSuspended = "Suspended"
)

// ConditionHealthy on an EdgePlacement is True when every selected object does its work on every destination.
const ConditionHealthy = "Healthy"

// ConditionUpsyncDenied on an EdgePlacement is True when spec.upsync does not apply to some destinations, because no
// Location allows this workspace to upsync there.
const ConditionUpsyncDenied = "UpsyncDenied"

// ConditionUpsyncIncomplete on an EdgePlacement is True while the workspace lacks objects that an entry of spec.upsync with
// to: Workspace selects. The reason is LimitExceeded or ObjectsFailed.
const ConditionUpsyncIncomplete = "UpsyncIncomplete"

// ConditionAggregated on an EdgePlacement with spec.aggregation is True while status.aggregation has its result. Otherwise the
// reason is AggregationFailed or LimitExceeded.
const ConditionAggregated = "Aggregated"

// ConditionTooFewClusters on an EdgePlacement is True when fewer SyncTargets than spec.numberOfClusters can take the objects.
const ConditionTooFewClusters = "TooFewClusters"

// ConditionWithdrawalPending on an EdgePlacement or a Location is True while copies wait for their withdrawal, because an
// inventory no longer offers their destination. The message contains their number and the time when they go.
const ConditionWithdrawalPending = "WithdrawalPending"

// ConditionRolledOut on an EdgePlacement with spec.rolloutStrategy or spec.paused is True when all destinations are successful.
const ConditionRolledOut = "RolledOut"

// ReasonInventoryChanged is the reason of the condition WithdrawalPending: a Location, or a label of a SyncTarget, changed.
const ReasonInventoryChanged = "InventoryChanged"

// ReasonConnecting is the reason while the hub waits for the first answer of a cluster.
const ReasonConnecting = "Connecting"

// ReasonNamingConflict is the reason when kcp does not bind an API, because the mailbox already has another API of
// the same name.
const ReasonNamingConflict = "NamingConflict"

// ReasonRefused is the reason when a cluster refuses an object that the hub keeps there.
const ReasonRefused = "Refused"
