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

package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// destinations parses "name[/group]=Progress[@minutes ago]", separated by spaces.
func destinations(t *testing.T, text string) (all []Destination) {
	t.Helper()
	for field := range strings.FieldsSeq(text) {
		name, state, _ := strings.Cut(field, "=")
		name, group, _ := strings.Cut(name, "/")
		state, ago, _ := strings.Cut(state, "@")
		var minutes int
		if ago != "" {
			if _, err := fmt.Sscan(ago, &minutes); err != nil {
				t.Fatal(err)
			}
		}
		progress := slices.Index([]string{"W", "P", "S", "F"}, state)
		if progress < 0 {
			t.Fatalf("%q is no progress", state)
		}
		all = append(all, Destination{
			SyncTarget: types.UID(name), Name: name, Group: group, Progress: Progress(progress), Since: now.Add(-time.Duration(minutes) * time.Minute),
		})
	}
	return all
}

func progressive(of clusterv1alpha1.RolloutProgressive) edgev2alpha1.EdgePlacementSpec {
	return edgev2alpha1.EdgePlacementSpec{RolloutStrategy: &edgev2alpha1.RolloutStrategy{
		RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive, Progressive: &of}, GroupBy: "wave",
	}}
}

func perGroup(of clusterv1alpha1.RolloutProgressivePerGroup) edgev2alpha1.EdgePlacementSpec {
	return edgev2alpha1.EdgePlacementSpec{RolloutStrategy: &edgev2alpha1.RolloutStrategy{
		RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &of}, GroupBy: "wave",
	}}
}

func mandatory(names ...string) (groups clusterv1alpha1.MandatoryDecisionGroups) {
	for _, name := range names {
		groups.MandatoryDecisionGroups = append(groups.MandatoryDecisionGroups, clusterv1alpha1.MandatoryDecisionGroup{GroupName: name})
	}
	return groups
}

func TestDecide(t *testing.T) {
	t.Parallel()
	oneByOne := progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)})
	tolerant := progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(2), RolloutConfig: clusterv1alpha1.RolloutConfig{MaxFailures: intstr.FromInt32(9)}})
	timed := progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1), RolloutConfig: clusterv1alpha1.RolloutConfig{
		MinSuccessTime: metav1.Duration{Duration: 10 * time.Minute}, ProgressDeadline: "30m", MaxFailures: intstr.FromString("25%"),
	}})
	canary := progressive(clusterv1alpha1.RolloutProgressive{MandatoryDecisionGroups: mandatory("canary")})
	groups := perGroup(clusterv1alpha1.RolloutProgressivePerGroup{})
	patient := perGroup(clusterv1alpha1.RolloutProgressivePerGroup{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "30m", MaxFailures: intstr.FromInt32(1)}})
	chosen := perGroup(clusterv1alpha1.RolloutProgressivePerGroup{MandatoryDecisionGroups: mandatory("z")})
	for _, test := range []struct {
		name         string
		spec         edgev2alpha1.EdgePlacementSpec
		destinations string
		admitted     string
		timedOut     string
		stopped      bool
		recheck      time.Duration
	}{
		{name: "the first by name", spec: oneByOne, destinations: "c=W a=W b=W", admitted: "a"},
		{name: "one at a time", spec: oneByOne, destinations: "a=W b=P c=W", admitted: "b"},
		{name: "the next one", spec: oneByOne, destinations: "a=S b=W c=W", admitted: "b"},
		{name: "a failure stops", spec: oneByOne, destinations: "a=W b=F c=W", admitted: "b", stopped: true},
		{name: "nothing to do", spec: oneByOne, destinations: "a=S b=S"},
		{name: "paused", spec: edgev2alpha1.EdgePlacementSpec{RolloutStrategy: oneByOne.RolloutStrategy, Paused: true}, destinations: "a=S b=P c=W"},
		{name: "paused without a strategy", spec: edgev2alpha1.EdgePlacementSpec{Paused: true}, destinations: "a=S b=W"},
		{name: "all at once", spec: edgev2alpha1.EdgePlacementSpec{RolloutStrategy: &edgev2alpha1.RolloutStrategy{}}, destinations: "a=F b=W c=W", admitted: "a b c"},
		{name: "a failure keeps its turn without a deadline", spec: tolerant, destinations: "a=F b=W c=W", admitted: "a b"},
		{name: "more failures permitted than destinations", spec: tolerant, destinations: "a=S b=W c=W", admitted: "b c"},
		{name: "not for long enough", spec: timed, destinations: "a=S@4 b=W", admitted: "a", recheck: 6 * time.Minute},
		{name: "for long enough", spec: timed, destinations: "a=S@10 b=W", admitted: "b"},
		{name: "within the deadline", spec: timed, destinations: "a=P@29 b=W", admitted: "a", recheck: time.Minute},
		{name: "after the deadline", spec: timed, destinations: "a=P@30 b=W", admitted: "a b", timedOut: "a"},
		{name: "failures after the deadline make room", spec: timed, destinations: "a=F@31 b=P@1 c=W", admitted: "a b", timedOut: "a", recheck: 29 * time.Minute},
		{name: "too many failures", spec: timed, destinations: "a=F@31 b=P@40 c=W", admitted: "a b", timedOut: "a b", stopped: true},
		{name: "mandatory groups first", spec: canary, destinations: "a=W b/canary=W c=W", admitted: "b"},
		{name: "the rest after them", spec: canary, destinations: "a=W b/canary=S c=W", admitted: "a c"},
		{name: "mandatory groups must succeed", spec: canary, destinations: "a=W b/canary=F c=W", admitted: "b", stopped: true},
		{name: "group by group", spec: groups, destinations: "a/10=W b/2=W c/2=W d/1=S e=W f/x=W", admitted: "b c"},
		{name: "the group that failed", spec: groups, destinations: "a/1=S b/2=F c/2=S d/3=W", admitted: "b", stopped: true},
		{name: "texts after numbers", spec: groups, destinations: "a/10=S e=W f/x=W", admitted: "f"},
		{name: "no group at last", spec: groups, destinations: "a/10=S e=W f/x=S", admitted: "e"},
		{name: "a mandatory group before lower ones", spec: chosen, destinations: "a/1=W b/z=W", admitted: "b"},
		{name: "a tolerated failure does not admit two groups", spec: patient, destinations: "a/1=F@31 b/2=W c/3=W", admitted: "a b", timedOut: "a"},
		{name: "a tolerated failure does not hide the rest of its group", spec: patient, destinations: "a/1=F@31 b/1=P@1 c/2=W", admitted: "a b", timedOut: "a", recheck: 29 * time.Minute},
		{name: "nothing at all", spec: oneByOne},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			strategy, err := New(&test.spec)
			if err != nil {
				t.Fatal(err)
			}
			decision, err := strategy.Decide(destinations(t, test.destinations), now)
			if err != nil {
				t.Fatal(err)
			}
			if got := join(decision.Admitted); got != test.admitted {
				t.Errorf("admitted %q, not %q", got, test.admitted)
			}
			if got := join(decision.TimedOut); got != test.timedOut {
				t.Errorf("timed out %q, not %q", got, test.timedOut)
			}
			if decision.Stopped != test.stopped || decision.RecheckAfter != test.recheck {
				t.Errorf("stopped %t, recheck after %s", decision.Stopped, decision.RecheckAfter)
			}
		})
	}
}

func join(set sets.Set[types.UID]) string {
	var names []string
	for _, uid := range sets.List(set) {
		names = append(names, string(uid))
	}
	return strings.Join(names, " ")
}

// TestNew covers specs that the API server accepts and that the handler refuses.
func TestNew(t *testing.T) {
	t.Parallel()
	if s, err := New(&edgev2alpha1.EdgePlacementSpec{}); s != nil || err != nil || !s.AdmitsAll() {
		t.Error("a placement without a strategy has one", s, err)
	}
	noGroup := progressive(clusterv1alpha1.RolloutProgressive{MandatoryDecisionGroups: mandatory("a")})
	noGroup.RolloutStrategy.GroupBy = ""
	for field, spec := range map[string]edgev2alpha1.EdgePlacementSpec{
		"spec.rolloutStrategy.progressive.progressDeadline": progressive(clusterv1alpha1.RolloutProgressive{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "5|"}}),
		"spec.rolloutStrategy.progressive.minSuccessTime":   progressive(clusterv1alpha1.RolloutProgressive{RolloutConfig: clusterv1alpha1.RolloutConfig{MinSuccessTime: metav1.Duration{Duration: -1}}}),
		"spec.rolloutStrategy.progressivePerGroup.progressDeadline": perGroup(clusterv1alpha1.RolloutProgressivePerGroup{
			RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "-5m"},
		}),
		"spec.rolloutStrategy: failed to parse the provided maxFailures": progressive(clusterv1alpha1.RolloutProgressive{RolloutConfig: clusterv1alpha1.RolloutConfig{MaxFailures: intstr.FromString("few")}}),
		"spec.rolloutStrategy.progressive.mandatoryDecisionGroups":       noGroup,
	} {
		if _, err := New(&spec); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestRollouts rolls a change out to random destinations. Some of them fail for ever. It checks each step.
func TestRollouts(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // it makes test cases
	for range 2000 {
		simulate(t, random)
	}
}

// simulate runs one rollout. In each step every admitted destination that is not done may make progress.
func simulate(t *testing.T, random *rand.Rand) {
	t.Helper()
	config := clusterv1alpha1.RolloutConfig{ProgressDeadline: "30m", MaxFailures: intstr.FromInt32(random.Int32N(3))}
	concurrency := 1 + random.IntN(4)
	spec := progressive(clusterv1alpha1.RolloutProgressive{RolloutConfig: config, MaxConcurrency: intstr.FromInt(concurrency)})
	isPerGroup := random.IntN(2) == 0
	if isPerGroup {
		spec = perGroup(clusterv1alpha1.RolloutProgressivePerGroup{RolloutConfig: config})
	}
	strategy, err := New(&spec)
	if err != nil {
		t.Fatal(err)
	}
	all, failing := make([]Destination, 1+random.IntN(12)), map[types.UID]bool{}
	for i := range all {
		uid := types.UID(fmt.Sprintf("t%02d", i))
		all[i] = Destination{SyncTarget: uid, Name: string(uid), Group: fmt.Sprint(random.IntN(3)), Since: now}
		failing[uid] = random.IntN(8) == 0
	}
	at := now
	for range 200 {
		decision, err := strategy.Decide(all, at)
		if err != nil {
			t.Fatal(err)
		}
		checkDecision(t, all, decision, isPerGroup, concurrency)
		moved := false
		for i := range all {
			if next := nextProgress(&all[i], decision, failing); next != all[i].Progress {
				all[i].Progress, all[i].Since, moved = next, at, true
			}
		}
		if !moved && decision.RecheckAfter == 0 {
			isDone := !slices.ContainsFunc(all, func(of Destination) bool { return of.Progress == Waiting })
			if !isDone && !decision.Stopped {
				t.Fatalf("no destination makes progress, and the rollout has not stopped: %+v", all)
			}
			return
		}
		at = at.Add(max(decision.RecheckAfter, time.Second))
	}
	t.Fatalf("the rollout does not end: %+v", all)
}

func nextProgress(of *Destination, decision Decision, failing map[types.UID]bool) Progress {
	switch {
	case of.Progress == Waiting && decision.Admitted.Has(of.SyncTarget):
		return Progressing
	case of.Progress == Progressing && failing[of.SyncTarget]:
		return Failed
	case of.Progress == Progressing:
		return Succeeded
	default:
		return of.Progress
	}
}

// checkDecision checks the guarantees of a strategy.
func checkDecision(t *testing.T, all []Destination, decision Decision, isPerGroup bool, concurrency int) {
	t.Helper()
	inFlight, admitted := 0, 0
	for _, of := range all {
		isNew := of.Progress == Waiting && decision.Admitted.Has(of.SyncTarget)
		if of.Progress == Progressing {
			inFlight++
		}
		if !isNew {
			continue
		}
		admitted++
		for _, other := range all {
			isBefore := other.Group < of.Group
			if isPerGroup && isBefore && (other.Progress == Waiting || other.Progress == Progressing) {
				t.Fatalf("%s of group %s is admitted before %s of group %s is done", of.Name, of.Group, other.Name, other.Group)
			}
		}
	}
	if !isPerGroup && admitted > 0 && inFlight+admitted > concurrency {
		t.Fatalf("%d destinations are admitted beside %d, and maxConcurrency is %d", admitted, inFlight, concurrency)
	}
	if decision.Stopped && admitted > 0 {
		t.Fatalf("%d destinations are admitted although the rollout has stopped", admitted)
	}
}
