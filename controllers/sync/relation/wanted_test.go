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

package relation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

// What is equal is wanted alike, and only that.
func TestEqual(t *testing.T) {
	base := relation.Wanted{
		Home: "a", Names: []types.NamespacedName{key("a", "x")}, SpreadNames: []string{"y"}, Selector: parse("k=1"),
		Owner: "one", ControllerOnly: true, Namespaces: []string{"a"}, NamespaceSelector: parse("team"),
	}
	if !base.Equal(base) {
		t.Error("it does not equal itself")
	}
	for name, change := range map[string]func(*relation.Wanted){
		"home":               func(w *relation.Wanted) { w.Home = "b" },
		"what is said":       func(w *relation.Wanted) { w.About.Configs = []string{"one"} },
		"names":              func(w *relation.Wanted) { w.Names = nil },
		"spread names":       func(w *relation.Wanted) { w.SpreadNames = []string{"z"} },
		"selector":           func(w *relation.Wanted) { w.Selector = parse("k=2") },
		"all":                func(w *relation.Wanted) { w.Selector = labels.Everything() },
		"owner":              func(w *relation.Wanted) { w.Owner = "two" },
		"controller":         func(w *relation.Wanted) { w.ControllerOnly = false },
		"namespaces":         func(w *relation.Wanted) { w.Namespaces = []string{"b"} },
		"namespace selector": func(w *relation.Wanted) { w.NamespaceSelector = labels.Everything() },
	} {
		other := base
		change(&other)
		if base.Equal(other) || other.Equal(base) {
			t.Errorf("without its %s it is equal", name)
		}
	}
	nothing := relation.Wanted{Home: "a", Namespaces: []string{"a"}, NamespaceSelector: labels.Everything(), Selector: labels.Nothing()}
	if !nothing.Equal(relation.Wanted{}) || nothing.Equal(base) || base.Equal(nothing) {
		t.Error("nothing is not nothing")
	}
	everywhere := relation.Wanted{Owner: "one", NamespaceSelector: labels.Everything()}
	nowhere := relation.Wanted{Owner: "one", Namespaces: []string{"a"}, NamespaceSelector: labels.Nothing()}
	if everywhere.Equal(nowhere) {
		t.Error("all is nothing")
	}
}
