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

// relationsAreComplete reports whether the claims on Secrets of the mailbox are complete.
func (h *testHub) relationsAreComplete() bool {
	return h.registry.IsComplete(synchubv1alpha1.RelatedOriginMailbox, secretsV1.GroupResource())
}

// requestSecretCompleteness asks the controllers of primaries that can claim Secrets to finish their initial sync.
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
	h.until("the initial sync is complete", demanded)
	for range 5 {
		h.requestSecretCompleteness()
	}
	h.waitUntilIdle()
	// The change may have been published before this test subscribed.
	if count := settled.Load(); count > 1 {
		t.Errorf("the completion was published %d times", count)
	}
	// A request to controllers without relations has no effect.
	h.requestCompleteness(h.resources[0], neverResolved)
}

// As long as primaries may be missing from the cache, the initial sync is not complete.
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
			// The second primary has no copy on the target either.
			h.deleteOnTarget(configMapsV1, "second")
			change.away(h)
			h.start()
			for range 5 {
				h.waitUntilIdle()
				h.requestSecretCompleteness()
			}
			h.expectUnchangedOnTarget(secretsV1, one, two)
			if h.relationsAreComplete() {
				t.Error("the initial sync is complete although a primary is missing")
			}
			change.back(h)
			h.expectOnTarget(configMapsV1, "second")
			h.until("the initial sync is complete", func() bool {
				h.requestSecretCompleteness()
				return h.relationsAreComplete()
			})
			h.expectUnchangedOnTarget(secretsV1, one, two)
		})
	}
}

// A relation of a resource to itself may form a cycle. Objects without a claim are deleted nevertheless.
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
		t.Error("an object without a claim was synced")
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

// The first request checks all primaries, and further requests change nothing. A verification is a separate request.
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
		t.Error("no primary was processed, but none is unprocessed")
	}
	expect("the second", completenessProcessed, false)
	if r.markProcessed(one) {
		t.Error("the check is due although a primary is unprocessed")
	}
	if !r.markProcessed(two) || r.setUnprocessed([]types.NamespacedName{one, two}) {
		t.Error("the check is not due, or not complete, after the last primary was processed")
	}
	if changed, verify := r.markAllProcessed(); !changed || verify || !r.hasProcessedAll() {
		t.Errorf("after all were processed: %v, %v", changed, verify)
	}
	expect("after that", completenessProcessed, false)
	if r.isRequested() {
		t.Error("a request is open after it was answered")
	}
	expect("a verification", completenessVerified, true)
	expect("the same verification", completenessVerified, false)
	expect("only processed", completenessProcessed, false)
	if changed, verify := r.markAllProcessed(); changed || !verify {
		t.Errorf("with a requested verification: %v, %v", changed, verify)
	}
	r.markVerified()
	expect("after the verification", completenessVerified, false)
	if changed, verify := r.markAllProcessed(); changed || verify {
		t.Errorf("after the verification: %v, %v", changed, verify)
	}
}
