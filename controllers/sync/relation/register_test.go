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
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

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
			r.End("apps")
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
			r.End("apps")
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
	register.End("databases")
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

func TestHasSuspended(t *testing.T) {
	register, creds, more := newTold(t), newRelation("creds"), newRelation("more")
	suspended := named("a", "x")
	suspended.About.Suspended = true
	expect := func(want bool) {
		t.Helper()
		if got := register.HasSuspended("apps", "creds"); got != want {
			t.Errorf("it has suspended ones: %v, want %v", got, want)
		}
	}
	expect(false)
	register.Begin("apps", []*relation.Relation{creds, more})
	register.Set("apps", app, creds, named("a", "x"))
	register.Fail("apps", database, creds)
	register.Set("apps", app, more, suspended)
	expect(false)
	register.Set("apps", app, creds, suspended)
	register.expectHeard(names(key("a", "x")), names(key("a", "x")))
	expect(true)
	register.Fail("apps", app, creds)
	expect(true)
	register.Remove("apps", app)
	expect(false)
}
