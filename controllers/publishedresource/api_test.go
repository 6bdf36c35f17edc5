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
	"strings"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// widgets returns a CRD with v1, without a status subresource, v2, preferred and with one, v3alpha1, and v4, which is not
// served.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, served, withStatus bool) apiextensionsv1.CustomResourceDefinitionVersion {
		version := apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: served, Storage: name == "v1",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
		}
		if withStatus {
			version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}
		return version
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "widgets.example.com"
	definition.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true, false), version("v2", true, true), version("v3alpha1", true, true), version("v4", false, true)},
	}
	return definition
}

// schemaOf returns the schema of widgets for a spec.
func schemaOf(t *testing.T, spec synchubv1alpha1.PublishedResourceSpec) *apisv1alpha1.APIResourceSchema {
	t.Helper()
	exported, err := publishedresource.BuildSchema(t.Context(), &spec, widgets())
	if err != nil {
		t.Fatal(err)
	}
	return exported
}

func TestBuildSchema(t *testing.T) {
	for name, test := range map[string]struct {
		resource   string
		projection *synchubv1alpha1.Projection
		// want is the schema's name without the hash, with its kind and versions, or a prefix of the error.
		want string
	}{
		"by its resource":    {"example.com widgets - -", nil, "widgets.example.com Widget v1 v2 v3alpha1"},
		"by its kind":        {"example.com - Widget -", nil, "widgets.example.com Widget v1 v2 v3alpha1"},
		"one version":        {"example.com widgets Widget v1", nil, "widgets.example.com Widget v1"},
		"projected":          {"example.com widgets Widget v1", &synchubv1alpha1.Projection{Group: new("a.io"), Version: "v7", Kind: "Gadget", Plural: "gadgets"}, "gadgets.a.io Gadget v7"},
		"projected to core":  {"example.com widgets - v1", &synchubv1alpha1.Projection{Group: new("")}, "widgets.core Widget v1"},
		"another group":      {"a.io widgets - -", nil, "spec.resource: the definition defines widgets.example.com (Widget)"},
		"another resource":   {"example.com gadgets Widget -", nil, "spec.resource: the definition"},
		"another kind":       {"example.com widgets Gadget -", nil, "spec.resource: the definition"},
		"another version":    {"example.com widgets - v9", nil, "spec.resource.version: "},
		"not served":         {"example.com widgets - v4", nil, "spec.resource.version: "},
		"an impossible name": {"example.com widgets - -", &synchubv1alpha1.Projection{Group: new("nodot")}, "spec.projection.group: "},
	} {
		t.Run(name, func(t *testing.T) {
			spec := parseSpec(test.resource)
			spec.Projection = test.projection
			exported, err := publishedresource.BuildSchema(t.Context(), &spec, widgets())
			if err != nil {
				if !strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("want %s, got %v", test.want, err)
				}
				return
			}
			_, got, _ := strings.Cut(exported.Name, ".")
			got += " " + exported.Spec.Names.Kind
			for _, version := range exported.Spec.Versions {
				got += " " + version.Name
			}
			if got != test.want {
				t.Errorf("want %s, got %s", test.want, got)
			}
		})
	}
}

func TestVersionThatIsSynced(t *testing.T) {
	for version, test := range map[string]struct {
		want       string
		withStatus bool
	}{
		"": {"v2", true}, "v1": {"v1", false}, "v2": {"v2", true}, "v3alpha1": {"v3alpha1", true}, "v4": {}, "v9": {},
	} {
		spec := parseSpec("example.com widgets - -")
		exported := schemaOf(t, spec)
		spec.Resource.Version = version
		got, err := publishedresource.APIFromSchema(&spec, exported)
		if test.want == "" {
			if err == nil || !strings.HasPrefix(err.Error(), "spec.resource.version: ") {
				t.Errorf("version %q: want an error about it, got %+v, %v", version, got, err)
			}
			continue
		}
		if err != nil || got.Version != test.want || got.StatusSubresource != test.withStatus || strings.Join(got.Versions, " ") != "v2 v1 v3alpha1" {
			t.Errorf("version %q: want %s, got %+v, %v", version, test.want, got, err)
		}
	}
}

func TestAPIFromSchema(t *testing.T) {
	spec := parseSpec("example.com widgets Widget v2")
	spec.Projection = &synchubv1alpha1.Projection{Group: new("a.io"), Version: "v1beta1", Kind: "Gadget", Plural: "gadgets"}
	exported := schemaOf(t, spec)
	got, err := publishedresource.APIFromSchema(&spec, exported)
	if err != nil || got.GroupVersionResource != (schema.GroupVersionResource{Group: "a.io", Version: "v1beta1", Resource: "gadgets"}) ||
		got.Kind != "Gadget" || !got.Namespaced || !got.StatusSubresource || got.Native || !got.Exported {
		t.Errorf("got %+v, %v", got, err)
	}
	exported.Spec.Scope = apiextensionsv1.ClusterScoped
	if got, err = publishedresource.APIFromSchema(&spec, exported); err != nil || got.Namespaced {
		t.Errorf("cluster-scoped: %+v, %v", got, err)
	}
	exported.Spec.Versions[0].Served = false
	if got, err = publishedresource.APIFromSchema(&spec, exported); err == nil || !strings.HasPrefix(err.Error(), "spec.api: ") {
		t.Errorf("nothing is served: %+v, %v", got, err)
	}
}

func TestForeignAPI(t *testing.T) {
	spec := parseSpec("a.io as A v1")
	if got := publishedresource.ForeignAPI(&spec); got != (schema.GroupVersionResource{Group: "a.io", Version: "v1", Resource: "as"}) {
		t.Errorf("got %s", got)
	}
	spec.Projection = &synchubv1alpha1.Projection{Group: new("b.io"), Version: "v2", Plural: "bs"}
	if got := publishedresource.ForeignAPI(&spec); got != (schema.GroupVersionResource{Group: "b.io", Version: "v2", Resource: "bs"}) {
		t.Errorf("projected: %s", got)
	}
}
