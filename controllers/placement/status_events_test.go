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
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

// placementPair returns a pair of a ConfigMap in a status.
func placementPair(name, syncTarget, reason string) edgev2alpha1.PlacementPair {
	return edgev2alpha1.PlacementPair{
		ObjectFailure: edgev2alpha1.ObjectFailure{Resource: "configmaps", Namespace: "shop", Name: name, Reason: reason, Message: "m"}, SyncTarget: syncTarget,
	}
}

// Each change has one event: the stored status is the memory, so a restarted hub, which computes the same status, has none.
func TestStatusEvents(t *testing.T) {
	t.Parallel()
	stopped := metav1.Condition{Type: edgev2alpha1.ConditionRolledOut, Status: "False", Reason: rules.ReasonStopped, Message: "florin fails."}
	pending := metav1.Condition{Type: edgev2alpha1.ConditionWithdrawalPending, Status: "True", Reason: edgev2alpha1.ReasonInventoryChanged, Message: "soon"}
	conditions := func(all ...metav1.Condition) edgev2alpha1.EdgePlacementStatus {
		return edgev2alpha1.EdgePlacementStatus{Conditions: all}
	}
	failing := func(pairs ...edgev2alpha1.PlacementPair) edgev2alpha1.EdgePlacementStatus {
		return edgev2alpha1.EdgePlacementStatus{Failures: pairs}
	}
	waiting := conditions(stopped)
	waiting.Progressing = []edgev2alpha1.PlacementPair{placementPair("web", "guilder", rules.ReasonWaitingForRollout), placementPair("other", "guilder", "Syncing")}
	started := waiting
	started.Conditions = nil
	refused := []edgev2alpha1.PlacementPair{placementPair("a", "florin", "Forbidden"), placementPair("a", "guilder", "Forbidden"), placementPair("b", "florin", "Invalid")}
	for name, c := range map[string]struct {
		before, next edgev2alpha1.EdgePlacementStatus
		onClusters   []edgev2alpha1.PlacementPair
		want         []string
	}{
		"nothing":                                {waiting, waiting, nil, nil},
		"copies wait for their withdrawal":       {conditions(), conditions(pending), nil, []string{"Warning WithdrawalPending soon"}},
		"they wait still":                        {conditions(pending), conditions(pending), nil, nil},
		"a rollout stops":                        {conditions(), conditions(stopped), nil, []string{"Warning RolloutStopped florin fails."}},
		"it goes on":                             {conditions(stopped), conditions(), nil, nil},
		"an object waits when it stops":          {started, waiting, nil, []string{"Warning RolloutStopped florin fails.", "web Warning WaitingForRollout The change does not go to guilder, because the rollout is stopped. florin fails."}},
		"an object is changed when it stopped":   {conditions(stopped), waiting, nil, []string{"web Warning WaitingForRollout The change does not go to guilder, because the rollout is stopped. florin fails."}},
		"an object waits in a rollout that goes": {conditions(), started, nil, nil},
		"clusters refuse objects":                {failing(), failing(refused...), refused, []string{"a Warning Forbidden On florin, guilder: m", "b Warning Invalid On florin: m"}},
		"another cluster refuses one too":        {failing(refused[0]), failing(refused[:2]...), refused[:2], nil},
		"for another reason":                     {failing(placementPair("a", "florin", "Invalid")), failing(refused[0]), refused[:1], []string{"a Warning Forbidden On florin: m"}},
		"a mailbox refuses one":                  {failing(), failing(refused[0]), nil, nil},
	} {
		var got []string
		for _, one := range statusEvents(&c.before, &c.next, c.onClusters) {
			text := one.Type + " " + one.Reason + " " + one.Message
			if one.object != nil {
				text = one.object.Name + " " + text
			}
			got = append(got, text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: want %q, got %q", name, c.want, got)
		}
	}
}

// The event Placed is about new destinations and the first objects, not about each object or edit, and a restarted hub does not repeat it.
func TestPlacedEvents(t *testing.T) {
	t.Parallel()
	ready := func(status metav1.ConditionStatus, selected int64) *edgev2alpha1.EdgePlacementStatus {
		return &edgev2alpha1.EdgePlacementStatus{Selected: selected, Conditions: []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: status}}}
	}
	r := &reporter{announced: map[types.UID]announcedState{}}
	stored := &edgev2alpha1.EdgePlacementStatus{}
	for i, step := range []struct {
		restarted    bool
		next         *edgev2alpha1.EdgePlacementStatus
		destinations int
		want         string
	}{
		{next: ready("True", 0), destinations: 1},
		{next: ready("False", 2), destinations: 1},
		{next: ready("True", 2), destinations: 1, want: "2 objects are on cluster-0."},
		{next: ready("True", 2), destinations: 1},
		{next: ready("False", 2), destinations: 1},
		{next: ready("True", 2), destinations: 1},
		{next: ready("True", 3), destinations: 1},
		{restarted: true, next: ready("True", 3), destinations: 1},
		{next: ready("False", 3), destinations: 2},
		{next: ready("True", 3), destinations: 2, want: "3 objects are on cluster-1."},
		{next: ready("True", 1), destinations: 1},
		{restarted: true, next: ready("False", 1), destinations: 2},
		{next: ready("True", 1), destinations: 2, want: "1 object is on cluster-0, cluster-1."},
	} {
		if step.restarted {
			r.announced = map[types.UID]announcedState{}
			if stored = ready("True", 3); i == 11 {
				stored = ready("False", 1)
			}
		}
		got := ""
		for _, one := range r.placedEvents("p", stored, step.next, outcome{resolution: destinations(step.destinations)}) {
			got += one.Message
		}
		if got != step.want {
			t.Errorf("step %d: want %q, got %q", i, step.want, got)
		}
		stored = step.next
	}
}

// Destinations that are away count as last observed, and the conditions report that.
func TestAwayDestinations(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
	known := &findings.Readiness{}
	for name, ready := range map[types.UID]bool{"one": true, "two": false, "three": false} {
		changedAt := at
		if name == "three" {
			changedAt = time.Time{}
		}
		known.Set(name, ready, time.Now(), changedAt)
	}
	found := outcome{resolution: destinations(4)}
	for i, uid := range []types.UID{"one", "two", "three", "unknown"} {
		found.resolution.Destinations[i].UID = uid
	}
	away := (&reporter{readiness: known}).awayDestinations(found)
	if want := []string{"cluster-1 since 2026-11-29T03:00:00Z", "cluster-2"}; !slices.Equal(away, want) {
		t.Fatalf("want %q, got %q", want, away)
	}
	copies := &withdrawnCopies{names: map[types.UID]string{"one": "florin", "two": "florin", "three": "guilder", "unknown": "krona"}}
	if away, want := (&reporter{readiness: known}).awayOf(copies), []string{"florin", "guilder"}; !slices.Equal(away, want) {
		t.Errorf("want %q as SyncTargets that are not Ready, got %q", want, away)
	}
	counted := &placementCounts{selected: 1, placed: 4, synced: 4, healthy: 4, away: away, rollout: &rolloutSummary{counts: [4]int{0, 0, 4, 0}}}
	for _, condition := range []metav1.Condition{readyCondition(found, counted), healthyCondition(found, counted), rolloutCondition(found, counted)} {
		if condition.Status != metav1.ConditionTrue || !strings.Contains(condition.Message, "Not Ready, and counted as last observed: cluster-1 since 2026-11-29T03:00:00Z, cluster-2.") {
			t.Errorf("%s: %s", condition.Type, condition.Message)
		}
	}
}
