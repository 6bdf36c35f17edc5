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

package filter_test

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/filter"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func compile(t testing.TB, text string) (*filter.Filter, error) {
	t.Helper()
	spec := fixtures.Decode[*synchubv1alpha1.Filter](t, text)
	return filter.Compile(spec)
}

func TestMatches(t *testing.T) {
	const (
		byLabel     = "{resource: {matchLabels: {tier: web}}}"
		byNamespace = "{namespace: {matchExpressions: [{key: team, operator: In, values: [red, blue]}]}}"
		byCEL       = "{cel: 'self.spec.replicas > 1'}"
		all         = "{resource: {matchLabels: {tier: web}}, namespace: {matchLabels: {team: red}}, cel: 'self.spec.replicas > 1'}"
	)
	red := map[string]string{"team": "red"}
	for title, test := range map[string]struct {
		filter, object string
		namespace      map[string]string
		want           bool
	}{
		"no filter":                         {"null", "{}", nil, true},
		"an empty filter":                   {"{}", "{}", nil, true},
		"an empty selector":                 {"{resource: {}, namespace: {}}", "{metadata: {namespace: a}}", nil, true},
		"the label":                         {byLabel, "{metadata: {labels: {tier: web, other: x}}}", nil, true},
		"another label":                     {byLabel, "{metadata: {labels: {tier: db}}}", nil, false},
		"no label":                          {byLabel, "{}", nil, false},
		"the namespace's label":             {byNamespace, "{metadata: {namespace: a}}", red, true},
		"another label of the namespace":    {byNamespace, "{metadata: {namespace: a}}", map[string]string{"team": "green"}, false},
		"a namespace without labels":        {byNamespace, "{metadata: {namespace: a}}", nil, false},
		"the object's label in place of it": {byNamespace, "{metadata: {namespace: a, labels: {team: red}}}", nil, false},
		"in no namespace":                   {byNamespace, "{metadata: {name: a}}", nil, true},
		"the condition":                     {byCEL, "{spec: {replicas: 2}}", nil, true},
		"not the condition":                 {byCEL, "{spec: {replicas: 1}}", nil, false},
		"all of it":                         {all, "{metadata: {namespace: a, labels: {tier: web}}, spec: {replicas: 2}}", red, true},
		"all but the label":                 {all, "{metadata: {namespace: a}, spec: {replicas: 2}}", red, false},
		"all but the namespace":             {all, "{metadata: {namespace: a, labels: {tier: web}}, spec: {replicas: 2}}", nil, false},
		"all but the condition":             {all, "{metadata: {namespace: a, labels: {tier: web}}, spec: {replicas: 1}}", red, false},
		"what fails is not asked for":       {all, "{metadata: {namespace: a}}", red, false},
		"a condition without the object":    {"{cel: 'true'}", "{}", nil, true},
		"a condition on what may be absent": {"{cel: 'has(self.spec) && self.spec.ready'}", "{}", nil, false},
	} {
		t.Run(title, func(t *testing.T) {
			compiled, err := compile(t, test.filter)
			if err != nil {
				t.Fatal(err)
			}
			object := fixtures.Object(t, test.object)
			before := object.DeepCopy()
			got, err := compiled.Matches(object, test.namespace)
			if err != nil || got != test.want {
				t.Errorf("it passes: %v, %v, want %v", got, err, test.want)
			}
			if !reflect.DeepEqual(object, before) {
				t.Errorf("the object is now %v", object)
			}
			if want := strings.Contains(test.filter, "namespace:"); compiled.UsesNamespaceLabels() != want {
				t.Errorf("it needs the namespace: %v, want %v", !want, want)
			}
		})
	}
}

func TestMatchesErrors(t *testing.T) {
	for title, test := range map[string]struct{ cel, object, want string }{
		"a missing field": {"self.spec.ready", "{spec: {}}", "no such key: ready"},
		"no boolean":      {"self.spec.ready", "{spec: {ready: sesame}}", "the expression yields neither true nor false"},
		"a list":          {"self.spec", "{spec: [sesame]}", "yields neither true nor false"},
		"null":            {"self.spec", "{spec: null}", "yields neither true nor false"},
		"no object":       {"self.spec.ready", "null", "no such key: spec"},
	} {
		t.Run(title, func(t *testing.T) {
			compiled, err := filter.Compile(&synchubv1alpha1.Filter{CEL: test.cel})
			if err != nil {
				t.Fatal(err)
			}
			object := fixtures.Object(t, test.object)
			got, err := compiled.Matches(object, nil)
			if got || err == nil || !strings.HasPrefix(err.Error(), "spec.filter.cel: ") || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "sesame") {
				t.Errorf("it passes: %v, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{resource: {matchLabels: {'a b': c}}}":                     "resource: ",
		"{resource: {matchExpressions: [{key: a, operator: Is}]}}":  "resource: ",
		"{namespace: {matchExpressions: [{key: a, operator: In}]}}": "namespace: ",
		"{cel: 'self.'}":                      "cel: ",
		"{cel: 'object.spec'}":                "cel: ",
		"{cel: '\"text\"'}":                   "cel: the expression must yield true or false",
		"{cel: '1'}":                          "cel: the expression must yield true or false",
		"{resource: {matchLabels: {a: ' '}}}": "resource: ",
	} {
		if compiled, err := compile(t, text); err == nil || !strings.HasPrefix(err.Error(), want) || compiled != nil {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzPasses uses objects that no API server would accept.
func FuzzPasses(f *testing.F) {
	compiled, err := compile(f, "{resource: {matchLabels: {tier: web}}, namespace: {matchLabels: {team: red}}, cel: 'self.spec.replicas > 1 || self.spec.ready'}")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		"null", "{}", "{metadata: []}", "{metadata: {labels: 7, namespace: {}}}", "{metadata: {labels: {tier: web}}, spec: {replicas: 2}}",
		"{metadata: {labels: {tier: web}}, spec: {replicas: two}}", "{metadata: {labels: {tier: web}}, spec: {ready: {}}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		object := &unstructured.Unstructured{}
		if yaml.Unmarshal(text, &object.Object) != nil {
			t.Skip()
		}
		passes, err := compiled.Matches(object, map[string]string{"team": "red"})
		if passes && (err != nil || object.GetLabels()["tier"] != "web") {
			t.Errorf("%s passes: %v", text, err)
		}
	})
}
