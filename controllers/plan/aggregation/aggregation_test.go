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
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/aggregation"
)

// parse decodes statuses like Kubernetes' JSON decoder. "null" is a destination without a status.
func parse(t *testing.T, texts ...string) (statuses []map[string]any) {
	t.Helper()
	for _, text := range texts {
		content, err := yaml.YAMLToJSON([]byte(text))
		var status map[string]any
		if err == nil {
			err = utiljson.Unmarshal(content, &status)
		}
		if err != nil {
			t.Fatal(err)
		}
		statuses = append(statuses, status)
	}
	return statuses
}

func TestSum(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	aggregator, err := aggregation.Compile(&synchubv1alpha1.PublishedResourceSpec{StatusAggregation: synchubv1alpha1.StatusAggregationSum}, deployments)
	if err != nil || aggregator == nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		statuses []string
		want     string
	}{
		"numbers add up": {
			[]string{"{observedGeneration: 3, replicas: 2, readyReplicas: 2}", "{observedGeneration: 3, replicas: 3, readyReplicas: 1}"},
			"{observedGeneration: 3, replicas: 5, readyReplicas: 3}",
		},
		"one destination is behind": {
			[]string{"{observedGeneration: 3, replicas: 2}", "{observedGeneration: 1, replicas: 2}"}, "{observedGeneration: 1, replicas: 4}",
		},
		"one destination has no status yet":   {[]string{"{observedGeneration: 3, replicas: 2}", "null"}, "{observedGeneration: 2, replicas: 2}"},
		"no destination has one":              {[]string{"null", "{}"}, "{}"},
		"a text that differs":                 {[]string{"{phase: Open, side: left}", "{phase: Open, side: right}"}, "{phase: Open}"},
		"a text that one lacks":               {[]string{"{phase: Open}", "{}"}, "{}"},
		"the first start, and the last end":   {[]string{"{startTime: 2026-01-02, completionTime: 2026-01-05}", "{startTime: 2026-01-01, completionTime: 2026-01-04}"}, "{startTime: 2026-01-01, completionTime: 2026-01-05}"},
		"a Job that still runs somewhere":     {[]string{"{startTime: 2026-01-02, completionTime: 2026-01-05}", "{startTime: 2026-01-01}"}, "{startTime: 2026-01-01}"},
		"addresses of all":                    {[]string{"{loadBalancer: {ingress: [{ip: 10.0.0.1}]}}", "{loadBalancer: {ingress: [{ip: 10.0.0.2}, {ip: 10.0.0.1}]}}"}, "{loadBalancer: {ingress: [{ip: 10.0.0.1}, {ip: 10.0.0.2}]}}"},
		"a field of different types":          {[]string{"{odd: 1}", "{odd: [2]}", "{odd: {a: 3}}"}, "{odd: {a: 3}}"},
		"a condition that is True everywhere": {[]string{"{conditions: [{type: Available, status: 'True', message: ok}]}", "{conditions: [{type: Available, status: 'True', message: fine}]}"}, "{conditions: [{type: Available, status: 'True', message: '2 of 2 clusters: ok'}]}"},
		"one that is False somewhere":         {[]string{"{conditions: [{type: Available, status: 'True'}]}", "{conditions: [{type: Available, status: 'False', reason: Few, message: too few}]}"}, "{conditions: [{type: Available, status: 'False', reason: Few, message: '1 of 2 clusters: too few'}]}"},
		"one that is absent somewhere":        {[]string{"{conditions: [{type: Available, status: 'True'}]}", "{}"}, "{conditions: [{type: Available, status: Unknown}]}"},
		"one that is bad when it is True":     {[]string{"{conditions: [{type: Failed, status: 'True', message: late}]}", "{}"}, "{conditions: [{type: Failed, status: 'True', message: '1 of 2 clusters: late'}]}"},
	} {
		statuses := parse(t, c.statuses...)
		before := runtime.DeepCopyJSONValue(map[string]any{"all": asList(statuses)})
		got, err := aggregator.Aggregate(statuses, 3)
		if err != nil || !reflect.DeepEqual(got, parse(t, c.want)[0]) {
			text, _ := json.Marshal(got)
			t.Errorf("%s: %s, %v", name, text, err)
		}
		if !reflect.DeepEqual(before, map[string]any{"all": asList(statuses)}) {
			t.Errorf("%s: the statuses were changed", name)
		}
	}
}

// kubectl shows the numbers beside the numbers in spec, and `kubectl rollout status` compares them: two replicas on each of two
// clusters are 2/2, and the cluster with the least progress counts.
func TestLowest(t *testing.T) {
	for name, c := range map[string]struct {
		resource schema.GroupResource
		statuses []string
		want     string
	}{
		"all are ready": {
			schema.GroupResource{Group: "apps", Resource: "deployments"},
			[]string{"{observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}", "{observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}"},
			"{observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}",
		},
		"an old replica is left somewhere": {
			schema.GroupResource{Group: "apps", Resource: "deployments"},
			[]string{"{observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2}", "{observedGeneration: 3, replicas: 3, updatedReplicas: 2, readyReplicas: 1, unavailableReplicas: 2}"},
			"{observedGeneration: 3, replicas: 3, updatedReplicas: 2, readyReplicas: 1, unavailableReplicas: 2}",
		},
		"missing on one cluster": {
			schema.GroupResource{Group: "apps", Resource: "statefulsets"},
			[]string{"{observedGeneration: 3, replicas: 2, readyReplicas: 2, currentReplicas: 2}", "null"},
			"{observedGeneration: 2, replicas: 2, readyReplicas: 0, currentReplicas: 0}",
		},
		"a Job is done on one of two": {
			schema.GroupResource{Group: "batch", Resource: "jobs"}, []string{"{succeeded: 1}", "{active: 1, failed: 2}"}, "{succeeded: 0, active: 1, failed: 2}",
		},
		"DaemonSets have no number in spec": {
			schema.GroupResource{Group: "apps", Resource: "daemonsets"}, []string{"{desiredNumberScheduled: 2, numberReady: 2}", "{desiredNumberScheduled: 3, numberReady: 1}"}, "{desiredNumberScheduled: 5, numberReady: 3}",
		},
	} {
		aggregator, err := aggregation.Compile(&synchubv1alpha1.PublishedResourceSpec{}, c.resource)
		if err != nil {
			t.Fatal(err)
		}
		got, err := aggregator.Aggregate(parse(t, c.statuses...), 3)
		if err != nil || !reflect.DeepEqual(got, parse(t, c.want)[0]) {
			text, _ := json.Marshal(got)
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

func asList(statuses []map[string]any) (list []any) {
	for _, status := range statuses {
		list = append(list, status)
	}
	return list
}

func TestCompile(t *testing.T) {
	for name, c := range map[string]struct {
		spec     synchubv1alpha1.PublishedResourceSpec
		resource string
		is       bool
		wantErr  string
	}{
		"Services by default":  {synchubv1alpha1.PublishedResourceSpec{}, "services", true, ""},
		"nothing else":         {synchubv1alpha1.PublishedResourceSpec{}, "pods", false, ""},
		"on demand":            {synchubv1alpha1.PublishedResourceSpec{StatusAggregation: synchubv1alpha1.StatusAggregationSum}, "pods", true, ""},
		"not if it is denied":  {synchubv1alpha1.PublishedResourceSpec{StatusAggregation: synchubv1alpha1.StatusAggregationNone}, "services", false, ""},
		"by an expression":     {synchubv1alpha1.PublishedResourceSpec{StatusExpression: "{}"}, "pods", true, ""},
		"by one that is wrong": {synchubv1alpha1.PublishedResourceSpec{StatusExpression: "status"}, "pods", false, "statusExpression: "},
	} {
		aggregator, err := aggregation.Compile(&c.spec, schema.GroupResource{Resource: c.resource})
		if (aggregator != nil) != c.is || (err == nil) != (c.wantErr == "") || err != nil && !strings.HasPrefix(err.Error(), c.wantErr) {
			t.Errorf("%s: %v, %v", name, aggregator, err)
		}
	}
}

func TestExpression(t *testing.T) {
	for text, want := range map[string]string{
		"{'open': statuses.filter(s, has(s.phase) && s.phase == 'Open').size()}": "{open: 1}",
		"statuses[0].phase":      "",
		"{'phase': statuses[7]}": "",
	} {
		aggregator, err := aggregation.Compile(&synchubv1alpha1.PublishedResourceSpec{StatusExpression: text}, schema.GroupResource{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := aggregator.Aggregate(parse(t, "{phase: Open}", "null"), 1)
		switch {
		case want == "" && (err == nil || !strings.HasPrefix(err.Error(), "spec.statusExpression: ")):
			t.Errorf("%s: %v, %v", text, got, err)
		case want != "" && !reflect.DeepEqual(got, parse(t, want)[0]):
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// Large statuses of targets must not make a sum slow or large.
func TestSumIsBounded(t *testing.T) {
	aggregator, err := aggregation.Compile(&synchubv1alpha1.PublishedResourceSpec{StatusAggregation: synchubv1alpha1.StatusAggregationSum}, schema.GroupResource{})
	if err != nil {
		t.Fatal(err)
	}
	var list, conditions []any
	for i := range 20_000 {
		list = append(list, int64(i))
		conditions = append(conditions, map[string]any{"type": fmt.Sprint(i), "status": "True"})
	}
	got, err := aggregator.Aggregate([]map[string]any{{"list": list}, {"conditions": conditions[:2_000]}}, 1)
	if err != nil || len(got["list"].([]any)) != 256 || len(got["conditions"].([]any)) != 256 {
		t.Errorf("%d items, %v", len(got["list"].([]any)), err)
	}
	if _, err := aggregator.Aggregate([]map[string]any{{"text": strings.Repeat("x", aggregation.MaxBytes/2)}, {"text": strings.Repeat("y", aggregation.MaxBytes/2)}}, 1); !errors.Is(err, aggregation.ErrTooLarge) {
		t.Errorf("statuses of %d bytes: %v", aggregation.MaxBytes, err)
	}
}

// FuzzSum combines arbitrary statuses. Numbers do not depend on the order of the destinations, and the statuses are not changed.
func FuzzSum(f *testing.F) {
	f.Add([]byte(`{"replicas": 1, "conditions": [{"type": "Available", "status": "True"}, 3, {"type": 7}]}`), []byte(`{"replicas": "1", "conditions": {"a": 1}, "observedGeneration": 1.5}`))
	f.Add([]byte(`{"a": {"b": [1, {"c": null}]}}`), []byte(`{"a": [1], "startTime": 3}`))
	aggregator, err := aggregation.Compile(&synchubv1alpha1.PublishedResourceSpec{StatusAggregation: synchubv1alpha1.StatusAggregationSum}, schema.GroupResource{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var statuses []map[string]any
		for _, content := range [][]byte{first, second} {
			var status map[string]any
			if utiljson.Unmarshal(content, &status) != nil {
				return
			}
			statuses = append(statuses, status)
		}
		before, _ := json.Marshal(statuses)
		one, err := aggregator.Aggregate(statuses, 1)
		slices.Reverse(statuses)
		two, err2 := aggregator.Aggregate(statuses, 1)
		slices.Reverse(statuses)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for field, value := range one {
			if number, ok := value.(int64); ok && reflect.TypeOf(statuses[0][field]) == reflect.TypeOf(statuses[1][field]) && two[field] != number {
				t.Errorf("%s: %v, or %v", field, number, two[field])
			}
		}
		if after, _ := json.Marshal(statuses); string(after) != string(before) {
			t.Errorf("the statuses were changed from %s to %s", before, after)
		}
	})
}
