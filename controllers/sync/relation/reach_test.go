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
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

func TestWhatIsReached(t *testing.T) {
	for title, test := range map[string]struct {
		wanted relation.Wanted
		// yes and no are candidates in selected namespaces, unselected ones in others.
		yes, no []relation.Candidate
	}{
		"names": {
			relation.Wanted{Home: "a", Names: []types.NamespacedName{key("a", "x"), key("b", "y")}},
			[]relation.Candidate{{Key: key("a", "x")}, {Key: key("b", "y"), Selected: true}, {Key: key("", "x")}, {Key: key("", "y")}},
			[]relation.Candidate{{Key: key("a", "y")}, {Key: key("b", "y")}, {Key: key("b", "x"), Selected: true}, {Key: key("", "z")}},
		},
		"names of a primary without namespace": {
			relation.Wanted{Names: []types.NamespacedName{key("", "x")}},
			[]relation.Candidate{{Key: key("", "x")}},
			[]relation.Candidate{{Key: key("a", "x"), Selected: true}, {Key: key("", "y")}},
		},
		"labels": {
			relation.Wanted{Home: "a", Namespaces: []string{"a", "b"}, Selector: parse("k=1,l")},
			[]relation.Candidate{
				{Key: key("a", "x"), Labels: map[string]string{"k": "1", "l": "", "m": ""}},
				{Key: key("b", "x"), Labels: map[string]string{"k": "1", "l": ""}, Selected: true},
				{Key: key("", "x"), Labels: map[string]string{"k": "1", "l": ""}},
			},
			[]relation.Candidate{
				{Key: key("a", "x")}, {Key: key("a", "x"), Labels: map[string]string{"k": "1"}},
				{Key: key("b", "x"), Labels: map[string]string{"k": "1", "l": ""}},
				{Key: key("c", "x"), Labels: map[string]string{"k": "1", "l": ""}, Selected: true},
			},
		},
		"labels of namespaces": {
			relation.Wanted{Home: "a", NamespaceSelector: parse("team=x"), SpreadNames: []string{"x"}},
			[]relation.Candidate{
				{Key: key("a", "x"), NamespaceLabels: inTeam("x")}, {Key: key("b", "x"), NamespaceLabels: inTeam("x"), Selected: true}, {Key: key("", "x")},
			},
			[]relation.Candidate{
				{Key: key("a", "x"), NamespaceLabels: inTeam("y")}, {Key: key("b", "x"), NamespaceLabels: inTeam("x")},
				{Key: key("b", "y"), NamespaceLabels: inTeam("x"), Selected: true},
			},
		},
		"an owner anywhere": {
			relation.Wanted{NamespaceSelector: labels.Everything(), Owner: "one", ControllerOnly: true},
			[]relation.Candidate{{Key: key("a", "x"), Owners: []metav1.OwnerReference{{UID: "two"}, {UID: "one", Controller: new(true)}}, Selected: true}},
			[]relation.Candidate{
				{Key: key("a", "x"), Owners: []metav1.OwnerReference{{UID: "one", Controller: new(true)}}},
				{Key: key("a", "x"), Owners: []metav1.OwnerReference{{UID: "one", Controller: new(false)}, {UID: "two", Controller: new(true)}}, Selected: true},
				{Key: key("a", "x"), Selected: true},
			},
		},
		"nothing": {
			relation.Wanted{Home: "a", Namespaces: []string{"a"}, NamespaceSelector: labels.Nothing(), SpreadNames: []string{"x"}, Selector: labels.Nothing()},
			nil,
			[]relation.Candidate{{Key: key("a", "x")}, {Key: key("", "x")}},
		},
	} {
		t.Run(title, func(t *testing.T) {
			register, creds := newTold(t), newRelation("creds")
			register.Begin("apps", []*relation.Relation{creds})
			register.Complete("apps")
			register.Set("apps", app, creds, test.wanted)
			for _, candidate := range test.yes {
				register.expect(candidate, "creds a/app")
			}
			for _, candidate := range test.no {
				register.expect(candidate, "unrelated")
			}
		})
	}
}

func inTeam(name string) func() (map[string]string, bool) {
	return func() (map[string]string, bool) { return map[string]string{"team": name}, true }
}

// Labels of a namespace that are not known, and matter, leave the answer open.
func TestUnknownNamespaces(t *testing.T) {
	register, creds := newTold(t), newRelation("creds")
	register.Begin("apps", []*relation.Relation{creds})
	register.Complete("apps")
	register.Set("apps", app, creds, relation.Wanted{Home: "a", NamespaceSelector: parse("team=x"), SpreadNames: []string{"password"}})
	asked := 0
	unknown := func() (map[string]string, bool) {
		asked++
		// No lock is held.
		register.Set("apps", database, creds, named("b", "other"))
		return nil, false
	}
	register.expect(relation.Candidate{Key: password.Key}, "unknown")
	register.expect(relation.Candidate{Key: password.Key, NamespaceLabels: unknown}, "unknown")
	if asked != 2 {
		t.Errorf("asked %d times, want once for each question", asked)
	}
	register.expect(relation.Candidate{Key: key("a", "other"), NamespaceLabels: unknown}, "unrelated")
	register.expect(relation.Candidate{Key: key("", "password"), NamespaceLabels: unknown}, "creds a/app")
	register.Set("apps", app, creds, relation.Wanted{Home: "a", NamespaceSelector: labels.Everything(), SpreadNames: []string{"password"}})
	register.expect(relation.Candidate{Key: password.Key, NamespaceLabels: unknown}, "creds a/app")
	if asked != 2 {
		t.Errorf("asked %d times, want no more: nothing hung on it", asked)
	}
}

func TestWanted(t *testing.T) {
	creds := newRelation("creds")
	wide := named("a")
	for index := range 9 {
		wide.Names = append(wide.Names, key(fmt.Sprintf("n%d", index%3), fmt.Sprintf("x%d", index)))
	}
	many := relation.Wanted{Owner: "one"}
	for index := range 12 {
		many.Namespaces = append(many.Namespaces, fmt.Sprintf("n%d", index))
	}
	for title, test := range map[string]struct {
		wanted            relation.Wanted
		names, namespaces int
		all               bool
	}{
		"nothing":                {relation.Wanted{}, 0, 0, false},
		"8 names":                {relation.Wanted{Names: wide.Names[:8]}, 8, 0, false},
		"9 names":                {wide, 9, 3, false},
		"12 namespaces":          {many, 0, 9, false},
		"everywhere":             {relation.Wanted{Owner: "one", NamespaceSelector: parse("team")}, 0, 0, true},
		"nothing, everywhere":    {relation.Wanted{NamespaceSelector: parse("team")}, 0, 0, false},
		"nothing, in namespaces": {relation.Wanted{Namespaces: []string{"a"}}, 0, 0, false},
	} {
		t.Run(title, func(t *testing.T) {
			register := newTold(t)
			register.Begin("apps", []*relation.Relation{creds})
			for range 2 {
				register.Set("apps", app, creds, test.wanted)
				register.Set("apps", database, creds, test.wanted)
				names, namespaces, all := register.Wanted(inMailbox, secrets.GroupResource())
				if len(names) != test.names || len(namespaces) != test.namespaces || all != test.all {
					t.Errorf("it is wanted under %v, in %v, %v", names, namespaces, all)
				}
				register.Set("apps", app, creds, relation.Wanted{})
				register.Remove("apps", database)
				if names, namespaces, all := register.Wanted(inMailbox, secrets.GroupResource()); len(names)+len(namespaces) > 0 || all {
					t.Errorf("it is still wanted under %v, in %v, %v", names, namespaces, all)
				}
			}
		})
	}
}
