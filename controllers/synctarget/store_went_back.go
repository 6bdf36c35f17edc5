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

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/wording"
)

// setStoreWentBack sets the condition StoreWentBack and the related fields while a rewind holds the SyncTarget,
// and otherwise removes them. The counts in the status stay as they are.
func setStoreWentBack(syncTarget *edgev2alpha1.SyncTarget, rewind *storehistory.Rewind) {
	current := &syncTarget.Status
	if rewind == nil {
		current.StoreWentBack = nil
	} else if before := current.StoreWentBack; before == nil || before.ID != rewind.ID || !before.DetectedAt.Time.Equal(rewind.Detected) {
		current.StoreWentBack = storeWentBackStatus(rewind)
	}
	status.SetConditionIf(rewind != nil, &current.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionStoreWentBack, Reason: ReasonOlderVersions, ObservedGeneration: syncTarget.Generation,
		Message: storeWentBackMessage(syncTarget.Name, current.StoreWentBack),
	})
}

func storeWentBackStatus(rewind *storehistory.Rewind) *edgev2alpha1.StoreWentBackStatus {
	return &edgev2alpha1.StoreWentBackStatus{ID: rewind.ID, DetectedAt: metav1.NewTime(rewind.Detected)}
}

// storeWentBackMessage does not name the object that showed it, which may be another tenant's. The hub's log
// names it.
func storeWentBackMessage(name string, status *edgev2alpha1.StoreWentBackStatus) string {
	counts := ""
	if status != nil && status.Removals+status.Overwrites > 0 {
		counts = fmt.Sprintf(" The hub would remove %s and overwrite %d; status.failures names the first.", wording.Count(status.Removals, "copy", "copies"), status.Overwrites)
	}
	return fmt.Sprintf("kcp went back to an earlier state, as after a restore from a backup. The hub removes nothing from the cluster and overwrites nothing there.%s "+
		"Put back what is missing in kcp, then confirm: kubectl synchub confirm-restore %s", counts, name)
}
