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
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/mailboxes"
)

func TestDeletions(t *testing.T) {
	object := func(deleted bool, finalizers ...string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
		object.SetFinalizers(finalizers)
		if deleted {
			object.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
		}
		return object
	}
	key := objectKey{name: types.NamespacedName{Name: "web"}}
	going, gone := mailboxes.Event{Old: object(false), New: object(true, "orphan")}, mailboxes.Event{Old: object(true, "orphan")}
	for name, c := range map[string]struct {
		events []mailboxes.Event
		want   metav1.DeletionPropagation
	}{
		"a change":              {[]mailboxes.Event{{Old: object(false), New: object(false)}}, ""},
		"deleted":               {[]mailboxes.Event{{Old: object(false)}}, ""},
		"going":                 {[]mailboxes.Event{going}, metav1.DeletePropagationOrphan},
		"gone":                  {[]mailboxes.Event{going, gone}, metav1.DeletePropagationOrphan},
		"gone, only the last":   {[]mailboxes.Event{gone}, metav1.DeletePropagationOrphan},
		"made again":            {[]mailboxes.Event{going, gone, {New: object(false)}}, ""},
		"a live one's keeper":   {[]mailboxes.Event{{New: object(false, "orphan")}}, ""},
		"its children go first": {[]mailboxes.Event{{Old: object(false), New: object(true, "foregroundDeletion")}}, metav1.DeletePropagationForeground},
	} {
		var made deletions
		for _, event := range c.events {
			made.record(key, event)
		}
		got := made.get(key)
		if (got == nil) != (c.want == "") || got != nil && *got != c.want {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
		made.forget(key)
		if len(made.options) > 0 {
			t.Errorf("%s: %v is still recorded", name, made.options)
		}
	}
}
