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

package structural_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// requireValid validates a version like a server that must serve it.
func requireValid(t *testing.T, version *apiextensionsv1.CustomResourceDefinitionVersion) {
	t.Helper()
	stored := version.DeepCopy()
	stored.Served, stored.Storage = true, true
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "things.example.com"
	crd.Spec.Group, crd.Spec.Scope = "example.com", apiextensionsv1.ClusterScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{*stored}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	crd.Status.StoredVersions = []string{stored.Name}
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil); err != nil {
		t.Fatal(err)
	}
	for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), &internal) {
		t.Error(err)
	}
}

func TestSchemaRefuses(t *testing.T) {
	bomb := ""
	for i := range 40 {
		bomb += fmt.Sprintf("\ncom.example.B%d: {type: object, properties: {a: {$ref: '#/components/schemas/com.example.B%d'}, b: {$ref: '#/components/schemas/com.example.B%d'}}}", i, i+1, i+1)
	}
	bomb += "\ncom.example.B40: {type: string}\n" + `
com.example.v1.Thing:
  x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Thing}]
  type: object
  properties: {field: {$ref: '#/components/schemas/com.example.B0'}}`
	for name, test := range map[string]struct {
		document []byte
		reason   string
	}{
		"no JSON":                      {[]byte("openapi: 3"), "reading the OpenAPI document of example.com/v1"},
		"no components":                {[]byte(`{}`), "does not describe example.com/v1, Kind=Thing"},
		"a null component":             {[]byte(`{"components":{"schemas":{"a":null}}}`), "the component a is null"},
		"another kind":                 {document(t, "a: {type: object, x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Other}]}"), "does not describe"},
		"a kind that lies":             {document(t, "a: {type: object, x-kubernetes-group-version-kind: 7}"), "x-kubernetes-group-version-kind"},
		"no object":                    {document(t, "a: {type: string, x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Thing}]}"), "not structural"},
		"types that unfold":            {document(t, bomb), "more than 50000 fields"},
		"a keyword that is no keyword": {goDocument(t, "field: {type: object, x-kubernetes-map-type: [1]}"), ".field: json"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := structural.Schema(t.Context(), test.document, thing)
			if err == nil || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("wanted an error that contains %q, got %v", test.reason, err)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("an error of %d bytes is too long: %v", len(err.Error()), err)
			}
		})
	}
}

// For any document, Schema returns a schema that kcp accepts, or an error, and always the same.
func FuzzSchema(f *testing.F) {
	for _, field := range []string{
		`{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":7}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"]}`,
		`{"type":"object","required":["b"],"anyOf":[{"properties":{"a":{"pattern":"["}}}],"pattern":"("}`,
		`{"type":"string","x-kubernetes-validations":[{"rule":"self.all(x, x)"}],"enum":[1,null]}`,
		`{"type":"object","x-kubernetes-embedded-resource":true,"nullable":true,"default":{"a":1}}`,
		`{"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-int-or-string":true,"not":{"type":"string"}}`,
		`{"$ref":"#/components/schemas/com.example.v1.Thing"}`,
	} {
		f.Add(field, true)
		f.Add(field, false)
	}
	f.Fuzz(func(t *testing.T, field string, definition bool) {
		metadata := `{"default":{},"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}`
		if definition {
			metadata = strings.Replace(metadata, `"default":{},`, "", 1)
		}
		document := []byte(`{"components":{"schemas":{"com.example.v1.Thing":{"type":"object","x-kubernetes-group-version-kind":[` +
			`{"group":"example.com","version":"v1","kind":"Thing"}],"properties":{"metadata":` + metadata + `,"spec":` + field + `}},` +
			`"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta":{"type":"object"}}}}`)
		kind := thing
		kind.Status = true
		version, notes, err := structural.Schema(t.Context(), document, kind)
		if err != nil {
			return
		}
		requireValid(t, version)
		again, sameNotes, err := structural.Schema(t.Context(), document, kind)
		if err != nil || !reflect.DeepEqual(again, version) || !slices.Equal(sameNotes, notes) {
			t.Errorf("the second time differs: %v, %v, %v", again, sameNotes, err)
		}
	})
}
