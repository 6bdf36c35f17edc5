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

package check

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
	"github.com/synchub-dev/synchub/provider/wording"
)

// targets checks that the SyncTargets of a workspace are ready, and that a hub reports on them.
func (r *Report) targets(syncTargets []edgev2alpha1.SyncTarget, now time.Time) {
	const area = "targets"
	var silent, notReady []string
	for i := range syncTargets {
		switch row := overview.RowOf(&syncTargets[i], now); {
		case row.Reason == overview.ReasonHubSilent:
			silent = append(silent, row.Name)
		case row.Ready != metav1.ConditionTrue:
			notReady = append(notReady, fmt.Sprintf("%s (%s: %s)", row.Name, row.Reason, row.Message))
		}
	}
	switch {
	case len(syncTargets) == 0:
		r.add(area, Warning, "no cluster is registered in this workspace: see `kubectl synchub register`")
	case len(silent) == len(syncTargets):
		r.add(area, Problem, "no hub has written to any SyncTarget (%d) for minutes: is one running, and does it serve this provider workspace?", len(silent))
	case len(silent) > 0:
		r.add(area, Problem, "no hub has written to %d of %d SyncTargets for minutes: %s", len(silent), len(syncTargets), wording.First(maxNamed, silent))
	}
	if len(notReady) > 0 {
		r.add(area, Problem, "%d of %d SyncTargets are not ready: %s", len(notReady), len(syncTargets), wording.First(maxNamed, notReady))
	}
	if ready := len(syncTargets) - len(silent) - len(notReady); ready > 0 && len(notReady)+len(silent) == 0 {
		r.add(area, OK, "%s", wording.Of(ready, "the SyncTarget is ready", fmt.Sprintf("all SyncTargets (%d) are ready", ready)))
	}
}
