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
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
)

func TestCleanupMessage(t *testing.T) {
	left := func(count int) (all []edgev2alpha1.LeftObject) {
		for range count {
			all = append(all, edgev2alpha1.LeftObject{Resource: "configmaps", Namespace: "shop", Name: "settings", Reason: "Orphaned"})
		}
		return all
	}
	for name, test := range map[string]struct {
		report edgev2alpha1.CleanupStatus
		want   string
	}{
		"under way":       {edgev2alpha1.CleanupStatus{Remaining: new(int32(3)), Removed: 4}, "3 objects are still to go, 4 gone."},
		"nobody can tell": {edgev2alpha1.CleanupStatus{}, "The number of remaining objects is unknown."},
		"with one":        {edgev2alpha1.CleanupStatus{Remaining: new(int32(0)), Left: left(1)}, "0 objects are still to go, 0 gone. 1 stays: configmaps shop/settings (Orphaned)."},
	} {
		if got := cleanupMessage(test.report); got != test.want {
			t.Errorf("%s: want %q, got %q", name, test.want, got)
		}
	}
	if got := cleanupMessage(edgev2alpha1.CleanupStatus{Left: left(100), LeftMore: 23}); !strings.Contains(got, "123 stay") || !strings.HasSuffix(got, "and 95 more.") {
		t.Errorf("got %q", got)
	}
}

func TestRemainingMessage(t *testing.T) {
	if got := remainingMessage(nil, &edgev2alpha1.CleanupStatus{}); got != "" {
		t.Errorf("where nothing was placed: %q", got)
	}
	recorded := []ledger.Resource{{GroupResource: metav1.GroupResource{Resource: "secrets"}}, {GroupResource: metav1.GroupResource{Group: "apps", Resource: "deployments"}}}
	if got := remainingMessage(recorded, nil); got != "Objects of these resources may be left on the target: deployments.apps, secrets." {
		t.Errorf("got %q", got)
	}
	if got := remainingMessage(recorded, &edgev2alpha1.CleanupStatus{Remaining: new(int32(7))}); !strings.HasPrefix(got, "7 objects are still to go") {
		t.Errorf("got %q", got)
	}
}

func TestSetDrainedCondition(t *testing.T) {
	up := targets.Health{Up: true}
	under, over := &drainRun{status: &edgev2alpha1.CleanupStatus{Remaining: new(int32(5))}}, &drainRun{finished: true}
	for name, test := range map[string]struct {
		suspend, stay bool
		health        targets.Health
		found         observedState
		status        metav1.ConditionStatus
		reason        string
	}{
		"no drain":      {stay: true, health: up},
		"begins":        {health: up, status: metav1.ConditionFalse, reason: ReasonDraining},
		"under way":     {health: up, found: observedState{drain: under}, status: metav1.ConditionFalse, reason: ReasonDraining},
		"over":          {health: up, found: observedState{drain: over}, status: metav1.ConditionTrue, reason: ReasonDrained},
		"over, away":    {health: targets.Health{Reason: targets.ReasonUnreachable}, found: observedState{drain: over}, status: metav1.ConditionTrue, reason: ReasonDrained},
		"away":          {health: targets.Health{Reason: targets.ReasonUnreachable}, found: observedState{drain: under}, status: metav1.ConditionFalse, reason: targets.ReasonUnreachable},
		"suspended":     {suspend: true, health: up, status: metav1.ConditionFalse, reason: ReasonSuspended},
		"no kubeconfig": {found: observedState{problem: &blocker{ReasonCredentialsMissing, "x"}}, status: metav1.ConditionFalse, reason: ReasonCredentialsMissing},
	} {
		syncTarget := &edgev2alpha1.SyncTarget{}
		syncTarget.Spec.Drain, syncTarget.Spec.Suspend = !test.stay, test.suspend
		syncTarget.Status.Cleanup = &edgev2alpha1.CleanupStatus{}
		syncTarget.Status.Conditions = []metav1.Condition{{Type: edgev2alpha1.ConditionDrained, Status: metav1.ConditionTrue}}
		setDrainedCondition(syncTarget, test.health, test.found)
		condition := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionDrained)
		if test.stay {
			if condition != nil || syncTarget.Status.Cleanup != nil {
				t.Errorf("%s: %+v", name, syncTarget.Status)
			}
			continue
		}
		if condition.Status != test.status || condition.Reason != test.reason || syncTarget.Status.Cleanup == nil {
			t.Errorf("%s: want %s, %s, got %+v", name, test.status, test.reason, condition)
		}
	}
}
