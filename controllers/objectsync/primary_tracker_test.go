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

package objectsync

import (
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// relationsAreComplete reports whether absence of a relation to Secrets of the mailbox means something.
func (h *testHub) relationsAreComplete() bool {
	return h.registry.IsComplete(synchubv1alpha1.RelatedOriginMailbox, secretsV1.GroupResource())
}

// requestSecretCompleteness asks the primaries that Secrets can be related to for their initial sync.
func (h *testHub) requestSecretCompleteness() { h.requestCompleteness(h.resources[1], neverResolved) }

func neverResolved() bool { return false }

// The initial sync is completed on request, and reported once.
func TestInitialSyncOfPrimaries(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, keyed, configMapsTravel)
	h.putSecret("one", "a: eA==")
	h.putConfigMap("first", "key: one")
	h.expectOnTarget(secretsV1, "one")
	h.stop()
	h.start()
	var settled atomic.Int32
	defer h.registry.Subscribe(synchubv1alpha1.RelatedOriginMailbox, secretsV1.GroupResource(), func(change related.Change) {
		if change.All {
			settled.Add(1)
		}
	})()
	demanded := func() bool {
		h.requestSecretCompleteness()
		return h.relationsAreComplete()
	}
	h.until("all have spoken", demanded)
	for range 5 {
		h.requestSecretCompleteness()
	}
	h.waitUntilIdle()
	// It may have been said before anybody here listened.
	if count := settled.Load(); count > 1 {
		t.Errorf("that was said %d times", count)
	}
	// What is asked of those to whom nothing is related is no matter.
	h.requestCompleteness(h.resources[0], neverResolved)
}

// As long as primaries may be invisible, the initial sync is not complete.
func TestInitialSyncOfPrimariesMissingFromTheCache(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct{ away, back func(*testHub) }{
		"their claim is rejected":     {func(h *testHub) { h.hide(configMapsV1) }, func(h *testHub) { h.show(configMapsV1) }},
		"the hub's caches are behind": {func(h *testHub) { h.staleNames["second"] = true }, func(h *testHub) { h.showCurrent(configMapsV1, "second") }},
	} {
		t.Run(name, func(t *testing.T) {
			h := newKeyedHub(t, keyed, configMapsTravel)
			h.putSecret("one", "a: eA==")
			h.putSecret("two", "a: eA==")
			h.putConfigMap("first", "key: one")
			h.putConfigMap("second", "key: two")
			one, two := h.expectOnTarget(secretsV1, "one"), h.expectOnTarget(secretsV1, "two")
			h.stop()
			// Nothing of the second is on the target either.
			h.deleteOnTarget(configMapsV1, "second")
			change.away(h)
			h.start()
			for range 5 {
				h.waitUntilIdle()
				h.requestSecretCompleteness()
			}
			h.expectUnchangedOnTarget(secretsV1, one, two)
			if h.relationsAreComplete() {
				t.Error("all have spoken, though not all are seen")
			}
			change.back(h)
			h.expectOnTarget(configMapsV1, "second")
			h.until("all have spoken", func() bool {
				h.requestSecretCompleteness()
				return h.relationsAreComplete()
			})
			h.expectUnchangedOnTarget(secretsV1, one, two)
		})
	}
}

// A relation of a resource to itself leads round in circles; what nobody wants in the end goes none the less.
func TestInitialSyncOfAResourceThatIsRelatedToItself(t *testing.T) {
	t.Parallel()
	const chained = "related: [{identifier: next, origin: Mailbox, resource: {version: v1, resource: configmaps}, object: {reference: {path: data.next}}}]"
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, chained)}, "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: NS, names: [first]}]}]")
	h.putConfigMap("first", "next: second")
	h.putConfigMap("second", "next: third")
	h.putConfigMap("third", "next: second")
	h.putConfigMap("nobodys", "next: third")
	h.expectOnTarget(configMapsV1, "third")
	second := h.expectOnTarget(configMapsV1, "second")
	h.waitUntilIdle()
	if h.onTarget(configMapsV1, "nobodys") != nil {
		t.Error("what nobody names has travelled")
	}
	h.restart()
	h.expectUnchangedOnTarget(configMapsV1, second, h.onTarget(configMapsV1, "third"))
	h.putConfigMap("second", "next: none")
	h.expectGoneFromTarget(configMapsV1, "third")
	h.stop()
	h.putConfigMap("first", "next: none")
	h.start()
	h.expectGoneFromTarget(configMapsV1, "second")
}

// The first who asks calls the roll, which looks at every primary; to the others it is no news. A proof is another question.
func TestCompletenessIsRequestedOnce(t *testing.T) {
	r := newPrimaryTracker(related.NewRegistry(), resourceNamed(t, configMapsV1, keyed))
	expect := func(when string, what completeness, want bool) {
		t.Helper()
		if got := r.request(what); got != want {
			t.Errorf("%s: want %v, got %v", when, want, got)
		}
	}
	one, two := shop("one"), shop("two")
	expect("the first", completenessProcessed, true)
	if !r.setUnprocessed([]types.NamespacedName{one, two}) {
		t.Error("nobody has spoken, and nobody is missing")
	}
	expect("the second", completenessProcessed, false)
	if r.markProcessed(one) {
		t.Error("the roll is called although one is missing")
	}
	if !r.markProcessed(two) || r.setUnprocessed([]types.NamespacedName{one, two}) {
		t.Error("the roll is not called, or not complete, when the last has spoken")
	}
	if news, prove := r.markAllProcessed(); !news || prove || !r.hasProcessedAll() {
		t.Errorf("when all have been heard: %v, %v", news, prove)
	}
	expect("after that", completenessProcessed, false)
	if r.isRequested() {
		t.Error("something is to be found out though nobody asks")
	}
	expect("a proof", completenessVerified, true)
	expect("the same proof", completenessVerified, false)
	expect("no more than to be heard", completenessProcessed, false)
	if news, prove := r.markAllProcessed(); news || !prove {
		t.Errorf("when a proof is asked for: %v, %v", news, prove)
	}
	r.markVerified()
	expect("when all is known", completenessVerified, false)
	if news, prove := r.markAllProcessed(); news || prove {
		t.Errorf("when all is known: %v, %v", news, prove)
	}
}
