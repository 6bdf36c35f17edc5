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

package schemas

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/schemas/structural"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// gadgetManifest is a CRD as a cluster returns it.
const gadgetManifest = `
metadata:
  name: gadgets.example.com
  uid: u
  labels: {app: a}
  annotations: {example.com/a: b}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: Gadgets, shortNames: [gd], categories: [all]}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://example.com"}}}
  versions:
  - name: v1alpha1
    served: false
    storage: true
    schema: {openAPIV3Schema: {type: object}}
  - name: v2beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}, b: {type: string}}}}}}
  - name: v1
    served: true
    storage: false
    deprecated: true
    additionalPrinterColumns: [{name: A, type: string, jsonPath: .spec.a}]
    subresources: {status: {}, scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {a: {type: string, pattern: "("}, n: {type: integer}}}
          status: {type: object, properties: {n: {type: integer}}}
status: {storedVersions: [v1alpha1]}
`

func gadgetCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return fixtures.Decode[*apiextensionsv1.CustomResourceDefinition](t, gadgetManifest)
}

func TestPreferredVersion(t *testing.T) {
	for wanted, names := range map[string][]string{
		"v2":       {"v1", "v10beta1", "v2", "-v3"},
		"v10":      {"v9", "v10"},
		"v1beta2":  {"v1alpha3", "v1beta2", "v1beta1"},
		"v1":       {"v1", "edge"},
		"abc":      {"foo", "abc", "-v1"},
		"":         {"-v1"},
		"v2alpha1": {"v2alpha1"},
	} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		for _, name := range names {
			name, unserved := strings.CutPrefix(name, "-")
			crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: !unserved})
		}
		if got := PreferredVersion(crd); got != wanted {
			t.Errorf("of %v, got %q, wanted %q", names, got, wanted)
		}
	}
}

func TestProject(t *testing.T) {
	for name, test := range map[string]struct {
		version    string
		projection *synchubv1alpha1.Projection
		group      string
		names      apiextensionsv1.CustomResourceDefinitionNames
		versions   []string // the first is the storage version
	}{
		"as it is":    {group: "example.com", versions: []string{"v1", "v2beta1"}},
		"one version": {version: "v2beta1", group: "example.com", versions: []string{"v2beta1"}},
		"everything else": {
			version: "v1",
			projection: &synchubv1alpha1.Projection{
				Group: new("things.example.dev"), Version: "v3", Kind: "Tool", Plural: "tools", ShortNames: []string{"tl"},
			},
			group: "things.example.dev", versions: []string{"v3"},
			names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "tools", Singular: "tool", Kind: "Tool", ListKind: "ToolList", ShortNames: []string{"tl"}},
		},
		"the kind alone": {
			projection: &synchubv1alpha1.Projection{Kind: "Tool"}, group: "example.com", versions: []string{"v1", "v2beta1"},
			names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "tool", Kind: "Tool", ListKind: "ToolList", ShortNames: []string{"gd"}},
		},
		"the same kind":  {projection: &synchubv1alpha1.Projection{Kind: "Gadget"}, group: "example.com", versions: []string{"v1", "v2beta1"}},
		"the core group": {version: "v2beta1", projection: &synchubv1alpha1.Projection{Group: new(""), Version: "v1"}, group: "", versions: []string{"v1"}},
		"apps":           {projection: &synchubv1alpha1.Projection{Group: new("apps")}, group: "apps", versions: []string{"v1", "v2beta1"}},
	} {
		t.Run(name, func(t *testing.T) {
			crd := gadgetCRD(t)
			projected, err := Project(t.Context(), crd, test.version, test.projection)
			if err != nil {
				t.Fatal(err)
			}
			if crd.String() != gadgetCRD(t).String() {
				t.Error("the definition was changed")
			}
			if test.names.Kind == "" {
				test.names = gadgetCRD(t).Spec.Names
			}
			test.names.Categories = []string{"all"}
			if got := projected.Spec.Names; got.String() != test.names.String() || projected.Spec.Group != test.group {
				t.Errorf("got %s in %q, wanted %s in %q", got.String(), projected.Spec.Group, test.names.String(), test.group)
			}
			requireVersions(t, projected, test.versions)
			if projected.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter || projected.Spec.Scope != apiextensionsv1.NamespaceScoped {
				t.Errorf("wanted no conversion and the same scope, got %v, %s", projected.Spec.Conversion, projected.Spec.Scope)
			}
			if projected.UID != "" || projected.Labels != nil || len(projected.Status.StoredVersions) > 0 || projected.Annotations["example.com/a"] != "" {
				t.Errorf("metadata or status of the cluster is kept: %v, %v", projected.ObjectMeta, projected.Status)
			}
			schema, err := FromCRD(projected)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(test.group, ".") {
				fixtures.RequireAcceptableCRD(t, fixtures.CRDOf(t, schema))
			}
		})
	}
}

func requireVersions(t *testing.T, projected *apiextensionsv1.CustomResourceDefinition, wanted []string) {
	t.Helper()
	var names []string
	for _, version := range projected.Spec.Versions {
		names = append(names, version.Name)
		if version.Storage != (version.Name == wanted[0]) || !version.Served {
			t.Errorf("%s: served %t, stored %t, wanted %s to be stored", version.Name, version.Served, version.Storage, wanted[0])
		}
	}
	slices.Sort(names)
	wanted = slices.Sorted(slices.Values(wanted))
	if !slices.Equal(names, wanted) {
		t.Errorf("got the versions %v, wanted %v", names, wanted)
	}
}

func TestProjectKeepsColumnsAndSubresources(t *testing.T) {
	projected, err := Project(t.Context(), gadgetCRD(t), "v1", &synchubv1alpha1.Projection{Version: "v7"})
	if err != nil {
		t.Fatal(err)
	}
	got, original := projected.Spec.Versions[0], gadgetCRD(t).Spec.Versions[2]
	original.Name, original.Storage = "v7", true
	original.Schema.OpenAPIV3Schema.Properties["spec"].Properties["a"] = apiextensionsv1.JSONSchemaProps{Type: "string"} // its pattern is illegal
	if got.String() != original.String() {
		gotJSON, _ := json.Marshal(got)
		t.Errorf("got %s, wanted all of v1", gotJSON)
	}
}

func TestProjectNotesLostFields(t *testing.T) {
	projected, err := Project(t.Context(), gadgetCRD(t), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	notes := projected.Annotations[NotesAnnotation]
	for _, wanted := range []string{"v1 .spec.a: pattern is left out", "v2beta1 .spec.b: it is lost when objects are stored, because v1 has no such field"} {
		if !strings.Contains(notes, wanted) {
			t.Errorf("got the notes %q, wanted %q", notes, wanted)
		}
	}
	if again, err := Project(t.Context(), projected, "", nil); err != nil || strings.Count(again.Annotations[NotesAnnotation], "pattern") != 1 {
		t.Errorf("notes are repeated: %v, %v", again, err)
	}
}

func TestNotesAreBounded(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	for range 1000 {
		AddNotes(crd, "v1", []structural.Note{{Path: ".a", Reason: strings.Repeat("r", 100)}})
	}
	if length := len(crd.Annotations[NotesAnnotation]); length > maxNotesLength || length < maxNotesLength/2 {
		t.Errorf("got %d bytes, wanted up to %d", length, maxNotesLength)
	}
}

func TestProjectKeepsUnknownFields(t *testing.T) {
	crd := gadgetCRD(t)
	crd.Spec.PreserveUnknownFields = true
	crd.Spec.Versions[1].Schema = nil
	projected, err := Project(t.Context(), crd, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if projected.Spec.PreserveUnknownFields {
		t.Error("kcp has no such setting")
	}
	for _, version := range projected.Spec.Versions {
		if preserve := version.Schema.OpenAPIV3Schema.XPreserveUnknownFields; preserve == nil || !*preserve {
			t.Errorf("version %s drops unknown fields", version.Name)
		}
	}
}

func TestProjectRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change     func(*apiextensionsv1.CustomResourceDefinition)
		version    string
		projection *synchubv1alpha1.Projection
		reason     string
	}{
		"a missing version":                 {version: "v3", reason: "spec.resource.version: the definition of gadgets.example.com does not serve v3; it serves v2beta1, v1"},
		"a version that is not served":      {version: "v1alpha1", reason: "spec.resource.version: "},
		"a name for two versions":           {projection: &synchubv1alpha1.Projection{Version: "v9"}, reason: "spec.projection.version: it needs spec.resource.version"},
		"a group that is no domain":         {projection: &synchubv1alpha1.Projection{Group: new("tools")}, reason: `spec.projection.group: kcp has no APIs in the group "tools"`},
		"the name of the core group":        {projection: &synchubv1alpha1.Projection{Group: new("core")}, reason: "spec.projection.group: "},
		"an original that is no domain":     {change: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Group = "tools" }, reason: "spec.projection.group: kcp has no APIs in the group \"tools\": give mailboxes"},
		"two versions in the core group":    {projection: &synchubv1alpha1.Projection{Group: new("")}, reason: "spec.projection.version: kcp serves the core group in v1 alone, not in v2beta1, v1"},
		"another version in the core group": {version: "v2beta1", projection: &synchubv1alpha1.Projection{Group: new("")}, reason: "spec.projection.version: kcp serves the core group in v1 alone, not in v2beta1"},
		"a plural that URLs know":           {projection: &synchubv1alpha1.Projection{Plural: "namespaces"}, reason: "spec.projection.plural: "},
		"nothing served": {change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			for i := range crd.Spec.Versions {
				crd.Spec.Versions[i].Served = false
			}
		}, reason: "spec.resource: the definition of gadgets.example.com serves no version"},
		"no schema": {change: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[1].Schema = nil }, reason: "spec.resource: version v2beta1 has no schema"},
		"an unkept schema": {change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Type = "text"
		}, reason: "spec.resource: the schema of version v2beta1 is not structural"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := gadgetCRD(t)
			if test.change != nil {
				test.change(crd)
			}
			if _, err := Project(t.Context(), crd, test.version, test.projection); err == nil || !strings.HasPrefix(err.Error(), test.reason) {
				t.Errorf("got %v, wanted %q", err, test.reason)
			}
		})
	}
}

func TestFromCRDNameValidation(t *testing.T) {
	for value, wanted := range map[string]string{"": "DNS1123Subdomain", AnyName: "PathSegmentName", "nonsense": "DNS1123Subdomain"} {
		crd := widgetCRD()
		crd.Annotations = map[string]string{NamesAnnotation: value}
		if got := mustConvert(t, crd).Spec.NameValidation; got != wanted {
			t.Errorf("for %q got %s, wanted %s", value, got, wanted)
		}
	}
}
