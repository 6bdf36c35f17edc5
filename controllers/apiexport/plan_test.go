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

package apiexport

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

func TestPlanOfEachAPISource(t *testing.T) {
	w := newFixture(t)
	got := w.plan(
		resource(t, "claim", "", nativeSpec), resource(t, "schema", "s-as.a.io", aSpec), resource(t, "foreign", "", foreignSpec),
		resource(t, "kind", "s-bs.b.io", `resource: {group: b.io, kind: B}`), resource(t, "namespaces", "", `resource: {resource: namespaces}`),
	)
	w.want(got,
		"claim Exported/Ready, schema Exported/Ready, foreign Exported/Ready, kind Exported/Ready, namespaces Exported/Ready",
		"s-as.a.io s-bs.b.io configmaps fs.f.io@0123 namespaces",
		"configmaps/v1 as.a.io/v2 fs.f.io/v1 bs.b.io/v1",
		"configmaps as.a.io fs.f.io bs.b.io namespaces")
	if got.waits {
		t.Error("the plan does not wait")
	}
}

func TestEmptyPlan(t *testing.T) {
	w := newFixture(t)
	w.want(w.plan(), "", "", "", "")
	going := resource(t, "going", "", nativeSpec)
	going.DeletionTimestamp = &metav1.Time{}
	w.want(w.plan(going), "", "", "", "")
}

func TestOldestWins(t *testing.T) {
	first, second := resource(t, "first", "s-as.a.io", aSpec), resource(t, "second", "s-as.a.io", aSpec)
	for name, test := range map[string]struct {
		change         func()
		claimed        string
		watched, under string
	}{
		"both":               {func() {}, "first Exported/Ready, second Duplicate/Duplicate", "as.a.io/v2", "as.a.io"},
		"without a schema":   {func() { first.Status.SchemaName = "" }, "first SchemaMissing/SchemaMissing, second Duplicate/Duplicate", "", ""},
		"the schema is gone": {func() { first.Status.SchemaName = "gone" }, "first SchemaMissing/SchemaMissing, second Duplicate/Duplicate", "", ""},
		"invalid":            {func() { first.Spec.Filter = &synchubv1alpha1.Filter{CEL: "("} }, "first Exported/Invalid, second Duplicate/Duplicate", "as.a.io/v2", ""},
		"named by its kind":  {func() { first.Spec.Resource = synchubv1alpha1.ResourceDescriptor{Group: "a.io", Kind: "A"} }, "first Exported/Ready, second Duplicate/Duplicate", "as.a.io/v2", "as.a.io"},
		"by its projection": {func() {
			second.Spec.Projection = &synchubv1alpha1.Projection{Group: new("b.io")}
			second.Status.SchemaName = "s-bs.b.io"
		}, "first Exported/Ready, second Exported/Ready", "as.a.io/v2 bs.b.io/v1", "as.a.io bs.b.io"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			first, second = resource(t, "first", "s-as.a.io", aSpec), resource(t, "second", "s-as.a.io", aSpec)
			test.change()
			got := w.plan(first, second)
			if messages := strings.Join(got.claimed, ", "); messages != test.claimed {
				t.Errorf("want %s, got %s", test.claimed, messages)
			}
			if watched := strings.Join(got.watched[1:], " "); watched != test.watched {
				t.Errorf("want %s watched, got %s", test.watched, watched)
			}
			if synced := strings.Join(got.synced, " "); synced != test.under {
				t.Errorf("want %s synced, got %s", test.under, synced)
			}
		})
	}
}

// An invalid PublishedResource stops the sync of its objects, and mailboxes keep its API.
func TestInvalidRules(t *testing.T) {
	w := newFixture(t)
	got := w.plan(
		resource(t, "a", "s-as.a.io", aSpec+`
filter: {cel: "self.spec.x >"}
ignoreFields: [{path: "spec["}]`), resource(t, "b", "s-bs.b.io", bSpec))
	w.want(got, "a Exported/Invalid, b Exported/Ready", "s-as.a.io s-bs.b.io", "as.a.io/v2 bs.b.io/v1", "bs.b.io")
	w.expectMessage(got, "a", "spec.filter.cel: ", "; spec.ignoreFields[0].path: ", "Its objects are left as they are")
}

func TestInvalidSpec(t *testing.T) {
	const nonsense = `{resource: {resource: configmaps, version: v2}}`
	w := newFixture(t)
	got := w.plan(resource(t, "a", "", nonsense))
	w.want(got, "a Invalid/Invalid", "", "", "")
	w.expectMessage(got, "a", "spec.resource.version: kcp serves configmaps in version v1 only")

	// A PublishedResource that was valid before keeps its entry and its watch.
	w.plan(resource(t, "a", "", nativeSpec))
	w.want(w.plan(resource(t, "a", "", nonsense)), "a Exported/Invalid", "configmaps", "configmaps/v1", "")
	w.want(w.plan(resource(t, "a", "", nonsense)), "a Exported/Invalid", "configmaps", "configmaps/v1", "")
	w.want(w.plan(resource(t, "a", "", nativeSpec)), "a Exported/Ready", "configmaps", "configmaps/v1", "configmaps")

	// A hub that has just started finds the entry in the export.
	w.planner.previous = nil
	w.want(w.plan(resource(t, "a", "", nonsense)), "a Exported/Invalid", "configmaps", "", "")
}

// The plan stays as it is while the schema for a changed spec is being made.
func TestChangedVersion(t *testing.T) {
	w := newFixture(t)
	w.plan(resource(t, "a", "s-as.a.io", aSpec))
	changed := resource(t, "a", "s-as.a.io", `resource: {group: a.io, resource: as, version: v3}`)
	changed.Generation = 2
	w.want(w.plan(changed), "a Exported/SchemaMissing", "s-as.a.io", "as.a.io/v2", "as.a.io")
	w.want(w.plan(changed), "a Exported/SchemaMissing", "s-as.a.io", "as.a.io/v2", "as.a.io")

	// The source does not have the version.
	schemaReady(&changed, 2, metav1.ConditionFalse, "Invalid")
	got := w.plan(changed)
	w.want(got, "a Exported/Invalid", "s-as.a.io", "as.a.io/v2", "")
	w.expectMessage(got, "a", "spec.resource.version: ")

	// The source has the version later.
	w.schema("as.a.io", "A", true, "v3")
	schemaReady(&changed, 2, metav1.ConditionTrue, "Created")
	w.want(w.plan(changed), "a Exported/Ready", "s-as.a.io", "as.a.io/v3", "as.a.io")
}

// A CRD that cannot be read does not change the plan.
func TestSchemaOutOfDate(t *testing.T) {
	for reason, ready := range map[string]string{"SourceUnreachable": "Ready", "Forbidden": "Ready", "NotServed": "Ready", "SchemaMissing": "Ready", "Invalid": "Invalid"} {
		w := newFixture(t)
		stale := resource(t, "a", "s-as.a.io", aSpec)
		schemaReady(&stale, 1, metav1.ConditionFalse, reason)
		w.want(w.plan(stale), "a Exported/"+ready, "s-as.a.io", "as.a.io/v2", "as.a.io")
	}
}

func TestForeign(t *testing.T) {
	w := newFixture(t)
	delete(w.served, "fs.f.io")
	got := w.plan(resource(t, "f", "", foreignSpec))
	w.want(got, "f Exported/NotServed", "fs.f.io@0123", "", "")
	if !got.waits {
		t.Error("the plan does not wait")
	}
	w.blind = true
	if got = w.plan(resource(t, "f", "", foreignSpec)); !got.waits || got.claimed[0] != "f Exported/NotServed" {
		t.Errorf("blind: %v", got)
	}
	w.blind = false
	w.serve("fs.f.io", "F", true)
	w.want(w.plan(resource(t, "f", "", foreignSpec)), "f Exported/Ready", "fs.f.io@0123", "fs.f.io/v1", "fs.f.io")

	// A failed discovery does not mean that the API was removed.
	w.blind = true
	w.want(w.plan(resource(t, "f", "", foreignSpec)), "f Exported/Ready", "fs.f.io@0123", "fs.f.io/v1", "fs.f.io")
	w.blind = false
	delete(w.served, "fs.f.io")
	w.want(w.plan(resource(t, "f", "", foreignSpec)), "f Exported/Ready", "fs.f.io@0123", "fs.f.io/v1", "fs.f.io")

	w.serve("fs.f.io", "G", true)
	got = w.plan(resource(t, "f", "", strings.Replace(foreignSpec, "version:", "kind: F, version:", 1)))
	w.want(got, "f Exported/Invalid", "fs.f.io@0123", "fs.f.io/v1", "")
	w.expectMessage(got, "f", "spec.resource.kind: mailboxes have fs.f.io as G")
}

func TestConflictWithTheExport(t *testing.T) {
	w := newFixture(t)
	w.plan(resource(t, "f", "", foreignSpec))
	other := resource(t, "g", "", strings.Replace(foreignSpec, "0123", "3210", 1))
	got := w.plan(other, resource(t, "a", "s-as.a.io", aSpec))
	w.want(got, "g Conflict/Conflict, a Exported/Ready", "s-as.a.io fs.f.io@0123", "as.a.io/v2", "as.a.io")
}

// An entry that kcp refuses does not block other entries.
func TestRefused(t *testing.T) {
	w := newFixture(t)
	resources := []synchubv1alpha1.PublishedResource{
		resource(t, "a", "s-as.a.io", specWithRelated("resource: {version: v1, resource: secrets}")), resource(t, "b", "s-bs.b.io", bSpec), resource(t, "n", "", nativeSpec),
	}
	made, err := w.planner.newPlan(t.Context(), resources, &w.export)
	if err != nil {
		t.Fatal(err)
	}
	refusal := errors.New("no\nway")
	made.markRefused(map[exportEntry]error{entryFor("bs.b.io", "s-bs.b.io"): refusal, entryFor("secrets", ""): refusal})
	made.relatedAPIs = slices.DeleteFunc(made.relatedAPIs, func(c *relatedAPI) bool { return c.resource == nil })
	got := w.execute(made)
	w.want(got, "a Exported/RelatedInvalid, b Refused/Refused, n Exported/Ready", "s-as.a.io configmaps", "as.a.io/v2 configmaps/v1", "as.a.io configmaps")
	w.expectMessage(got, "a", "spec.related[0].resource: kcp refuses the claim on secrets", "no; way")
	w.expectMessage(got, "b", "kcp refuses the schema s-bs.b.io", "no; way")
}

// A second plan over the same input equals the first, so that no controller restarts.
func TestPlansAreStable(t *testing.T) {
	w := newFixture(t)
	resources := []synchubv1alpha1.PublishedResource{
		resource(t, "a", "s-as.a.io", specWithRelated("resource: {version: v1, resource: secrets}")), resource(t, "f", "", foreignSpec), resource(t, "n", "", nativeSpec),
	}
	first, err := w.planner.newPlan(t.Context(), resources, &w.export)
	if err != nil {
		t.Fatal(err)
	}
	w.execute(first)
	slices.Reverse(resources)
	second, err := w.planner.newPlan(t.Context(), resources, &w.export)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first.syncedResources(), second.syncedResources()) || !slices.Equal(first.watchedResources(), second.watchedResources()) || !slices.Equal(first.exportEntries(), second.exportEntries()) {
		t.Errorf("want %+v\ngot  %+v", first.syncedResources(), second.syncedResources())
	}
}

// Limits apply to the API in mailboxes even while the PublishedResource has another problem.
func TestLimits(t *testing.T) {
	w := newFixture(t)
	limit := func(plan synchubv1alpha1.PublishedResource, objects int64) synchubv1alpha1.PublishedResource {
		plan.Spec.Limits = &synchubv1alpha1.ResourceLimits{MailboxObjects: &objects}
		return plan
	}
	made, err := w.planner.newPlan(t.Context(), []synchubv1alpha1.PublishedResource{
		limit(resource(t, "a", "s-as.a.io", specWithRelated("resource: {version: v1, resource: secrets}")), 3), limit(resource(t, "b", "", "resource: {group: b.io, resource: bs}"), 4),
		limit(resource(t, "f", "", foreignSpec), 5), resource(t, "n", "", nativeSpec),
	}, &w.export)
	if err != nil {
		t.Fatal(err)
	}
	want := map[schema.GroupVersionResource]mailboxes.Limits{
		{Group: "a.io", Version: "v2", Resource: "as"}: {Objects: 3}, {Group: "f.io", Version: "v1", Resource: "fs"}: {Objects: 5},
	}
	if got := made.resourceLimits(); !maps.Equal(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
}

func TestReportedElsewhere(t *testing.T) {
	ready := func(reason string) metav1.Condition {
		return metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason}
	}
	for name, test := range map[string]struct {
		generation   int64
		schemaReason string
		ready        string
		told         bool
	}{
		"the same":              {1, ReasonInvalid, ReasonInvalid, true},
		"something else":        {1, "SourceUnreachable", ReasonInvalid, false},
		"the same of before":    {0, ReasonInvalid, ReasonInvalid, false},
		"that it waits for one": {1, "SourceUnreachable", ReasonSchemaMissing, true},
	} {
		published := resource(t, "a", "", aSpec)
		schemaReady(&published, test.generation, metav1.ConditionFalse, test.schemaReason)
		if got := newResourcePlan(&published).isReportedElsewhere(ready(test.ready)); got != test.told {
			t.Errorf("%s: %v", name, got)
		}
	}
}
