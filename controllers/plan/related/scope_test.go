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
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/related"
)

func TestScopes(t *testing.T) {
	for title, test := range map[string]struct {
		wanted related.Query
		// yes and no are objects in selected namespaces; unselected are objects in other namespaces.
		yes, no []related.Object
	}{
		"names": {
			related.Query{SourceNamespace: "a", Names: []types.NamespacedName{key("a", "x"), key("b", "y")}},
			[]related.Object{{Key: key("a", "x")}, {Key: key("b", "y"), NamespaceSelected: true}, {Key: key("", "x")}, {Key: key("", "y")}},
			[]related.Object{{Key: key("a", "y")}, {Key: key("b", "y")}, {Key: key("b", "x"), NamespaceSelected: true}, {Key: key("", "z")}},
		},
		"names of a primary without namespace": {
			related.Query{Names: []types.NamespacedName{key("", "x")}},
			[]related.Object{{Key: key("", "x")}},
			[]related.Object{{Key: key("a", "x"), NamespaceSelected: true}, {Key: key("", "y")}},
		},
		"labels": {
			related.Query{SourceNamespace: "a", Namespaces: []string{"a", "b"}, Selector: parse("k=1,l")},
			[]related.Object{
				{Key: key("a", "x"), Labels: map[string]string{"k": "1", "l": "", "m": ""}},
				{Key: key("b", "x"), Labels: map[string]string{"k": "1", "l": ""}, NamespaceSelected: true},
				{Key: key("", "x"), Labels: map[string]string{"k": "1", "l": ""}},
			},
			[]related.Object{
				{Key: key("a", "x")}, {Key: key("a", "x"), Labels: map[string]string{"k": "1"}},
				{Key: key("b", "x"), Labels: map[string]string{"k": "1", "l": ""}},
				{Key: key("c", "x"), Labels: map[string]string{"k": "1", "l": ""}, NamespaceSelected: true},
			},
		},
		"labels of namespaces": {
			related.Query{SourceNamespace: "a", NamespaceSelector: parse("team=x"), NamesInSelectedNamespaces: []string{"x"}},
			[]related.Object{
				{Key: key("a", "x"), NamespaceLabels: inTeam("x")}, {Key: key("b", "x"), NamespaceLabels: inTeam("x"), NamespaceSelected: true}, {Key: key("", "x")},
			},
			[]related.Object{
				{Key: key("a", "x"), NamespaceLabels: inTeam("y")}, {Key: key("b", "x"), NamespaceLabels: inTeam("x")},
				{Key: key("b", "y"), NamespaceLabels: inTeam("x"), NamespaceSelected: true},
			},
		},
		"an owner anywhere": {
			related.Query{NamespaceSelector: labels.Everything(), Owner: "one", ControllerOnly: true},
			[]related.Object{{Key: key("a", "x"), OwnerReferences: []metav1.OwnerReference{{UID: "two"}, {UID: "one", Controller: new(true)}}, NamespaceSelected: true}},
			[]related.Object{
				{Key: key("a", "x"), OwnerReferences: []metav1.OwnerReference{{UID: "one", Controller: new(true)}}},
				{Key: key("a", "x"), OwnerReferences: []metav1.OwnerReference{{UID: "one", Controller: new(false)}, {UID: "two", Controller: new(true)}}, NamespaceSelected: true},
				{Key: key("a", "x"), NamespaceSelected: true},
			},
		},
		"nothing": {
			related.Query{SourceNamespace: "a", Namespaces: []string{"a"}, NamespaceSelector: labels.Nothing(), NamesInSelectedNamespaces: []string{"x"}, Selector: labels.Nothing()},
			nil,
			[]related.Object{{Key: key("a", "x")}, {Key: key("", "x")}},
		},
	} {
		t.Run(title, func(t *testing.T) {
			register, creds := newRecorder(t), newRelation("creds")
			register.BeginInitialSync("apps", []*related.Relation{creds})
			register.CompleteInitialSync("apps")
			register.SetClaim("apps", app, creds, test.wanted)
			for _, object := range test.yes {
				register.expect(object, "creds a/app")
			}
			for _, object := range test.no {
				register.expect(object, "unrelated")
			}
		})
	}
}

func inTeam(name string) func() (map[string]string, bool) {
	return func() (map[string]string, bool) { return map[string]string{"team": name}, true }
}

// If the labels of a namespace matter and are unknown, the result is undetermined.
func TestUnknownNamespaces(t *testing.T) {
	register, creds := newRecorder(t), newRelation("creds")
	register.BeginInitialSync("apps", []*related.Relation{creds})
	register.CompleteInitialSync("apps")
	register.SetClaim("apps", app, creds, related.Query{SourceNamespace: "a", NamespaceSelector: parse("team=x"), NamesInSelectedNamespaces: []string{"password"}})
	calls := 0
	unknown := func() (map[string]string, bool) {
		calls++
		// The registry holds no lock during this call.
		register.SetClaim("apps", database, creds, named("b", "other"))
		return nil, false
	}
	register.expect(related.Object{Key: password.Key}, "unknown")
	register.expect(related.Object{Key: password.Key, NamespaceLabels: unknown}, "unknown")
	if calls != 2 {
		t.Errorf("called %d times, want once for each lookup", calls)
	}
	register.expect(related.Object{Key: key("a", "other"), NamespaceLabels: unknown}, "unrelated")
	register.expect(related.Object{Key: key("", "password"), NamespaceLabels: unknown}, "creds a/app")
	register.SetClaim("apps", app, creds, related.Query{SourceNamespace: "a", NamespaceSelector: labels.Everything(), NamesInSelectedNamespaces: []string{"password"}})
	register.expect(related.Object{Key: password.Key, NamespaceLabels: unknown}, "creds a/app")
	if calls != 2 {
		t.Errorf("called %d times, want no more calls: no lookup depends on it", calls)
	}
}

func TestSourceScope(t *testing.T) {
	creds := newRelation("creds")
	wide := named("a")
	for index := range 9 {
		wide.Names = append(wide.Names, key(fmt.Sprintf("n%d", index%3), fmt.Sprintf("x%d", index)))
	}
	many := related.Query{Owner: "one"}
	for index := range 12 {
		many.Namespaces = append(many.Namespaces, fmt.Sprintf("n%d", index))
	}
	for title, test := range map[string]struct {
		wanted            related.Query
		names, namespaces int
		all               bool
	}{
		"nothing":                {related.Query{}, 0, 0, false},
		"8 names":                {related.Query{Names: wide.Names[:8]}, 8, 0, false},
		"9 names":                {wide, 9, 3, false},
		"12 namespaces":          {many, 0, 9, false},
		"everywhere":             {related.Query{Owner: "one", NamespaceSelector: parse("team")}, 0, 0, true},
		"nothing, everywhere":    {related.Query{NamespaceSelector: parse("team")}, 0, 0, false},
		"nothing, in namespaces": {related.Query{Namespaces: []string{"a"}}, 0, 0, false},
	} {
		t.Run(title, func(t *testing.T) {
			register := newRecorder(t)
			register.BeginInitialSync("apps", []*related.Relation{creds})
			for range 2 {
				register.SetClaim("apps", app, creds, test.wanted)
				register.SetClaim("apps", database, creds, test.wanted)
				names, namespaces, all := register.SourceScope(inMailbox, secrets.GroupResource())
				if len(names) != test.names || len(namespaces) != test.namespaces || all != test.all {
					t.Errorf("it is wanted under %v, in %v, %v", names, namespaces, all)
				}
				register.SetClaim("apps", app, creds, related.Query{})
				register.RemovePrimary("apps", database)
				if names, namespaces, all := register.SourceScope(inMailbox, secrets.GroupResource()); len(names)+len(namespaces) > 0 || all {
					t.Errorf("it is still wanted under %v, in %v, %v", names, namespaces, all)
				}
			}
		})
	}
}
