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

package location

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/provider/wording"
)

// maxNamed bounds the names in one message.
const maxNamed = 10

// applyPending sets the condition WithdrawalPending of a Location, or removes it if no copies wait.
func applyPending(location *edgev2alpha1.Location, pending []findings.PendingWithdrawal, now metav1.Time) {
	if len(pending) == 0 {
		meta.RemoveStatusCondition(&location.Status.Conditions, edgev2alpha1.ConditionWithdrawalPending)
		return
	}
	first := slices.MinFunc(pending, func(a, b findings.PendingWithdrawal) int { return a.At.Compare(b.At) })
	meta.SetStatusCondition(&location.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionWithdrawalPending, Status: metav1.ConditionTrue, Reason: edgev2alpha1.ReasonInventoryChanged,
		Message:            fmt.Sprintf("At %s: %s", first.At.UTC().Format(time.RFC3339), pendingMessage(pending)),
		ObservedGeneration: location.Generation, LastTransitionTime: now,
	})
}

// pendingMessage describes the copies that wait, without the time.
func pendingMessage(pending []findings.PendingWithdrawal) string {
	copies, bySyncTarget := 0, map[string]int{}
	var workspaces []string
	for _, one := range pending {
		copies += one.Copies
		bySyncTarget[one.SyncTarget] += one.Copies
		if !slices.Contains(workspaces, one.Workspace) {
			workspaces = append(workspaces, one.Workspace)
		}
	}
	var from []string
	for syncTarget, count := range bySyncTarget {
		from = append(from, fmt.Sprintf("%s (%d)", syncTarget, count))
	}
	slices.Sort(from)
	slices.Sort(workspaces)
	return status.Truncate(fmt.Sprintf("The hub withdraws %s of objects of %s from %s, because the Location, or a label of a SyncTarget, changed. Undo the change to keep the copies.",
		wording.Count(copies, "copy", "copies"), wording.First(maxNamed, workspaces), wording.First(maxNamed, from)))
}
