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

// Wildcard, as the element of a list or as a name, stands for everything the field can name.
const Wildcard = "*"

// Annotations that KubeStellar 0.14 writes or reads, kept under the same keys so that its users can move over.
const (
	// AnnotationSyncTargetName is set on a mailbox workspace: the name of the SyncTarget it belongs to.
	AnnotationSyncTargetName = "edge.kubestellar.io/sync-target-name"

	// AnnotationDownsyncOverwrite is set by users on a mailbox object. With the value "false" the object is created
	// on the target once and then left alone, also when it goes from the mailbox.
	AnnotationDownsyncOverwrite = "edge.kubestellar.io/downsync-overwrite"

	// AnnotationDownsynced is what KubeStellar's syncer left on a target object, with the value
	// "<Kind>/<namespace>/<name>". The hub never writes it; the adoption policy KubeStellar reads it.
	AnnotationDownsynced = "edge.kubestellar.io/downsynced"
)

// AnnotationForceRemoval, with the value "true" on a SyncTarget that is being deleted, lets it go although its cluster cannot
// be reached. What is left there is listed in an event.
const AnnotationForceRemoval = "synchub.dev/force-removal"

// AnnotationConfirmedCluster on a SyncTarget confirms that another cluster takes the place of the one it stood for: its value
// is that of status.observedClusterID.
const AnnotationConfirmedCluster = "synchub.dev/confirmed-cluster"

// The label an inventory workspace puts on each Secret that the hub may read. The export's claim on Secrets is
// accepted for this label only, so an unlabelled Secret does not exist for the hub.
const (
	// LabelCredential says what kind of credential the labelled Secret holds.
	LabelCredential = "synchub.dev/credential" //nolint:gosec // the key of a label, not a credential

	// CredentialKubeconfig is the value of LabelCredential for a Secret with a target's kubeconfig.
	CredentialKubeconfig = "kubeconfig"

	// AnnotationAllowedSyncTargets is on such a Secret and names the SyncTargets of its workspace that may use it, separated
	// by commas: "<name>/<uid>" for one, or "<name>" for whichever has the name. The hub uses no Secret for a SyncTarget that
	// is not named: a reference in a SyncTarget is no permission.
	AnnotationAllowedSyncTargets = "synchub.dev/allowed-sync-targets"
)

// LabelMailboxAccess is on the ClusterRoleBindings that the hub makes in a mailbox from spec.mailboxAccess of its SyncTarget.
// What carries it is never synced.
const LabelMailboxAccess = "synchub.dev/mailbox-access"

// Defaults of SecretReference, for code that sees an object before the API server has filled them in.
const (
	// DefaultCredentialNamespace is the namespace of a credential Secret whose reference names none.
	DefaultCredentialNamespace = "default"

	// DefaultCredentialKey is the key in a credential Secret whose reference names none.
	DefaultCredentialKey = "kubeconfig"
)

// Condition types of the kinds in this package.
const (
	// ConditionReady sums up: True when everything the object asks for is in effect.
	ConditionReady = "Ready"

	// ConditionSyncerReady on a SyncTarget is True while its sync controllers run and have synced caches.
	ConditionSyncerReady = "SyncerReady"

	// ConditionHeartbeatHealthy on a SyncTarget is True while the target's API server answers.
	ConditionHeartbeatHealthy = "HeartbeatHealthy"

	// ConditionSyncerAuthorized on a SyncTarget is True when its credentials may do what the synced resources need.
	ConditionSyncerAuthorized = "SyncerAuthorized"

	// ConditionMailboxReady on a SyncTarget is True when its mailbox workspace exists and serves the mailbox APIs.
	ConditionMailboxReady = "MailboxReady"

	// ConditionClusterShared on a SyncTarget is True while a SyncTarget of another inventory workspace leads to what says to
	// be the same cluster. Neither is stopped by that.
	ConditionClusterShared = "ClusterShared"

	// ConditionMailboxLimitExceeded on a SyncTarget is True, and names the limit, while its mailbox has more objects, objects of
	// one resource, or configs than the hub acts upon, whether a config selects them or not.
	ConditionMailboxLimitExceeded = "MailboxLimitExceeded"

	// ConditionAPIsMissing is True, and says what to do, while a mailbox does not have all that is published: on its
	// SyncTarget and its configs, and on a PublishedResource that is concerned.
	ConditionAPIsMissing = "APIsMissing"

	// ConditionNamespacesLeft on a SyncTarget is True, and names them, while the hub may have left objects in namespaces that it
	// used before and that spec.namespaces.only does not list.
	ConditionNamespacesLeft = "NamespacesLeft"

	// ConditionDrained on a SyncTarget is True once nothing that the hub may remove is left on a cluster that is drained.
	ConditionDrained = "Drained"

	// ConditionNotImplemented is True, and names the fields, when an object sets fields that this release accepts
	// but does not act upon.
	ConditionNotImplemented = "NotImplemented"

	// ConditionSelectsNothing on a SyncerConfig or EdgeSyncConfig is True, and names the entries, when a list that
	// selects objects is absent or empty. KubeStellar 0.14 took an absent clusterScope.objects for all.
	ConditionSelectsNothing = "SelectsNothing"

	// ConditionOverlapping on a SyncerConfig or EdgeSyncConfig is True, and names the first objects, when an older config
	// of the mailbox decides the conversion of objects that this one selects too (ConversionOverruled), or when objects do
	// not go down because they are selected for coming up as well (SelectedUp).
	ConditionOverlapping = "Overlapping"

	// ConditionFieldsDropped on a SyncerConfig or EdgeSyncConfig is True, and names the first fields, when objects of the
	// target have fields that the schema of the mailbox does not, so that they do not come up.
	ConditionFieldsDropped = "FieldsDropped"

	// ConditionSuspended is True while the object's suspend field holds back what it asks for.
	ConditionSuspended = "Suspended"
)

// ReasonNamingConflict is the reason where kcp does not bind an API because the mailbox has another of its name.
const ReasonNamingConflict = "NamingConflict"
