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

// newWaitingHub publishes ConfigMaps that stay in the mailbox until their copies are gone from the target.
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

// expectFinalizer waits until an object has the finalizer, or until it no longer has it.
func (h *testHub) expectFinalizer(name string, want bool) {
	h.t.Helper()
	h.until("the finalizer is as expected", func() bool {
		object := h.configMapInMailbox(name)
		return object != nil && HasFinalizer(object) == want
	})
}

// setTargetFinalizers sets the finalizers of the target's object.
func (n *targetNamespace) setTargetFinalizers(name string, finalizers string) {
	n.t.Helper()
	patch := []byte(`{"metadata": {"finalizers": ` + finalizers + `}}`)
	if _, err := administrator(n.t).Resource(configMapsV1).Namespace(n.namespace).Patch(n.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

// setForeignFinalizer adds another client's finalizer to a mailbox object.
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
		t.Fatalf("the finalizer was removed although the copy exists: %v", object)
	}
	h.restart()
	h.waitUntilIdle()
	if object := h.configMapInMailbox("first"); object == nil || !HasFinalizer(object) {
		t.Fatalf("the next hub removed the finalizer although the copy exists: %v", object)
	}
	h.setTargetFinalizers("first", "null")
	h.expectFinalizer("first", false)
	if got := h.configMapInMailbox("first").GetFinalizers(); !slices.Equal(got, []string{"example.org/theirs"}) {
		t.Errorf("the finalizers are %v", got)
	}
}

// The finalizer costs one write when the sync of an object begins, and one when it ends.
func TestWaitWrites(t *testing.T) {
	t.Parallel()
	h := newWaitingHub(t, configMapsTravel)
	h.putConfigMap("first", "a: b")
	h.expectOnTarget(configMapsV1, "first")
	h.waitUntilIdle()
	if written := h.written(); !slices.Equal(written, []string{"PATCH configmaps first"}) {
		t.Errorf("the writes are %q", written)
	}
	h.putConfigMap("first", "a: c")
	h.expectOnTarget(configMapsV1, "first", holds("a", "c"))
	h.restart()
	h.waitUntilIdle()
	if written := h.written(); len(written) > 0 {
		t.Errorf("the writes are %q", written)
	}
	h.drop(configMapsV1, h.namespace, "first")
	h.until("the object is gone from the mailbox", func() bool { return h.configMapInMailbox("first") == nil })
	h.waitUntilIdle()
	if written := h.written(); !slices.Equal(written, []string{"PATCH configmaps first"}) || h.onTarget(configMapsV1, "first") != nil {
		t.Errorf("the writes are %q", written)
	}
}

// The finalizer is removed whenever an object is no longer synced, for every cause, and also if it never was.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testHub){
		"deselected": func(h *testHub) { h.configure() },
		"waiting is turned off": func(h *testHub) {
			relaxed := h.resources[0]
			relaxed.WaitForTarget = false
			h.resources = []plan.Resource{relaxed}
			h.publish(relaxed)
		},
		"waiting is turned off while the hub is stopped": func(h *testHub) {
			h.stop()
			h.resources[0].WaitForTarget = false
			h.start()
		},
		"deselected while the hub is stopped": func(h *testHub) {
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
			// The mailbox refuses the first tries.
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

// A terminating object loses its finalizer in every state.
func TestWaitOfTerminatingObjects(t *testing.T) {
	t.Parallel()
	gone := func(h *testHub, name string) {
		h.t.Helper()
		h.until(name+" is gone from the mailbox", func() bool { return h.configMapInMailbox(name) == nil })
	}
	t.Run("the target never accepted it", func(t *testing.T) {
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
			t.Error("an object of another owner was deleted")
		}
	})
	t.Run("the filter fails", func(t *testing.T) {
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
	t.Run("orphaned on the target", func(t *testing.T) {
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
	t.Run("the config is suspended", func(t *testing.T) {
		h := newWaitingHub(t, configMapsTravel)
		h.putConfigMap("first", "a: b")
		h.expectOnTarget(configMapsV1, "first")
		h.expectFinalizer("first", true)
		h.configure("suspend: true\n" + configMapsTravel)
		h.drop(configMapsV1, h.namespace, "first")
		h.waitUntilIdle()
		if h.configMapInMailbox("first") == nil || h.onTarget(configMapsV1, "first") == nil {
			t.Error("the object or its copy is gone although the config is suspended")
		}
		h.configure(configMapsTravel)
		h.expectGoneFromTarget(configMapsV1, "first")
		gone(h, "first")
	})
	t.Run("the copy is from a former mailbox", func(t *testing.T) {
		h := newWaitingHub(t, configMapsTravel)
		h.putConfigMap("first", "a: b")
		h.expectOnTarget(configMapsV1, "first")
		h.expectFinalizer("first", true)
		h.stop()
		// The new mailbox has an object of the same name that the target refuses, so the copy is not taken over.
		h.setMarkMailbox("first", "another")
		h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: "+h.namespace+"}, data: {wrong: {a: b}}}")
		h.drop(configMapsV1, h.namespace, "first")
		h.start()
		gone(h, "first")
		if h.onTarget(configMapsV1, "first") == nil {
			t.Error("the copy of a former mailbox was deleted")
		}
	})
	t.Run("deleted while the hub is stopped", func(t *testing.T) {
		h := newWaitingHub(t, configMapsTravel)
		h.putConfigMap("first", "a: b")
		h.expectOnTarget(configMapsV1, "first")
		h.expectFinalizer("first", true)
		h.stop()
		h.drop(configMapsV1, h.namespace, "first")
		if h.configMapInMailbox("first") == nil {
			t.Fatal("the object is gone although it has the finalizer")
		}
		h.start()
		gone(h, "first")
		if h.onTarget(configMapsV1, "first") != nil {
			t.Error("the finalizer was removed before the copy was gone")
		}
	})
}

// If the target does not serve the resource, it has no copies, and the hub removes the finalizer. No other client would.
func TestWaitForATargetThatDoesNotServe(t *testing.T) {
	gadgets := schema.GroupVersionResource{Group: "none.example.org", Version: "v1", Resource: "gadgets"}
	gadget := plan.Resource{PublishedResource: "gadgets", GroupVersionResource: gadgets, Kind: "Gadget", Namespaced: true, Exported: true, WaitForTarget: true}
	h := newHub(t, []plan.Resource{gadget}, "namespaceScope: {namespaces: [NS], resources: [{group: none.example.org, resource: gadgets}]}")
	h.stop()
	h.put(gadgets, "{apiVersion: none.example.org/v1, kind: Gadget, metadata: {name: a, namespace: "+h.namespace+", finalizers: [example.org/theirs, "+plan.Finalizer+"]}}")
	h.drop(gadgets, h.namespace, "a")
	h.start()
	h.until("the finalizer is removed", func() bool {
		return slices.Equal(h.get(gadgets, h.namespace, "a").GetFinalizers(), []string{"example.org/theirs"})
	})
}

// As long as an object has the finalizer, the controller is not empty: its manager must not stop it.
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
		t.Error("the controller is empty although an object has the finalizer")
	}
	h.refuseWrites(func(string, string) *metav1.Status { return nil })
	h.expectFinalizer("first", false)
	h.until("the controller is empty", h.controllers[configMapsV1].IsEmpty)
}

// A controller of a resource that is being unpublished removes all finalizers. It changes neither copies nor related objects.
func TestUnpublishing(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"without a restart": false, "after a restart": true} {
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
			h.until("the terminating object is gone", func() bool { return h.configMapInMailbox("second") == nil })
			h.putConfigMap("third", "a: b")
			h.putConfigMap("first", "a: c")
			h.drop(configMapsV1, h.namespace, "first")
			h.expectUnchangedOnTarget(configMapsV1, first)
			h.expectUnchangedOnTarget(secretsV1, one)
			if h.onTarget(configMapsV1, "third") != nil {
				t.Error("an object of an unpublished resource was downsynced")
			}
			h.setTargetFinalizers("second", "null")
		})
	}
}
