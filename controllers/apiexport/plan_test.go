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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

const identity = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// world is what a planner asks.
type world struct {
	t       *testing.T
	planner *planner
	export  apisv1alpha2.APIExportSpec
	// schemas are those of the provider workspace, served what mailboxes have from other exports.
	schemas map[string]*apisv1alpha1.APIResourceSchema
	served  map[string]published.API
	// blind is true if mailboxes cannot be seen.
	blind bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, schemas: map[string]*apisv1alpha1.APIResourceSchema{}, served: map[string]published.API{}}
	w.planner = &planner{
		compiler: published.NewCompiler(),
		schemaOf: func(_ context.Context, name string) (*apisv1alpha1.APIResourceSchema, error) {
			return w.schemas[name], nil
		},
		discover: func(_ context.Context, resource schema.GroupVersionResource) (published.API, error) {
			if w.blind {
				return published.API{}, errors.New("blind")
			}
			api, ok := w.served[resource.GroupResource().String()]
			if !ok {
				return published.API{}, fmt.Errorf("%s: %w", resource, mailboxes.ErrNotServed)
			}
			return api, nil
		},
	}
	w.schema("as.a.io", "A", true, "v1", "v2")
	w.schema("bs.b.io", "B", true, "v1")
	w.schema("clusters.c.io", "Cluster", false, "v1")
	w.serve("fs.f.io", "F", true)
	return w
}

// schema adds the schema s-<resource>.
func (w *world) schema(resource, kind string, namespaced bool, versions ...string) {
	group := schema.ParseGroupResource(resource)
	made := &apisv1alpha1.APIResourceSchema{}
	made.Name = "s-" + resource
	made.Spec.Group, made.Spec.Names.Plural, made.Spec.Names.Kind = group.Group, group.Resource, kind
	made.Spec.Scope = apiextensionsv1.ClusterScoped
	if namespaced {
		made.Spec.Scope = apiextensionsv1.NamespaceScoped
	}
	for _, version := range versions {
		made.Spec.Versions = append(made.Spec.Versions, apisv1alpha1.APIResourceVersion{Name: version, Served: true})
	}
	w.schemas[made.Name] = made
}

// serve makes mailboxes serve v1 of what another export provides.
func (w *world) serve(resource, kind string, namespaced bool) {
	w.served[resource] = published.API{
		GroupVersionResource: schema.ParseGroupResource(resource).WithVersion("v1"), Kind: kind, Namespaced: namespaced, StatusSubresource: true,
	}
}

// resource is a PublishedResource of a name, as old as its generation in seconds before all others of higher ones.
func resource(t *testing.T, name, schemaName, spec string) synchubv1alpha1.PublishedResource {
	t.Helper()
	made := synchubv1alpha1.PublishedResource{}
	made.Name, made.UID, made.Generation = name, types.UID("uid-"+name), 1
	if err := yaml.UnmarshalStrict([]byte(spec), &made.Spec); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	made.Status.SchemaName = schemaName
	schemaReady(&made, 1, metav1.ConditionTrue, "Created")
	return made
}

func schemaReady(resource *synchubv1alpha1.PublishedResource, generation int64, status metav1.ConditionStatus, reason string) {
	meta.SetStatusCondition(&resource.Status.Conditions, metav1.Condition{
		Type: synchubv1alpha1.ConditionSchemaReady, Status: status, Reason: reason, Message: "The schema is " + reason + ".", ObservedGeneration: generation,
	})
}

// outcome is what a plan comes to, as text.
type outcome struct {
	// said is "name Exported-reason/Ready-reason" of each PublishedResource.
	said []string
	// messages are those of the conditions Ready.
	messages map[string]string
	// export is what is in the export afterwards, watched and synced are resources; a companion has a +.
	export, watched, synced []string
	waits                   bool
}

// plan makes and carries out a plan. Those named first are oldest.
func (w *world) plan(resources ...synchubv1alpha1.PublishedResource) outcome {
	w.t.Helper()
	for i := range resources {
		resources[i].CreationTimestamp = metav1.Unix(int64(i), 0)
	}
	before := w.export.DeepCopy()
	made, err := w.planner.make(w.t.Context(), slices.Clone(resources), &w.export)
	if err != nil {
		w.t.Fatal(err)
	}
	if !slices.EqualFunc(w.export.Resources, before.Resources, func(a, b apisv1alpha2.ResourceSchema) bool { return a.Schema == b.Schema }) {
		w.t.Error("a plan changed the export")
	}
	return w.carryOut(made)
}

func (w *world) carryOut(made *plan) outcome {
	w.t.Helper()
	got := outcome{messages: map[string]string{}, waits: made.waits}
	mergeAll(&w.export, made.entries())
	for _, exported := range w.export.Resources {
		got.export = append(got.export, exported.Schema)
	}
	for _, claim := range w.export.PermissionClaims {
		name := schema.GroupResource{Group: claim.Group, Resource: claim.Resource}.String()
		if claim.IdentityHash != "" {
			name += "@" + claim.IdentityHash[:4]
		}
		got.export = append(got.export, name)
	}
	for _, candidate := range made.candidates {
		exported, ready := candidate.conditions()
		if (exported.Status == metav1.ConditionTrue) != (exported.Reason == ReasonExported) || (ready.Status == metav1.ConditionTrue) != (ready.Reason == ReasonReady) {
			w.t.Errorf("the reasons do not fit: %+v, %+v", exported, ready)
		}
		got.said = append(got.said, candidate.published.Name+" "+exported.Reason+"/"+ready.Reason)
		got.messages[candidate.published.Name] = ready.Message
	}
	for _, resource := range made.watched() {
		got.watched = append(got.watched, resource.GroupResource().String()+"/"+resource.Version)
	}
	for _, resource := range made.synced() {
		name := resource.GroupResource().String()
		if resource.Companion {
			name += "+"
		}
		got.synced = append(got.synced, name)
	}
	w.planner.before = made.memories(w.planner.before)
	return got
}

// want compares what a plan comes to; each text has words in order.
func (w *world) want(got outcome, said, export, watched, synced string) {
	w.t.Helper()
	for what, pair := range map[string][2]string{
		"said":    {said, strings.Join(got.said, ", ")},
		"export":  {export, strings.Join(got.export, " ")},
		"watched": {strings.TrimSpace("namespaces/v1 " + watched), strings.Join(got.watched, " ")},
		"synced":  {synced, strings.Join(got.synced, " ")},
	} {
		if pair[0] != pair[1] {
			w.t.Errorf("%s: want %q, got %q; %v", what, pair[0], pair[1], got.messages)
		}
	}
}

// says checks that a message has all the parts.
func (w *world) says(got outcome, name string, parts ...string) {
	w.t.Helper()
	for _, part := range parts {
		if !strings.Contains(got.messages[name], part) {
			w.t.Errorf("%s: want %q in %q", name, part, got.messages[name])
		}
	}
}

const (
	aSpec       = `resource: {group: a.io, resource: as}`
	bSpec       = `resource: {group: b.io, resource: bs}`
	clusterSpec = `resource: {group: c.io, resource: clusters}`
	nativeSpec  = `resource: {resource: configmaps}`
	foreignSpec = `{resource: {group: f.io, resource: fs, version: v1}, api: {identityHash: ` + identity + `}}`
)

func TestPlanOfEachWay(t *testing.T) {
	w := newWorld(t)
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
		t.Error("it waits for nothing")
	}
}

func TestPlanOfNothing(t *testing.T) {
	w := newWorld(t)
	w.want(w.plan(), "", "", "", "")
	going := resource(t, "going", "", nativeSpec)
	going.DeletionTimestamp = &metav1.Time{}
	w.want(w.plan(going), "", "", "", "")
}

func TestOldestWins(t *testing.T) {
	first, second := resource(t, "first", "s-as.a.io", aSpec), resource(t, "second", "s-as.a.io", aSpec)
	for name, test := range map[string]struct {
		change         func()
		said           string
		watched, under string
	}{
		"both":               {func() {}, "first Exported/Ready, second Duplicate/Duplicate", "as.a.io/v2", "as.a.io"},
		"without a schema":   {func() { first.Status.SchemaName = "" }, "first SchemaMissing/SchemaMissing, second Duplicate/Duplicate", "", ""},
		"the schema is gone": {func() { first.Status.SchemaName = "gone" }, "first SchemaMissing/SchemaMissing, second Duplicate/Duplicate", "", ""},
		"invalid":            {func() { first.Spec.Filter = &synchubv1alpha1.Filter{CEL: "("} }, "first Exported/Invalid, second Duplicate/Duplicate", "as.a.io/v2", ""},
		"named by its kind":  {func() { first.Spec.Resource = synchubv1alpha1.ResourceDescriptor{Group: "a.io", Kind: "A"} }, "first Exported/Ready, second Duplicate/Duplicate", "as.a.io/v2", "as.a.io"},
		"by what it is projected": {func() {
			second.Spec.Projection = &synchubv1alpha1.Projection{Group: new("b.io")}
			second.Status.SchemaName = "s-bs.b.io"
		}, "first Exported/Ready, second Exported/Ready", "as.a.io/v2 bs.b.io/v1", "as.a.io bs.b.io"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first, second = resource(t, "first", "s-as.a.io", aSpec), resource(t, "second", "s-as.a.io", aSpec)
			test.change()
			got := w.plan(first, second)
			if said := strings.Join(got.said, ", "); said != test.said {
				t.Errorf("want %s, got %s", test.said, said)
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

// What is wrong stops the objects, and takes nothing away from mailboxes.
func TestInvalidRules(t *testing.T) {
	w := newWorld(t)
	got := w.plan(
		resource(t, "a", "s-as.a.io", aSpec+`
filter: {cel: "self.spec.x >"}
ignoreFields: [{path: "spec["}]`), resource(t, "b", "s-bs.b.io", bSpec))
	w.want(got, "a Exported/Invalid, b Exported/Ready", "s-as.a.io s-bs.b.io", "as.a.io/v2 bs.b.io/v1", "bs.b.io")
	w.says(got, "a", "spec.filter.cel: ", "; spec.ignoreFields[0].path: ", "Its objects are left as they are")
}

func TestNonsense(t *testing.T) {
	const nonsense = `{resource: {resource: configmaps, version: v2}}`
	w := newWorld(t)
	got := w.plan(resource(t, "a", "", nonsense))
	w.want(got, "a Invalid/Invalid", "", "", "")
	w.says(got, "a", "spec.resource.version: kcp serves configmaps in version v1 only")

	// One that made sense before keeps what it has.
	w.plan(resource(t, "a", "", nativeSpec))
	w.want(w.plan(resource(t, "a", "", nonsense)), "a Exported/Invalid", "configmaps", "configmaps/v1", "")
	w.want(w.plan(resource(t, "a", "", nonsense)), "a Exported/Invalid", "configmaps", "configmaps/v1", "")
	w.want(w.plan(resource(t, "a", "", nativeSpec)), "a Exported/Ready", "configmaps", "configmaps/v1", "configmaps")

	// A hub that has just started sees it in the export.
	w.planner.before = nil
	w.want(w.plan(resource(t, "a", "", nonsense)), "a Exported/Invalid", "configmaps", "", "")
}

// While the schema for a changed spec is being made, all stays as it is.
func TestChangedVersion(t *testing.T) {
	w := newWorld(t)
	w.plan(resource(t, "a", "s-as.a.io", aSpec))
	changed := resource(t, "a", "s-as.a.io", `resource: {group: a.io, resource: as, version: v3}`)
	changed.Generation = 2
	w.want(w.plan(changed), "a Exported/SchemaMissing", "s-as.a.io", "as.a.io/v2", "as.a.io")
	w.want(w.plan(changed), "a Exported/SchemaMissing", "s-as.a.io", "as.a.io/v2", "as.a.io")

	// The source has no such version.
	schemaReady(&changed, 2, metav1.ConditionFalse, "Invalid")
	got := w.plan(changed)
	w.want(got, "a Exported/Invalid", "s-as.a.io", "as.a.io/v2", "")
	w.says(got, "a", "spec.resource.version: ")

	// It has it later.
	w.schema("as.a.io", "A", true, "v3")
	schemaReady(&changed, 2, metav1.ConditionTrue, "Created")
	w.want(w.plan(changed), "a Exported/Ready", "s-as.a.io", "as.a.io/v3", "as.a.io")
}

// A definition that cannot be read takes nothing away.
func TestSchemaOutOfDate(t *testing.T) {
	for reason, ready := range map[string]string{"SourceUnreachable": "Ready", "Forbidden": "Ready", "NotServed": "Ready", "SchemaMissing": "Ready", "Invalid": "Invalid"} {
		w := newWorld(t)
		stale := resource(t, "a", "s-as.a.io", aSpec)
		schemaReady(&stale, 1, metav1.ConditionFalse, reason)
		w.want(w.plan(stale), "a Exported/"+ready, "s-as.a.io", "as.a.io/v2", "as.a.io")
	}
}

func TestForeign(t *testing.T) {
	w := newWorld(t)
	delete(w.served, "fs.f.io")
	got := w.plan(resource(t, "f", "", foreignSpec))
	w.want(got, "f Exported/NotServed", "fs.f.io@0123", "", "")
	if !got.waits {
		t.Error("nobody asks again")
	}
	w.blind = true
	if got = w.plan(resource(t, "f", "", foreignSpec)); !got.waits || got.said[0] != "f Exported/NotServed" {
		t.Errorf("blind: %v", got)
	}
	w.blind = false
	w.serve("fs.f.io", "F", true)
	w.want(w.plan(resource(t, "f", "", foreignSpec)), "f Exported/Ready", "fs.f.io@0123", "fs.f.io/v1", "fs.f.io")

	// What cannot be seen now is not gone.
	w.blind = true
	w.want(w.plan(resource(t, "f", "", foreignSpec)), "f Exported/Ready", "fs.f.io@0123", "fs.f.io/v1", "fs.f.io")
	w.blind = false
	delete(w.served, "fs.f.io")
	w.want(w.plan(resource(t, "f", "", foreignSpec)), "f Exported/Ready", "fs.f.io@0123", "fs.f.io/v1", "fs.f.io")

	w.serve("fs.f.io", "G", true)
	got = w.plan(resource(t, "f", "", strings.Replace(foreignSpec, "version:", "kind: F, version:", 1)))
	w.want(got, "f Exported/Invalid", "fs.f.io@0123", "fs.f.io/v1", "")
	w.says(got, "f", "spec.resource.kind: mailboxes have fs.f.io as G")
}

func TestConflictWithTheExport(t *testing.T) {
	w := newWorld(t)
	w.plan(resource(t, "f", "", foreignSpec))
	other := resource(t, "g", "", strings.Replace(foreignSpec, "0123", "3210", 1))
	got := w.plan(other, resource(t, "a", "s-as.a.io", aSpec))
	w.want(got, "g Conflict/Conflict, a Exported/Ready", "s-as.a.io fs.f.io@0123", "as.a.io/v2", "as.a.io")
}

// related is the spec of as.a.io with objects related to it.
func related(entries ...string) string {
	spec := aSpec + "\nrelated:"
	for i, entry := range entries {
		spec += fmt.Sprintf("\n- {identifier: r%d, origin: Mailbox, object: {owner: {}}, %s}", i, entry)
	}
	return spec
}

func TestRelated(t *testing.T) {
	const secrets, bs, fs = "resource: {version: v1, resource: secrets}", "resource: {group: b.io, version: v1, resource: bs}", "resource: {group: f.io, version: v1, resource: fs, identityHash: " + identity + "}"
	b, native := resource(t, "b", "s-bs.b.io", bSpec), resource(t, "n", "", `resource: {resource: secrets}`)
	for name, test := range map[string]struct {
		spec                          string
		others                        []synchubv1alpha1.PublishedResource
		said, export, watched, synced string
		// message is part of that of the primary.
		message string
	}{
		"native":           {related(secrets), nil, "a Exported/Ready", "s-as.a.io secrets", "as.a.io/v2 secrets/v1", "as.a.io secrets+", ""},
		"native twice":     {related(secrets, secrets), nil, "a Exported/Ready", "s-as.a.io secrets", "as.a.io/v2 secrets/v1", "as.a.io secrets+", ""},
		"native published": {related(secrets), []synchubv1alpha1.PublishedResource{native}, "a Exported/Ready, n Exported/Ready", "s-as.a.io secrets", "as.a.io/v2 secrets/v1", "as.a.io secrets", ""},
		"namespaces":       {related("resource: {version: v1, resource: namespaces}"), nil, "a Exported/Ready", "s-as.a.io namespaces", "as.a.io/v2", "as.a.io namespaces+", ""},
		"its own":          {related("resource: {group: a.io, version: v2, resource: as}"), nil, "a Exported/Ready", "s-as.a.io", "as.a.io/v2", "as.a.io", ""},
		"foreign":          {related(fs), nil, "a Exported/Ready", "s-as.a.io fs.f.io@0123", "as.a.io/v2 fs.f.io/v1", "as.a.io fs.f.io+", ""},
		"published":        {related(bs), []synchubv1alpha1.PublishedResource{b}, "a Exported/Ready, b Exported/Ready", "s-as.a.io s-bs.b.io", "as.a.io/v2 bs.b.io/v1", "as.a.io bs.b.io", ""},
		"projected": {
			related("resource: {version: v1, resource: secrets}, projection: {group: b.io, resource: bs, kind: B}"), []synchubv1alpha1.PublishedResource{b},
			"a Exported/Ready, b Exported/Ready", "s-as.a.io s-bs.b.io", "as.a.io/v2 bs.b.io/v1", "as.a.io bs.b.io", "",
		},
		"nobody's": {related(secrets, bs), nil, "a Exported/RelatedNotPublished", "s-as.a.io secrets", "as.a.io/v2 secrets/v1", "as.a.io secrets+", "spec.related[1].resource: mailboxes do not have bs.b.io: publish it"},
		"acting":   {related("resource: {version: v1, resource: resourcequotas}"), nil, "a Exported/RelatedNotPublished", "s-as.a.io", "as.a.io/v2", "as.a.io", "spec.related[0].resource: mailboxes do not have resourcequotas"},
		"not served": {
			related("resource: {group: g.io, version: v1, resource: gs, identityHash: " + identity + "}"), nil,
			"a Exported/RelatedNotPublished", "s-as.a.io gs.g.io@0123", "as.a.io/v2", "as.a.io", "spec.related[0].resource: mailboxes do not serve gs.g.io",
		},
		"of an invalid one": {
			related(bs), []synchubv1alpha1.PublishedResource{resource(t, "b", "s-bs.b.io", bSpec+"\nfilter: {cel: '('}")},
			"a Exported/RelatedNotPublished, b Exported/Invalid", "s-as.a.io s-bs.b.io", "as.a.io/v2 bs.b.io/v1", "as.a.io", "spec.related[0].resource: the PublishedResource b, which publishes bs.b.io, is not in force",
		},
		"of one without a schema": {
			related(bs), []synchubv1alpha1.PublishedResource{resource(t, "b", "", bSpec)},
			"a Exported/RelatedNotPublished, b SchemaMissing/SchemaMissing", "s-as.a.io", "as.a.io/v2", "as.a.io", "spec.related[0].resource: the PublishedResource b",
		},
		"another version":    {related("resource: {version: v2, resource: secrets}"), nil, "a Exported/RelatedInvalid", "s-as.a.io", "as.a.io/v2", "as.a.io", "spec.related[0].resource.version: kcp serves secrets in version v1 only"},
		"claimed of another": {related(fs, strings.Replace(fs, "0123", "3210", 1)), nil, "a Exported/RelatedInvalid", "s-as.a.io fs.f.io@0123", "as.a.io/v2 fs.f.io/v1", "as.a.io fs.f.io+", "spec.related[1].resource: The mailbox export claims"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			got := w.plan(append([]synchubv1alpha1.PublishedResource{resource(t, "a", "s-as.a.io", test.spec)}, test.others...)...)
			w.want(got, test.said, test.export, test.watched, test.synced)
			w.says(got, "a", test.message)
			if got.waits != (name == "not served") {
				t.Errorf("waits: %v", got.waits)
			}
		})
	}
}

// Two that need the same share it, whoever comes first.
func TestSharedCompanion(t *testing.T) {
	w := newWorld(t)
	got := w.plan(
		resource(t, "a", "s-as.a.io", related("resource: {version: v1, resource: secrets}")),
		resource(t, "b", "s-bs.b.io", bSpec+"\nrelated: [{identifier: s, origin: Target, resource: {version: v1, resource: secrets}, object: {owner: {}}}]"),
	)
	w.want(got, "a Exported/Ready, b Exported/Ready", "s-as.a.io s-bs.b.io secrets", "as.a.io/v2 bs.b.io/v1 secrets/v1", "as.a.io bs.b.io secrets+")
	gs := "{group: g.io, version: v1, resource: gs, identityHash: " + identity + "}"
	got = w.plan(
		resource(t, "a", "s-as.a.io", related("resource: "+gs)),
		resource(t, "b", "s-bs.b.io", bSpec+"\nrelated: [{identifier: s, origin: Target, resource: "+gs+", object: {owner: {}}}]"),
	)
	if got.said[0] != "a Exported/RelatedNotPublished" || got.said[1] != "b Exported/RelatedNotPublished" {
		t.Errorf("what is not served is not missed by both: %v", got.said)
	}
}

// Where cluster-scoped objects have related ones in namespaces, it must be said in which.
func TestRelatedOfClusterScoped(t *testing.T) {
	for name, test := range map[string]struct{ entry, said string }{
		"nowhere":        {"resource: {version: v1, resource: secrets}, object: {template: x}", "c Exported/RelatedInvalid"},
		"somewhere":      {"resource: {version: v1, resource: secrets}, object: {template: x}, namespace: {template: y}", "c Exported/Ready"},
		"by the owner":   {"resource: {version: v1, resource: secrets}, object: {owner: {}}", "c Exported/Ready"},
		"cluster-scoped": {"resource: {version: v1, resource: namespaces}, object: {template: x}", "c Exported/Ready"},
		"published":      {"resource: {group: b.io, version: v1, resource: bs}, object: {template: x}", "c Exported/RelatedInvalid"},
	} {
		w := newWorld(t)
		got := w.plan(resource(t, "c", "s-clusters.c.io", clusterSpec+"\nrelated: [{identifier: r, origin: Target, "+test.entry+"}]"), resource(t, "b", "s-bs.b.io", bSpec))
		if got.said[0] != test.said {
			t.Errorf("%s: want %s, got %s: %v", name, test.said, got.said[0], got.messages)
		}
		if test.said != "c Exported/Ready" {
			w.says(got, "c", "spec.related[0].namespace: required")
		}
	}
}

// What kcp refuses keeps out nothing else.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	resources := []synchubv1alpha1.PublishedResource{
		resource(t, "a", "s-as.a.io", related("resource: {version: v1, resource: secrets}")), resource(t, "b", "s-bs.b.io", bSpec), resource(t, "n", "", nativeSpec),
	}
	made, err := w.planner.make(t.Context(), resources, &w.export)
	if err != nil {
		t.Fatal(err)
	}
	refusal := errors.New("no\nway")
	made.refuse(map[entry]error{entryFor("bs.b.io", "s-bs.b.io"): refusal, entryFor("secrets", ""): refusal})
	made.companions = slices.DeleteFunc(made.companions, func(c *companion) bool { return c.resource == nil })
	got := w.carryOut(made)
	w.want(got, "a Exported/RelatedInvalid, b Refused/Refused, n Exported/Ready", "s-as.a.io configmaps", "as.a.io/v2 configmaps/v1", "as.a.io configmaps")
	w.says(got, "a", "spec.related[0].resource: kcp refuses the claim on secrets", "no; way")
	w.says(got, "b", "kcp refuses the schema s-bs.b.io", "no; way")
}

// Nothing is started anew because a plan is made again.
func TestPlansAreStable(t *testing.T) {
	w := newWorld(t)
	resources := []synchubv1alpha1.PublishedResource{
		resource(t, "a", "s-as.a.io", related("resource: {version: v1, resource: secrets}")), resource(t, "f", "", foreignSpec), resource(t, "n", "", nativeSpec),
	}
	first, err := w.planner.make(t.Context(), resources, &w.export)
	if err != nil {
		t.Fatal(err)
	}
	w.carryOut(first)
	slices.Reverse(resources)
	second, err := w.planner.make(t.Context(), resources, &w.export)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first.synced(), second.synced()) || !slices.Equal(first.watched(), second.watched()) || !slices.Equal(first.entries(), second.entries()) {
		t.Errorf("want %+v\ngot  %+v", first.synced(), second.synced())
	}
}

func TestWhatIsToldElsewhere(t *testing.T) {
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
		if got := newCandidate(&published).isTold(ready(test.ready)); got != test.told {
			t.Errorf("%s: %v", name, got)
		}
	}
}
