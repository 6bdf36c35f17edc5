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
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// newWaitingHub publishes ConfigMaps that wait in the mailbox until they are gone from the target.
func newWaitingHub(t *testing.T, configs ...string) *testHub {
	t.Helper()
	boxes := resourceNamed(t, configMapsV1, "")
	boxes.WaitForTarget = true
	return newHub(t, []plan.Resource{boxes}, configs...)
}

// configMapInMailbox returns a ConfigMap of the mailbox, or nil.
func (h *testHub) configMapInMailbox(name string) *unstructured.Unstructured {
	return h.get(configMapsV1, h.namespace, name)
}

// expectFinalizer waits until an object has the finalizer, or until it has it no more.
func (h *testHub) expectFinalizer(name string, held bool) {
	h.t.Helper()
	h.until("the finalizer is right", func() bool {
		object := h.configMapInMailbox(name)
		return object != nil && HasFinalizer(object) == held
	})
}

// setTargetFinalizers makes the target's object wait, too.
func (h *testHub) setTargetFinalizers(name string, finalizers string) {
	h.t.Helper()
	patch := []byte(`{"metadata": {"finalizers": ` + finalizers + `}}`)
	if _, err := administrator(h.t).Resource(configMapsV1).Namespace(h.namespace).Patch(h.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// setForeignFinalizer gives an object of the mailbox a finalizer that is somebody else's.
func (h *testHub) setForeignFinalizer(name string) {
	h.t.Helper()
	h.locked(func() {
		object := h.objects[configMapsV1][types.NamespacedName{Namespace: h.namespace, Name: name}].DeepCopy()
		object.SetFinalizers(append(object.GetFinalizers(), "example.org/theirs"))
		h.store(configMapsV1, object)
	})
}

// An object has the finalizer before it is downsynced, and until its copies are gone.
func TestWait(t *testing.T) {
	t.Parallel()
	h := newWaitingHub(t, configMapsTravel)
	h.putConfigMap("first", "a: b")
	h.expectOnTarget(configMapsV1, "first")
	h.expectFinalizer("first", true)
	h.setForeignFinalizer("first")
	h.setTargetFinalizers("first", `["example.org/slow"]`)
	h.drop(configMapsV1, h.namespace, "first")
	h.until("the target's object is being deleted", func() bool {
		below := h.onTarget(configMapsV1, "first")
		return below != nil && below.GetDeletionTimestamp() != nil
	})
	h.waitUntilIdle()
	if object := h.configMapInMailbox("first"); object == nil || !HasFinalizer(object) {
		t.Fatalf("it was let go of while the target has it: %v", object)
	}
	h.restart()
	h.waitUntilIdle()
	if object := h.configMapInMailbox("first"); object == nil || !HasFinalizer(object) {
		t.Fatalf("another hub lets it go while the target has it: %v", object)
	}
	h.setTargetFinalizers("first", "null")
	h.expectFinalizer("first", false)
	if got := h.configMapInMailbox("first").GetFinalizers(); !slices.Equal(got, []string{"example.org/theirs"}) {
		t.Errorf("the finalizers are %v", got)
	}
}

// It costs one write when an object begins to travel, and one when it ends.
func TestWaitWrites(t *testing.T) {
	t.Parallel()
	h := newWaitingHub(t, configMapsTravel)
	h.putConfigMap("first", "a: b")
	h.expectOnTarget(configMapsV1, "first")
	h.waitUntilIdle()
	if written := h.written(); !slices.Equal(written, []string{"PATCH configmaps first"}) {
		t.Errorf("written was %q", written)
	}
	h.putConfigMap("first", "a: c")
	h.expectOnTarget(configMapsV1, "first", holds("a", "c"))
	h.restart()
	h.waitUntilIdle()
	if written := h.written(); len(written) > 0 {
		t.Errorf("written was %q", written)
	}
	h.drop(configMapsV1, h.namespace, "first")
	h.until("it is gone from the mailbox", func() bool { return h.configMapInMailbox("first") == nil })
	h.waitUntilIdle()
	if written := h.written(); !slices.Equal(written, []string{"PATCH configmaps first"}) || h.onTarget(configMapsV1, "first") != nil {
		t.Errorf("written was %q", written)
	}
}

// However an object ceases to travel, or never could, its finalizer does not stay.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testHub){
		"no config selects it any more": func(h *testHub) { h.configure() },
		"it need not wait any more": func(h *testHub) {
			relaxed := h.resources[0]
			relaxed.WaitForTarget = false
			h.resources = []plan.Resource{relaxed}
			h.publish(relaxed)
		},
		"it need not wait any more, since a restart": func(h *testHub) {
			h.stop()
			h.resources[0].WaitForTarget = false
			h.start()
		},
		"no config selects it any more, since a restart": func(h *testHub) {
			h.stop()
			h.matcher = h.compileMatcher()
			h.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newWaitingHub(t, configMapsTravel)
			h.putConfigMap("first", "a: b")
			h.putConfigMap("refused", "a: b")
			taken := unique("taken")
			put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+taken+", namespace: "+h.namespace+"}}")
			h.putConfigMap(taken, "a: b")
			h.expectOnTarget(configMapsV1, "first")
			for _, name := range []string{"first", "refused", taken} {
				h.expectFinalizer(name, true)
			}
			h.expectFailure(configMapsV1, taken, plan.ReasonConflict)
			// The mailbox does not take the first tries.
			tries := 3
			h.refuseWrites(func(verb, name string) *metav1.Status {
				if name == "refused" && verb == http.MethodPatch && tries > 0 {
					tries--
					return failure(http.StatusForbidden, metav1.StatusReasonForbidden, "not now", nil)
				}
				return nil
			})
			end(h)
			for _, name := range []string{"first", "refused", taken} {
				h.expectFinalizer(name, false)
			}
		})
	}
}

// A terminating object loses its finalizer in whatever state it is.
func TestWaitOfWhatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	gone := func(h *testHub, name string) {
		h.t.Helper()
		h.until(name+" is gone from the mailbox", func() bool { return h.configMapInMailbox(name) == nil })
	}
	t.Run("it could never be placed", func(t *testing.T) {
		h := newWaitingHub(t, configMapsTravel)
		taken := unique("taken")
		put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+taken+", namespace: "+h.namespace+"}}")
		h.putConfigMap(taken, "a: b")
		h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: invalid, namespace: "+h.namespace+"}, data: {wrong: {a: b}}}")
		h.expectFailure(configMapsV1, taken, plan.ReasonConflict)
		h.expectFailure(configMapsV1, "invalid", plan.ReasonInvalid)
		for _, name := range []string{taken, "invalid"} {
			h.expectFinalizer(name, true)
			h.drop(configMapsV1, h.namespace, name)
			gone(h, name)
		}
		if h.onTarget(configMapsV1, taken) == nil {
			t.Error("somebody else's object was deleted")
		}
	})
	t.Run("its filter fails", func(t *testing.T) {
		h := newWaitingHub(t, configMapsTravel)
		h.putConfigMap("first", "flag: 'yes'")
		h.expectOnTarget(configMapsV1, "first")
		h.expectFinalizer("first", true)
		filtered := h.resources[0]
		filtered.Rules = rulesOf(t, "filter: {cel: \"self.data.none == 'yes'\"}")
		h.publish(filtered)
		h.expectFailure(configMapsV1, "first", plan.ReasonRuleFailed)
		h.drop(configMapsV1, h.namespace, "first")
		h.expectGoneFromTarget(configMapsV1, "first")
		gone(h, "first")
	})
	t.Run("it was left to the target", func(t *testing.T) {
		h := newWaitingHub(t, "deletionPolicy: Orphan\n"+configMapsTravel)
		h.putConfigMap("first", "a: b")
		h.expectOnTarget(configMapsV1, "first")
		h.expectFinalizer("first", true)
		h.drop(configMapsV1, h.namespace, "first")
		gone(h, "first")
		if below := h.onTarget(configMapsV1, "first"); below == nil || h.isOwned(below) {
			t.Errorf("the copy is %v", below)
		}
	})
	t.Run("its config is suspended", func(t *testing.T) {
		h := newWaitingHub(t, configMapsTravel)
		h.putConfigMap("first", "a: b")
		h.expectOnTarget(configMapsV1, "first")
		h.expectFinalizer("first", true)
		h.configure("suspend: true\n" + configMapsTravel)
		h.drop(configMapsV1, h.namespace, "first")
		h.waitUntilIdle()
		if h.configMapInMailbox("first") == nil || h.onTarget(configMapsV1, "first") == nil {
			t.Error("it is gone though the config is suspended")
		}
		h.configure(configMapsTravel)
		h.expectGoneFromTarget(configMapsV1, "first")
		gone(h, "first")
	})
	t.Run("its copy is of a mailbox that was lost", func(t *testing.T) {
		h := newWaitingHub(t, configMapsTravel)
		h.putConfigMap("first", "a: b")
		h.expectOnTarget(configMapsV1, "first")
		h.expectFinalizer("first", true)
		h.stop()
		// Its successor has an object of the name, which cannot take over.
		h.setMarkMailbox("first", "another")
		h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: "+h.namespace+"}, data: {wrong: {a: b}}}")
		h.drop(configMapsV1, h.namespace, "first")
		h.start()
		gone(h, "first")
		if h.onTarget(configMapsV1, "first") == nil {
			t.Error("the copy of a lost mailbox was deleted")
		}
	})
	t.Run("the hub was away", func(t *testing.T) {
		h := newWaitingHub(t, configMapsTravel)
		h.putConfigMap("first", "a: b")
		h.expectOnTarget(configMapsV1, "first")
		h.expectFinalizer("first", true)
		h.stop()
		h.drop(configMapsV1, h.namespace, "first")
		if h.configMapInMailbox("first") == nil {
			t.Fatal("the finalizer does not hold it")
		}
		h.start()
		gone(h, "first")
		if h.onTarget(configMapsV1, "first") != nil {
			t.Error("it was let go of before the target's was gone")
		}
	})
}

// The target does not serve the resource, and so holds nothing of it, or so the hub must believe in the end: nobody else can
// let the object go.
func TestWaitForATargetThatDoesNotServe(t *testing.T) {
	gadgets := schema.GroupVersionResource{Group: "none.example.org", Version: "v1", Resource: "gadgets"}
	gadget := plan.Resource{PublishedResource: "gadgets", GroupVersionResource: gadgets, Kind: "Gadget", Namespaced: true, Exported: true, WaitForTarget: true}
	h := newHub(t, []plan.Resource{gadget}, "namespaceScope: {namespaces: [NS], resources: [{group: none.example.org, resource: gadgets}]}")
	h.stop()
	h.put(gadgets, "{apiVersion: none.example.org/v1, kind: Gadget, metadata: {name: a, namespace: "+h.namespace+", finalizers: [example.org/theirs, "+plan.Finalizer+"]}}")
	h.drop(gadgets, h.namespace, "a")
	h.start()
	h.until("the object is let go of", func() bool {
		return slices.Equal(h.get(gadgets, h.namespace, "a").GetFinalizers(), []string{"example.org/theirs"})
	})
}

// As long as an object is held the controller has something to do there: its manager must not end it.
func TestObjectsWithFinalizerCount(t *testing.T) {
	h := newWaitingHub(t, configMapsTravel)
	h.putConfigMap("first", "a: b")
	h.expectOnTarget(configMapsV1, "first")
	h.expectFinalizer("first", true)
	h.refuseWrites(func(verb, _ string) *metav1.Status {
		if verb == http.MethodPatch {
			return failure(http.StatusForbidden, metav1.StatusReasonForbidden, "no", nil)
		}
		return nil
	})
	h.configure()
	h.expectGoneFromTarget(configMapsV1, "first")
	h.expectFailure(configMapsV1, "first", plan.ReasonMailboxRefused)
	h.until("the controller has tried", func() bool { return h.controllers[configMapsV1].activeReconciles.Load() == 0 })
	if h.controllers[configMapsV1].IsEmpty() {
		t.Error("there is nothing left, though an object is held")
	}
	h.refuseWrites(func(string, string) *metav1.Status { return nil })
	h.expectFinalizer("first", false)
	h.until("nothing is left", h.controllers[configMapsV1].IsEmpty)
}

// A resource that is about to be unpublished lets all go, and does nothing else: neither to what is there nor to what travels
// with it.
func TestUnpublishing(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"the hub goes on": false, "the hub is started again": true} {
		t.Run(name, func(t *testing.T) {
			boxes := resourceNamed(t, configMapsV1, keyed)
			boxes.WaitForTarget = true
			h := newHub(t, []plan.Resource{boxes, resourceNamed(t, secretsV1, "")}, configMapsTravel)
			h.putSecret("one", "a: eA==")
			h.putConfigMap("first", "key: one")
			h.putConfigMap("second", "a: b")
			first, one := h.expectOnTarget(configMapsV1, "first"), h.expectOnTarget(secretsV1, "one")
			h.expectOnTarget(configMapsV1, "second")
			h.expectFinalizer("first", true)
			h.expectFinalizer("second", true)
			h.setTargetFinalizers("second", `["example.org/slow"]`)
			h.drop(configMapsV1, h.namespace, "second")
			h.waitUntilIdle()
			leaving := boxes
			leaving.Unpublishing, leaving.WaitForTarget, leaving.Rules = true, false, nil
			h.resources = []plan.Resource{leaving, h.resources[1]}
			if restart {
				h.restart()
			} else {
				h.publish(h.resources...)
			}
			h.expectFinalizer("first", false)
			h.until("what is being deleted is let go of", func() bool { return h.configMapInMailbox("second") == nil })
			h.putConfigMap("third", "a: b")
			h.putConfigMap("first", "a: c")
			h.drop(configMapsV1, h.namespace, "first")
			h.expectUnchangedOnTarget(configMapsV1, first)
			h.expectUnchangedOnTarget(secretsV1, one)
			if h.onTarget(configMapsV1, "third") != nil {
				t.Error("an object went down that is not published any more")
			}
			h.setTargetFinalizers("second", "null")
		})
	}
}
