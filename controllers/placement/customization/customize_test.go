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

package customization_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/test/fixtures"
)

var parameters = customization.Parameters{
	{"env": "prod", "topology.kubernetes.io/region": "north"},
	{"env": "of an annotation", "registry": "registry.north.example", "quoted": `a"b`, "long": strings.Repeat("x", 1<<10)},
	nil,
	{"tier": "gold", "replicas": "3"},
}

// customizer returns a Customizer with expanded parameters, whose replacements are pairs of a path and a value.
func customizer(replacements ...string) *edgev2alpha1.Customizer {
	made := &edgev2alpha1.Customizer{}
	made.Annotations = map[string]string{edgev2alpha1.AnnotationExpandParameters: "true"}
	for pair := range slices.Chunk(replacements, 2) {
		made.Replacements = append(made.Replacements, edgev2alpha1.Replacement{Path: pair[0], Value: pair[1]})
	}
	return made
}

func plainCustomizer(replacements ...string) *edgev2alpha1.Customizer {
	made := customizer(replacements...)
	made.Annotations = nil
	return made
}

// customize customizes an object with the given fields.
func customize(t *testing.T, fields string, expand bool, by *edgev2alpha1.Customizer) (*unstructured.Unstructured, error) {
	t.Helper()
	object := fixtures.Object(t, "apiVersion: v1\nkind: Thing\nmetadata: {name: \"%(env)\", namespace: shop}\n"+fields)
	before := object.DeepCopy()
	request := customization.Request{Expand: expand}
	if by != nil {
		request.Customizer = types.NamespacedName{Namespace: "shop", Name: "till"}
	}
	result, err := customization.Customize(object, request, by, parameters)
	if !reflect.DeepEqual(object, before) {
		t.Error("the object was changed in place")
	}
	return result, err
}

func TestCustomize(t *testing.T) {
	for name, test := range map[string]struct {
		given  string
		expand bool
		by     *edgev2alpha1.Customizer
		want   string
	}{
		"nothing asked":          {given: `data: {a: "%(env)"}`, want: `data: {a: "%(env)"}`},
		"a label of the target":  {given: `data: {a: "in %(env), %(topology.kubernetes.io/region)"}`, expand: true, want: `data: {a: "in prod, north"}`},
		"an annotation":          {given: `data: {a: "%(registry)/till:1"}`, expand: true, want: `data: {a: "registry.north.example/till:1"}`},
		"one of the Location":    {given: `data: {a: "%(tier)"}`, expand: true, want: `data: {a: "gold"}`},
		"percent signs":          {given: `data: {a: "100%% of 5% %", b: "%%(env)", c: "%%%(env)"}`, expand: true, want: `data: {a: "100% of 5% %", b: "%(env)", c: "%prod"}`},
		"texts in lists":         {given: `spec: {list: [{a: "%(env)"}, "%(env)", 1, true, null]}`, expand: true, want: `spec: {list: [{a: prod}, prod, 1, true, null]}`},
		"what is no value":       {given: "data: {'%(env)': a}\nstatus: {a: '%(env)'}", expand: true, want: "data: {'%(env)': a}\nstatus: {a: '%(env)'}"},
		"a value with a percent": {given: `data: {a: "%(env)%(env)"}`, expand: true, want: `data: {a: "prodprod"}`},
		"the documentation's example": {
			given: `spec: {containers: [{name: till, env: [{name: CITY, value: none}]}]}`, by: customizer("$.spec.containers.0.env.0.value", `"till of %(env)"`),
			want: `spec: {containers: [{name: till, env: [{name: CITY, value: till of prod}]}]}`,
		},
		"a number":                {given: `spec: {replicas: 1}`, by: customizer("$.spec.replicas", "%(replicas)"), want: `spec: {replicas: 3}`},
		"a missing field":         {given: `spec: {}`, by: customizer("$.spec.a.b", `{"c": [1]}`), want: `spec: {a: {b: {c: [1]}}}`},
		"all items":               {given: `spec: {list: [{a: 1}, {b: 2}]}`, by: customizer("$.spec.list[*].a", "7"), want: `spec: {list: [{a: 7}, {a: 7, b: 2}]}`},
		"an item that is missing": {given: `spec: {list: [1]}`, by: customizer("$.spec.list[1]", "7"), want: `spec: {list: [1]}`},
		"null removes":            {given: `spec: {a: 1, b: 2}`, by: customizer("$.spec.a", "null", "$.spec.c.d", "null"), want: `spec: {b: 2}`},
		"one after the other":     {given: `spec: {a: 1}`, by: customizer("$.spec.a", "{}", "$.spec.a.b", "2"), want: `spec: {a: {b: 2}}`},
		"a path with a parameter": {given: `data: {}`, by: customizer("$.data.%(env)", "1"), want: `data: {prod: 1}`},
		"no expansion":            {given: `data: {}`, by: plainCustomizer("$.data.a", `"%(env)%%"`), want: `data: {a: "%(env)%%"}`},
		"the object first":        {given: `data: {a: "%(env)"}`, expand: true, by: plainCustomizer("$.data.b", `"%(env)"`), want: `data: {a: prod, b: "%(env)"}`},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := customize(t, test.given, test.expand, test.by)
			if err != nil {
				t.Fatal(err)
			}
			want := fixtures.Object(t, "apiVersion: v1\nkind: Thing\nmetadata: {name: \"%(env)\", namespace: shop}\n"+test.want)
			if !reflect.DeepEqual(result, want) {
				text, _ := yaml.Marshal(result.Object)
				t.Errorf("got\n%s", text)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	object := fixtures.Object(t, `
apiVersion: v1
kind: Thing
metadata:
  name: a
  namespace: shop
  labels: {env: "%(env)"}
  annotations: {a: "%(env)", kubectl.kubernetes.io/last-applied-configuration: "%(unknown)"}
`)
	result, err := customization.Customize(object, customization.Request{Expand: true}, customizer("$.metadata.labels['app.example/tier']", `"%(tier)"`), parameters)
	if err != nil {
		t.Fatal(err)
	}
	labels, annotations := map[string]string{"env": "prod", "app.example/tier": "gold"}, map[string]string{"a": "prod"}
	if !reflect.DeepEqual(result.GetLabels(), labels) || !reflect.DeepEqual(result.GetAnnotations(), annotations) {
		t.Errorf("got %v, %v", result.GetLabels(), result.GetAnnotations())
	}
}

func TestCustomizeFails(t *testing.T) {
	grows := strings.Repeat("%(long)", 1<<10) + "%(env)"
	for name, test := range map[string]struct {
		given  string
		expand bool
		by     *edgev2alpha1.Customizer
		reason string
		want   string
	}{
		"an unknown parameter": {
			given: `data: {a.b: [{c: "%(city)"}]}`, expand: true, reason: customization.ReasonUnknownParameter,
			want: `data['a.b'][0].c: neither the SyncTarget nor its Location has a label or an annotation "city"`,
		},
		"of a label":     {given: `data: {a: "%()"}`, expand: true, reason: customization.ReasonUnknownParameter, want: `data.a: neither`},
		"no bracket":     {given: `data: {a: "%(env"}`, expand: true, reason: customization.ReasonInvalid, want: "data.a: after %( there is no closing bracket"},
		"a large result": {given: `data: {a: "` + grows + `"}`, expand: true, reason: customization.ReasonTooLarge, want: "data.a: the object would grow by more than 1048576 bytes"},
		"an unknown one in a value": {
			given: "spec: {}", by: customizer("$.spec.a", "1", "$.spec.b", `"%(city)"`), reason: customization.ReasonUnknownParameter,
			want: `Customizer shop/till: replacements[1].value: neither`,
		},
		"an unknown one in a path": {given: "spec: {}", by: customizer("$.spec.%(city)", "1"), reason: customization.ReasonUnknownParameter, want: "replacements[0].path: neither"},
		"no JSON":                  {given: "spec: {}", by: customizer("$.spec.a", "prod"), reason: customization.ReasonInvalid, want: "replacements[0].value: is not valid JSON, in which a text is in double quotes: "},
		"no JSON once expanded":    {given: "spec: {}", by: customizer("$.spec.a", `"%(quoted)"`), reason: customization.ReasonInvalid, want: "replacements[0].value: is not valid JSON"},
		"no path":                  {given: "spec: {}", by: customizer("spec.a", "1"), reason: customization.ReasonInvalid, want: `replacements[0].path: "spec.a" is no JSONPath: begin with $`},
		"a path once expanded":     {given: "spec: {}", by: customizer("$.spec.%(quoted)", "1"), reason: customization.ReasonInvalid, want: "replacements[0].path: with its parameters expanded, it is no valid path"},
		"a descent":                {given: "spec: {}", by: customizer("$..image", "1"), reason: customization.ReasonInvalid, want: `"$..image" is no JSONPath: after "$" must follow .name`},
		"the name":                 {given: "spec: {}", by: customizer("$.metadata.name", `"b"`), reason: customization.ReasonInvalid, want: "metadata cannot be changed"},
		"the kind":                 {given: "spec: {}", by: customizer("$.kind", `"b"`), reason: customization.ReasonInvalid, want: "kind and metadata cannot be changed"},
		"finalizers":               {given: "spec: {}", by: customizer("$.metadata.finalizers", `["b"]`), reason: customization.ReasonInvalid, want: "metadata cannot be changed"},
		"the status":               {given: "spec: {}", by: customizer("$.status.a", "1"), reason: customization.ReasonInvalid, want: "the status cannot be changed"},
		"a label that is no text":  {given: "spec: {}", by: customizer("$.metadata.labels.a", "1"), reason: customization.ReasonInvalid, want: "must be text"},
		"labels that are no map":   {given: "spec: {}", by: customizer("$.metadata.labels", "[]"), reason: customization.ReasonInvalid, want: "must be a map"},
		"a field of a text":        {given: "spec: {a: b}", by: customizer("$.spec.a.b", "1"), reason: customization.ReasonInvalid, want: "spec.a: is text, but the path needs a map here"},
		"a large value many times": {
			given: "spec: {list: [" + strings.Repeat("{},", 20) + "]}", by: customizer("$.spec.list[*].a", `"`+strings.Repeat("x", 60<<10)+`"`),
			reason: customization.ReasonTooLarge, want: "replacements[0].value: the object would grow",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := customize(t, test.given, test.expand, test.by)
			failed, ok := errors.AsType[*customization.Error](err)
			if !ok || failed.Reason != test.reason || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %s: %s", err, test.reason, test.want)
			}
			if strings.Contains(err.Error(), `a"b`) {
				t.Errorf("the error contains the value of a parameter: %v", err)
			}
		})
	}
}

func TestRequestOf(t *testing.T) {
	for name, test := range map[string]struct {
		metadata string
		want     customization.Request
		err      string
	}{
		"nothing":               {metadata: "{namespace: shop}"},
		"not true":              {metadata: `{annotations: {edge.kubestellar.io/expand-parameters: "yes"}}`},
		"expand":                {metadata: `{annotations: {edge.kubestellar.io/expand-parameters: "true"}}`, want: customization.Request{Expand: true}},
		"of the namespace":      {metadata: `{namespace: shop, annotations: {edge.kubestellar.io/customizer: till}}`, want: customization.Request{Customizer: types.NamespacedName{Namespace: "shop", Name: "till"}}},
		"of another namespace":  {metadata: `{namespace: shop, annotations: {edge.kubestellar.io/customizer: other/till}}`, err: "a Customizer of the same namespace"},
		"cluster-scoped":        {metadata: `{annotations: {edge.kubestellar.io/customizer: shop/till}}`, want: customization.Request{Customizer: types.NamespacedName{Namespace: "shop", Name: "till"}}},
		"without its namespace": {metadata: `{annotations: {edge.kubestellar.io/customizer: till}}`, err: "as <namespace>/<name>"},
		"without a name":        {metadata: `{namespace: shop, annotations: {edge.kubestellar.io/customizer: ""}}`, err: "metadata.annotations['edge.kubestellar.io/customizer']"},
		"a long name":           {metadata: `{namespace: shop, annotations: {edge.kubestellar.io/customizer: ` + strings.Repeat("x", 254) + `}}`, err: "a Customizer of the same namespace"},
		"no namespace's name":   {metadata: `{annotations: {edge.kubestellar.io/customizer: Shop/till}}`, err: "as <namespace>/<name>"},
		"with a third part":     {metadata: `{annotations: {edge.kubestellar.io/customizer: a/b/c}}`, err: "as <namespace>/<name>"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := customization.RequestOf(fixtures.Object(t, "apiVersion: v1\nkind: Thing\nmetadata: "+test.metadata))
			if got != test.want || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestParametersEqual(t *testing.T) {
	if !parameters.Equal(customization.Parameters{parameters[0], parameters[1], {}, parameters[3]}) || parameters.Equal(customization.Parameters{parameters[0], nil, nil, parameters[3]}) {
		t.Error("equal parameters differ")
	}
}

// FuzzExpand checks that a text without percent signs stays as it is, that nothing panics, and that the result stays within the limit.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"", "a", "%", "%%", "%(env)", "%%(env)", "%(", "%()", "é%(env)%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": text}}}
		result, err := customization.Customize(object, customization.Request{Expand: true}, customizer("$.data.b", text, text, "1"), parameters)
		if err != nil {
			if failed, ok := errors.AsType[*customization.Error](err); !ok || len(failed.Field) > 1<<10 {
				t.Fatalf("got %v", err)
			}
			return
		}
		if got, _, _ := unstructured.NestedString(result.Object, "data", "a"); !strings.Contains(text, "%") && got != text || len(got) > len(text)+1<<20 {
			t.Errorf("%q became %q", text, got)
		}
	})
}
