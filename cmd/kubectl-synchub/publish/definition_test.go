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

package publish_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/publish"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// widgets returns the CRD of widgets. properties are the properties of the spec, as YAML in flow style.
func widgets(t *testing.T, properties string) *unstructured.Unstructured {
	t.Helper()
	return fixtures.Object(t, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.dev
  uid: 1x
  resourceVersion: "7"
  labels: {app: widgets}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: much}
  managedFields: [{manager: kubectl}]
spec:
  group: example.dev
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {`+properties+`}}}}}
status: {storedVersions: [v1]}
`)
}

// described returns properties with descriptions of the given total size. One property is named description.
func described(bytes int) string {
	return "description: {type: string, maxLength: 7, description: " + strings.Repeat("x", bytes/2) + "}, size: {type: integer, description: " + strings.Repeat("y", bytes/2) + "}"
}

func TestPlanDefinition(t *testing.T) {
	widget := synchubv1alpha1.ResourceDescriptor{Group: "example.dev", Resource: "widgets", Kind: "Widget"}
	fromMap := func(name, key string) *synchubv1alpha1.SchemaFrom {
		return &synchubv1alpha1.SchemaFrom{ConfigMap: &synchubv1alpha1.ConfigMapSchema{Name: name, Key: key}}
	}
	ours := fromMap("schema-widgets.example.dev", "crd.json")
	for name, test := range map[string]struct {
		existing   []synchubv1alpha1.PublishedResource
		install    *bool
		properties string
		want       string
	}{
		"new":                              {want: "create widgets.example.dev, widgets.example.dev"},
		"new, to be installed":             {install: new(true), want: "create widgets.example.dev installed, widgets.example.dev"},
		"beside another group":             {existing: []synchubv1alpha1.PublishedResource{existing("widgets", synchubv1alpha1.ResourceDescriptor{Group: "example.com", Resource: "widgets"}, 1, ours)}, want: "create widgets.example.dev, widgets.example.dev"},
		"ours":                             {existing: []synchubv1alpha1.PublishedResource{existing("mine", widget, 1, ours)}, want: "keep mine, widgets.example.dev"},
		"ours, by its kind":                {existing: []synchubv1alpha1.PublishedResource{existing("mine", synchubv1alpha1.ResourceDescriptor{Group: "example.dev", Kind: "Widget"}, 1, ours)}, want: "keep mine, widgets.example.dev"},
		"ours, to be installed":            {existing: []synchubv1alpha1.PublishedResource{existing("mine", widget, 1, ours)}, install: new(true), want: "change mine installed, widgets.example.dev"},
		"ours, not installed as before":    {existing: []synchubv1alpha1.PublishedResource{existing("mine", widget, 1, ours)}, install: new(false), want: "keep mine, widgets.example.dev"},
		"from the hosting cluster":         {existing: []synchubv1alpha1.PublishedResource{existing("theirs", widget, 1, nil)}, want: "leave theirs"},
		"from a target":                    {existing: []synchubv1alpha1.PublishedResource{existing("theirs", widget, 1, &synchubv1alpha1.SchemaFrom{SyncTarget: &florin})}, install: new(true), want: "leave theirs"},
		"from another ConfigMap":           {existing: []synchubv1alpha1.PublishedResource{existing("theirs", widget, 1, fromMap("schema-widgets", "crd.json"))}, want: "leave theirs"},
		"from another key":                 {existing: []synchubv1alpha1.PublishedResource{existing("theirs", widget, 1, fromMap("schema-widgets.example.dev", "crd.yaml"))}, want: "leave theirs"},
		"the oldest is theirs":             {existing: []synchubv1alpha1.PublishedResource{existing("mine", widget, 1, ours), existing("theirs", widget, 2, nil)}, want: "leave theirs"},
		"the name is taken":                {existing: []synchubv1alpha1.PublishedResource{existing("widgets.example.dev", synchubv1alpha1.ResourceDescriptor{Group: "example.dev", Resource: "gadgets"}, 1, nil)}, want: "error: the PublishedResource widgets.example.dev publishes another resource: publish widgets.example.dev under another name yourself"},
		"almost too large":                 {properties: described(publish.MaxConfigMapBytes - 600), want: "create widgets.example.dev, widgets.example.dev"},
		"too large":                        {properties: described(publish.MaxConfigMapBytes), want: "create widgets.example.dev, widgets.example.dev without descriptions"},
		"too large without descriptions":   {properties: "size: {type: string, enum: [" + strings.Repeat("x", publish.MaxConfigMapBytes) + "]}", want: "error: the CustomResourceDefinition widgets.example.dev takes 1049011 bytes as JSON without descriptions, and a ConfigMap holds 1048576: apply it to the hosting cluster"},
		"a field that does not exist":      {properties: "size: {typ: string}", want: "error: widgets.example.dev is not a CustomResourceDefinition: "},
		"a schema that the hub refuses":    {properties: "size: {type: strong}", want: "error: the hub cannot publish the CustomResourceDefinition widgets.example.dev: spec.resource: "},
		"a schema in a form for few bytes": {properties: "'<a> & b': {type: string}", want: "create widgets.example.dev, widgets.example.dev"},
	} {
		t.Run(name, func(t *testing.T) {
			options := publish.Options{Namespace: "hub", InstallCRD: test.install}
			planned, err := publish.PlanDefinition(t.Context(), widgets(t, test.properties), test.existing, options)
			if got := definitionSummary(t, planned, err); got != test.want && (err == nil || !strings.HasPrefix(got, test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// definitionSummary describes a plan, and checks the required parts of each ConfigMap.
func definitionSummary(t *testing.T, planned publish.Definition, err error) string {
	t.Helper()
	if err != nil {
		return "error: " + err.Error()
	}
	if planned.ConfigMap == nil {
		return "leave " + planned.Existing.Name
	}
	verb, installed := "create", ""
	switch {
	case planned.Desired == nil:
		verb = "keep"
	case planned.Existing != nil:
		verb = "change"
	}
	if planned.Desired != nil && planned.Desired.Spec.InstallCRD {
		installed = " installed"
	}
	text := fmt.Sprintf("%s %s%s, %s", verb, planned.Name(), installed, strings.TrimPrefix(planned.ConfigMap.Name, "schema-"))
	manifest := planned.ConfigMap.Data[publish.ConfigMapKey]
	if len(manifest) > publish.MaxConfigMapBytes || planned.ConfigMap.Namespace != "hub" || !publish.IsOurs(planned.ConfigMap) {
		t.Errorf("%d bytes in %s/%s with the labels %v", len(manifest), planned.ConfigMap.Namespace, planned.ConfigMap.Name, planned.ConfigMap.Labels)
	}
	for _, part := range []string{"last-applied", "managedFields", "uid", "resourceVersion", "storedVersions", `\u003c`} {
		if strings.Contains(manifest, part) {
			t.Errorf("the manifest has %q", part)
		}
	}
	if planned.FullBytes > 0 {
		if strings.Contains(manifest, "yyy") || !strings.Contains(manifest, `"description":{"maxLength":7,"type":"string"}`) {
			t.Errorf("it is\n%.400s", manifest)
		}
		text += " without descriptions"
	}
	return text
}

// The schema that a plan expects is the one that the hub makes of the ConfigMap.
func TestPlanDefinitionNamesTheSchema(t *testing.T) {
	for name, properties := range map[string]string{"small": "size: {type: integer}", "large": described(publish.MaxConfigMapBytes)} {
		t.Run(name, func(t *testing.T) {
			planned, err := publish.PlanDefinition(t.Context(), widgets(t, properties), nil, publish.Options{Namespace: "hub"})
			if err != nil {
				t.Fatal(err)
			}
			crd, err := publishedresource.ParseDefinition(planned.ConfigMap.Data["crd.json"], "crd.json")
			if err != nil {
				t.Fatal(err)
			}
			made, err := publishedresource.BuildSchema(t.Context(), &planned.Desired.Spec, crd)
			if err != nil || made.Name != planned.SchemaName || !strings.HasSuffix(made.Name, ".widgets.example.dev") {
				t.Errorf("got %q: %v", planned.SchemaName, err)
			}
		})
	}
}

// Repeating a plan gives the same bytes, also for a file in another form and order.
func TestPlanDefinitionIsStable(t *testing.T) {
	definition := widgets(t, "size: {type: integer, default: 1.0}, port: {x-kubernetes-int-or-string: true}")
	text, err := yaml.Marshal(definition.Object)
	if err != nil {
		t.Fatal(err)
	}
	reread := fixtures.Object(t, string(text))
	reread.SetCreationTimestamp(metav1.Unix(1, 0))
	var manifests []string
	for _, object := range []*unstructured.Unstructured{definition, reread} {
		planned, err := publish.PlanDefinition(t.Context(), object, nil, publish.Options{Namespace: "hub"})
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, planned.ConfigMap.Data["crd.json"])
	}
	if manifests[0] != manifests[1] {
		t.Errorf("got\n%s\nand\n%s", manifests[0], manifests[1])
	}
}

// A CRD of an API that kcp itself serves hides objects, so the error comes before anything is written.
func TestPlanDefinitionRefusesAPIsOfKCP(t *testing.T) {
	definition := widgets(t, "")
	for path, value := range map[string]string{"group": "apis.kcp.io", "names.plural": "apibindings", "names.kind": "APIBinding"} {
		if err := unstructured.SetNestedField(definition.Object, value, append([]string{"spec"}, strings.Split(path, ".")...)...); err != nil {
			t.Fatal(err)
		}
	}
	_, err := publish.PlanDefinition(t.Context(), definition, nil, publish.Options{Namespace: "hub"})
	if err == nil || !strings.Contains(err.Error(), "apibindings.apis.kcp.io cannot be brought to mailboxes") {
		t.Errorf("got %v", err)
	}
}
