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
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// heldRetryInterval is how often the hub checks whether an operator has confirmed that kcp was restored.
const heldRetryInterval = 30 * time.Second

var errStoreWentBack = errors.New("kcp went back to an earlier state: the copy is neither withdrawn nor overwritten until the administrator of the destination confirms that")

// losesState reports whether a decision removes a copy, or overwrites its content. It must wait if kcp went back to an earlier state.
func losesState(decision plan.Decision) bool {
	switch decision.Action {
	case plan.Delete, plan.Release, plan.VerifyAbsence:
		return true
	case plan.Update:
		return decision.Cause == plan.Changed
	default:
		return false
	}
}

// recordHeld records that a copy is held. The pair is retried, because no event reports the confirmation.
func (w *workspace) recordHeld(ctx context.Context, key pairKey, s *pairSnapshot) reconcile.Result {
	// The error is recorded in the pair's failure.
	_ = w.recordFailure(ctx, key, s, errStoreWentBack)
	return reconcile.Result{RequeueAfter: heldRetryInterval}
}

// heldDestinations returns the names of the placement's destinations that are held.
func (c *Controller) heldDestinations(found outcome) (held []string) {
	if c.History.Current() == nil {
		return nil
	}
	for i := range found.resolution.Destinations {
		if destination := &found.resolution.Destinations[i]; c.History.Holds(destination.UID) {
			held = append(held, destination.Name)
		}
	}
	slices.Sort(held)
	return held
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

// ReportAll requests a report of all workspaces, after the hub has found that kcp went back to an earlier
// state.
func (c *Controller) ReportAll() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for cluster := range c.workspaces {
		c.reportRequests.Publish(cluster)
	}
}
