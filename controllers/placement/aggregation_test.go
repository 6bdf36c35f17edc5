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

package placement

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/topic"
)

const countObjects = `{"all": objects.size()}`

func aggregating(uid types.UID, expression string) *resolvedPlacement {
	return &resolvedPlacement{Placement: &rules.Placement{Name: string(uid), UID: uid, Aggregation: expression}}
}

func podAt(name, version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "Pod"}}
	object.SetUID(types.UID(name))
	object.SetName(name)
	object.SetResourceVersion(version)
	return object
}

// An expression is compiled once, and evaluated when its objects or its text change.
func TestAggregationsAreEvaluatedForChanges(t *testing.T) {
	t.Parallel()
	inputs := map[types.UID]aggregationInput{"one": {objects: []*unstructured.Unstructured{podAt("a", "1")}}}
	first := evaluateAll(nil, []*resolvedPlacement{aggregating("one", countObjects)}, inputs)["one"]
	for name, c := range map[string]struct {
		expression string
		objects    []*unstructured.Unstructured
		wantSame   bool
		want       string
	}{
		"nothing":        {countObjects, []*unstructured.Unstructured{podAt("a", "1")}, true, `{"all":1}`},
		"a version":      {countObjects, []*unstructured.Unstructured{podAt("a", "2")}, false, `{"all":1}`},
		"another object": {countObjects, []*unstructured.Unstructured{podAt("a", "1"), podAt("b", "1")}, false, `{"all":2}`},
		"no object":      {countObjects, nil, false, `{"all":0}`},
		"the expression": {`{"kinds": objects.map(o, o.kind)}`, []*unstructured.Unstructured{podAt("a", "1")}, false, `{"kinds":["Pod"]}`},
	} {
		got := first.evaluate(c.expression, c.objects)
		if (got == first) != c.wantSame || string(got.value) != c.want || got.err != nil {
			t.Errorf("a change of %s: the same %v, %s, %v", name, got == first, got.value, got.err)
		}
		if isCompiledAgain := got.compiled != first.compiled; isCompiledAgain != (c.expression != countObjects) {
			t.Errorf("a change of %s: compiled again %v", name, isCompiledAgain)
		}
	}
	invalid := first.evaluate("{", nil)
	if again := invalid.evaluate("{", inputs["one"].objects); invalid.err == nil || again != invalid {
		t.Errorf("an invalid expression: %v, compiled again %v", invalid.err, again != invalid)
	}
}

// A result is about all objects, or it is the former one, or there is none.
func TestAggregationsOfPartsAreNotShown(t *testing.T) {
	t.Parallel()
	placements := []*resolvedPlacement{aggregating("one", countObjects)}
	former := evaluateAll(nil, placements, map[types.UID]aggregationInput{"one": {objects: []*unstructured.Unstructured{podAt("a", "1")}}})
	for name, c := range map[string]struct {
		before map[types.UID]*aggregated
		input  aggregationInput
		want   string
	}{
		"being fetched":     {former, aggregationInput{isPending: true}, `{"all":1}`},
		"fetched at first":  {nil, aggregationInput{isPending: true}, ""},
		"beyond the limit":  {former, aggregationInput{isPending: true, isOverLimit: true}, rules.ReasonLimitExceeded},
		"all are there now": {former, aggregationInput{}, `{"all":0}`},
	} {
		got := ""
		if result := evaluateAll(c.before, placements, map[types.UID]aggregationInput{"one": c.input})["one"]; result != nil {
			if got = string(result.value); result.err != nil {
				got = aggregatedCondition(result.err).Reason
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A limit that is exceeded no more leaves nothing behind.
func TestAggregationsComeBackAfterALimit(t *testing.T) {
	t.Parallel()
	placements, results := []*resolvedPlacement{aggregating("one", countObjects)}, map[types.UID]*aggregated{}
	for name, refused := range map[string]*aggregated{
		"of the workspace":  evaluateAll(nil, placements, map[types.UID]aggregationInput{"one": {isOverLimit: true}})["one"],
		"of the placements": {expression: countObjects, err: errAggregationLimit},
	} {
		results["one"] = refused
		if got := evaluateAll(results, placements, nil)["one"]; got.err != nil || string(got.value) != `{"all":0}` {
			t.Errorf("after the limit %s: %s, %v", name, got.value, got.err)
		}
	}
}

func TestAggregationInput(t *testing.T) {
	t.Parallel()
	for projection, want := range map[mailboxes.Projection]aggregationInput{
		mailboxes.FullObject: {}, mailboxes.MetadataOnly: {isPending: true}, mailboxes.IdentityOnly: {isOverLimit: true},
	} {
		input := aggregationInput{}
		input.add(podAt("a", "1"), projection)
		if isComplete := projection == mailboxes.FullObject; (len(input.objects) == 1) != isComplete || input.isPending != want.isPending || input.isOverLimit != want.isOverLimit {
			t.Errorf("%v: %+v", projection, input)
		}
	}
}

// Further placements of a workspace get a reason, and the first ones their results.
func TestAggregationsAreLimited(t *testing.T) {
	t.Parallel()
	var placements []*resolvedPlacement
	for i := range maxAggregations + 1 {
		placements = append(placements, aggregating(types.UID(fmt.Sprint(i)), countObjects))
	}
	results := evaluateAll(nil, placements, nil)
	for i := range maxAggregations + 1 {
		result := results[types.UID(fmt.Sprint(i))]
		if isRefused := result.err != nil; isRefused != (i == maxAggregations) {
			t.Errorf("placement %d: %v", i, result.err)
		}
	}
	if got := aggregatedCondition(results[types.UID(fmt.Sprint(maxAggregations))].err); got.Reason != rules.ReasonLimitExceeded {
		t.Errorf("the condition of a further placement is %+v", got)
	}
}

// The next expressions of a workspace wait 50 times as long as the last ones took, and at least as long as the next status.
func TestExpressionsRest(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Now())
	a, evaluations := &aggregator{clock: clock}, 0
	evaluate := func() time.Duration {
		return a.limited(func() { evaluations++; clock.Step(100 * time.Millisecond) })
	}
	if wait := evaluate(); wait != 0 || evaluations != 1 {
		t.Fatalf("the first ones wait %v", wait)
	}
	clock.Step(2 * time.Second)
	if wait := evaluate(); wait != 3*time.Second || evaluations != 1 {
		t.Errorf("the next ones wait %v, after %d evaluations", wait, evaluations)
	}
	clock.Step(3 * time.Second)
	if wait := evaluate(); wait != 0 || evaluations != 2 {
		t.Errorf("after their rest they wait %v, after %d evaluations", wait, evaluations)
	}
	clock.Step(time.Minute)
	if a.limited(func() { clock.Step(time.Millisecond) }) != 0 || a.limited(nil) != reportInterval {
		t.Errorf("quick ones rest until %v, it is %v", a.nextAt, clock.Now())
	}
}

// A report for another reason evaluates nothing, and many changes request one report.
func TestReportsEvaluateNothingWithoutAChange(t *testing.T) {
	t.Parallel()
	requested := 0
	r := &reports{cluster: "workload", topic: &topic.Topic[logicalcluster.Name]{}}
	r.topic.Subscribe(t.Context(), func(logicalcluster.Name) { requested++ })
	reflected := &reflections{reports: r}
	reflected.aggregationChanged()
	if requested != 0 {
		t.Errorf("%d reports of a workspace without an expression", requested)
	}
	reflected.isAggregated.Store(true)
	reflected.aggregationChanged()
	reflected.aggregationChanged()
	if requested != 1 {
		t.Errorf("%d reports for two changes", requested)
	}
	a := &aggregator{results: map[types.UID]*aggregated{"one": {expression: countObjects}}}
	for name, c := range map[string]struct {
		placements []*resolvedPlacement
		want       bool
	}{
		"the same":           {[]*resolvedPlacement{aggregating("one", countObjects)}, true},
		"another expression": {[]*resolvedPlacement{aggregating("one", "{}")}, false},
		"another placement":  {[]*resolvedPlacement{aggregating("two", countObjects)}, false},
		"one more":           {[]*resolvedPlacement{aggregating("one", countObjects), aggregating("two", countObjects)}, false},
	} {
		if got := a.hasResults(c.placements); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Secrets, reflections that the workspace does not have, and those that no placement wants are left out.
func TestAggregatedReflections(t *testing.T) {
	t.Parallel()
	of := func(resource, name string) copyKey {
		return copyKey{resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, mailbox: "mailbox", name: types.NamespacedName{Namespace: "shop-1", Name: name}}
	}
	selected, named := []types.UID{"one"}, func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	r := &reflections{all: map[copyKey]*reflected{
		of("pods", "web"):    {name: named("web.florin"), isPresent: true, selectedBy: selected},
		of("pods", "late"):   {name: named("late.florin"), selectedBy: selected},
		of("pods", "former"): {name: named("former.florin"), isPresent: true},
		of("secrets", "web"): {name: named("web.florin"), isPresent: true, selectedBy: selected},
	}}
	got := r.presentFor()
	if len(got) != 1 || len(got[objectKey{podResource, named("web.florin")}]) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestAggregationInTheStatus(t *testing.T) {
	t.Parallel()
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	failed := denied(rules.ReasonAggregationFailed, "no such key: phase")
	for name, c := range map[string]struct {
		expression string
		before     *runtime.RawExtension
		result     *aggregated
		value      string
		reason     string
	}{
		"no expression":     {"", raw(`{"all":1}`), nil, "", ""},
		"the first":         {countObjects, nil, &aggregated{expression: countObjects, value: []byte(`{"all":1}`)}, `{"all":1}`, rules.ReasonAggregated},
		"the same":          {countObjects, raw(`{"b": 1, "a": 2}`), &aggregated{expression: countObjects, value: []byte(`{"a":2,"b":1}`)}, `{"b": 1, "a": 2}`, rules.ReasonAggregated},
		"another":           {countObjects, raw(`{"all":1}`), &aggregated{expression: countObjects, value: []byte(`{"all":2}`)}, `{"all":2}`, rules.ReasonAggregated},
		"failed":            {countObjects, raw(`{"all":1}`), &aggregated{expression: countObjects, err: failed}, "", rules.ReasonAggregationFailed},
		"not evaluated yet": {countObjects, raw(`{"all":1}`), nil, `{"all":1}`, "Before"},
		"of the former":     {countObjects, raw(`{"all":1}`), &aggregated{expression: "{}", value: []byte(`{}`)}, `{"all":1}`, "Before"},
	} {
		placement := &edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
		if c.expression != "" {
			placement.Spec.Aggregation = &edgev2alpha1.PlacementAggregation{Expression: c.expression}
		}
		next := &edgev2alpha1.EdgePlacementStatus{Aggregation: c.before, Conditions: []metav1.Condition{{Type: edgev2alpha1.ConditionAggregated, Reason: "Before"}}}
		setAggregation(next, placement, c.result)
		value, reason := "", ""
		if next.Aggregation != nil {
			value = string(next.Aggregation.Raw)
		}
		if condition := meta.FindStatusCondition(next.Conditions, edgev2alpha1.ConditionAggregated); condition != nil {
			reason = condition.Reason
			if c.result != nil && reason != "Before" && condition.ObservedGeneration != 7 {
				t.Errorf("%s: the condition is of generation %d", name, condition.ObservedGeneration)
			}
		}
		if value != c.value || reason != c.reason {
			t.Errorf("%s: %s, %s; want %s, %s", name, value, reason, c.value, c.reason)
		}
	}
}

// A merge patch removes the fields that the next result lacks, at any depth.
func TestPatchOfAnAggregation(t *testing.T) {
	t.Parallel()
	status := func(text string) *edgev2alpha1.EdgePlacementStatus {
		if text == "" {
			return &edgev2alpha1.EdgePlacementStatus{}
		}
		return &edgev2alpha1.EdgePlacementStatus{Aggregation: &runtime.RawExtension{Raw: []byte(text)}}
	}
	for _, c := range []struct{ before, after, want string }{
		{"", "", `null`},
		{"", `{"a":1}`, `{"a":1}`},
		{`{"a":1}`, "", `null`},
		{`{"a":1,"b":{"c":1,"d":2}}`, `{"b":{"d":3}}`, `{"a":null,"b":{"c":null,"d":3}}`},
		{`{"a":1}`, `{"a":1}`, `{}`},
	} {
		fields, err := statusFields(status(c.before), status(c.after))
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(fields["aggregation"])
		if err != nil || strings.TrimSpace(string(got)) != c.want {
			t.Errorf("from %s to %s: %s, %v; want %s", c.before, c.after, got, err, c.want)
		}
	}
}
