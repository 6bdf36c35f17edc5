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

package rules

import "github.com/synchub-dev/synchub/controllers/placement/customization"

// Reasons of the conditions of an EdgePlacement, and of failures of single objects. Packages plan and policy
// contain the other reasons.
const (
	// ReasonInSync: the cluster of each destination has each selected object.
	ReasonInSync = "InSync"
	// ReasonPending: the mailboxes do not have some objects yet.
	ReasonPending = "Pending"
	// ReasonSyncing: the clusters do not have some objects yet.
	ReasonSyncing = "Syncing"
	// ReasonWaitingForRollout: the rollout does not admit an object to the destination yet.
	ReasonWaitingForRollout = "WaitingForRollout"
	// ReasonComplete: all destinations have all objects, and these are healthy.
	ReasonComplete = "Complete"
	// ReasonProgressing: the rollout is in progress.
	ReasonProgressing = "Progressing"
	// ReasonPaused: the rollout waits until spec.paused is false.
	ReasonPaused = "Paused"
	// ReasonStopped: destinations wait because other destinations have failed.
	ReasonStopped = "Stopped"
	// ReasonDestinationsFailed: no destination waits or progresses, and some have failed.
	ReasonDestinationsFailed = "DestinationsFailed"
	// ReasonMailboxSlow: the mailbox takes long to accept objects, and does not have some of them yet.
	ReasonMailboxSlow = "MailboxSlow"
	// ReasonOlderVersions is the reason of the condition StoreWentBack.
	ReasonOlderVersions = "OlderVersions"
	// ReasonPlacing: the mailbox does not have an object yet.
	ReasonPlacing = "Placing"
	// ReasonObjectsFailed: some objects cannot be placed, or synced with a cluster; status.failures lists them.
	ReasonObjectsFailed = "ObjectsFailed"
	// ReasonNoLocation: no Location that the placement selects is available to the workspace.
	ReasonNoLocation = "NoLocation"
	// ReasonPathUnverified: the hub cannot verify the path of the workspace, which decides which Locations are
	// available to it.
	ReasonPathUnverified = "PathUnverified"
	// ReasonWorkspaceRefused: the workspace refuses an upsynced object, or the status of an object.
	ReasonWorkspaceRefused = "WorkspaceRefused"
	// ReasonUpsyncDenied: a Location does not let the workspace upsync.
	ReasonUpsyncDenied = "UpsyncDenied"
	// ReasonTooFewClusters: fewer SyncTargets than wanted can take the objects.
	ReasonTooFewClusters = "TooFewClusters"
	// ReasonWithdrawing: the placement is deleted, and copies are left to withdraw.
	ReasonWithdrawing = "Withdrawing"
	// ReasonNoSyncTarget: the selected Locations have no SyncTarget.
	ReasonNoSyncTarget = "NoSyncTarget"
	// ReasonSelectsNothing: the placement has no test for objects, or no object passes any.
	ReasonSelectsNothing = "SelectsNothing"
	// ReasonClaimsNotAccepted: the binding of the workspace does not accept claims of the workload export.
	ReasonClaimsNotAccepted = "ClaimsNotAccepted"
	// ReasonLimitExceeded: the workspace has more pairs of an object and a destination, or more objects, than it may have.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonUnknownParameter: the object, or its Customizer, names a parameter that neither the SyncTarget nor its Location has.
	ReasonUnknownParameter = customization.ReasonUnknownParameter
	// ReasonCustomizerNotFound: the workspace does not have the Customizer that the object names.
	ReasonCustomizerNotFound = "CustomizerNotFound"
	// ReasonPrivileged: the object would act inside the mailbox workspace.
	ReasonPrivileged = "Privileged"
	// ReasonClusterScoped: the cluster lets workspaces place only objects in their namespaces.
	ReasonClusterScoped = "ClusterScoped"
	// ReasonExcludedByUpsync: the name of the object on the cluster is selected for upsync.
	ReasonExcludedByUpsync = "ExcludedByUpsync"
	// ReasonAggregationFailed: spec.statusExpression of the PublishedResource fails for the statuses of an object, or spec.aggregation of
	// the placement for the upsynced objects.
	ReasonAggregationFailed = "AggregationFailed"
	// ReasonAggregated: the status of the placement has the result of spec.aggregation.
	ReasonAggregated = "Aggregated"
	// ReasonUnhealthy: the health of the object on the cluster is Failed or Unknown.
	ReasonUnhealthy = "Unhealthy"
	// ReasonCurrent and ReasonInProgress are the reasons of the condition Healthy, by the names of kstatus.
	ReasonCurrent    = "Current"
	ReasonInProgress = "InProgress"
)
