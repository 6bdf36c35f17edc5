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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// The placements of a workspace are resolved again after a change of a spec, and not after the hub's own status writes.
func TestChangesOfPlacements(t *testing.T) {
	t.Parallel()
	changed := func(generation int64) *unstructured.Unstructured {
		object := sourceObject()
		object.SetGeneration(generation)
		return object
	}
	deleted := changed(2)
	deleted.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
	for name, c := range map[string]struct {
		event mailboxes.Event
		want  bool
	}{
		"new":             {mailboxes.Event{New: changed(1)}, true},
		"gone":            {mailboxes.Event{Old: changed(1)}, true},
		"the spec":        {mailboxes.Event{Old: changed(1), New: changed(2)}, true},
		"the status":      {mailboxes.Event{Old: changed(2), New: changed(2)}, false},
		"deleted":         {mailboxes.Event{Old: changed(2), New: deleted}, true},
		"read completely": {mailboxes.Event{Old: changed(2), New: changed(2), ProjectionOnly: true}, true},
	} {
		if got := changesPlacement(c.event); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A change of only the status causes no pass for copies; any other change does.
func TestStatusOnlyEvents(t *testing.T) {
	changed := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		object := sourceObject()
		change(object)
		return object
	}
	for name, c := range map[string]struct {
		event mailboxes.Event
		want  bool
	}{
		"the status": {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"replicas": int64(1)} })}, true},
		"the status, with the rest that the hub did not hold": {mailboxes.Event{
			Old: changed(func(o *unstructured.Unstructured) { o.Object["synchub.dev/projection"] = "Metadata" }),
			New: changed(func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"replicas": int64(1)} }),
		}, false},
		"the content":    {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) { o.SetGeneration(3) })}, false},
		"a label":        {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) })}, false},
		"an annotation":  {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"a": "b"}) })}, false},
		"another object": {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) { o.SetUID("other") })}, false},
		"a kind that does not count": {mailboxes.Event{
			Old: changed(func(o *unstructured.Unstructured) { o.SetGeneration(0) }), New: changed(func(o *unstructured.Unstructured) { o.SetGeneration(0) }),
		}, false},
		"a new object":       {mailboxes.Event{New: sourceObject()}, false},
		"a deleted object":   {mailboxes.Event{Old: sourceObject()}, false},
		"what the hub holds": {mailboxes.Event{Old: sourceObject(), New: sourceObject(), ProjectionOnly: true}, false},
		"an object that is to be deleted": {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) {
			now := metav1.Now()
			o.SetDeletionTimestamp(&now)
		})}, false},
	} {
		if got := isStatusOnly(c.event); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
