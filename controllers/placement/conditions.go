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
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// readyCondition returns the condition Ready of a placement.
func readyCondition(found outcome, counted *tally) metav1.Condition {
	ready := metav1.Condition{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse}
	destinations := int64(len(found.resolution.Destinations))
	expected := counted.selected * destinations
	switch {
	case found.reason != "":
		ready.Reason, ready.Message = found.reason, found.message
	case found.resolution.Locations == 0:
		ready.Reason = ReasonNoLocation
		ready.Message = "No Location that spec.locationSelectors select is available to this workspace, of the workspaces in spec.inventoryWorkspaces if there are any. " +
			"The administrator of an inventory makes a Location available by spec.availableTo.workspaces of the Location."
	case destinations == 0:
		ready.Reason, ready.Message = ReasonNoSyncTarget, "The selected Locations have no SyncTarget."
	case counted.selected == 0:
		ready.Reason, ready.Message = ReasonSelectsNothing, "No object of the workspace passes a test of spec.downsync. Objects of APIs that the hub does not publish are never selected."
	case counted.failed > 0:
		ready.Reason = ReasonObjectsFailed
		ready.Message = fmt.Sprintf("%d of %d pairs of an object and a destination cannot be placed; see status.failures.", counted.failed, expected)
	case counted.placed < expected:
		ready.Reason, ready.Message = ReasonPending, fmt.Sprintf("%d of %d pairs of an object and a destination are placed.", counted.placed, expected)
	default:
		ready.Status, ready.Reason = metav1.ConditionTrue, ReasonPlaced
		ready.Message = fmt.Sprintf("The mailboxes of %d destinations have all %d objects.", destinations, counted.selected)
	}
	return ready
}

func notImplementedCondition(found outcome) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionNotImplemented, Status: metav1.ConditionTrue}
	if len(found.notImplemented) > 0 {
		condition.Reason = "NotImplemented"
		condition.Message = "This release does not act upon " + strings.Join(found.notImplemented, ", ") + "."
	}
	return condition
}

// upsyncCondition returns the condition UpsyncDenied of a placement.
func upsyncCondition(found outcome) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionUpsyncDenied, Status: metav1.ConditionTrue}
	if denied := len(found.upsyncDenied); denied > 0 {
		condition.Reason = ReasonUpsyncDenied
		condition.Message = fmt.Sprintf("spec.upsync does not apply to %d destinations (%s): the administrator of the inventory allows it by spec.availableTo.upsync of a Location.",
			denied, strings.Join(found.upsyncDenied[:min(denied, maxNamed)], ", "))
	}
	return condition
}

// maxNamed bounds the names in one message.
const maxNamed = 10

// missingCondition returns the condition APIsMissing of a placement.
func missingCondition(found outcome) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionAPIsMissing, Status: metav1.ConditionTrue}
	if len(found.missing) > 0 {
		condition.Reason = ReasonClaimsNotAccepted
		condition.Message = fmt.Sprintf("The binding of this workspace does not show the hub %s, so none of these objects is placed. "+
			"Run `kubectl synchub bind compute` again, which accepts the claims that the export has got since.", strings.Join(found.missing, ", "))
	}
	return condition
}
