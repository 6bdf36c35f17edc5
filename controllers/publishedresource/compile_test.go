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

package publishedresource_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

type spec = synchubv1alpha1.PublishedResourceSpec

// native returns the API of a resource that kcp itself serves.
func native(t *testing.T, resource string) publishedresource.API {
	t.Helper()
	api, ok := publishedresource.NativeAPI(parseSpec(resource).Resource)
	if !ok {
		t.Fatalf("kcp does not serve %s", resource)
	}
	return api
}

// exported returns the API of widgets for a spec.
func exported(t *testing.T, spec spec) publishedresource.API {
	t.Helper()
	api, err := publishedresource.APIFromSchema(&spec, schemaOf(t, spec))
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// published returns a PublishedResource with a spec.
func published(name string, spec spec) *synchubv1alpha1.PublishedResource {
	return &synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// compiled returns the result of a new compiler without the rules, which must not be nil.
func compiled(t *testing.T, spec spec, api publishedresource.API) plan.Resource {
	t.Helper()
	got, err := publishedresource.NewCompiler().Compile(published("name", spec), api)
	if err != nil {
		t.Fatal(err)
	}
	if got.Rules == nil {
		t.Error("there are no rules")
	}
	got.Rules = nil
	return got
}

func TestCompileClaimedAPI(t *testing.T) {
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	type deletion = synchubv1alpha1.Deletion
	for name, test := range map[string]struct {
		resource string
		deletion *deletion
		want     plan.Resource
	}{
		"by its resource":        {"- configmaps - -", nil, plan.Resource{GroupVersionResource: core("configmaps"), Kind: "ConfigMap", Namespaced: true}},
		"by its kind":            {"- - Secret -", nil, plan.Resource{GroupVersionResource: core("secrets"), Kind: "Secret", Namespaced: true}},
		"orphaned":               {"- configmaps - -", &deletion{Policy: synchubv1alpha1.DeletionPolicyOrphan}, plan.Resource{GroupVersionResource: core("configmaps"), Kind: "ConfigMap", Namespaced: true, Orphan: true}},
		"deleted":                {"- configmaps - -", &deletion{Policy: synchubv1alpha1.DeletionPolicyDelete}, plan.Resource{GroupVersionResource: core("configmaps"), Kind: "ConfigMap", Namespaced: true}},
		"a namespace":            {"- namespaces - -", nil, plan.Resource{GroupVersionResource: core("namespaces"), Kind: "Namespace", DeletesContents: true, Retain: true}},
		"a namespace by kind":    {"- - Namespace -", &deletion{}, plan.Resource{GroupVersionResource: core("namespaces"), Kind: "Namespace", DeletesContents: true, Retain: true}},
		"a namespace in cascade": {"- namespaces - -", &deletion{Cascade: true}, plan.Resource{GroupVersionResource: core("namespaces"), Kind: "Namespace", DeletesContents: true}},
		"cascade elsewhere":      {"- configmaps - -", &deletion{Cascade: true}, plan.Resource{GroupVersionResource: core("configmaps"), Kind: "ConfigMap", Namespaced: true}},
		"a definition":           {"apiextensions.k8s.io - CustomResourceDefinition -", nil, plan.Resource{GroupVersionResource: definitions, Kind: "CustomResourceDefinition", DeletesContents: true, Retain: true}},
		"a definition in cascade, orphaned": {
			"apiextensions.k8s.io customresourcedefinitions - -", &deletion{Cascade: true, Policy: synchubv1alpha1.DeletionPolicyOrphan},
			plan.Resource{GroupVersionResource: definitions, Kind: "CustomResourceDefinition", DeletesContents: true, Orphan: true},
		},
		"waited for in vain": {"- configmaps - -", &deletion{WaitForTarget: true}, plan.Resource{GroupVersionResource: core("configmaps"), Kind: "ConfigMap", Namespaced: true}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := parseSpec(test.resource)
			spec.Deletion = test.deletion
			// For its own APIs, kcp stores the status, if there is one.
			test.want.Native, test.want.PublishedResource = true, "name"
			if got := compiled(t, spec, native(t, test.resource)); got != test.want {
				t.Errorf("want %+v\ngot  %+v", test.want, got)
			}
		})
	}
}

func TestCompileExportedAPI(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*spec)
		want   func(*plan.Resource)
	}{
		"as it is":           {func(*spec) {}, func(*plan.Resource) {}},
		"with its status":    {func(s *spec) { s.StatusReturn = new(true) }, func(*plan.Resource) {}},
		"without its status": {func(s *spec) { s.StatusReturn = new(false) }, func(r *plan.Resource) { r.StatusReturn = false }},
		"all":                {func(s *spec) { s.Select = synchubv1alpha1.SelectAll }, func(r *plan.Resource) { r.SelectAll = true }},
		"selected":           {func(s *spec) { s.Select = synchubv1alpha1.SelectSyncerConfig }, func(*plan.Resource) {}},
		"orphaned": {
			func(s *spec) { s.Deletion = &synchubv1alpha1.Deletion{Policy: synchubv1alpha1.DeletionPolicyOrphan} },
			func(r *plan.Resource) { r.Orphan = true },
		},
		"in cascade": {func(s *spec) { s.Deletion = &synchubv1alpha1.Deletion{Cascade: true} }, func(*plan.Resource) {}},
		"waited for": {func(s *spec) { s.Deletion = &synchubv1alpha1.Deletion{WaitForTarget: true} }, func(r *plan.Resource) { r.WaitForTarget = true }},
	} {
		t.Run(name, func(t *testing.T) {
			spec := parseSpec("example.com widgets Widget v2")
			test.change(&spec)
			want := plan.Resource{
				PublishedResource:    "name",
				GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"},
				Kind:                 "Widget", Namespaced: true, StatusSubresource: true, StatusReturn: true, Exported: true,
			}
			test.want(&want)
			if got := compiled(t, spec, exported(t, spec)); got != want {
				t.Errorf("want %+v\ngot  %+v", want, got)
			}
		})
	}
}

// Replace and Adoption are copied to the resource for every API source.
func TestPoliciesForExistingObjects(t *testing.T) {
	for _, replace := range []bool{false, true} {
		for _, adoption := range []synchubv1alpha1.AdoptionPolicy{
			"", synchubv1alpha1.AdoptionNever, synchubv1alpha1.AdoptionIfIdentical, synchubv1alpha1.AdoptionKubeStellar, synchubv1alpha1.AdoptionAlways,
		} {
			claim, export := parseSpec("- namespaces - -"), parseSpec("example.com widgets - -")
			for spec, api := range map[*spec]publishedresource.API{&claim: native(t, "- namespaces - -"), &export: exported(t, export)} {
				spec.Replace, spec.Adoption = replace, adoption
				if got := compiled(t, *spec, api); got.Replace != replace || got.Adoption != adoption {
					t.Errorf("replace %v, adoption %q: %+v", replace, adoption, got)
				}
			}
		}
	}
}

// On a target, the resource has the names in the PublishedResource, where the projection replaces them in
// mailboxes.
func TestOnTarget(t *testing.T) {
	type projection = synchubv1alpha1.Projection
	for name, test := range map[string]struct {
		resource   string
		projection *projection
		// want is the kind, version and resource on the target.
		want string
	}{
		"not projected":      {"example.com widgets - -", nil, "Widget v2 widgets.example.com"},
		"short names":        {"example.com widgets - -", &projection{ShortNames: []string{"w"}}, "Widget v2 widgets.example.com"},
		"the same names":     {"example.com widgets Widget v2", &projection{Group: new("example.com"), Version: "v2", Kind: "Widget", Plural: "widgets"}, "Widget v2 widgets.example.com"},
		"all names":          {"example.com widgets Widget v1", &projection{Group: new("a.io"), Version: "v7", Kind: "Gadget", Plural: "gadgets"}, "Widget v1 widgets.example.com"},
		"the group":          {"example.com widgets - -", &projection{Group: new("a.io")}, "Widget v2 widgets.example.com"},
		"the group, by kind": {"example.com - Widget v1", &projection{Group: new("")}, "Widget v1 widgets.example.com"},
		"the version":        {"example.com widgets - v3alpha1", &projection{Version: "v3"}, "Widget v3alpha1 widgets.example.com"},
		"the kind":           {"example.com - Widget -", &projection{Kind: "Gadget"}, "Widget v2 widgets.example.com"},
		"the plural":         {"example.com widgets - -", &projection{Plural: "gadgets"}, "Widget v2 widgets.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := parseSpec(test.resource)
			spec.Projection = test.projection
			resource := compiled(t, spec, exported(t, spec))
			target := resource.TargetAPI()
			if got := target.Kind + " " + target.Version + " " + target.GroupResource().String(); got != test.want {
				t.Errorf("want %s, got %s", test.want, got)
			}
			same := plan.TargetAPI{GroupVersionResource: resource.GroupVersionResource, Kind: resource.Kind}
			if target == same && resource.Projected != (plan.TargetAPI{}) {
				t.Errorf("an empty projection differs from no projection: %+v", resource)
			}
		})
	}
}

// A resource is a container by its name on the target. Its name in mailboxes does not matter.
func TestContainersAreThoseOfTheTarget(t *testing.T) {
	spec := parseSpec("- namespaces Namespace v1")
	spec.Projection = &synchubv1alpha1.Projection{Group: new("a.io")}
	api := publishedresource.API{GroupVersionResource: schema.GroupVersionResource{Group: "a.io", Version: "v1", Resource: "namespaces"}, Kind: "Namespace", Exported: true}
	if got := compiled(t, spec, api); !got.DeletesContents || !got.Retain {
		t.Errorf("got %+v", got)
	}
	spec = parseSpec("a.io namespaces Namespace v1")
	if got := compiled(t, spec, api); got.DeletesContents || got.Retain {
		t.Errorf("namespaces of another group: %+v", got)
	}
}

func TestRelatedAPI(t *testing.T) {
	want := plan.Resource{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret", Namespaced: true, Native: true, RelatedOnly: true,
	}
	if got := publishedresource.RelatedAPI(native(t, "- secrets - -")); got != want {
		t.Errorf("want %+v\ngot  %+v", want, got)
	}
	if got := publishedresource.RelatedAPI(native(t, "- namespaces - -")); !got.DeletesContents || !got.Retain {
		t.Errorf("namespaces as a related API: %+v", got)
	}
	foreign := publishedresource.API{GroupVersionResource: schema.GroupVersionResource{Group: "a.io", Version: "v1", Resource: "as"}, Kind: "A", StatusSubresource: true}
	if got := publishedresource.RelatedAPI(foreign); !got.StatusReturn || !got.StatusSubresource || got.Native || got.Exported {
		t.Errorf("an API of another export: %+v", got)
	}
}
