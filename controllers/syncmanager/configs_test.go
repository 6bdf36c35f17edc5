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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// configsNamed returns the configs of a mailbox. A config whose name ends in "-" is being deleted.
func configsNamed(names string) (all []*unstructured.Unstructured) {
	for name := range strings.FieldsSeq(names) {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetName(strings.TrimSuffix(name, "-"))
		if strings.HasSuffix(name, "-") {
			object.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1000, 0)})
		}
		all = append(all, object)
	}
	return all
}

func configNames(all []*unstructured.Unstructured) string {
	var names []string
	for _, object := range all {
		names = append(names, object.GetName())
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestRetainUnverified(t *testing.T) {
	for name, test := range map[string]struct {
		before, seen, proven string
		active, candidates   string
	}{
		"nothing":                           {},
		"the first one":                     {seen: "a", active: "a"},
		"all is as it was":                  {before: "a b", seen: "a b", active: "a b"},
		"one more":                          {before: "a", seen: "a b", active: "a b"},
		"one is not seen any more":          {before: "a b", seen: "b", active: "a b", candidates: "a"},
		"none is seen any more":             {before: "a b", active: "a b", candidates: "a b"},
		"one is proven to be gone":          {before: "a b", seen: "b", proven: "a", active: "b"},
		"one of two is proven to be gone":   {before: "a b c", seen: "c", proven: "b", active: "a c", candidates: "a"},
		"the last one is proven to be gone": {before: "a", proven: "a"},
		"a proof of one that is seen":       {before: "a", seen: "a", proven: "a", active: "a"},
		"a proof of one that nobody knew":   {before: "a", seen: "a", proven: "b", active: "a"},
		"one is being deleted":              {before: "a b", seen: "a- b", active: "b"},
		"the first one is being deleted":    {seen: "a-"},
	} {
		t.Run(name, func(t *testing.T) {
			active, unverifiedNames := retainUnverified(configsNamed(test.before), configsNamed(test.seen), func(key types.NamespacedName) bool {
				return slices.Contains(strings.Fields(test.proven), key.Name)
			})
			var unverified []string
			for _, key := range unverifiedNames {
				unverified = append(unverified, key.Name)
			}
			if got := strings.Join(unverified, " "); configNames(active) != test.active || got != test.candidates {
				t.Errorf("want %q active and %q as candidates, got %q and %q", test.active, test.candidates, configNames(active), got)
			}
		})
	}
}

// For a retained config the last observed version counts; for a changed config, the current one.
func TestRetainUnverifiedTakesTheNewest(t *testing.T) {
	before, changed := configsNamed("a b"), configsNamed("b")
	active, _ := retainUnverified(before, changed, func(types.NamespacedName) bool { return false })
	if !slices.Contains(active, before[0]) || !slices.Contains(active, changed[0]) || slices.Contains(active, before[1]) {
		t.Errorf("got %v", active)
	}
}

// fakeMailbox is a mailbox whose content a test controls.
type fakeMailbox struct {
	shown  map[string]string // by the resource's name; absent if it cannot be seen
	proofs map[string]bool   // by resource and name
	asked  []string
}

func (m *fakeMailbox) List(resource schema.GroupVersionResource, _ logicalcluster.Name) ([]*unstructured.Unstructured, bool) {
	names, known := m.shown[resource.Resource]
	return configsNamed(names), known
}

func (m *fakeMailbox) VerifyAbsence(_ logicalcluster.Name, candidate absence.Candidate) {
	m.asked = append(m.asked, nameOf(candidate))
}

func (m *fakeMailbox) TakeVerifiedAbsence(_ logicalcluster.Name, candidate absence.Candidate) bool {
	proven := m.proofs[nameOf(candidate)]
	delete(m.proofs, nameOf(candidate))
	return proven
}

func nameOf(candidate absence.Candidate) string {
	if !candidate.Missing {
		return "a suspect that did not vanish"
	}
	return candidate.Resource.Resource + "/" + candidate.Key.Name
}

func TestObserveConfigs(t *testing.T) {
	const syncer, edge = "syncerconfigs", "edgesyncconfigs"
	view := &fakeMailbox{shown: map[string]string{syncer: "a b"}, proofs: map[string]bool{}}
	var current configs
	observe := func(ask, ok bool, want string, asked ...string) {
		t.Helper()
		next, seen := current.observe(view, view, "m", ask)
		if seen != ok {
			t.Fatalf("the mailbox is seen: %v, want %v", seen, ok)
		}
		if ok {
			current = next
		}
		if got := configNames(current[ConfigResources[0]]) + "; " + configNames(current[ConfigResources[1]]); got != want {
			t.Errorf("want %q active, got %q", want, got)
		}
		slices.Sort(view.asked)
		if !slices.Equal(view.asked, asked) {
			t.Errorf("want a verification of %q, got %q", asked, view.asked)
		}
		view.asked = nil
	}
	observe(true, false, "; ")
	view.shown[edge] = "a c"
	observe(true, true, "a b; a c")

	// All configs leave the watch, for example because a claim or a binding changes. That does not prove their
	// absence.
	view.shown = map[string]string{syncer: "", edge: ""}
	observe(true, true, "a b; a c", "edgesyncconfigs/a", "edgesyncconfigs/c", "syncerconfigs/a", "syncerconfigs/b")
	view.shown = map[string]string{syncer: "a", edge: "a c"}
	observe(true, true, "a b; a c", "syncerconfigs/b")

	// A verified absence is not consumed while only a part of the mailbox can be observed.
	view.proofs["syncerconfigs/b"] = true
	view.shown = map[string]string{syncer: "a"}
	observe(false, false, "a b; a c")
	view.shown[edge] = "a"
	observe(false, true, "a; a c")
	// A refuted candidate stays active. Its absence is verified again only after another event.
	observe(false, true, "a; a c")
	observe(true, true, "a; a c", "edgesyncconfigs/c")
	view.proofs["edgesyncconfigs/c"] = true
	observe(false, true, "a; a")
	view.shown[syncer] = "a-"
	observe(true, true, "; a")
	view.shown[syncer] = ""
	observe(true, true, "; a")
}

func TestConfigEvents(t *testing.T) {
	config := func(uid types.UID, generation int64) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetUID(uid)
		object.SetGeneration(generation)
		return object
	}
	event := func(event mailboxes.Event) func(*configEvents) {
		return func(e *configEvents) { e.OnEvent(event) }
	}
	for name, test := range map[string]struct {
		happens    func(*configEvents)
		stale, ask bool
	}{
		"a new config":              {event(mailboxes.Event{New: config("a", 1)}), true, true},
		"a changed config":          {event(mailboxes.Event{Old: config("a", 1), New: config("a", 2)}), true, true},
		"a config is gone":          {event(mailboxes.Event{Old: config("a", 1)}), true, true},
		"a written status":          {event(mailboxes.Event{Old: config("a", 1), New: config("a", 1)}), false, false},
		"one replaced by another":   {event(mailboxes.Event{Old: config("a", 1), New: config("b", 1)}), true, true},
		"at the beginning":          {event(mailboxes.Event{New: config("a", 1), Initial: true}), true, true},
		"the cache is filled anew":  {(*configEvents).OnReset, true, true},
		"a suspicion is decided":    {func(e *configEvents) { e.OnAbsenceDecided(types.NamespacedName{}) }, true, false},
		"decided after an event":    {func(e *configEvents) { e.OnReset(); e.OnAbsenceDecided(types.NamespacedName{}) }, true, true},
		"an event after a decision": {func(e *configEvents) { e.OnAbsenceDecided(types.NamespacedName{}); e.OnReset() }, true, true},
	} {
		enqueued := false
		events := &configEvents{enqueue: func() { enqueued = true }}
		test.happens(events)
		if stale, verify := events.take(); stale != test.stale || verify != test.ask || enqueued != test.stale {
			t.Errorf("%s: stale is %v, verifyMissing %v, enqueued %v; want %v, %v", name, stale, verify, enqueued, test.stale, test.ask)
		}
	}
}

// Configs that are not cached because of the limits, and all younger ones, are not active. The matcher is then
// partial.
func TestConfigsBeyondLimits(t *testing.T) {
	aged := func(name string, second int64, held bool) *unstructured.Unstructured {
		config := configsNamed(name)[0]
		config.SetCreationTimestamp(metav1.NewTime(time.Unix(second, 0)))
		if !held {
			config.Object["synchub.dev/projection"] = "Identity"
		}
		return config
	}
	for name, test := range map[string]struct {
		syncer, edge []*unstructured.Unstructured
		want         string
		all          bool
	}{
		"all are held":           {[]*unstructured.Unstructured{aged("a", 1, true)}, []*unstructured.Unstructured{aged("b", 2, true)}, "a; b", true},
		"the youngest is not":    {[]*unstructured.Unstructured{aged("a", 1, true), aged("c", 3, false)}, []*unstructured.Unstructured{aged("b", 2, true)}, "a; b", false},
		"one in between is not":  {[]*unstructured.Unstructured{aged("a", 1, true), aged("b", 2, false)}, []*unstructured.Unstructured{aged("c", 3, true)}, "a; ", false},
		"the oldest is not":      {[]*unstructured.Unstructured{aged("a", 1, false), aged("b", 2, true)}, nil, "; ", false},
		"of one second, by name": {[]*unstructured.Unstructured{aged("a", 1, true), aged("b", 1, false), aged("c", 1, true)}, nil, "a; ", false},
		"there are none":         {nil, nil, "; ", true},
		"only one, and not held": {nil, []*unstructured.Unstructured{aged("a", 1, false)}, "; ", false},
	} {
		t.Run(name, func(t *testing.T) {
			older, all := configs{ConfigResources[0]: test.syncer, ConfigResources[1]: test.edge}.withinLimits()
			if got := configNames(older[ConfigResources[0]]) + "; " + configNames(older[ConfigResources[1]]); got != test.want || all != test.all {
				t.Errorf("%q are active, all of them: %v; want %q, %v", got, all, test.want, test.all)
			}
		})
	}
}
