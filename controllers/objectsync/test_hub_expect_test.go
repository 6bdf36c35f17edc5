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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
