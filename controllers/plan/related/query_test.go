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

package related_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// Two queries are equal if and only if they match the same objects.
func TestEqual(t *testing.T) {
	base := related.Query{
		SourceNamespace: "a", Names: []types.NamespacedName{key("a", "x")}, NamesInSelectedNamespaces: []string{"y"}, Selector: parse("k=1"),
		Owner: "one", ControllerOnly: true, Namespaces: []string{"a"}, NamespaceSelector: parse("team"),
	}
	if !base.Equal(base) {
		t.Error("it does not equal itself")
	}
	for name, change := range map[string]func(*related.Query){
		"home":               func(w *related.Query) { w.SourceNamespace = "b" },
		"the configs":        func(w *related.Query) { w.PrimaryInfo.Configs = []string{"one"} },
		"names":              func(w *related.Query) { w.Names = nil },
		"spread names":       func(w *related.Query) { w.NamesInSelectedNamespaces = []string{"z"} },
		"selector":           func(w *related.Query) { w.Selector = parse("k=2") },
		"all":                func(w *related.Query) { w.Selector = labels.Everything() },
		"owner":              func(w *related.Query) { w.Owner = "two" },
		"controller":         func(w *related.Query) { w.ControllerOnly = false },
		"namespaces":         func(w *related.Query) { w.Namespaces = []string{"b"} },
		"namespace selector": func(w *related.Query) { w.NamespaceSelector = labels.Everything() },
	} {
		other := base
		change(&other)
		if base.Equal(other) || other.Equal(base) {
			t.Errorf("without its %s it is equal", name)
		}
	}
	nothing := related.Query{SourceNamespace: "a", Namespaces: []string{"a"}, NamespaceSelector: labels.Everything(), Selector: labels.Nothing()}
	if !nothing.Equal(related.Query{}) || nothing.Equal(base) || base.Equal(nothing) {
		t.Error("nothing is not nothing")
	}
	everywhere := related.Query{Owner: "one", NamespaceSelector: labels.Everything()}
	nowhere := related.Query{Owner: "one", Namespaces: []string{"a"}, NamespaceSelector: labels.Nothing()}
	if everywhere.Equal(nowhere) {
		t.Error("all is nothing")
	}
}
