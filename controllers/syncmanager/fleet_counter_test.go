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

package syncmanager

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// ownedTargets are Shards that hold some SyncTargets.
type ownedTargets map[types.UID]bool

var _ leadership.Shards = ownedTargets{}

func (h ownedTargets) Owns(syncTarget types.UID) bool { return h[syncTarget] }

func (ownedTargets) Fence(types.UID) *fence.Fence { return nil }

// entries is a ledger in memory; nil is not loaded.
type entries map[types.UID]*ledger.Entry

func (e entries) IsLoaded() bool { return e != nil }

func (e entries) Each(visit func(types.UID, *ledger.Entry)) {
	for syncTarget, entry := range e {
		visit(syncTarget, entry)
	}
}

// entryWith returns the entry of a SyncTarget with a mailbox.
func entryWith(name string, answer *ledger.SyncSummary) *ledger.Entry {
	return &ledger.Entry{Name: name, Inventory: "i", Mailbox: "m", SyncSummary: answer}
}

func TestSetSummary(t *testing.T) {
	answer := &ledger.SyncSummary{
		Synced: true, Objects: map[string]int64{"secrets": 3, "deployments.apps": 0}, NotServed: []string{"pods"}, Missing: []string{"pods"}, Unpublished: []types.UID{"u"},
	}
	for name, test := range map[string]struct {
		summary      *ledger.SyncSummary
		resource     string
		unpublishing types.UID
		want         share
	}{
		"synced":                 {answer, "secrets", "", share{counts: Counts{1, 1, 3}, isDecided: true, known: true}},
		"synced without objects": {answer, "deployments.apps", "", share{counts: Counts{1, 1, 0}, isDecided: true, known: true}},
		"of another group":       {answer, "deployments", "", share{counts: Counts{1, 0, 0}, isDecided: true, known: true}},
		"not served":             {answer, "pods", "", share{isDecided: true, known: true, missing: true}},
		"unpublished":            {answer, "secrets", "u", share{counts: Counts{1, 1, 3}, isDecided: true, known: true, unpublished: true}},
		"an earlier one was":     {answer, "secrets", "v", share{counts: Counts{1, 1, 3}, isDecided: true, known: true}},
		"no answer":              {nil, "secrets", "u", share{}},
		"not synced":             {&ledger.SyncSummary{}, "secrets", "u", share{isDecided: true, known: true, unpublished: true}},
	} {
		var got share
		if got.setSummary(test.summary, false, test.resource, test.unpublishing); got != test.want {
			t.Errorf("%s: want %+v, got %+v", name, test.want, got)
		}
	}
}

// A SyncTarget that this replica owns is counted here. The summaries of the owners count for the rest.
func TestFleetCounter(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	synced := func(objects int64, unpublished ...types.UID) *ledger.SyncSummary {
		return &ledger.SyncSummary{Synced: true, Objects: map[string]int64{"secrets": objects}, Missing: []string{"secrets"}, Unpublished: unpublished}
	}
	for name, test := range map[string]struct {
		ledger entries
		holds  ownedTargets
		// assigned is true if the manager syncs florin, and observed if it has observed all objects of florin,
		// which has none. stopped is true if the manager has decided not to sync it.
		assigned, observed, stopped bool
		later                       time.Duration
		want                        Counts
		known, unpublished          bool
		missing                     []string
	}{
		"nothing is loaded":      {},
		"nothing is there":       {ledger: entries{}, known: true, unpublished: true},
		"others hold all":        {ledger: entries{"a": entryWith("a", synced(2, "u")), "b": entryWith("b", synced(3, "u"))}, want: Counts{2, 2, 5}, known: true, unpublished: true, missing: []string{"a (inventory i)", "b (inventory i)"}},
		"one still has objects":  {ledger: entries{"a": entryWith("a", synced(2, "u")), "b": entryWith("b", synced(3))}, want: Counts{2, 2, 5}, known: true, missing: []string{"a (inventory i)", "b (inventory i)"}},
		"one has no answer":      {ledger: entries{"a": entryWith("a", synced(2, "u")), "b": entryWith("b", nil)}, want: Counts{1, 1, 2}, missing: []string{"a (inventory i)"}},
		"one never answers":      {ledger: entries{"a": entryWith("a", synced(2, "u")), "b": entryWith("b", nil)}, later: countTimeout, want: Counts{1, 1, 2}, known: true, missing: []string{"a (inventory i)"}},
		"held and observed":      {ledger: entries{florin: entryWith("f", synced(7, "u"))}, holds: ownedTargets{florin: true}, assigned: true, observed: true, want: Counts{1, 1, 0}, known: true},
		"held and not observed":  {ledger: entries{florin: entryWith("f", synced(7, "u"))}, holds: ownedTargets{florin: true}, assigned: true, want: Counts{1, 0, 0}},
		"held and not decided":   {ledger: entries{florin: entryWith("f", synced(7, "u"))}, holds: ownedTargets{florin: true}},
		"held and never decided": {ledger: entries{florin: entryWith("f", synced(7, "u"))}, holds: ownedTargets{florin: true}, later: countTimeout, known: true, unpublished: true},
		"held and suspended":     {ledger: entries{florin: entryWith("f", synced(7))}, holds: ownedTargets{florin: true}, stopped: true, known: true, unpublished: true},
		"held without a mailbox": {ledger: entries{florin: {Name: "f", Inventory: "i"}}, holds: ownedTargets{florin: true}, known: true, unpublished: true},
		"without a mailbox":      {ledger: entries{florin: {Name: "f", Inventory: "i"}}, known: true, unpublished: true},
		"cleaned up":             {ledger: entries{florin: {Mailbox: "m", CleanedUp: true, SyncSummary: synced(7)}}, known: true, unpublished: true},
		"held and resumed":       {ledger: entries{florin: entryWith("f", &ledger.SyncSummary{})}, holds: ownedTargets{florin: true}, assigned: true, want: Counts{1, 0, 0}},
		"lost":                   {ledger: entries{florin: entryWith("f", synced(7, "u"))}, assigned: true, observed: true, want: Counts{1, 1, 7}, known: true, unpublished: true, missing: []string{"f (inventory i)"}},
	} {
		t.Run(name, func(t *testing.T) {
			manager, notes := newManager(t)
			manager.Role.Shards = test.holds
			sharded := NewFleetCounter(manager, test.ledger)
			published := resources("configmaps", "secrets")
			manager.Publish(published)
			if test.stopped {
				manager.StopSync(florin)
			}
			if test.assigned {
				f := &fixture{t, manager, notes, Target{UID: florin, Name: "f", Mailbox: "m", Connection: connection(t), WrittenResources: parseWritten("secrets/v1")}}
				manager.StartSync(f.target)
				if test.observed {
					setMatcher(manager, selecting("secrets"))
					f.expectReconciled([]string{"secrets"})
					found, _ := manager.get(florin)
					found.setMissingAPIs(MissingAPIs{})
				}
			}
			sharded.Count(secrets)
			manager.Clock.(*testclock.FakeClock).Step(test.later)
			if test.observed {
				manager.Clock.(*testclock.FakeClock).Step(countTimeout)
			}
			if got, known := sharded.Count(secrets); got != test.want || known != test.known {
				t.Errorf("got %+v, known %v", got, known)
			}
			if got := sharded.SyncTargetsMissingAPI(secrets); !slices.Equal(got, test.missing) {
				t.Errorf("got %v", got)
			}
			if sharded.IsUnpublished(secrets) {
				t.Error("it is published")
			}
			if test.assigned && test.holds[florin] {
				return
			}
			withdrawn := slices.Clone(published)
			withdrawn[1].Unpublishing, withdrawn[1].UID = true, "u"
			manager.Publish(withdrawn)
			if got := sharded.IsUnpublished(secrets); got != test.unpublished {
				t.Errorf("unpublished: %v", got)
			}
		})
	}
}

// An API is withdrawn from a mailbox once the publication applies there.
func TestWithdrawalIsAnsweredOnceItIsInForce(t *testing.T) {
	f := newFixture(t)
	f.manager.Role.Shards = ownedTargets{florin: true}
	sharded := NewFleetCounter(f.manager, entries{florin: entryWith("f", &ledger.SyncSummary{Synced: true, Unpublished: []types.UID{"u"}})})
	setMatcher(f.manager, selecting("configmaps"))
	f.expectReconciled([]string{"configmaps", "secrets"}, "configmaps/v1 secrets/v1")
	published := slices.Clone(f.manager.Published())
	index := slices.IndexFunc(published, func(r plan.Resource) bool { return r.Resource == "configmaps" })
	published[index].Unpublishing, published[index].UID = true, "u"
	f.manager.Publish(published)
	is := func(what string, want bool) {
		t.Helper()
		configMaps := schema.GroupResource{Resource: "configmaps"}
		if got := sharded.IsUnpublished(configMaps); got != want {
			t.Errorf("%s: %v", what, got)
		}
		if got := slices.Contains(f.manager.localSummaryOf(florin).Unpublished, "u"); got != want {
			t.Errorf("%s: got %v", what, got)
		}
	}
	is("the controller may add finalizers", false)
	idle := slices.IndexFunc(published, func(r plan.Resource) bool { return r.Resource == "deployments" })
	published = slices.Clone(published)
	published[idle].Unpublishing, published[idle].UID = true, "idle"
	f.manager.Publish(published)
	if slices.Contains(f.manager.localSummaryOf(florin).Unpublished, "idle") {
		t.Error("the publication is not applied")
	}
	if _, err := f.manager.Reconcile(t.Context(), florin); err != nil {
		t.Fatal(err)
	}
	is("it is in force, but the objects of the mailbox are not listed", false)
	f.manager.Clock.(*testclock.FakeClock).Step(countTimeout)
	is("the mailbox cannot be observed", true)
	if !slices.Contains(f.manager.localSummaryOf(florin).Unpublished, "idle") {
		t.Error("no controller of the resource runs")
	}
	f.manager.Forget(florin)
	if sharded.IsUnpublished(schema.GroupResource{Resource: "configmaps"}) {
		t.Error("the summary of a former owner counts")
	}
}

func TestCount(t *testing.T) {
	f := newFixture(t)
	setMatcher(f.manager, selecting("deployments.apps"))
	f.expectReconciled([]string{"deployments.apps", "secrets"}, "deployments.apps/v1 secrets/v1")
	counter := NewFleetCounter(f.manager, entries{florin: entryWith("f", nil)})
	for name, test := range map[string]struct {
		resource schema.GroupResource
		want     Counts
	}{
		"synced":                    {schema.GroupResource{Resource: "secrets"}, Counts{Mailboxes: 1, Targets: 1}},
		"of a group":                {schema.GroupResource{Group: "apps", Resource: "deployments"}, Counts{Mailboxes: 1, Targets: 1}},
		"of another group":          {schema.GroupResource{Resource: "deployments"}, Counts{Mailboxes: 1}},
		"published, but not synced": {schema.GroupResource{Resource: "configmaps"}, Counts{Mailboxes: 1}},
	} {
		if got, _ := counter.Count(test.resource); got != test.want {
			t.Errorf("%s: want %+v, got %+v", name, test.want, got)
		}
	}
}

// A hub that has just started counts from zero, so its counts are not known.
func TestCountsAreKnownOnceAllIsObserved(t *testing.T) {
	secrets, configMaps := schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Resource: "configmaps"}
	manager, notes := newManager(t)
	clock := manager.Clock.(*testclock.FakeClock)
	counter := NewFleetCounter(manager, entries(nil))
	manager.Publish(resources("configmaps", "secrets"))
	is := func(what string, resource schema.GroupResource, want bool) {
		t.Helper()
		if _, known := counter.Count(resource); known != want {
			t.Errorf("%s: want the counts of %s known: %v", what, resource, want)
		}
	}
	isSummed := func(what string, want bool) {
		t.Helper()
		if _, known := manager.Summary(florin); known != want {
			t.Errorf("%s: want the sum known: %v", what, want)
		}
	}
	is("nothing was read", secrets, false)
	counter.ledger = entries{florin: entryWith("f", nil), "guilder": entryWith("g", nil)}
	is("nothing is assigned", secrets, false)
	manager.StopSync("guilder")
	is("one is not synced, the other not assigned", secrets, false)
	f := &fixture{t, manager, notes, Target{UID: florin, Name: "florin", Mailbox: "m", Connection: connection(t), WrittenResources: parseWritten("secrets/v1")}}
	manager.StartSync(f.target)
	is("the mailbox has not been seen", configMaps, false)
	isSummed("the mailbox has not been seen", false)
	setMatcher(manager, selecting("secrets"))
	f.expectReconciled([]string{"secrets"})
	is("it is not known what the mailbox lacks", configMaps, false)
	found, _ := manager.get(florin)
	found.setMissingAPIs(MissingAPIs{})
	is("nothing of it is synced", configMaps, true)
	is("the target has not said what it holds", secrets, false)
	isSummed("the target has not said what it holds", false)
	manager.Publish(resources("configmaps", "secrets"))
	is("what is published now has not been settled", configMaps, false)
	f.expectReconciled([]string{"secrets"})
	is("it has", configMaps, true)

	clock.Step(countTimeout)
	is("the target stays away", secrets, true)
	isSummed("the target stays away", true)
	f.target.Connection = connection(t)
	manager.StartSync(f.target)
	f.expectReconciled([]string{"secrets"})
	is("by another connection the target has not said what it holds", secrets, false)
	clock.Step(countTimeout)
	is("it stays away", secrets, true)
}

// A SyncTarget that the ledger knows but that no longer exists delays the counts only for a limited time.
func TestCountsDoNotWaitForMissingSyncTargets(t *testing.T) {
	manager, _ := newManager(t)
	counter := NewFleetCounter(manager, entries{florin: entryWith("f", nil)})
	for _, want := range []bool{false, true} {
		if _, known := counter.Count(schema.GroupResource{Resource: "secrets"}); known != want {
			t.Errorf("the counts are known: %v", known)
		}
		manager.Clock.(*testclock.FakeClock).Step(countTimeout)
	}
}

func TestNextAnswer(t *testing.T) {
	stored := func() *ledger.SyncSummary {
		return &ledger.SyncSummary{Synced: true, Objects: map[string]int64{"secrets": 1}, Unpublished: []types.UID{"u"}}
	}
	kept := &ledger.SyncSummary{Synced: true, Objects: map[string]int64{"secrets": 1}}
	own := ledger.SyncSummary{Synced: true, Objects: map[string]int64{"secrets": 2}, Unpublished: []types.UID{"v"}}
	for name, test := range map[string]struct {
		stored  *ledger.SyncSummary
		local   localSummary
		heldFor time.Duration
		want    *ledger.SyncSummary
	}{
		"known":                             {stored(), localSummary{own, true, true}, 0, &own},
		"known at first":                    {nil, localSummary{own, true, true}, 0, &own},
		"not known yet":                     {stored(), localSummary{own, true, false}, time.Hour, &ledger.SyncSummary{Synced: true, Objects: kept.Objects, Unpublished: own.Unpublished}},
		"not known yet, and by nobody":      {nil, localSummary{own, true, false}, time.Hour, nil},
		"not known yet, not synced before":  {&ledger.SyncSummary{}, localSummary{own, true, false}, time.Hour, &ledger.SyncSummary{}},
		"not synced yet":                    {stored(), localSummary{}, countTimeout - 1, kept},
		"not synced yet, and by nobody":     {nil, localSummary{}, countTimeout - 1, nil},
		"not synced":                        {stored(), localSummary{}, countTimeout, &ledger.SyncSummary{}},
		"never synced":                      {nil, localSummary{}, countTimeout, &ledger.SyncSummary{}},
		"not synced, as was known before":   {&ledger.SyncSummary{}, localSummary{}, countTimeout, &ledger.SyncSummary{}},
		"not synced yet, nor by the former": {&ledger.SyncSummary{}, localSummary{}, 0, &ledger.SyncSummary{}},
	} {
		if got := nextSummary(test.stored, test.local, test.heldFor); !got.Equal(test.want) {
			t.Errorf("%s: want %+v, got %+v", name, test.want, got)
		}
		if test.stored != nil && test.stored.Synced && !reflect.DeepEqual(test.stored, stored()) {
			t.Errorf("%s: the stored summary was changed", name)
		}
	}
}

func TestAnswer(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	g.Expect(f.manager.localSummaryOf("nobody")).To(Equal(localSummary{}))
	answer := f.manager.localSummaryOf(florin)
	g.Expect(answer.isSynced).To(BeTrue())
	g.Expect(answer.isKnown).To(BeFalse())
	setMatcher(f.manager, selecting("deployments.apps"))
	f.expectReconciled([]string{"deployments.apps", "secrets"}, "deployments.apps/v1 secrets/v1")
	found, _ := f.manager.get(florin)
	found.setMissingAPIs(MissingAPIs{Resources: []schema.GroupResource{{Group: "apps", Resource: "b"}, {Resource: "a"}}})
	f.manager.Clock.(*testclock.FakeClock).Step(countTimeout)
	answer = f.manager.localSummaryOf(florin)
	g.Expect(answer.isKnown).To(BeTrue())
	g.Expect(answer.SyncSummary).To(Equal(ledger.SyncSummary{Synced: true, Objects: map[string]int64{"deployments.apps": 0, "secrets": 0}, Missing: []string{"a", "b.apps"}}))
}

func TestSpreadOver(t *testing.T) {
	below := 0
	for i := range 1000 {
		part := spreadOver(types.UID(fmt.Sprint("target-", i)), time.Minute)
		if part < 0 || part >= time.Minute {
			t.Fatalf("%v", part)
		}
		if part < time.Minute/2 {
			below++
		}
	}
	if below < 300 || below > 700 {
		t.Errorf("%d of 1000 are in the first half", below)
	}
}
