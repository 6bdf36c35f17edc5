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
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// A copy is withdrawn only if it is certain why it is no longer desired.
func TestWithdrawal(t *testing.T) {
	t.Parallel()
	selected := []*resolvedPlacement{{Placement: &rules.Placement{}}}
	arrived := &pair{desired: true, placed: true, syncStatus: &syncStatus{synced: true}}
	for name, c := range map[string]struct {
		object         object
		certain, other plan.State
	}{
		"the source is gone":        {object{absence: plan.SourceNotFound}, plan.SourceNotFound, plan.SourceNotFound},
		"somebody deletes it":       {object{absence: plan.Terminating}, plan.Deselected, plan.Deselected},
		"no placement selects it":   {object{absence: plan.Deselected}, plan.Deselected, ""},
		"it has moved":              {object{selectedBy: selected, pairs: map[site]*pair{at("m"): arrived}}, plan.Deselected, ""},
		"it is moving":              {object{selectedBy: selected, pairs: map[site]*pair{at("m"): {desired: true}}}, "", ""},
		"it has no destination now": {object{selectedBy: selected}, plan.Deselected, ""},
	} {
		if got := c.object.withdrawal("away", true); got != c.certain {
			t.Errorf("%s: %q", name, got)
		}
		if got := c.object.withdrawal("away", false); got != c.other {
			t.Errorf("%s, and that is not certain: %q", name, got)
		}
	}
}

func TestMustSelectFirst(t *testing.T) {
	t.Parallel()
	selected := []*resolvedPlacement{{Placement: &rules.Placement{}}}
	for name, c := range map[string]struct {
		object                    object
		withSource, withoutSource bool
	}{
		"not selected yet":        {object{}, true, true},
		"selected":                {object{selectedBy: selected}, false, false},
		"the source was gone":     {object{absence: plan.SourceNotFound}, true, false},
		"somebody deletes it":     {object{absence: plan.Terminating}, false, false},
		"no placement selects it": {object{absence: plan.Deselected}, false, false},
	} {
		if got := c.object.mustSelect(true); got != c.withSource {
			t.Errorf("%s, with a source: %v", name, got)
		}
		if got := c.object.mustSelect(false); got != c.withoutSource {
			t.Errorf("%s, without a source: %v", name, got)
		}
	}
}

// After kcp went back to an earlier state, nothing is removed, and no content is overwritten.
func TestLosesState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action plan.Action
		cause  plan.Cause
		want   bool
	}{
		{plan.Delete, "", true}, {plan.Release, "", true}, {plan.VerifyAbsence, "", true}, {plan.Update, plan.Changed, true},
		{plan.Update, plan.Drifted, false}, {plan.Create, "", false}, {plan.None, "", false},
	} {
		if got := losesState(plan.Decision{Action: c.action, Cause: c.cause}); got != c.want {
			t.Errorf("%v, %v: %v", c.action, c.cause, got)
		}
	}
}

// What a user sees decides about reports, and what a copy contains about the status of its source.
func TestPassResults(t *testing.T) {
	t.Parallel()
	refused := func(message string) *failure { return &failure{plan.ReasonInvalid, message} }
	placed := passResult{placed: true}
	for name, c := range map[string]struct {
		before, next         passResult
		equal, changesNoCopy bool
	}{
		"nothing":             {placed, placed, true, true},
		"the same failure":    {passResult{failure: refused("a")}, passResult{failure: refused("a")}, true, true},
		"another message":     {passResult{failure: refused("a")}, passResult{failure: refused("b")}, false, false},
		"placed":              {passResult{}, placed, false, false},
		"the rollout ends":    {passResult{waiting: true}, passResult{}, false, false},
		"the failure is over": {passResult{failure: refused("a")}, passResult{}, false, false},
		"a cluster has it":    {placed, passResult{placed: true, syncStatus: &syncStatus{synced: true}}, false, true},
	} {
		if got := c.before.equal(c.next); got != c.equal {
			t.Errorf("%s: equal is %v", name, got)
		}
		if got := !c.before.changesCopy(c.next); got != c.changesNoCopy {
			t.Errorf("%s: changesCopy is %v", name, !got)
		}
	}
}

// A result is reported and returned only if it differs. A copy that waited for this result is withdrawn.
func TestSetResult(t *testing.T) {
	t.Parallel()
	here, there := pairAt(objectKey{name: types.NamespacedName{Name: "till"}}, "here"), pairAt(objectKey{name: types.NamespacedName{Name: "till"}}, "there")
	refused, taken := &failure{plan.ReasonInvalid, "no"}, &failure{plan.ReasonConflict, "taken"}
	for name, c := range map[string]struct {
		before, next passResult
		// there is the failure at another destination.
		there          *failure
		isNew, awaits  bool
		reports, tasks int
	}{
		"nothing new":                    {before: passResult{placed: true}, next: passResult{placed: true}, tasks: 1},
		"placed":                         {next: passResult{placed: true}, reports: 1, tasks: 2},
		"a cluster has it":               {before: passResult{placed: true}, next: passResult{placed: true, syncStatus: &syncStatus{synced: true}}, reports: 1, tasks: 1},
		"refused":                        {next: passResult{failure: refused}, isNew: true, reports: 1, tasks: 2},
		"refused again":                  {before: passResult{failure: refused}, next: passResult{failure: refused}, tasks: 1},
		"refused there before":           {next: passResult{failure: refused}, there: refused, reports: 1, tasks: 2},
		"the name is taken":              {next: passResult{failure: taken}, isNew: true, awaits: true, reports: 1, tasks: 2},
		"the name was taken before":      {before: passResult{failure: taken}, next: passResult{placed: true}, reports: 1, tasks: 2},
		"another failure than the name":  {before: passResult{failure: taken}, next: passResult{failure: refused}, isNew: true, reports: 1, tasks: 2},
		"it waits for a rollout instead": {before: passResult{placed: true}, next: passResult{waiting: true}, reports: 1, tasks: 2},
	} {
		w, reports := newTestWorkspace(), 0
		w.tasks.startup.begin()
		w.pairs.reports.topic.Subscribe(t.Context(), func(logicalcluster.Name) { reports++ })
		found := &pair{desired: true}
		found.setResult(c.before)
		w.pairs.objects[here.objectKey] = &object{
			selectedBy: []*resolvedPlacement{{Placement: &rules.Placement{SingletonStatus: true}}},
			pairs:      map[site]*pair{at("here"): found, at("there"): {failure: c.there}, at("withdrawn"): {hasCopy: true}},
		}
		w.pairs.names.set(here, w.cluster, c.before.failure == taken)
		if isNew := w.pairs.setResult(here, c.next); isNew != c.isNew {
			t.Errorf("%s: a new failure: %v", name, isNew)
		}
		if tasks := w.tasks.queue.Len(); reports != c.reports || tasks != c.tasks {
			t.Errorf("%s: %d reports and %d tasks, want %d and %d", name, reports, tasks, c.reports, c.tasks)
		}
		if _, awaits := w.pairs.names.waiting[here.copyKey()]; awaits != c.awaits || !found.result().equal(c.next) {
			t.Errorf("%s: the pair waits for its name: %v, result %+v", name, awaits, found.result())
		}
		if w.pairs.setResult(there, passResult{}); len(w.pairs.objects) != 1 {
			t.Errorf("%s: a result adds an object", name)
		}
	}
}

// The hub takes over only what it created for this workspace, or a container that no other workspace uses.
func TestMayTakeOver(t *testing.T) {
	t.Parallel()
	hub, forger := marks{"hub", ownership.NewSealer([]byte("key"))}, marks{"hub", ownership.NewSealer([]byte("forged"))}
	e := &executor{copies: &copies{policy: &CachePolicy{}}}
	for name, c := range map[string]struct {
		by          ownership.Owner
		isContainer bool
		marked      bool
		want        bool
	}{
		"a copy that it released":            {by: hub.creatorOf("florin", "team"), want: true},
		"another workspace's":                {by: hub.creatorOf("florin", "other")},
		"a container":                        {by: hub.ownerOf("florin"), isContainer: true, want: true},
		"no container":                       {by: hub.ownerOf("florin")},
		"a container for another SyncTarget": {by: hub.ownerOf("guilder"), isContainer: true},
		"a forged container":                 {by: forger.ownerOf("florin"), isContainer: true},
		"a forged copy":                      {by: forger.creatorOf("florin", "team")},
		"a copy that somebody owns":          {by: hub.creatorOf("florin", "team"), marked: true},
	} {
		inMailbox := sourceObject()
		annotations := map[string]string{ownership.EnsuredAnnotation: c.by.EnsuredValue(transform.SelfOf(inMailbox))}
		if c.marked {
			annotations[ownership.MarkAnnotation] = "{}"
		}
		inMailbox.SetAnnotations(annotations)
		s := &pairSnapshot{resource: plan.Resource{DeletesContents: c.isContainer}, owner: hub.ownerOf("florin"), creator: hub.creatorOf("florin", "team")}
		s.InMailbox = inMailbox
		if got := e.mayTakeOver(pairKey{}, s); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	s := &pairSnapshot{owner: hub.ownerOf("florin"), creator: hub.creatorOf("florin", "team")}
	s.InMailbox = sourceObject()
	if e.mayTakeOver(pairKey{}, s) {
		t.Error("an object of somebody else is taken over")
	}
}

// The hub waits for the SyncTargets of the previous leader, and not for ever.
func TestStartup(t *testing.T) {
	t.Parallel()
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	var known []types.UID
	isLoaded := false
	s := &startup{fleet: fleetcache.New(fleetcache.Options{}), knownSyncTargets: func() ([]types.UID, bool) { return known, isLoaded }, clock: clock}
	expect := func(what string, hasBegun, inGrace, isFleetSynced bool) {
		t.Helper()
		if s.hasBegun() != hasBegun || s.inGrace() != inGrace || s.isFleetSynced() != isFleetSynced {
			t.Errorf("%s: begun %v, in grace %v, synced %v", what, s.hasBegun(), s.inGrace(), s.isFleetSynced())
		}
	}
	known = []types.UID{"florin"}
	expect("before the ledger is loaded", false, true, false)
	isLoaded = true
	clock.Step(2 * startupGrace)
	expect("before the start", false, true, false)
	s.begin()
	expect("without a SyncTarget of the previous leader", true, true, false)
	clock.Step(2 * startupGrace)
	expect("after a while", true, false, true)
	s = &startup{fleet: s.fleet, knownSyncTargets: s.knownSyncTargets, clock: clock}
	known = nil
	expect("without a former SyncTarget", false, true, true)
}
