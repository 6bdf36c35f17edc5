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
	"regexp"
	"strings"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestFromCRDNamesSchemasByContent(t *testing.T) {
	base := mustConvert(t, widgetCRD())
	if !regexp.MustCompile(`^v[0-9a-f]{8}\.widgets\.example\.com$`).MatchString(base.Name) {
		t.Errorf("wanted v<8 hex digits>.widgets.example.com, got %s", base.Name)
	}

	for name, test := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		same   bool
	}{
		"nothing": {func(*apiextensionsv1.CustomResourceDefinition) {}, true},
		"metadata and status": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.UID, crd.ResourceVersion, crd.Annotations = "1", "2", map[string]string{"a": "b"}
			crd.Status.StoredVersions = []string{"v1"}
		}, true},
		"defaults of a server": {apiextensionsv1.SetDefaults_CustomResourceDefinition, true},
		"a conversion webhook": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			url := "https://example.com"
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url},
				},
			}
		}, true},
		"the order of keys in a default": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			setDefault(crd, `{"b":2,"a":1}`)
		}, true},
		"a default":    {func(crd *apiextensionsv1.CustomResourceDefinition) { setDefault(crd, `{"a":3}`) }, false},
		"the scope":    {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = "Namespaced" }, false},
		"a short name": {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.ShortNames = []string{"w"} }, false},
		"a description": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "other"
		}, false},
		"a subresource": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			}
		}, false},
		"another version": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			version := *crd.Spec.Versions[0].DeepCopy()
			version.Name, version.Storage = "v2", false
			crd.Spec.Versions = append(crd.Spec.Versions, version)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			crd := widgetCRD()
			test.change(crd)
			schema := mustConvert(t, crd)
			if same := schema.Name == base.Name; same != test.same {
				t.Errorf("same name: %v, wanted %v (%s, before the change %s)", same, test.same, schema.Name, base.Name)
			}
			if schema.Spec.Conversion == nil || schema.Spec.Conversion.Strategy != "None" {
				t.Errorf("wanted the conversion strategy None, got %v", schema.Spec.Conversion)
			}
		})
	}
}

func TestFromCRDGroups(t *testing.T) {
	for group, wanted := range map[string]struct{ suffix, approval string }{
		"":                  {suffix: ".widgets.core"},
		"apps":              {suffix: ".widgets.apps"},
		"example.com":       {suffix: ".widgets.example.com"},
		"networking.k8s.io": {suffix: ".widgets.networking.k8s.io", approval: unapproved},
	} {
		t.Run("group "+group, func(t *testing.T) {
			crd := widgetCRD()
			crd.Spec.Group = group
			schema := mustConvert(t, crd)
			if !strings.HasSuffix(schema.Name, wanted.suffix) {
				t.Errorf("wanted a name that ends in %s, got %s", wanted.suffix, schema.Name)
			}
			if schema.Spec.Group != group {
				t.Errorf("wanted the group %q, got %q", group, schema.Spec.Group)
			}
			if approval := schema.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]; approval != wanted.approval {
				t.Errorf("wanted the approval %q, got %q", wanted.approval, approval)
			}
		})
	}
}

func TestFromCRDKeepsAnApproval(t *testing.T) {
	crd := widgetCRD()
	crd.Spec.Group = "gateway.networking.k8s.io"
	crd.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "https://example.com/review"}
	schema := mustConvert(t, crd)
	if approval := schema.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]; approval != "https://example.com/review" {
		t.Errorf("wanted the approval of the definition, got %q", approval)
	}
}

func TestFromCRDLeavesItsInputAlone(t *testing.T) {
	crd, untouched := widgetCRD(), widgetCRD()
	mustConvert(t, crd)
	if crd.String() != untouched.String() {
		t.Errorf("the definition was changed to %s", crd)
	}
}

func TestFromCRDRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		reason string
	}{
		"no plural":         {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Plural = "" }, "spec.names.plural"},
		"no kind":           {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Kind = "" }, "spec.names.kind"},
		"no versions":       {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = nil }, "has no versions"},
		"no schema":         {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Schema = nil }, "version v1 of widgets.example.com has no schema"},
		"an illegal plural": {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Plural = "Not Legal" }, "Not Legal"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := widgetCRD()
			test.change(crd)
			schema, err := FromCRD(crd)
			if err == nil {
				t.Fatalf("wanted an error, got %s", schema.Name)
			}
			if !strings.Contains(err.Error(), test.reason) {
				t.Errorf("wanted an error that mentions %q, got %q", test.reason, err)
			}
		})
	}
}

func mustConvert(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *apisv1alpha1.APIResourceSchema {
	t.Helper()
	schema, err := FromCRD(crd)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func widgetCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Group = "example.com"
	crd.Spec.Scope = apiextensionsv1.ClusterScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name:    "v1",
		Served:  true,
		Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type:       "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object"}},
		}},
	}}
	setDefault(crd, `{"a":1,"b":2}`)
	return crd
}

func setDefault(crd *apiextensionsv1.CustomResourceDefinition, value string) {
	properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	spec := properties["spec"]
	spec.Default = &apiextensionsv1.JSON{Raw: []byte(value)}
	properties["spec"] = spec
}
