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
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"

	"github.com/synchub-dev/synchub/test/fixtures"
)

// specWithRelated returns the spec of as.a.io with entries under related.
func specWithRelated(entries ...string) string {
	spec := aSpec + "\nrelated:"
	for i, entry := range entries {
		spec += fmt.Sprintf("\n- {identifier: r%d, origin: Mailbox, object: {owner: {}}, %s}", i, entry)
	}
	return spec
}

func TestRelated(t *testing.T) {
	const kept, bs, fs = "resource: {version: v1, resource: secrets}", "resource: {group: b.io, version: v1, resource: bs}", "resource: {group: f.io, version: v1, resource: fs, identityHash: " + identity + "}"
	b, native := resource(t, "b", "s-bs.b.io", bSpec), resource(t, "n", "", `resource: {resource: secrets}`)
	for name, test := range map[string]struct {
		spec                             string
		others                           []synchubv1alpha1.PublishedResource
		claimed, export, watched, synced string
		// message is a part of the message on the primary's PublishedResource.
		message string
	}{
		"native":           {specWithRelated(kept), nil, "a Exported/Ready", "s-as.a.io secrets", "as.a.io/v2 secrets/v1", "as.a.io secrets+", ""},
		"native twice":     {specWithRelated(kept, kept), nil, "a Exported/Ready", "s-as.a.io secrets", "as.a.io/v2 secrets/v1", "as.a.io secrets+", ""},
		"native published": {specWithRelated(kept), []synchubv1alpha1.PublishedResource{native}, "a Exported/Ready, n Exported/Ready", "s-as.a.io secrets", "as.a.io/v2 secrets/v1", "as.a.io secrets", ""},
		"namespaces":       {specWithRelated("resource: {version: v1, resource: namespaces}"), nil, "a Exported/Ready", "s-as.a.io namespaces", "as.a.io/v2", "as.a.io namespaces+", ""},
		"its own":          {specWithRelated("resource: {group: a.io, version: v2, resource: as}"), nil, "a Exported/Ready", "s-as.a.io", "as.a.io/v2", "as.a.io", ""},
		"foreign":          {specWithRelated(fs), nil, "a Exported/Ready", "s-as.a.io fs.f.io@0123", "as.a.io/v2 fs.f.io/v1", "as.a.io fs.f.io+", ""},
		"published":        {specWithRelated(bs), []synchubv1alpha1.PublishedResource{b}, "a Exported/Ready, b Exported/Ready", "s-as.a.io s-bs.b.io", "as.a.io/v2 bs.b.io/v1", "as.a.io bs.b.io", ""},
		"projected": {
			specWithRelated("resource: {version: v1, resource: secrets}, projection: {group: b.io, resource: bs, kind: B}"), []synchubv1alpha1.PublishedResource{b},
			"a Exported/Ready, b Exported/Ready", "s-as.a.io s-bs.b.io", "as.a.io/v2 bs.b.io/v1", "as.a.io bs.b.io", "",
		},
		"unpublished": {specWithRelated(kept, bs), nil, "a Exported/RelatedNotPublished", "s-as.a.io secrets", "as.a.io/v2 secrets/v1", "as.a.io secrets+", "spec.related[1].resource: mailboxes do not have bs.b.io: publish it"},
		"acting":      {specWithRelated("resource: {version: v1, resource: resourcequotas}"), nil, "a Exported/RelatedNotPublished", "s-as.a.io", "as.a.io/v2", "as.a.io", "spec.related[0].resource: mailboxes do not have resourcequotas"},
		"not served": {
			specWithRelated("resource: {group: g.io, version: v1, resource: gs, identityHash: " + identity + "}"), nil,
			"a Exported/RelatedNotPublished", "s-as.a.io gs.g.io@0123", "as.a.io/v2", "as.a.io", "spec.related[0].resource: mailboxes do not serve gs.g.io",
		},
		"of an invalid one": {
			specWithRelated(bs), []synchubv1alpha1.PublishedResource{resource(t, "b", "s-bs.b.io", bSpec+"\nfilter: {cel: '('}")},
			"a Exported/RelatedNotPublished, b Exported/Invalid", "s-as.a.io s-bs.b.io", "as.a.io/v2 bs.b.io/v1", "as.a.io", "spec.related[0].resource: the PublishedResource b, which publishes bs.b.io, is not in force",
		},
		"of one without a schema": {
			specWithRelated(bs), []synchubv1alpha1.PublishedResource{resource(t, "b", "", bSpec)},
			"a Exported/RelatedNotPublished, b SchemaMissing/SchemaMissing", "s-as.a.io", "as.a.io/v2", "as.a.io", "spec.related[0].resource: the PublishedResource b",
		},
		"another version":    {specWithRelated("resource: {version: v2, resource: secrets}"), nil, "a Exported/RelatedInvalid", "s-as.a.io", "as.a.io/v2", "as.a.io", "spec.related[0].resource.version: kcp serves secrets in version v1 only"},
		"claimed of another": {specWithRelated(fs, strings.Replace(fs, "0123", "3210", 1)), nil, "a Exported/RelatedInvalid", "s-as.a.io fs.f.io@0123", "as.a.io/v2 fs.f.io/v1", "as.a.io fs.f.io+", "spec.related[1].resource: The mailbox export claims"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			got := w.plan(append([]synchubv1alpha1.PublishedResource{resource(t, "a", "s-as.a.io", test.spec)}, test.others...)...)
			w.want(got, test.claimed, test.export, test.watched, test.synced)
			w.expectMessage(got, "a", test.message)
			if got.waits != (name == "not served") {
				t.Errorf("waits: %v", got.waits)
			}
		})
	}
}

// Two PublishedResources that need the same related API share it, in any order.
func TestSharedRelatedAPI(t *testing.T) {
	w := newFixture(t)
	got := w.plan(
		resource(t, "a", "s-as.a.io", specWithRelated("resource: {version: v1, resource: secrets}")),
		resource(t, "b", "s-bs.b.io", bSpec+"\nrelated: [{identifier: s, origin: Target, resource: {version: v1, resource: secrets}, object: {owner: {}}}]"),
	)
	w.want(got, "a Exported/Ready, b Exported/Ready", "s-as.a.io s-bs.b.io secrets", "as.a.io/v2 bs.b.io/v1 secrets/v1", "as.a.io bs.b.io secrets+")
	gs := "{group: g.io, version: v1, resource: gs, identityHash: " + identity + "}"
	got = w.plan(
		resource(t, "a", "s-as.a.io", specWithRelated("resource: "+gs)),
		resource(t, "b", "s-bs.b.io", bSpec+"\nrelated: [{identifier: s, origin: Target, resource: "+gs+", object: {owner: {}}}]"),
	)
	if got.claimed[0] != "a Exported/RelatedNotPublished" || got.claimed[1] != "b Exported/RelatedNotPublished" {
		t.Errorf("not both primaries report the API that is not served: %v", got.claimed)
	}
}

// A relation from cluster-scoped primaries to namespaced objects must set the namespace.
func TestRelatedOfClusterScoped(t *testing.T) {
	cluster := func() synchubv1alpha1.PublishedResource { return resource(t, "c", "s-clusters.c.io", clusterSpec) }
	for name, test := range map[string]struct {
		primary synchubv1alpha1.PublishedResource
		related string
		legal   bool
	}{
		"nowhere":        {cluster(), "resource: {version: v1, resource: secrets}, object: {template: x}", false},
		"somewhere":      {cluster(), "resource: {version: v1, resource: secrets}, object: {template: x}, namespace: {template: y}", true},
		"by the owner":   {cluster(), "resource: {version: v1, resource: secrets}, object: {owner: {}}", true},
		"cluster-scoped": {cluster(), "resource: {version: v1, resource: namespaces}, object: {template: x}", true},
		"published":      {cluster(), "resource: {group: b.io, version: v1, resource: bs}, object: {template: x}", false},
		"in a namespace": {resource(t, "c", "s-as.a.io", aSpec), "resource: {version: v1, resource: secrets}, object: {template: x}", true},
	} {
		w := newFixture(t)
		test.primary.Spec.Related = fixtures.Decode[[]synchubv1alpha1.RelatedResource](t, "[{identifier: r, origin: Target, "+test.related+"}]")
		got := w.plan(test.primary, resource(t, "b", "s-bs.b.io", bSpec))
		if (got.claimed[0] == "c Exported/Ready") != test.legal {
			t.Errorf("%s: got %s: %v", name, got.claimed[0], got.messages)
		}
		if !test.legal {
			w.expectMessage(got, "c", "spec.related[0].namespace: required")
		}
	}
}

// A mutation that changes the names of related objects causes a warning and stops nothing.
func TestMutatedReference(t *testing.T) {
	const mutated = aSpec + `
mutation: {down: [{regex: {path: spec.secretName, pattern: "^", replacement: "acme-"}}]}
related: [{identifier: password, origin: Mailbox, resource: {version: v1, resource: secrets}, object: {reference: {path: spec.secretName}}NAMING}]`
	for naming, want := range map[string]string{
		"": "spec.related[0] (password) by spec.secretName",
		", naming: {name: 'acme-{{ .Object.metadata.name }}'}": "",
	} {
		w := newFixture(t)
		made, err := w.planner.newPlan(t.Context(), []synchubv1alpha1.PublishedResource{resource(t, "a", "s-as.a.io", strings.Replace(mutated, "NAMING", naming, 1))}, &w.export)
		if err != nil {
			t.Fatal(err)
		}
		if len(made.resources) != 1 || !made.resources[0].isActive() {
			t.Fatalf("%q: the PublishedResource is not synced: %+v", naming, made.resources)
		}
		var conditions []metav1.Condition
		made.resources[0].setMutatedReferenceCondition(&conditions)
		if (len(conditions) > 0) != (want != "") || want != "" && !strings.Contains(conditions[0].Message, want) {
			t.Errorf("%q: got %v", naming, conditions)
		}
	}
}
