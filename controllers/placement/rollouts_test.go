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
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/controllers/placement/rollout"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

func newTestShared(change func(*Options)) *shared {
	o := &Options{MaxPairs: DefaultMaxPairs, Clock: clock.RealClock{}, Fleet: fleetcache.New(fleetcache.Options{})}
	change(o)
	return newShared(o)
}

// newTestWorkspace returns a workspace that the hub knows the placements of: none.
func newTestWorkspace() *workspace {
	w := newWorkspace(newTestShared(func(*Options) {}), "workload")
	w.active.state.placements = &placements{}
	return w
}

// TestRolloutCounts makes random changes, and recounts all pairs after each.
func TestRolloutCounts(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // it makes test cases
	for i := range 100 {
		w := newTestWorkspace()
		if i%2 == 0 {
			w.pairs.limit.max = 5
		}
		states := []*rolloutState{newRolloutState(), newRolloutState(), nil}
		for step := range 200 {
			changeAtRandom(w, states, random)
			for i, state := range states[:2] {
				if want, got := recount(w, state), countsOf(state); want != got {
					t.Fatalf("step %d, placement %d: the counts are %s, and should be %s", step, i, got, want)
				}
			}
		}
	}
}

func changeAtRandom(w *workspace, states []*rolloutState, random *rand.Rand) {
	key := pairAt(objectKey{name: types.NamespacedName{Name: fmt.Sprint(random.IntN(3))}}, mailboxAt(random.IntN(4)))
	switch random.IntN(5) {
	case 4:
		var after *unstructured.Unstructured
		if random.IntN(2) == 0 {
			after = &unstructured.Unstructured{}
		}
		w.pairs.onCopy(key, nil, after)
	case 0:
		var selected []*resolvedPlacement
		for i, state := range states {
			if random.IntN(3) > 0 {
				selected = append(selected, placementAt(i, state, random.IntN(16)))
			}
		}
		w.pairs.lock.Lock()
		defer w.pairs.lock.Unlock()
		w.pairs.setSelected(key.objectKey, selectionResult{selectedBy: selected, absent: plan.Terminating}, nil, random.IntN(2) == 0)
	case 1:
		w.pairs.setResult(key, passResult{waiting: true})
	case 2:
		w.pairs.endPass(key, w.pairs.beginPass(key), random.IntN(4) > 0)
	default:
		w.pairs.lock.Lock()
		defer w.pairs.lock.Unlock()
		if entry := w.pairs.objects[key.objectKey]; entry != nil && entry.pairs[key.site] != nil {
			found := entry.pairs[key.site]
			w.pairs.change(entry, key.site, func() {
				found.placed, found.waiting, found.failure = true, false, nil
				found.syncStatus = []*syncStatus{nil, {}, {synced: true, health: health.Health{Status: health.Current}}, {failure: &failure{}}}[random.IntN(4)]
			})
		}
	}
}

// at returns the site in a mailbox of a copy without a namespace.
func at(mailbox logicalcluster.Name) site { return site{mailbox: mailbox} }

// pairAt returns the pair of an object and a mailbox that has the namespaces of the workspace.
func pairAt(key objectKey, mailbox logicalcluster.Name) pairKey {
	return pairKey{key, site{mailbox, key.namespace()}}
}

func mailboxAt(i int) logicalcluster.Name { return logicalcluster.Name(fmt.Sprintf("m%d", i)) }

// placementAt returns a view of the placement of a state, with the mailboxes of a set of bits.
func placementAt(i int, state *rolloutState, bits int) *resolvedPlacement {
	of := &resolvedPlacement{Placement: &rules.Placement{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}, rollout: state, mailboxes: map[logicalcluster.Name]rules.Destination{}}
	for at := range 4 {
		if bits&(1<<at) != 0 {
			destination := rules.Destination{SyncTarget: fleet.SyncTarget{Name: fmt.Sprint(at), Mailbox: mailboxAt(at)}}
			of.mailboxes[destination.Mailbox], of.Destinations = destination, append(of.Destinations, destination)
		}
	}
	return of
}

func recount(w *workspace, state *rolloutState) string {
	counted := newRolloutState()
	for _, entry := range w.pairs.objects {
		for _, one := range entry.selectedBy {
			for at, found := range entry.pairs {
				if _, ok := one.mailboxes[at.mailbox]; ok && one.rollout == state {
					counted.move(at.mailbox, notCounted, found.phase())
				}
			}
		}
	}
	return countsOf(counted)
}

func countsOf(state *rolloutState) string {
	text := fmt.Sprint(state.unobserved)
	for i := range 4 {
		if counts := state.counts[mailboxAt(i)]; counts != nil {
			text += fmt.Sprint(" ", i, counts[1:])
		}
	}
	return text
}

// A waiting pair is enqueued when its placement loses its rollout: no other event would follow.
func TestEndOfRollout(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace()
	key := pairAt(objectKey{name: types.NamespacedName{Name: "till"}}, mailboxAt(0))
	set := func(state *rolloutState) {
		w.pairs.lock.Lock()
		defer w.pairs.lock.Unlock()
		w.pairs.setSelected(key.objectKey, selectionResult{selectedBy: []*resolvedPlacement{placementAt(0, state, 1)}, absent: plan.Terminating}, nil, false)
	}
	changes := func() uint32 { return w.pairs.beginPass(key) }
	state := newRolloutState()
	set(state)
	before := changes()
	set(state)
	if changes() != before {
		t.Error("got a pass without a change")
	}
	set(nil)
	if changes() == before {
		t.Error("the waiting pair gets no pass")
	}
}

// Only new content waits, and only for a destination that no placement admits.
func TestMustWait(t *testing.T) {
	t.Parallel()
	const admitted, other = logicalcluster.Name("admitted"), logicalcluster.Name("other")
	state := newRolloutState()
	one := &resolvedPlacement{
		Placement: &rules.Placement{Name: "shop", Rollout: &rollout.Strategy{Paused: true}}, rollout: state,
		mailboxes: map[logicalcluster.Name]rules.Destination{admitted: {SyncTarget: fleet.SyncTarget{UID: "1"}}, other: {SyncTarget: fleet.SyncTarget{UID: "2"}}},
	}
	free := &resolvedPlacement{Placement: &rules.Placement{Name: "free"}, mailboxes: map[logicalcluster.Name]rules.Destination{other: {}}}
	desired := &transform.Desired{Mark: ownership.Mark{Hash: "new"}}
	plannedAs := func(action plan.Action) plan.UpPlan {
		return plan.UpPlan{Plan: plan.Plan{Decision: plan.Decision{Action: action}, Desired: desired}}
	}
	snapshot := func(hash string) *pairSnapshot {
		return &pairSnapshot{desired: true, Snapshot: plan.Snapshot{Up: &plan.UpSnapshot{Mark: &ownership.Mark{Hash: hash}}}}
	}
	w := newTestWorkspace()
	key := func(mailbox logicalcluster.Name) pairKey { return pairAt(objectKey{}, mailbox) }
	entry := w.pairs.ensureObject(objectKey{})
	entry.selectedBy, entry.pairs = []*resolvedPlacement{one}, map[site]*pair{at(admitted): {}, at(other): {}}
	expect := func(what string, mailbox logicalcluster.Name, s *pairSnapshot, planned plan.UpPlan, want bool) {
		t.Helper()
		if got := w.passes.awaitsRollout(key(mailbox), s, planned); got != want {
			t.Errorf("%s: waiting is %t", what, got)
		}
	}
	expect("before the first decision", admitted, snapshot("old"), plannedAs(plan.Create), true)
	state.decision.Admitted, state.decided = sets.New[types.UID]("1"), true
	expect("admitted", admitted, snapshot("old"), plannedAs(plan.Update), false)
	expect("a new copy", other, snapshot(""), plannedAs(plan.Create), true)
	expect("new content", other, snapshot("old"), plannedAs(plan.Update), true)
	expect("a name that is taken", other, snapshot(""), plannedAs(plan.Conflict), true)
	expect("the same content", other, snapshot("new"), plannedAs(plan.Update), false)
	expect("a withdrawal", other, &pairSnapshot{Snapshot: snapshot("old").Snapshot}, plan.UpPlan{Plan: plan.Plan{Decision: plan.Decision{Action: plan.Delete}}}, false)
	expect("nothing to write", other, snapshot("new"), plannedAs(plan.None), false)
	state.reset()
	expect("after a change", admitted, snapshot("old"), plannedAs(plan.Update), true)
	entry.selectedBy = []*resolvedPlacement{one, free}
	expect("another placement without a strategy", other, snapshot("old"), plannedAs(plan.Update), false)
	expect("another placement on other clusters", admitted, snapshot("old"), plannedAs(plan.Update), true)
}

// A decision is repeated only after an event, or when it is due.
func TestDecisionStands(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	state := newRolloutState()
	stands := func(what string, at time.Time, wantAfter time.Duration, want bool) {
		t.Helper()
		if after, ok := state.isCurrent(at); after != wantAfter && ok || ok != want {
			t.Errorf("%s: current %t for %v, want %t for %v", what, ok, after, want, wantAfter)
		}
	}
	decide := func(recheckAfter time.Duration) {
		state.updateProgress(nil, "", now)
		state.admit(rollout.Decision{}, nil, now)
		state.scheduleRecheck(true, recheckAfter, now)
	}
	stands("before the first", now, 0, false)
	decide(0)
	stands("for good", now.Add(time.Hour), 0, true)
	state.reset()
	stands("an object changed", now, 0, false)
	decide(time.Minute)
	stands("too early", now.Add(time.Second), 59*time.Second, true)
	stands("it is time", now.Add(time.Minute), 0, false)
	state.move("m", notCounted, phaseProgressing)
	stands("a cluster is on its way", now, 0, false)
	decide(0)
	state.move("m", phaseProgressing, phaseUnobserved)
	state.move("m", phaseUnobserved, phaseSucceeded)
	stands("a cluster got there", now, 0, false)

	decide(0)
	w, one := newTestWorkspace(), placementAt(0, state, 0)
	one.Rollout, _ = rollout.New(&edgev2alpha1.EdgePlacementSpec{Paused: true})
	if _, complete, err := w.rollouts.decideOne(one); err != nil || !complete {
		t.Errorf("a current decision is made again: %v", err)
	}
	state.evaluated = false
	if _, complete, err := w.rollouts.decideOne(one); err != nil || complete {
		t.Errorf("without destinations the rollout is complete, or not decided about: %v", err)
	}
}

// A copy that is being written counts as a copy to withdraw, until the cache has shown it or can no longer show
// it.
func TestCopiesUnderWay(t *testing.T) {
	t.Parallel()
	view := fleet.NewSnapshot(&fleet.Inventory{Name: "i", SyncTargets: []fleet.SyncTarget{{Name: "florin", Mailbox: mailboxAt(0)}}})
	w := newTestWorkspace()
	testClock := testclock.NewFakeClock(time.Unix(1000, 0))
	w.pairs.writes = writes.NewExpectations[pairKey, *unstructured.Unstructured](&w.pairs.lock, testClock)
	key := pairAt(objectKey{name: types.NamespacedName{Name: "till"}}, mailboxAt(0))
	set := func(selected ...*resolvedPlacement) {
		w.pairs.lock.Lock()
		defer w.pairs.lock.Unlock()
		w.pairs.setSelected(key.objectKey, selectionResult{selectedBy: selected, absent: plan.Terminating}, nil, false)
	}
	set(placementAt(0, nil, 1))
	changes := w.pairs.beginPass(key)
	w.pairs.writes.Started(key)
	set()
	if !w.finalizers.isWithdrawing(view) {
		t.Error("the pair is dropped while its copy is written")
	}
	written := &unstructured.Unstructured{}
	written.SetUID("u")
	written.SetResourceVersion("7")
	w.pairs.writes.Finished(key, written)
	if again := w.pairs.endPass(key, changes, true); again != plan.CacheTimeout || !w.finalizers.isWithdrawing(view) {
		t.Errorf("the pair is dropped before the cache shows its copy; another pass after %v", again)
	}
	testClock.Step(plan.CacheTimeout)
	changes = w.pairs.beginPass(key)
	if object, _ := w.pairs.writes.Current(key, nil); object != nil {
		t.Error("the pair waits for the cache for too long")
	}
	if again := w.pairs.endPass(key, changes, true); again != 0 || w.finalizers.isWithdrawing(view) || len(w.pairs.objects) != 0 {
		t.Errorf("the pair waits for ever for a copy that no cache has shown: another pass after %v", again)
	}
}

// A workspace never has more pairs than its limit, in any order of its objects. Objects with copies come first.
func TestPairsAreLimited(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace()
	w.pairs.limit.max = 5
	one := placementAt(0, nil, 15)
	set := func(name string, selected ...*resolvedPlacement) {
		w.pairs.lock.Lock()
		defer w.pairs.lock.Unlock()
		w.pairs.setSelected(objectKey{name: types.NamespacedName{Name: name}}, selectionResult{selectedBy: selected, absent: plan.Terminating}, nil, false)
	}
	counted := func() (pairs int, failed int64) {
		counted := &placementCounts{}
		for key, entry := range w.pairs.objects {
			pairs += len(entry.pairs)
			counted.add(key, entry, one, nil)
		}
		if (len(counted.failures) > 0) != (counted.failed > 0) {
			t.Errorf("%d pairs failed, and the status lists %d", counted.failed, len(counted.failures))
		}
		return pairs, counted.failed
	}
	expect := func(what string, pairs int, failed int64) {
		t.Helper()
		if gotPairs, gotFailed := counted(); gotPairs != pairs || gotFailed != failed || w.pairs.limit.desired != pairs {
			t.Errorf("%s: %d pairs, %d failed, want %d and %d", what, gotPairs, gotFailed, pairs, failed)
		}
	}
	set("a", one)
	expect("within the limit", 4, 0)
	set("b", one)
	expect("beyond it", 5, 3)
	set("c", one)
	expect("further beyond it", 5, 7)
	next := &placements{}
	if w.pairs.limit.retry(next, time.Now()) || next.recheckAt.IsZero() {
		t.Error("objects beyond the limit are not retried later, or are retried at the limit")
	}
	set("a")
	if !w.pairs.limit.retry(next, time.Now()) || w.pairs.limit.retry(next, time.Now()) {
		t.Error("objects beyond the limit are not retried below the limit, or are retried twice")
	}
	set("b", one)
	expect("after an object has gone", 4, 4)
	w.pairs.onCopy(pairAt(objectKey{name: types.NamespacedName{Name: "c"}}, mailboxAt(0)), nil, &unstructured.Unstructured{})
	set("d", one)
	w.pairs.onCopy(pairAt(objectKey{name: types.NamespacedName{Name: "c"}}, mailboxAt(1)), nil, &unstructured.Unstructured{})
	expect("copies of the previous leader", 6, 6)
}

// An active placement stays active when the workspace is beyond its limit. After a start, the placement's
// status shows whether it was active.
func TestActiveBefore(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace()
	w.active.state.placements = nil
	var observed []*unstructured.Unstructured
	for uid, placed := range map[types.UID]int64{"placed": 3, "new": 0} {
		object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"placed": placed}}}
		object.SetUID(uid)
		observed = append(observed, object)
	}
	if got := w.resolver.activeBefore(observed); !got["placed"] || got["new"] {
		t.Errorf("after a start: %v", got)
	}
	w.active.state.placements = &placements{}
	w.active.get().setAll([]*resolvedPlacement{placementAt(0, nil, 1)})
	if got := w.resolver.activeBefore(observed); got["placed"] || !got["0"] {
		t.Errorf("later: %v", got)
	}
}

// An object whose API a mailbox lacks has failed there, if it is desired there.
func TestUnserved(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace()
	key := pairAt(objectKey{name: types.NamespacedName{Name: "till"}}, mailboxAt(0))
	if s, err := w.passes.observer.unserved(key, plan.Resource{}, fleet.SyncTarget{}); s != nil || err != nil {
		t.Errorf("no pair: %v, %v", s, err)
	}
	w.pairs.setSelected(key.objectKey, selectionResult{selectedBy: []*resolvedPlacement{placementAt(0, nil, 1)}, absent: plan.Terminating}, nil, false)
	if s, err := w.passes.observer.unserved(key, plan.Resource{}, fleet.SyncTarget{}); s == nil || newFailure(err).Reason != plan.ReasonNotServed {
		t.Errorf("desired: %v, %v", s, err)
	}
}
