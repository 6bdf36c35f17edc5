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
	"github.com/synchub-dev/synchub/controllers/internal/events"
	"github.com/synchub-dev/synchub/controllers/placement/rollout"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

// readyCondition returns the condition Ready of a placement.
func readyCondition(found outcome, counted *placementCounts) metav1.Condition {
	ready := metav1.Condition{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse}
	destinations := int64(len(found.resolution.Destinations))
	expected := counted.selected * destinations
	switch {
	case found.reason != "":
		ready.Reason, ready.Message = found.reason, found.message
	case found.resolution.Locations == 0:
		ready.Reason = rules.ReasonNoLocation
		ready.Message = "No Location that spec.locationSelectors select is available to this workspace, of the workspaces in spec.inventoryWorkspaces if there are any. " +
			"The administrator of an inventory makes a Location available by spec.availableTo.workspaces of the Location."
	case destinations == 0:
		ready.Reason, ready.Message = rules.ReasonNoSyncTarget, "The selected Locations have no SyncTarget."
	case counted.selected == 0:
		ready.Reason, ready.Message = rules.ReasonSelectsNothing, "No object of the workspace passes a test of spec.downsync. Objects of APIs that the hub does not publish are never selected."
	case counted.failed > 0:
		ready.Reason = rules.ReasonObjectsFailed
		ready.Message = fmt.Sprintf("%d of %d pairs of an object and a destination cannot be placed or synced; see status.failures.%s", counted.failed, expected, unservedMessage(counted.unserved))
	case counted.waiting > 0:
		ready.Reason = rules.ReasonWaitingForRollout
		ready.Message = fmt.Sprintf("%d of %d pairs of an object and a destination are placed, and %d wait for the rollout; see the condition %s.", counted.placed, expected, counted.waiting, edgev2alpha1.ConditionRolledOut)
	case counted.placed < expected && len(counted.slow) > 0:
		ready.Reason = rules.ReasonMailboxSlow
		ready.Message = fmt.Sprintf("%d of %d pairs of an object and a destination are placed. The mailboxes of these SyncTargets take long to accept objects, which an admission webhook there may cause: %s.", counted.placed, expected, firstUnsynced(counted.slow))
	case counted.placed < expected:
		ready.Reason, ready.Message = rules.ReasonPending, fmt.Sprintf("%d of %d pairs of an object and a destination are placed.", counted.placed, expected)
	case counted.synced < expected:
		ready.Reason = rules.ReasonSyncing
		ready.Message = fmt.Sprintf("The clusters of %d of %d pairs of an object and a destination do not have the object as it is here yet: %s.", expected-counted.synced, expected, firstUnsynced(counted.unsynced))
	default:
		ready.Status, ready.Reason = metav1.ConditionTrue, rules.ReasonInSync
		ready.Message = fmt.Sprintf("The clusters of %d destinations have all %d selected objects.", destinations, counted.selected) + excludedMessage(counted.excluded)
	}
	return ready
}

// unservedMessage names the APIs that destinations lack; it is empty if they have all.
func unservedMessage(unserved map[string]struct{}) string {
	names := slices.Sorted(maps.Keys(unserved))
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" Some destinations do not serve %s.", joinFirst(names))
}

// firstUnsynced names the first SyncTargets with the number of their objects.
func firstUnsynced(unsynced map[string]int) string {
	names := slices.Sorted(maps.Keys(unsynced))
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, unsynced[name])
	}
	return joinFirst(names)
}

// joinFirst joins the first maxNamed names, and appends the number of the remaining ones.
func joinFirst(names []string) string {
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// healthyCondition returns the condition Healthy of a placement; an empty Reason means that there is none,
// because there are no pairs.
func healthyCondition(found outcome, counted *placementCounts) metav1.Condition {
	healthy := metav1.Condition{Type: edgev2alpha1.ConditionHealthy, Status: metav1.ConditionFalse}
	expected := counted.selected * int64(len(found.resolution.Destinations))
	switch {
	case found.reason != "" || expected == 0:
	case counted.unhealthy > 0:
		healthy.Reason = rules.ReasonUnhealthy
		healthy.Message = fmt.Sprintf("The health of %d of %d pairs of an object and a destination is Failed or Unknown; see status.failures.", counted.unhealthy, expected)
	case counted.healthy < expected:
		healthy.Reason, healthy.Message = rules.ReasonInProgress, fmt.Sprintf("%d of %d pairs of an object and a destination are healthy.", counted.healthy, expected)
	default:
		healthy.Status, healthy.Reason = metav1.ConditionTrue, rules.ReasonCurrent
		healthy.Message = fmt.Sprintf("All %d selected objects do their work on %d clusters.", counted.selected, len(found.resolution.Destinations)) + excludedMessage(counted.excluded)
	}
	return healthy
}

// rolloutCondition returns the condition RolledOut of a placement; an empty Reason means that there is none.
func rolloutCondition(found outcome, counted *placementCounts) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionRolledOut, Status: metav1.ConditionFalse}
	status := rolloutStatus(found, counted)
	if status == nil {
		return condition
	}
	counts := fmt.Sprintf("%d of %d destinations are successful, %d are progressing, %d failed, and %d wait.",
		status.Succeeded, len(found.resolution.Destinations), status.Progressing, status.Failed, status.Waiting)
	if counted.failed > 0 {
		counts += fmt.Sprintf(" These failed: %s.", firstFailures(counted.failures))
	}
	named := status.FailedClusters
	switch {
	case int(status.Succeeded) == len(found.resolution.Destinations) && counted.failed > 0:
		condition.Reason = rules.ReasonObjectsFailed
		condition.Message = fmt.Sprintf("All %d destinations have all objects that can be placed, and these are healthy. %d pairs of an object and a destination cannot be placed: %s; see status.failures.",
			status.Succeeded, counted.failed, firstFailures(counted.failures))
	case int(status.Succeeded) == len(found.resolution.Destinations):
		condition.Status, condition.Reason = metav1.ConditionTrue, rules.ReasonComplete
		condition.Message = fmt.Sprintf("All %d destinations have all objects, and these are healthy.", status.Succeeded)
		if why := counted.rollout.notKept; why != "" {
			condition.Message += " No PlacementRevision keeps these objects, so no undo can bring them back: " + why + "."
		}
	case counted.rollout.paused:
		condition.Reason, condition.Message = rules.ReasonPaused, "spec.paused is true, so no change goes to any destination. "+counts
	case counted.rollout.stopped:
		condition.Reason = rules.ReasonStopped
		condition.Message = fmt.Sprintf("%s The waiting ones do not start because of the failed ones (%s): fix the objects or the clusters, or allow more with maxFailures and progressDeadline.", counts, strings.Join(named, ", "))
	case status.Progressing == 0 && status.Waiting == 0:
		condition.Reason, condition.Message = rules.ReasonDestinationsFailed, fmt.Sprintf("%s Failed: %s.", counts, strings.Join(named, ", "))
	default:
		condition.Reason, condition.Message = rules.ReasonProgressing, counts
	}
	return condition
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
	condition := metav1.Condition{Type: edgev2alpha1.ConditionUpsyncDenied, Status: metav1.ConditionTrue}
	if denied := len(found.upsyncDenied); denied > 0 {
		condition.Reason = rules.ReasonUpsyncDenied
		condition.Message = fmt.Sprintf("spec.upsync does not apply to %d destinations (%s): the administrator of the inventory allows it by spec.availableTo.upsync of a Location.",
			denied, strings.Join(found.upsyncDenied[:min(denied, maxNamed)], ", "))
	}
	return condition
}

// choiceCondition returns the condition TooFewClusters of a placement; an empty Reason means that there is none.
func choiceCondition(found outcome) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionTooFewClusters, Status: metav1.ConditionTrue}
	if chosen := len(found.resolution.Destinations); found.choice != nil && found.reason == "" && chosen < found.choice.Number {
		condition.Reason = rules.ReasonTooFewClusters
		condition.Message = fmt.Sprintf("spec.numberOfClusters is %d, and %d are chosen: %d SyncTargets match, and the others are not Ready, or cordoned or drained.",
			found.choice.Number, chosen, found.resolution.Matching)
	}
	return condition
}

// storeWentBackCondition returns the condition StoreWentBack of a placement; an empty Reason means that there is none.
func storeWentBackCondition(held []string) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionStoreWentBack, Status: metav1.ConditionTrue}
	if len(held) > 0 {
		condition.Reason = rules.ReasonOlderVersions
		condition.Message = fmt.Sprintf("kcp went back to an earlier state, as after a restore from a backup. Until the administrators of %d destinations confirm that, "+
			"the hub withdraws nothing from them, and overwrites nothing there: %s. Put back what is missing here.", len(held), joinFirst(held))
	}
	return condition
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
			"Run `kubectl synchub bind compute` again, which accepts the claims that the export has got since.", joinFirst(unaccepted)))
	}
	if unbound := found.missingAPIs.unbound; len(unbound) > 0 {
		condition.Reason = edgev2alpha1.ReasonNamingConflict
		sentences = append(sentences, fmt.Sprintf("kcp has not bound %s in this workspace, because a name is taken here, so none of these objects is placed. kcp reports: %s. "+
			"Save the objects of the CustomResourceDefinition that has the name, and delete it. kcp tries again within a quarter of an hour, and keeps the name of a deleted "+
			"CustomResourceDefinition until you take it out of the annotation internal.apis.kcp.io/resource-bindings of the LogicalCluster \"cluster\".",
			joinFirst(unbound), events.Truncate(found.missingAPIs.conflict)))
	}
	condition.Message = strings.Join(sentences, " ")
	return condition
}
