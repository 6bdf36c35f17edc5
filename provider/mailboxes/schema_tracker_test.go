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

package mailboxes

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bindingWith returns a binding of widgets to the schema with the UID; "" stands for a binding without bound resources.
func bindingWith(uid string) *unstructured.Unstructured {
	binding := &unstructured.Unstructured{Object: map[string]any{}}
	if uid != "" {
		_ = unstructured.SetNestedSlice(binding.Object, []any{map[string]any{
			"group": "example.com", "resource": "widgets", "schema": map[string]any{"UID": uid},
		}}, "status", "boundResources")
	}
	return binding
}

func TestSchemaTracker(t *testing.T) {
	bound := newSchemaTracker()
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	for _, step := range []struct {
		what          string
		before, after *unstructured.Unstructured
		changed       bool
	}{
		{"the first binding has it", nil, bindingWith("one"), false},
		{"another is new", nil, bindingWith(""), false},
		{"and gets it, too", bindingWith(""), bindingWith("one"), false},
		{"nothing moves", bindingWith("one"), bindingWith("one"), false},
		{"the first moves", bindingWith("one"), bindingWith("two"), false},
		{"a binding with the next schema is added", nil, bindingWith("two"), false},
		{"the last moves", bindingWith("one"), bindingWith("two"), true},
		{"a binding is deleted", bindingWith("two"), nil, false},
		{"one moves on", bindingWith("two"), bindingWith("three"), false},
		{"the outdated binding is deleted", bindingWith("two"), nil, true},
		{"the last binding is deleted", bindingWith("three"), nil, false},
		{"a binding with another schema is added", nil, bindingWith("four"), true},
	} {
		changed := bound.update(step.before, step.after)
		if step.changed != (len(changed) == 1 && changed[0] == widgets) || !step.changed && len(changed) > 0 {
			t.Errorf("%s: want %t, got %v", step.what, step.changed, changed)
		}
	}
}
