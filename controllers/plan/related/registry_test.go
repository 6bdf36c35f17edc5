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
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/synchub-dev/synchub/controllers/plan/related"
)

func TestNothingIsUnrelatedBeforeTheInitialSync(t *testing.T) {
	creds, more := newRelation("creds"), newRelation("more")
	for title, test := range map[string]struct {
		do   func(*recorder)
		want string
	}{
		"nobody relates to anything":      {func(*recorder) {}, "unrelated"},
		"a contributor has begun":         {func(r *recorder) { r.BeginInitialSync("apps", []*related.Relation{creds}) }, "unknown"},
		"a contributor relates to nought": {func(r *recorder) { r.BeginInitialSync("apps", nil) }, "unrelated"},
		"a contributor is complete": {func(r *recorder) {
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.CompleteInitialSync("apps")
		}, "unrelated"},
		"another is not": {func(r *recorder) {
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.BeginInitialSync("zones", []*related.Relation{more})
			r.CompleteInitialSync("apps")
		}, "unknown"},
		"another is not, about something else": {func(r *recorder) {
			elsewhere := newRelation("creds")
			elsewhere.InMailbox = users
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.BeginInitialSync("zones", []*related.Relation{elsewhere})
			r.CompleteInitialSync("apps")
		}, "unrelated"},
		"a primary failed": {func(r *recorder) {
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.MarkUnresolved("apps", app, creds)
			r.CompleteInitialSync("apps")
		}, "unknown"},
		"a primary that failed succeeds": {func(r *recorder) {
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.MarkUnresolved("apps", app, creds)
			r.CompleteInitialSync("apps")
			r.SetClaim("apps", app, creds, related.Query{})
		}, "unrelated"},
		"a primary that failed is gone": {func(r *recorder) {
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.CompleteInitialSync("apps")
			r.MarkUnresolved("apps", app, creds)
			r.RemovePrimary("apps", app)
		}, "unrelated"},
		"a primary that failed was gone when the contributor began again": {func(r *recorder) {
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.MarkUnresolved("apps", app, creds)
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.CompleteInitialSync("apps")
		}, "unrelated"},
		"a primary failed after it wanted it": {func(r *recorder) {
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.SetClaim("apps", app, creds, named("a", "password"))
			r.MarkUnresolved("apps", app, creds)
			r.CompleteInitialSync("apps")
		}, "creds a/app"},
		"a primary wanted it before and fails since": {func(r *recorder) {
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.SetClaim("apps", app, creds, named("a", "password"))
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.MarkUnresolved("apps", app, creds)
			r.CompleteInitialSync("apps")
		}, "creds a/app"},
		"a contributor ended": {func(r *recorder) {
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.SetClaim("apps", app, creds, named("a", "password"))
			r.RemovePublishedResource("apps")
		}, "unrelated"},
		"a relation is not that of the last beginning": {func(r *recorder) {
			r.BeginInitialSync("apps", []*related.Relation{newRelation("creds")})
			r.SetClaim("apps", app, creds, named("a", "password"))
			r.CompleteInitialSync("apps")
		}, "unrelated"},
		"a contributor is renamed": {func(r *recorder) {
			r.BeginInitialSync("apps", []*related.Relation{creds})
			r.SetClaim("apps", app, creds, named("a", "password"))
			r.CompleteInitialSync("apps")
			r.BeginInitialSync("applications", []*related.Relation{more})
			r.RemovePublishedResource("apps")
		}, "unknown"},
	} {
		t.Run(title, func(t *testing.T) {
			register := newRecorder(t)
			test.do(register)
			register.expect(password, test.want)
		})
	}
}

func TestClaimsStayUntilTheInitialSyncIsComplete(t *testing.T) {
	register, creds := newRecorder(t), newRelation("creds")
	register.BeginInitialSync("apps", []*related.Relation{creds})
	register.SetClaim("apps", app, creds, named("a", "password"))
	register.SetClaim("apps", database, creds, named("a", "dump"))
	dump := related.Object{Key: key("a", "dump")}
	register.CompleteInitialSync("apps")
	register.takeChanges()

	// One relation is removed, another one is added.
	more := newRelation("more")
	register.BeginInitialSync("apps", []*related.Relation{more})
	register.expect(password, "creds a/app")
	register.expectChanges()
	register.SetClaim("apps", app, more, named("a", "password"))
	register.expect(password, "creds a/app")
	register.expect(dump, "creds a/database")
	register.expectChanges()
	register.CompleteInitialSync("apps")
	register.expect(password, "more a/app")
	register.expect(dump, "unrelated")
	register.expectChanges(all)
}

func TestSharedObjectsStayUntilTheLastClaimEnds(t *testing.T) {
	register, creds, more := newRecorder(t), newRelation("creds"), newRelation("more")
	register.BeginInitialSync("apps", []*related.Relation{creds})
	register.BeginInitialSync("databases", []*related.Relation{more})
	register.CompleteInitialSync("apps")
	register.CompleteInitialSync("databases")
	register.expectChanges(all)
	register.SetClaim("databases", database, more, named("a", "password"))
	register.expect(password, "more a/database")
	register.expectChanges(names(password.Key))
	register.SetClaim("apps", key("a", "b"), creds, named("a", "password"))
	register.expect(password, "creds a/b")
	register.expectChanges(names(password.Key))
	register.SetClaim("apps", key("a", "c"), creds, named("a", "password", "other"))
	register.expect(password, "creds a/b")
	register.expectChanges(names(key("a", "other")))
	register.RemovePrimary("apps", key("a", "b"))
	register.expect(password, "creds a/c")
	register.expectChanges(names(password.Key))
	register.SetClaim("apps", key("a", "c"), creds, related.Query{})
	register.expect(password, "more a/database")
	register.expectChanges(names(key("a", "other"), password.Key))
	register.RemovePublishedResource("databases")
	register.expect(password, "unrelated")
	register.expectChanges(names(password.Key))
	register.RemovePrimary("apps", key("a", "c"))
	register.expectChanges()
}

// Subscribers are not notified about an object with an unchanged result.
func TestOnlyDifferencesAreNotified(t *testing.T) {
	creds, renewed := newRelation("creds"), newRelation("creds")
	selected := func(namespaces ...string) related.Query {
		return related.Query{SourceNamespace: "a", Namespaces: namespaces, Selector: parse("k=1")}
	}
	away := named("a", "x")
	away.PrimaryInfo.DestinationNamespace = "b"
	for title, test := range map[string]struct {
		former, wanted related.Query
		by             *related.Relation
		want           []related.Change
	}{
		"nothing":                    {named("a", "x"), named("a", "x"), creds, nil},
		"one name more":              {named("a", "x"), named("a", "x", "z"), creds, []related.Change{names(key("a", "z"))}},
		"one name less":              {named("a", "x", "z"), named("a", "z"), creds, []related.Change{names(key("a", "x"))}},
		"another name":               {named("a", "x"), named("a", "z"), creds, []related.Change{names(key("a", "x"), key("a", "z"))}},
		"what a younger wants":       {named("a"), named("a", "shared"), creds, nil},
		"another relation":           {named("a", "x"), named("a", "x"), renewed, []related.Change{names(key("a", "x"))}},
		"the primary's info":         {named("a", "x"), away, creds, []related.Change{names(key("a", "x"))}},
		"one namespace more":         {selected("a"), selected("a", "b"), creds, []related.Change{{Namespaces: []string{"b"}}}},
		"a namespace, not its names": {named("a", "x"), selected("a", "b"), creds, []related.Change{{Namespaces: []string{"a", "b"}}}},
		"other labels":               {selected("a"), related.Query{SourceNamespace: "a", Namespaces: []string{"a"}, Selector: parse("k=2")}, creds, []related.Change{{Namespaces: []string{"a"}}}},
		"everywhere":                 {named("a", "x"), related.Query{SourceNamespace: "a", NamespaceSelector: labels.Everything(), Owner: "one"}, creds, []related.Change{all}},
	} {
		t.Run(title, func(t *testing.T) {
			register := newRecorder(t)
			register.BeginInitialSync("apps", []*related.Relation{creds, renewed})
			register.SetClaim("apps", app, creds, named("a", "shared"))
			register.SetClaim("apps", database, creds, test.former)
			register.takeChanges()
			register.SetClaim("apps", database, test.by, test.wanted)
			register.expectChanges(test.want...)
		})
	}
}

func TestTheOldestCounts(t *testing.T) {
	older, younger := newRelation("z"), newRelation("a")
	older.Created, younger.Created = time.Unix(1, 0), time.Unix(2, 0)
	for title, test := range map[string]struct {
		do   func(*recorder)
		want string
	}{
		"of contributors": {func(r *recorder) {
			r.SetClaim("apps", app, younger, named("a", "password"))
			r.SetClaim("zones", database, older, named("a", "password"))
		}, "z a/database"},
		"of PublishedResources, in any order": {func(r *recorder) {
			r.SetClaim("zones", database, older, named("a", "password"))
			r.SetClaim("apps", app, younger, named("a", "password"))
		}, "z a/database"},
		"for every attribute": {func(r *recorder) {
			r.SetClaim("apps", app, younger, named("a", "password"))
			r.SetClaim("zones", database, older, related.Query{SourceNamespace: "a", Namespaces: []string{"a"}, Selector: labels.Everything()})
		}, "z a/database"},
		"of primaries the first": {func(r *recorder) {
			r.SetClaim("zones", database, older, named("a", "password"))
			r.SetClaim("zones", app, older, named("a", "password"))
		}, "z a/app"},
	} {
		t.Run(title, func(t *testing.T) {
			register := newRecorder(t)
			register.BeginInitialSync("zones", []*related.Relation{older})
			register.BeginInitialSync("apps", []*related.Relation{younger})
			test.do(register)
			register.expect(password, test.want)
		})
	}
}

func TestHasSuspended(t *testing.T) {
	register, creds, more := newRecorder(t), newRelation("creds"), newRelation("more")
	suspended := named("a", "x")
	suspended.PrimaryInfo.Suspended = true
	expect := func(want bool) {
		t.Helper()
		if got := register.HasSuspended("apps", "creds"); got != want {
			t.Errorf("it has suspended ones: %v, want %v", got, want)
		}
	}
	expect(false)
	register.BeginInitialSync("apps", []*related.Relation{creds, more})
	register.SetClaim("apps", app, creds, named("a", "x"))
	register.MarkUnresolved("apps", database, creds)
	register.SetClaim("apps", app, more, suspended)
	expect(false)
	register.SetClaim("apps", app, creds, suspended)
	register.expectChanges(names(key("a", "x")), names(key("a", "x")))
	expect(true)
	register.MarkUnresolved("apps", app, creds)
	expect(true)
	register.RemovePrimary("apps", app)
	expect(false)
}
