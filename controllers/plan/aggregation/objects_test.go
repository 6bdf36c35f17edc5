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

package aggregation_test

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/aggregation"
)

func pod(name, phase string) any {
	return map[string]any{"kind": "Pod", "metadata": map[string]any{"name": name}, "status": map[string]any{"phase": phase}}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	pods := []any{pod("a", "Running"), pod("b", "Pending"), pod("c", "Running")}
	for name, c := range map[string]struct {
		expression string
		objects    []any
		want       string
	}{
		"counts":             {`{"running": objects.filter(o, o.status.phase == "Running").size()}`, pods, `{"running":2}`},
		"none":               {`{"all": dyn(objects.size()), "names": dyn(objects.map(o, o.metadata.name))}`, nil, `{"all":0,"names":[]}`},
		"no nulls":           {`{"a": dyn(null), "b": dyn({"c": null}), "d": dyn([dyn({"e": null}), dyn(1)])}`, nil, `{"b":{},"d":[{},1]}`},
		"a missing field":    {`{"ready": objects.map(o, o.?status.?ready.orValue(false))}`, pods[:1], `{"ready":[false]}`},
		"the same every run": {`{"names": objects.map(o, o.metadata.name)}`, pods, `{"names":["a","b","c"]}`},
	} {
		compiled, err := aggregation.CompileObjects(c.expression)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := compiled.Aggregate(c.objects); err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
}

// The example counts Pods, also ones without a status.
func TestExample(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../../examples/aggregation.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var placement edgev2alpha1.EdgePlacement
	if err := yaml.UnmarshalStrict(content, &placement); err != nil {
		t.Fatal(err)
	}
	compiled, err := aggregation.CompileObjects(placement.Spec.Aggregation.Expression)
	if err != nil {
		t.Fatal(err)
	}
	created := map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "c", "labels": map[string]any{edgev2alpha1.LabelSyncTarget: "florin"}}}
	got, err := compiled.Aggregate([]any{pod("a", "Running"), created})
	if want := `{"notRunningOn":["florin"],"pods":2,"running":1}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

func TestObjectsErrors(t *testing.T) {
	t.Parallel()
	many := make([]any, 2_000)
	for i := range many {
		many[i] = pod(strings.Repeat("a", 50), "Running")
	}
	for name, c := range map[string]struct {
		expression string
		objects    []any
		want       string
	}{
		"a syntax error":   {`{"a": `, nil, "Syntax error"},
		"another variable": {`{"a": statuses.size()}`, nil, "undeclared reference to 'statuses'"},
		"no map":           {`objects.size()`, nil, "the result is not a map but a number"},
		"a list":           {`objects.map(o, o.kind)`, nil, "the result is not a map but a list"},
		"a missing field":  {`{"a": objects.map(o, o.spec)}`, []any{pod("a", "")}, "no such key: spec"},
		"too large":        {`{"names": objects.map(o, o.metadata.name)}`, many, "bytes as JSON, and may have 16384"},
		"too expensive":    {`{"a": objects.map(o, objects.filter(p, p.metadata.name == o.metadata.name).size())}`, many, "cost limit exceeded"},
	} {
		compiled, err := aggregation.CompileObjects(c.expression)
		if err == nil {
			_, err = compiled.Aggregate(c.objects)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "spec.aggregation.expression: ") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
