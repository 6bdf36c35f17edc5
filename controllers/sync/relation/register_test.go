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
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

// newRelation is about secrets in the mailbox.
func newRelation(identifier string) *relation.Relation {
	return &relation.Relation{Identifier: identifier, Origin: inMailbox, OnTarget: secrets, InMailbox: secrets}
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// named wants objects in the primary's namespace.
func named(namespace string, names ...string) relation.Wanted {
	wanted := relation.Wanted{Home: namespace}
	for _, name := range names {
		wanted.Names = append(wanted.Names, key(namespace, name))
	}
	return wanted
}

// told is a register about secrets in the mailbox, and what it announced.
type told struct {
	*relation.Register
	t         *testing.T
	announced []relation.Change
}

func newTold(t *testing.T) *told {
	register := &told{Register: relation.NewRegister(), t: t}
	register.Subscribe(inMailbox, secrets.GroupResource(), func(change relation.Change) { register.announced = append(register.announced, change) })
	return register
}

// heard returns what was announced since it was called last.
func (r *told) heard() []relation.Change {
	heard := r.announced
	r.announced = nil
	return heard
}

func (r *told) expect(candidate relation.Candidate, want string) {
	r.t.Helper()
	of, primary, ok := r.Related(inMailbox, secrets.GroupResource(), candidate)
	got := ""
	switch {
	case ok:
		got = fmt.Sprintf("%s %s", of.Identifier, primary)
	case r.Unrelated(inMailbox, secrets.GroupResource(), candidate):
		got = "unrelated"
	default:
		got = "unknown"
	}
	if got != want {
		r.t.Errorf("%s is %s, want %s", describe(candidate), got, want)
	}
}

func (r *told) expectHeard(want ...relation.Change) {
	r.t.Helper()
	if heard := r.heard(); !slices.EqualFunc(heard, want, func(a, b relation.Change) bool { return reflect.DeepEqual(a, b) }) {
		r.t.Errorf("announced is %+v, want %+v", heard, want)
	}
}

var (
	password = relation.Candidate{Key: key("a", "password")}
	app      = key("a", "app")
	database = key("a", "database")
	// all is announced where absence means something again.
	all = relation.Change{All: true}
)

func names(names ...types.NamespacedName) relation.Change { return relation.Change{Names: names} }

func TestNothingIsConcludedTooEarly(t *testing.T) {
	creds, more := newRelation("creds"), newRelation("more")
	for title, test := range map[string]struct {
		do   func(*told)
		want string
	}{
		"nobody relates to anything":      {func(*told) {}, "unrelated"},
		"a contributor has begun":         {func(r *told) { r.Begin("apps", []*relation.Relation{creds}) }, "unknown"},
		"a contributor relates to nought": {func(r *told) { r.Begin("apps", nil) }, "unrelated"},
		"a contributor is complete": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Complete("apps")
		}, "unrelated"},
		"another is not": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Begin("zones", []*relation.Relation{more})
			r.Complete("apps")
		}, "unknown"},
		"another is not, about something else": {func(r *told) {
			elsewhere := newRelation("creds")
			elsewhere.InMailbox = users
			r.Begin("apps", []*relation.Relation{creds})
			r.Begin("zones", []*relation.Relation{elsewhere})
			r.Complete("apps")
		}, "unrelated"},
		"a primary failed": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Fail("apps", app, creds)
			r.Complete("apps")
		}, "unknown"},
		"a primary that failed succeeds": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Fail("apps", app, creds)
			r.Complete("apps")
			r.Set("apps", app, creds, relation.Wanted{})
		}, "unrelated"},
		"a primary that failed is gone": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Complete("apps")
			r.Fail("apps", app, creds)
			r.Remove("apps", app)
		}, "unrelated"},
		"a primary that failed was gone when the contributor began again": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Fail("apps", app, creds)
			r.Begin("apps", []*relation.Relation{creds})
			r.Complete("apps")
		}, "unrelated"},
		"a primary failed after it wanted it": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Set("apps", app, creds, named("a", "password"))
			r.Fail("apps", app, creds)
			r.Complete("apps")
		}, "creds a/app"},
		"a primary wanted it before and fails since": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Set("apps", app, creds, named("a", "password"))
			r.Begin("apps", []*relation.Relation{creds})
			r.Fail("apps", app, creds)
			r.Complete("apps")
		}, "creds a/app"},
		"a contributor ended": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Set("apps", app, creds, named("a", "password"))
			r.End("apps", false)
		}, "unrelated"},
		"a contributor ended and is kept": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Set("apps", app, creds, named("a", "password"))
			r.Complete("apps")
			r.End("apps", true)
		}, "creds a/app"},
		"a contributor that wanted nothing ended and is kept": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Complete("apps")
			r.End("apps", true)
		}, "unknown"},
		"a contributor that is kept says more": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Set("apps", app, creds, named("a", "password"))
			r.End("apps", true)
			r.Set("apps", app, creds, relation.Wanted{})
			r.Remove("apps", app)
			r.Complete("apps")
		}, "creds a/app"},
		"a contributor that was kept is dropped": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Set("apps", app, creds, named("a", "password"))
			r.End("apps", true)
			r.End("apps", false)
		}, "unrelated"},
		"a relation is not that of the last beginning": {func(r *told) {
			r.Begin("apps", []*relation.Relation{newRelation("creds")})
			r.Set("apps", app, creds, named("a", "password"))
			r.Complete("apps")
		}, "unrelated"},
		"a contributor is renamed": {func(r *told) {
			r.Begin("apps", []*relation.Relation{creds})
			r.Set("apps", app, creds, named("a", "password"))
			r.Complete("apps")
			r.Begin("applications", []*relation.Relation{more})
			r.End("apps", false)
		}, "unknown"},
	} {
		t.Run(title, func(t *testing.T) {
			register := newTold(t)
			test.do(register)
			register.expect(password, test.want)
		})
	}
}

func TestWhatWasSaidStaysUntilTheContributorIsComplete(t *testing.T) {
	register, creds := newTold(t), newRelation("creds")
	register.Begin("apps", []*relation.Relation{creds})
	register.Set("apps", app, creds, named("a", "password"))
	register.Set("apps", database, creds, named("a", "dump"))
	dump := relation.Candidate{Key: key("a", "dump")}
	register.Complete("apps")
	register.heard()

	// One relation goes, another comes.
	more := newRelation("more")
	register.Begin("apps", []*relation.Relation{more})
	register.expect(password, "creds a/app")
	register.expectHeard()
	register.Set("apps", app, more, named("a", "password"))
	register.expect(password, "creds a/app")
	register.expect(dump, "creds a/database")
	register.expectHeard()
	register.Complete("apps")
	register.expect(password, "more a/app")
	register.expect(dump, "unrelated")
	register.expectHeard(all)
}

func TestSharedObjectsStayUntilTheLastLetsGo(t *testing.T) {
	register, creds, more := newTold(t), newRelation("creds"), newRelation("more")
	register.Begin("apps", []*relation.Relation{creds})
	register.Begin("databases", []*relation.Relation{more})
	register.Complete("apps")
	register.Complete("databases")
	register.expectHeard(all)
	register.Set("databases", database, more, named("a", "password"))
	register.expect(password, "more a/database")
	register.expectHeard(names(password.Key))
	register.Set("apps", key("a", "b"), creds, named("a", "password"))
	register.expect(password, "creds a/b")
	register.expectHeard(names(password.Key))
	register.Set("apps", key("a", "c"), creds, named("a", "password", "other"))
	register.expect(password, "creds a/b")
	register.expectHeard(names(key("a", "other")))
	register.Remove("apps", key("a", "b"))
	register.expect(password, "creds a/c")
	register.expectHeard(names(password.Key))
	register.Set("apps", key("a", "c"), creds, relation.Wanted{})
	register.expect(password, "more a/database")
	register.expectHeard(names(key("a", "other"), password.Key))
	register.End("databases", false)
	register.expect(password, "unrelated")
	register.expectHeard(names(password.Key))
	register.Remove("apps", key("a", "c"))
	register.expectHeard()
}

// Nobody looks at an object again whose answer is the same.
func TestOnlyWhatIsDifferentIsAnnounced(t *testing.T) {
	creds, renewed := newRelation("creds"), newRelation("creds")
	selected := func(namespaces ...string) relation.Wanted {
		return relation.Wanted{Home: "a", Namespaces: namespaces, Selector: parse("k=1")}
	}
	away := named("a", "x")
	away.About.Away = "b"
	for title, test := range map[string]struct {
		former, wanted relation.Wanted
		by             *relation.Relation
		want           []relation.Change
	}{
		"nothing":                    {named("a", "x"), named("a", "x"), creds, nil},
		"one name more":              {named("a", "x"), named("a", "x", "z"), creds, []relation.Change{names(key("a", "z"))}},
		"one name less":              {named("a", "x", "z"), named("a", "z"), creds, []relation.Change{names(key("a", "x"))}},
		"another name":               {named("a", "x"), named("a", "z"), creds, []relation.Change{names(key("a", "x"), key("a", "z"))}},
		"what a younger wants":       {named("a"), named("a", "shared"), creds, nil},
		"another relation":           {named("a", "x"), named("a", "x"), renewed, []relation.Change{names(key("a", "x"))}},
		"what is said besides":       {named("a", "x"), away, creds, []relation.Change{names(key("a", "x"))}},
		"one namespace more":         {selected("a"), selected("a", "b"), creds, []relation.Change{{Namespaces: []string{"b"}}}},
		"a namespace, not its names": {named("a", "x"), selected("a", "b"), creds, []relation.Change{{Namespaces: []string{"a", "b"}}}},
		"other labels":               {selected("a"), relation.Wanted{Home: "a", Namespaces: []string{"a"}, Selector: parse("k=2")}, creds, []relation.Change{{Namespaces: []string{"a"}}}},
		"everywhere":                 {named("a", "x"), relation.Wanted{Home: "a", NamespaceSelector: labels.Everything(), Owner: "one"}, creds, []relation.Change{all}},
	} {
		t.Run(title, func(t *testing.T) {
			register := newTold(t)
			register.Begin("apps", []*relation.Relation{creds, renewed})
			register.Set("apps", app, creds, named("a", "shared"))
			register.Set("apps", database, creds, test.former)
			register.heard()
			register.Set("apps", database, test.by, test.wanted)
			register.expectHeard(test.want...)
		})
	}
}

func TestTheOldestCounts(t *testing.T) {
	older, younger := newRelation("z"), newRelation("a")
	older.Created, younger.Created = time.Unix(1, 0), time.Unix(2, 0)
	for title, test := range map[string]struct {
		do   func(*told)
		want string
	}{
		"of contributors": {func(r *told) {
			r.Set("apps", app, younger, named("a", "password"))
			r.Set("zones", database, older, named("a", "password"))
		}, "z a/database"},
		"of contributors, in whatever order they speak": {func(r *told) {
			r.Set("zones", database, older, named("a", "password"))
			r.Set("apps", app, younger, named("a", "password"))
		}, "z a/database"},
		"by whatever it is found": {func(r *told) {
			r.Set("apps", app, younger, named("a", "password"))
			r.Set("zones", database, older, relation.Wanted{Home: "a", Namespaces: []string{"a"}, Selector: labels.Everything()})
		}, "z a/database"},
		"of primaries the first": {func(r *told) {
			r.Set("zones", database, older, named("a", "password"))
			r.Set("zones", app, older, named("a", "password"))
		}, "z a/app"},
	} {
		t.Run(title, func(t *testing.T) {
			register := newTold(t)
			register.Begin("zones", []*relation.Relation{older})
			register.Begin("apps", []*relation.Relation{younger})
			test.do(register)
			register.expect(password, test.want)
		})
	}
}

func TestWhatIsReached(t *testing.T) {
	labelled := func(text string) labels.Selector { return parse(text) }
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
			relation.Wanted{Home: "a", Namespaces: []string{"a", "b"}, Selector: labelled("k=1,l")},
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
			relation.Wanted{Home: "a", NamespaceSelector: labelled("team=x"), SpreadNames: []string{"x"}},
			[]relation.Candidate{
				{Key: key("a", "x"), NamespaceLabels: known("team", "x")}, {Key: key("b", "x"), NamespaceLabels: known("team", "x"), Selected: true}, {Key: key("", "x")},
			},
			[]relation.Candidate{
				{Key: key("a", "x"), NamespaceLabels: known("team", "y")}, {Key: key("b", "x"), NamespaceLabels: known("team", "x")},
				{Key: key("b", "y"), NamespaceLabels: known("team", "x"), Selected: true},
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

func known(key, value string) func() (map[string]string, bool) {
	return func() (map[string]string, bool) { return map[string]string{key: value}, true }
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
