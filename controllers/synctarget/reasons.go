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

package synctarget

// Reasons of conditions of a SyncTarget. Conditions also have the reasons of [targets.Health].
const (
	ReasonCredentialsMissing = "CredentialsMissing"
	ReasonCredentialsRefused = "CredentialsRefused"
	// ReasonCredentialsNotAllowed: the Secret does not list the SyncTarget among those that may use it.
	ReasonCredentialsNotAllowed = "CredentialsNotAllowed"
	ReasonTokenExpired          = "TokenExpired"
	ReasonMailboxNotReady       = "MailboxNotReady"
	ReasonStarting              = "Starting"
	ReasonSuspended             = "Suspended"
	ReasonSyncing               = "Syncing"
	// ReasonMailboxRebound: the hub syncs, but removes nothing from the target.
	ReasonMailboxRebound = "MailboxRebound"
	// ReasonObjectsHidden: the hub syncs, but kcp hides some objects of the mailbox from it.
	ReasonObjectsHidden = "ObjectsHidden"
	ReasonReady         = "Ready"
	// ReasonSharedCluster: an older SyncTarget of the same workspace stands for the same cluster.
	ReasonSharedCluster = "SharedCluster"
	// ReasonOtherInventory: a SyncTarget of another inventory workspace leads to a cluster that claims the same identity.
	ReasonOtherInventory = "OtherInventory"
	// ReasonOlderVersions: kcp shows older resourceVersions than the hub has observed.
	ReasonOlderVersions = "OlderVersions"
	// ReasonNamespacesUnlisted: the hub used namespaces before that the SyncTarget no longer lists.
	ReasonNamespacesUnlisted = "NamespacesUnlisted"
	// ReasonDraining: the hub is removing its objects from the target. ReasonDrained: it has removed them.
	ReasonDraining = "Draining"
	ReasonDrained  = "Drained"
	// ReasonCleaningUp: the SyncTarget is being deleted, and the hub cleans up its target. ReasonCleanupBlocked: the cleanup
	// cannot continue now. ReasonCleanedUp: the cleanup is finished.
	ReasonCleaningUp     = "CleaningUp"
	ReasonCleanupBlocked = "CleanupBlocked"
	ReasonCleanedUp      = "CleanedUp"
	// ReasonRemovalForced: the SyncTarget is removed although objects may be left on its target.
	ReasonRemovalForced = "RemovalForced"
	// ReasonTunnelsDisabled: the cluster connects by a tunnel, and the hub takes none.
	ReasonTunnelsDisabled = "TunnelsDisabled"
	// ReasonTunnelNotVerified: the hub could not find out which cluster is at the other end of a tunnel.
	ReasonTunnelNotVerified = "TunnelNotVerified"
	// ReasonFieldsWithoutEffect is the reason of the condition NotImplemented.
	ReasonFieldsWithoutEffect = "FieldsWithoutEffect"
)
