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

package sync

import (
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

// settled tells whether absence of a relation to Secrets of the mailbox means something.
func (h *hub) settled() bool {
	return h.register.Settled(synchubv1alpha1.RelatedOriginMailbox, secretsV1.GroupResource())
}

// ask has it found out whether all have spoken to whom Secrets can be related.
func (h *hub) ask() { h.demand(h.resources[1], unanswered) }

func unanswered() bool { return false }

// Whether all primaries have spoken is found out when somebody asks, and said once.
func TestRoll(t *testing.T) {
	h := keyedHub(t, keyed, configMapsTravel)
	h.secret("one", "a: eA==")
	h.box("first", "key: one")
	h.goesDown(secretsV1, "one")
	h.stop()
	h.start()
	var settled atomic.Int32
	defer h.register.Subscribe(synchubv1alpha1.RelatedOriginMailbox, secretsV1.GroupResource(), func(change relation.Change) {
		if change.All {
			settled.Add(1)
		}
	})()
	demanded := func() bool {
		h.ask()
		return h.settled()
	}
	h.until("all have spoken", demanded)
	for range 5 {
		h.ask()
	}
	h.quiet()
	// It may have been said before anybody here listened.
	if count := settled.Load(); count > 1 {
		t.Errorf("that was said %d times", count)
	}
	// What is asked of those to whom nothing is related is no matter.
	h.demand(h.resources[0], unanswered)
}

// As long as primaries may be out of sight, nobody says that all have spoken.
func TestRollOfPrimariesOutOfSight(t *testing.T) {
	for name, change := range map[string]struct{ away, back func(*hub) }{
		"their claim is rejected":     {func(h *hub) { h.hide(configMapsV1) }, func(h *hub) { h.show(configMapsV1) }},
		"the hub's caches are behind": {func(h *hub) { h.veiled["second"] = true }, func(h *hub) { h.unveil(configMapsV1, "second") }},
	} {
		t.Run(name, func(t *testing.T) {
			h := keyedHub(t, keyed, configMapsTravel)
			h.secret("one", "a: eA==")
			h.secret("two", "a: eA==")
			h.box("first", "key: one")
			h.box("second", "key: two")
			one, two := h.goesDown(secretsV1, "one"), h.goesDown(secretsV1, "two")
			h.stop()
			// Nothing of the second is on the target either.
			h.unmadeBelow(configMapsV1, "second")
			change.away(h)
			h.start()
			for range 5 {
				h.quiet()
				h.ask()
			}
			h.stays(secretsV1, one, two)
			if h.settled() {
				t.Error("all have spoken, though not all are seen")
			}
			change.back(h)
			h.goesDown(configMapsV1, "second")
			h.until("all have spoken", func() bool {
				h.ask()
				return h.settled()
			})
			h.stays(secretsV1, one, two)
		})
	}
}

// A relation of a resource to itself leads round in circles; what nobody wants in the end goes none the less.
func TestRollOfAResourceThatIsRelatedToItself(t *testing.T) {
	const chained = "related: [{identifier: next, origin: Mailbox, resource: {version: v1, resource: configmaps}, object: {reference: {path: data.next}}}]"
	h := newHub(t, []Resource{resourceNamed(t, configMapsV1, chained)}, "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: NS, names: [first]}]}]")
	h.box("first", "next: second")
	h.box("second", "next: third")
	h.box("third", "next: second")
	h.box("nobodys", "next: third")
	h.goesDown(configMapsV1, "third")
	second := h.goesDown(configMapsV1, "second")
	h.quiet()
	if h.below(configMapsV1, "nobodys") != nil {
		t.Error("what nobody names has travelled")
	}
	h.restart()
	h.stays(configMapsV1, second, h.below(configMapsV1, "third"))
	h.box("second", "next: none")
	h.leaves(configMapsV1, "third")
	h.stop()
	h.box("first", "next: none")
	h.start()
	h.leaves(configMapsV1, "second")
}

// The first who asks calls the roll, which looks at every primary; to the others it is no news. A proof is another question.
func TestDemandIsNewsOnce(t *testing.T) {
	r := newRelatives(relation.NewRegister(), resourceNamed(t, configMapsV1, keyed))
	expect := func(when string, what demand, want bool) {
		t.Helper()
		if got := r.demand(what); got != want {
			t.Errorf("%s: want %v, got %v", when, want, got)
		}
	}
	one, two := shop("one"), shop("two")
	expect("the first", hearing, true)
	if !r.call([]types.NamespacedName{one, two}) {
		t.Error("nobody has spoken, and nobody is missing")
	}
	expect("the second", hearing, false)
	if r.spoke(one) {
		t.Error("the roll is called although one is missing")
	}
	if !r.spoke(two) || r.call([]types.NamespacedName{one, two}) {
		t.Error("the roll is not called, or not complete, when the last has spoken")
	}
	if news, prove := r.hear(); !news || prove || !r.isHeard() {
		t.Errorf("when all have been heard: %v, %v", news, prove)
	}
	expect("after that", hearing, false)
	if r.awaits() {
		t.Error("something is to be found out though nobody asks")
	}
	expect("a proof", proof, true)
	expect("the same proof", proof, false)
	expect("no more than to be heard", hearing, false)
	if news, prove := r.hear(); news || !prove {
		t.Errorf("when a proof is asked for: %v, %v", news, prove)
	}
	r.finish()
	expect("when all is known", proof, false)
	if news, prove := r.hear(); news || prove {
		t.Errorf("when all is known: %v, %v", news, prove)
	}
}
