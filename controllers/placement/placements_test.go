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
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// placementsAt returns placements with one placement and its destinations.
func placementsAt(generation int64, destinations ...rules.Destination) *placements {
	return &placements{fleetSynced: true, all: []*resolvedPlacement{{
		Placement: &rules.Placement{UID: "p", Generation: generation}, Resolution: rules.Resolution{Destinations: destinations},
	}}}
}

// All objects are selected again only if the next placements may place other objects, or place them elsewhere.
func TestReselection(t *testing.T) {
	t.Parallel()
	here := rules.Destination{SyncTarget: fleet.SyncTarget{UID: "1", Mailbox: "m"}, Location: "l"}
	upsyncing, moved := here, here
	upsyncing.MayUpsync, moved.Location = true, "other"
	before := placementsAt(1, here)
	for name, c := range map[string]struct {
		before       *placements
		next         *placements
		mustReselect bool
		changed, all bool
	}{
		"the first":                  {nil, placementsAt(1, here), false, true, true},
		"the same":                   {before, placementsAt(1, here), false, false, false},
		"the same, after a reset":    {before, placementsAt(1, here), true, true, true},
		"another generation":         {before, placementsAt(2, here), false, true, false},
		"another Location":           {before, placementsAt(1, moved), false, true, false},
		"upsync is allowed":          {before, placementsAt(1, upsyncing), false, true, false},
		"no destination":             {before, placementsAt(1), false, true, false},
		"no placement":               {before, &placements{fleetSynced: true}, false, true, false},
		"one became invalid":         {before, &placements{fleetSynced: true, partial: true, all: before.all}, false, true, true},
		"the workspace goes":         {before, &placements{fleetSynced: true, withdrawAll: true}, false, true, true},
		"all inventories are synced": {&placements{all: before.all}, before, false, true, false},
	} {
		if changed, all := c.before.reselection(c.next, c.mustReselect); changed != c.changed || all != c.all {
			t.Errorf("%s: changed %v, all %v", name, changed, all)
		}
	}
}

func TestResolveDelay(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		placements placements
		want       time.Duration
	}{
		"inventories are missing": {placements{recheckAt: now.Add(time.Hour)}, startupPoll},
		"nothing to wait for":     {placements{fleetSynced: true}, 0},
		"later":                   {placements{fleetSynced: true, recheckAt: now.Add(time.Hour)}, time.Hour},
		"overdue":                 {placements{fleetSynced: true, recheckAt: now.Add(-time.Hour)}, minRetryDelay},
	} {
		if got := c.placements.resolveDelay(now); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	var p placements
	for _, at := range []time.Duration{3, 2, 4} {
		p.resolveBy(now.Add(at))
	}
	if !p.recheckAt.Equal(now.Add(2)) {
		t.Errorf("the earliest time is %s", p.recheckAt)
	}
}

// The oldest placements come first, and an active one is never excluded because of its pairs.
func TestPlacementsBeyondLimits(t *testing.T) {
	t.Parallel()
	entries := make([]edgev2alpha1.PlacementUpsync, maxUpsync/2+1)
	for name, c := range map[string]struct {
		added  []int
		active []types.UID
		upsync bool
		want   []types.UID
	}{
		"within":                           {[]int{5, 5, 0}, nil, false, []types.UID{"0", "1", "2"}},
		"the young one is too large":       {[]int{5, 4, 2}, nil, false, []types.UID{"0", "1"}},
		"an old one is, the young one not": {[]int{5, 6, 5}, nil, false, []types.UID{"0", "2"}},
		"the active one stays":             {[]int{5, 6, 5}, []types.UID{"1"}, false, []types.UID{"0", "1"}},
		"too many entries for upsync":      {[]int{1, 1, 1}, []types.UID{"1"}, true, []types.UID{"0"}},
	} {
		next, active := &placements{outcomes: map[types.UID]outcome{}}, map[types.UID]bool{}
		var all []*resolvedPlacement
		for i := range c.added {
			one := placementAt(i, nil, 1)
			if c.upsync {
				one.Upsync = entries
			}
			all = append(all, one)
		}
		for _, uid := range c.active {
			active[uid] = true
		}
		next.setAll(all)
		next.excludeBeyondLimit(c.added, 10, active)
		var got []types.UID
		for _, one := range next.all {
			got = append(got, one.UID)
		}
		if !slices.Equal(got, c.want) || next.partial != (len(got) < len(all)) {
			t.Errorf("%s: %v, partial %v", name, got, next.partial)
		}
		for _, one := range all {
			if result := next.outcomes[one.UID]; (result.reason == rules.ReasonLimitExceeded) == slices.Contains(got, one.UID) {
				t.Errorf("%s: the outcome of %s is %+v", name, one.UID, result)
			}
		}
	}
}

func TestPoliciesOfSeveralPlacements(t *testing.T) {
	t.Parallel()
	with := func(name string, policy ownership.Policy, state *rolloutState) *resolvedPlacement {
		return &resolvedPlacement{Placement: &rules.Placement{Name: name, DeletionPolicy: policy}, rollout: state}
	}
	deleting, orphaning := with("a", ownership.PolicyDelete, nil), with("b", ownership.PolicyOrphan, nil)
	for want, selectedBy := range map[ownership.Policy][]*resolvedPlacement{ownership.PolicyDelete: {deleting, deleting}, ownership.PolicyOrphan: {deleting, orphaning}} {
		if got := deletionPolicyOf(selectedBy); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for name, other := range map[string]*resolvedPlacement{
		"another placement": with("c", ownership.PolicyDelete, nil), "another policy": with("a", ownership.PolicyOrphan, nil), "a rollout": with("a", ownership.PolicyDelete, newRolloutState()),
	} {
		if samePlacements([]*resolvedPlacement{deleting}, []*resolvedPlacement{other}) {
			t.Errorf("%s counts as the same", name)
		}
	}
	if !samePlacements([]*resolvedPlacement{deleting}, []*resolvedPlacement{with("a", ownership.PolicyDelete, nil)}) {
		t.Error("another view of the same placement counts as another one")
	}
}

// compiled returns a placement with the given numbers of tests, of selectors in each test, and of values in
// each selector.
func compiled(t *testing.T, tests, selectors, values int) *rules.Placement {
	t.Helper()
	placement := &edgev2alpha1.EdgePlacement{}
	for i := range tests {
		var one edgev2alpha1.DownsyncObjectTest
		for j := range selectors {
			requirement := metav1.LabelSelectorRequirement{Key: fmt.Sprintf("k%d-%d", i, j), Operator: metav1.LabelSelectorOpNotIn}
			for k := range values {
				requirement.Values = append(requirement.Values, fmt.Sprint(k))
			}
			one.LabelSelectors = append(one.LabelSelectors, metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}})
		}
		placement.Spec.Downsync = append(placement.Spec.Downsync, one)
	}
	found, err := rules.Compile(placement)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The cost of testing one object is bounded for any selectors that users write.
func TestPlacementsHaveAFewSelectors(t *testing.T) {
	plain, one, large, broad := compiled(t, 256, 0, 0), compiled(t, 1, 1, 1), compiled(t, 256, 64, 1), compiled(t, 1, 1, maxCost)
	half := compiled(t, 64, 20, 1)
	for name, c := range map[string]struct {
		placements []*rules.Placement
		want       int
	}{
		"names cost nothing":             {[]*rules.Placement{plain, plain, plain}, 3},
		"256 tests with 64 selectors":    {[]*rules.Placement{one, large, one}, 2},
		"one selector with many values":  {[]*rules.Placement{broad, one}, 1},
		"several that are much together": {[]*rules.Placement{half, half, half, one}, 3},
	} {
		isWithin, got := costLimit(), 0
		for _, one := range c.placements {
			if isWithin(one) {
				got++
			}
		}
		if got != c.want {
			t.Errorf("%s: %d placements are within the cost, want %d", name, got, c.want)
		}
	}
}
