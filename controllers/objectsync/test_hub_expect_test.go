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
	"maps"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// until waits for a condition.
func (h *testHub) until(what string, condition func() bool) {
	h.t.Helper()
	suite.WaitUntil(h.t, what, condition)
}

// waitUntilIdle waits until the hub has had nothing to do for a while.
func (h *testHub) waitUntilIdle() {
	h.t.Helper()
	idle := 0
	suite.WaitUntil(h.t, "nothing is left to do", func() bool {
		busy := slices.ContainsFunc(slices.Collect(maps.Values(h.controllers)), func(c *Controller) bool {
			return c.enqueuer.current() == nil || c.QueueLength() > 0 || c.activeReconciles.Load() > 0
		})
		if idle++; busy {
			idle = 0
		}
		return idle >= 25
	})
}

// setMarkMailbox changes the mailbox in the mark of the target's ConfigMap.
func (h *testHub) setMarkMailbox(name, mailbox string) {
	h.t.Helper()
	object := h.onTarget(configMapsV1, name)
	mark, err := ownership.ParseMark(object.GetAnnotations()[ownership.MarkAnnotation])
	if err != nil {
		h.t.Fatal(err)
	}
	mark.Mailbox = mailbox
	addMark(object, mark)
	if _, err := administrator(h.t).Resource(configMapsV1).Namespace(h.namespace).Update(h.t.Context(), object, metav1.UpdateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// onTarget returns an object in the test's namespace of the target, or nil.
func (h *testHub) onTarget(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	h.t.Helper()
	return onTargetIn(h.t, resource, h.namespace, name)
}

// expectOnTarget waits until the target has a copy of the hub's that satisfies all checks.
func (h *testHub) expectOnTarget(resource schema.GroupVersionResource, name string, right ...func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	h.t.Helper()
	var found *unstructured.Unstructured
	suite.WaitUntil(h.t, "the target has "+name, func() bool {
		found = h.onTarget(resource, name)
		return found != nil && h.isOwned(found) && !slices.ContainsFunc(right, func(is func(*unstructured.Unstructured) bool) bool { return !is(found) })
	})
	return found
}

func (h *testHub) isOwned(object *unstructured.Unstructured) bool {
	return object.GetLabels()[ownership.OwnerLabel] == h.owner.LabelValue()
}

// expectGoneFromTarget waits until the target no longer has the object.
func (h *testHub) expectGoneFromTarget(resource schema.GroupVersionResource, name string) {
	h.t.Helper()
	suite.WaitUntil(h.t, name+" is gone from the target", func() bool { return h.onTarget(resource, name) == nil })
}

// expectInMailbox waits until the mailbox has an object that satisfies all checks.
func (h *testHub) expectInMailbox(resource schema.GroupVersionResource, name string, right ...func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	h.t.Helper()
	var found *unstructured.Unstructured
	suite.WaitUntil(h.t, "the mailbox has "+name, func() bool {
		found = h.get(resource, h.namespace, name)
		return found != nil && !slices.ContainsFunc(right, func(is func(*unstructured.Unstructured) bool) bool { return !is(found) })
	})
	return found
}

// expectUnchangedOnTarget fails the test unless target objects are unchanged once the hub is idle.
func (h *testHub) expectUnchangedOnTarget(resource schema.GroupVersionResource, before ...*unstructured.Unstructured) {
	h.t.Helper()
	h.waitUntilIdle()
	for _, object := range before {
		after := h.onTarget(resource, object.GetName())
		switch {
		case after == nil || after.GetUID() != object.GetUID() || after.GetDeletionTimestamp() != nil:
			h.t.Errorf("%s was deleted: %v", object.GetName(), after)
		case after.GetResourceVersion() != object.GetResourceVersion():
			h.t.Errorf("%s was written to\nfrom %v\nto   %v", object.GetName(), object, after)
		}
	}
}

// onTargetIn returns an object of the target, or nil.
func onTargetIn(t testing.TB, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	found, err := administrator(t).Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		t.Fatal(err)
	}
	return found
}
