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

package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/placement/rollout"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/provider/wording"
)

// condition returns a condition of a placement.
func condition(conditionType string, status metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// readyCondition returns the condition Ready of a placement.
func readyCondition(found outcome, counted *placementCounts) metav1.Condition {
	destinations := int64(len(found.resolution.Destinations))
	expected := counted.selected * destinations
	notReady := func(reason, format string, args ...any) metav1.Condition {
		return condition(edgev2alpha1.ConditionReady, metav1.ConditionFalse, reason, format, args...)
	}
	switch {
	case found.reason != "":
		return notReady(found.reason, "%s", found.message)
	case found.resolution.Locations == 0:
		return notReady(rules.ReasonNoLocation, "No Location that spec.locationSelectors select is available to this workspace, of the workspaces in spec.inventoryWorkspaces if there are any. "+
			"The administrator of an inventory makes a Location available by spec.availableTo.workspaces of the Location.")
	case destinations == 0:
		return notReady(rules.ReasonNoSyncTarget, "The selected Locations have no SyncTarget.")
	case counted.selected == 0:
		return notReady(rules.ReasonSelectsNothing, "No object of the workspace passes a test of spec.downsync. Objects of APIs that the hub does not publish are never selected.")
	case counted.failed > 0:
		return notReady(rules.ReasonObjectsFailed, "%d of %d pairs of an object and a destination cannot be placed or synced; see status.failures.%s", counted.failed, expected, unservedMessage(counted.unserved))
	case counted.waiting > 0:
		return notReady(rules.ReasonWaitingForRollout, "%d of %d pairs of an object and a destination are placed, and %s for the rollout; see the condition %s.",
			counted.placed, expected, wording.Count(counted.waiting, "waits", "wait"), edgev2alpha1.ConditionRolledOut)
	case counted.placed < expected && len(counted.slow) > 0:
		return notReady(rules.ReasonMailboxSlow, "%d of %d pairs of an object and a destination are placed. The mailboxes of these SyncTargets take long to accept objects, which an admission webhook there may cause: %s.",
			counted.placed, expected, firstUnsynced(counted.slow))
	case counted.placed < expected:
		return notReady(rules.ReasonPending, "%d of %d pairs of an object and a destination are placed.", counted.placed, expected)
	case counted.synced < expected:
		return notReady(rules.ReasonSyncing, "The clusters of %d of %d pairs of an object and a destination do not have the object as it is here yet: %s.%s", expected-counted.synced, expected, firstUnsynced(counted.unsynced), awayMessage(counted.away))
	default:
		return condition(edgev2alpha1.ConditionReady, metav1.ConditionTrue, rules.ReasonInSync, "The clusters of all destinations (%d) have all selected objects (%d).%s%s", destinations, counted.selected, excludedMessage(counted.excluded), awayMessage(counted.away))
	}
}

// awayMessage names the destinations that are not Ready, which the counts contain as the hub last observed them; it is empty if there
// are none.
func awayMessage(away []string) string {
	if len(away) == 0 {
		return ""
	}
	return fmt.Sprintf(" Not Ready, and counted as last observed: %s.", wording.First(maxNamed, away))
}

// unservedMessage names the APIs that destinations lack; it is empty if they have all.
func unservedMessage(unserved map[string]struct{}) string {
	names := slices.Sorted(maps.Keys(unserved))
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" Some destinations do not serve %s.", wording.First(maxNamed, names))
}

// firstUnsynced names the first SyncTargets with the number of their objects.
func firstUnsynced(unsynced map[string]int) string {
	names := slices.Sorted(maps.Keys(unsynced))
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, unsynced[name])
	}
	return wording.First(maxNamed, names)
}

// healthyCondition returns the condition Healthy of a placement; an empty Reason means that there is none,
// because there are no pairs.
func healthyCondition(found outcome, counted *placementCounts) metav1.Condition {
	expected := counted.selected * int64(len(found.resolution.Destinations))
	switch {
	case found.reason != "" || expected == 0:
		return metav1.Condition{Type: edgev2alpha1.ConditionHealthy}
	case counted.unhealthy > 0:
		return condition(edgev2alpha1.ConditionHealthy, metav1.ConditionFalse, rules.ReasonUnhealthy,
			"The health of %d of %d pairs of an object and a destination is Failed or Unknown; see status.failures.", counted.unhealthy, expected)
	case counted.healthy < expected:
		return condition(edgev2alpha1.ConditionHealthy, metav1.ConditionFalse, rules.ReasonInProgress, "%d of %d pairs of an object and a destination are healthy.%s", counted.healthy, expected, awayMessage(counted.away))
	default:
		return condition(edgev2alpha1.ConditionHealthy, metav1.ConditionTrue, rules.ReasonCurrent,
			"All selected objects (%d) do their work on all clusters (%d).%s%s", counted.selected, len(found.resolution.Destinations), excludedMessage(counted.excluded), awayMessage(counted.away))
	}
}

// rolloutCondition returns the condition RolledOut of a placement; an empty Reason means that there is none.
func rolloutCondition(found outcome, counted *placementCounts) metav1.Condition {
	status := rolloutStatus(found, counted)
	if status == nil {
		return metav1.Condition{Type: edgev2alpha1.ConditionRolledOut}
	}
	counts := fmt.Sprintf("%d of %d destinations are successful, %s, %d failed, and %s.",
		status.Succeeded, len(found.resolution.Destinations), wording.Count(status.Progressing, "is progressing", "are progressing"), status.Failed, wording.Count(status.Waiting, "waits", "wait"))
	if counted.failed > 0 {
		counts += fmt.Sprintf(" These failed: %s.", firstFailures(counted.failures))
	}
	named := strings.Join(status.FailedClusters, ", ")
	notYet := func(reason, format string, args ...any) metav1.Condition {
		return condition(edgev2alpha1.ConditionRolledOut, metav1.ConditionFalse, reason, format, args...)
	}
	switch isComplete := int(status.Succeeded) == len(found.resolution.Destinations); {
	case isComplete && counted.failed > 0:
		return notYet(rules.ReasonObjectsFailed, "All destinations (%d) have all objects that can be placed, and these are healthy. %s: %s; see status.failures.",
			status.Succeeded, wording.Count(counted.failed, "pair of an object and a destination cannot be placed", "pairs of an object and a destination cannot be placed"), firstFailures(counted.failures))
	case isComplete:
		complete := condition(edgev2alpha1.ConditionRolledOut, metav1.ConditionTrue, rules.ReasonComplete, "All destinations (%d) have all objects, and these are healthy.%s", status.Succeeded, awayMessage(counted.away))
		if why := counted.rollout.notKept; why != "" {
			complete.Message += " No PlacementRevision keeps these objects, so no undo can bring them back: " + why + "."
		}
		return complete
	case counted.rollout.paused:
		return notYet(rules.ReasonPaused, "spec.paused is true, so no change goes to any destination. %s", counts)
	case counted.rollout.stopped:
		return notYet(rules.ReasonStopped, "%s The waiting ones do not start because of the failed ones (%s): fix the objects or the clusters, or allow more with maxFailures and progressDeadline.", counts, named)
	case status.Progressing == 0 && status.Waiting == 0:
		return notYet(rules.ReasonDestinationsFailed, "%s Failed: %s.", counts, named)
	default:
		return notYet(rules.ReasonProgressing, "%s", counts)
	}
}

// firstFailures names the first failed pairs with their reasons.
func firstFailures(failures []edgev2alpha1.PlacementPair) string {
	names := make([]string, 0, len(failures))
	for _, one := range failures {
		resource := schema.GroupResource{Group: one.Group, Resource: one.Resource}
		name := strings.TrimPrefix(one.Namespace+"/"+one.Name, "/")
		names = append(names, fmt.Sprintf("%s %s on %s (%s)", resource, name, one.SyncTarget, one.Reason))
	}
	if len(names) > maxNamedFailures {
		return strings.Join(names[:maxNamedFailures], ", ") + ", and more"
	}
	return strings.Join(names, ", ")
}

// rolloutStatus returns the counts of a rollout; nil if the placement has none, or nothing to roll out.
func rolloutStatus(found outcome, counted *placementCounts) *edgev2alpha1.RolloutStatus {
	if counted.rollout == nil || found.reason != "" || counted.selected == 0 || len(found.resolution.Destinations) == 0 {
		return nil
	}
	of := counted.rollout
	return &edgev2alpha1.RolloutStatus{
		Waiting: toInt32(int64(of.counts[rollout.Waiting])), Progressing: toInt32(int64(of.counts[rollout.Progressing])),
		Succeeded: toInt32(int64(of.counts[rollout.Succeeded])), Failed: toInt32(int64(of.counts[rollout.Failed])),
		FailedClusters: of.failed[:min(len(of.failed), maxNamed)], Revision: of.revision,
	}
}

// upsyncCondition returns the condition UpsyncDenied of a placement; an empty Reason means that there is none.
func upsyncCondition(found outcome) metav1.Condition {
	if len(found.upsyncDenied) == 0 {
		return metav1.Condition{Type: edgev2alpha1.ConditionUpsyncDenied}
	}
	return condition(edgev2alpha1.ConditionUpsyncDenied, metav1.ConditionTrue, rules.ReasonUpsyncDenied,
		"spec.upsync does not apply to %s (%s): the administrator of the inventory allows it by spec.availableTo.upsync of a Location.",
		wording.Count(len(found.upsyncDenied), "destination", "destinations"), strings.Join(found.upsyncDenied[:min(len(found.upsyncDenied), maxNamed)], ", "))
}

// choiceCondition returns the condition TooFewClusters of a placement; an empty Reason means that there is none.
func choiceCondition(found outcome) metav1.Condition {
	chosen := len(found.resolution.Destinations)
	if found.choice == nil || found.reason != "" || chosen >= found.choice.Number {
		return metav1.Condition{Type: edgev2alpha1.ConditionTooFewClusters}
	}
	return condition(edgev2alpha1.ConditionTooFewClusters, metav1.ConditionTrue, rules.ReasonTooFewClusters,
		"spec.numberOfClusters is %d, and %s: %s, and the rest are not Ready, or cordoned or drained.",
		found.choice.Number, wording.Count(chosen, "is chosen", "are chosen"), wording.Count(found.resolution.Matching, "SyncTarget matches", "SyncTargets match"))
}

// storeWentBackCondition returns the condition StoreWentBack of a placement; an empty Reason means that there is none.
func storeWentBackCondition(held []string) metav1.Condition {
	if len(held) == 0 {
		return metav1.Condition{Type: edgev2alpha1.ConditionStoreWentBack}
	}
	return condition(edgev2alpha1.ConditionStoreWentBack, metav1.ConditionTrue, rules.ReasonOlderVersions,
		"kcp went back to an earlier state, as after a restore from a backup. Until the administrators of %s confirm that, "+
			"the hub withdraws nothing from them, and overwrites nothing there: %s. Put back what is missing here.", wording.Count(len(held), "destination", "destinations"), wording.First(maxNamed, held))
}

const (
	// maxNamed bounds the names in one message, and maxNamedFailures the failed pairs.
	maxNamed         = 10
	maxNamedFailures = 3
)

// apisMissingCondition returns the condition APIsMissing of a placement; an empty Reason means that there is none.
func apisMissingCondition(found outcome) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionAPIsMissing, Status: metav1.ConditionTrue}
	var sentences []string
	if unaccepted := found.missingAPIs.unaccepted; len(unaccepted) > 0 {
		condition.Reason = rules.ReasonClaimsNotAccepted
		sentences = append(sentences, fmt.Sprintf("The binding of this workspace does not show the hub %s, so none of these objects is placed. "+
			"Run `kubectl synchub bind compute` again, which accepts the claims that the export has got since.", wording.First(maxNamed, unaccepted)))
	}
	if unbound := found.missingAPIs.unbound; len(unbound) > 0 {
		condition.Reason = edgev2alpha1.ReasonNamingConflict
		sentences = append(sentences, fmt.Sprintf("kcp has not bound %s in this workspace, because a name is taken here, so none of these objects is placed. kcp reports: %s. "+
			"Save the objects of the CustomResourceDefinition that has the name, and delete it. kcp tries again within a quarter of an hour, and keeps the name of a deleted "+
			"CustomResourceDefinition until you take it out of the annotation internal.apis.kcp.io/resource-bindings of the LogicalCluster \"cluster\".",
			wording.First(maxNamed, unbound), status.Truncate(found.missingAPIs.conflict)))
	}
	condition.Message = strings.Join(sentences, " ")
	return condition
}
