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

package transform_test

import (
	"math"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestObservedGeneration(t *testing.T) {
	for name, test := range map[string]struct {
		generations transform.Generations
		observed    any
		want        any
	}{
		"observed":                               {transform.Generations{Source: 10, Target: 3, Applied: true}, int64(3), int64(10)},
		"observed, as a float":                   {transform.Generations{Source: 10, Target: 3, Applied: true}, 3.0, int64(10)},
		"more than there is":                     {transform.Generations{Source: 10, Target: 3, Applied: true}, int64(9), int64(10)},
		"not yet observed":                       {transform.Generations{Source: 10, Target: 3, Applied: true}, int64(2), int64(9)},
		"long not observed":                      {transform.Generations{Source: 10, Target: 7, Applied: true}, int64(3), int64(6)},
		"never observed":                         {transform.Generations{Source: 10, Target: 3, Applied: true}, int64(0), int64(7)},
		"observed, but not applied":              {transform.Generations{Source: 11, Target: 3}, int64(3), int64(10)},
		"neither observed nor applied":           {transform.Generations{Source: 11, Target: 4}, int64(3), int64(9)},
		"before the first generation":            {transform.Generations{Source: 2, Target: 9, Applied: true}, int64(1), int64(0)},
		"the first generation, not yet observed": {transform.Generations{Source: 1, Target: 1, Applied: true}, int64(0), int64(0)},
		"the first generation, not applied":      {transform.Generations{Source: 1, Target: 1}, int64(1), int64(0)},
		"equal counts":                           {transform.Generations{Source: 5, Target: 5, Applied: true}, int64(4), int64(4)},
		"a side that does not count":             {transform.Generations{Applied: true}, int64(4), int64(0)},
		"a fraction":                             {transform.Generations{Source: 10, Target: 3, Applied: true}, 2.5, 2.5},
		"a float beyond all integers":            {transform.Generations{Source: 10, Target: 3, Applied: true}, 1e300, 1e300},
		"a text":                                 {transform.Generations{Source: 10, Target: 3, Applied: true}, "3", "3"},
		"a map":                                  {transform.Generations{Source: 10, Target: 3, Applied: true}, map[string]any{"a": int64(3)}, map[string]any{"a": int64(3)}},
		"the largest numbers":                    {transform.Generations{Source: math.MaxInt64, Target: math.MaxInt64}, int64(0), int64(0)},
		"impossible numbers":                     {transform.Generations{Source: math.MinInt64, Target: math.MinInt64}, int64(math.MinInt64), int64(0)},
	} {
		t.Run(name, func(t *testing.T) {
			status := map[string]any{
				"observedGeneration": test.observed,
				"conditions":         []any{map[string]any{"type": "Ready", "observedGeneration": test.observed}},
			}
			want := map[string]any{
				"observedGeneration": test.want,
				"conditions":         []any{map[string]any{"type": "Ready", "observedGeneration": test.want}},
			}
			if got := transform.ReturnedStatus(status, test.generations); !reflect.DeepEqual(got, want) {
				t.Errorf("want %v, got %v", want, got)
			}
		})
	}
}

// While an update is being downsynced, the status does not change until the target has observed it, so it is written once.
func TestOneStatusForOneUpdate(t *testing.T) {
	returned := func(source, target, observed int64, applied bool) any {
		return transform.ReturnedStatus(map[string]any{"observedGeneration": observed}, transform.Generations{Source: source, Target: target, Applied: applied})["observedGeneration"]
	}
	got := []any{
		returned(10, 3, 3, true),  // in sync
		returned(11, 3, 3, false), // the mailbox object was changed
		returned(11, 4, 3, true),  // the change was applied
		returned(11, 4, 4, true),  // the target's controllers have observed it
	}
	if want := []any{int64(10), int64(10), int64(10), int64(11)}; !reflect.DeepEqual(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
}

func TestReturnedStatus(t *testing.T) {
	generations := transform.Generations{Source: 10, Target: 3, Applied: true}
	for name, test := range map[string]struct{ status, want string }{
		"empty": {"{a: {}}", "{a: {}}"},
		"everywhere a condition is": {
			status: `
a: {observedGeneration: 3}
parents:
- controllerName: x
  observedGeneration: 3
  conditions: [{type: Accepted, observedGeneration: 3}, {type: Programmed, observedGeneration: 2}, {type: Old}]
nested: {conditions: [{observedGeneration: 3, conditions: [{observedGeneration: 3}], details: {observedGeneration: 3}}]}
conditions: {observedGeneration: 3}
lists: {conditions: [[{observedGeneration: 3}], 3, null, x]}
generation: 3
`,
			want: `
a: {observedGeneration: 3}
parents:
- controllerName: x
  observedGeneration: 3
  conditions: [{type: Accepted, observedGeneration: 10}, {type: Programmed, observedGeneration: 9}, {type: Old}]
nested: {conditions: [{observedGeneration: 10, conditions: [{observedGeneration: 10}], details: {observedGeneration: 3}}]}
conditions: {observedGeneration: 3}
lists: {conditions: [[{observedGeneration: 3}], 3, null, x]}
generation: 3
`,
		},
		"nulls": {
			status: "{a: null, b: {c: null, d: x}, e: [null, {f: null}], conditions: [{observedGeneration: null}, null]}",
			want:   "{a: null, b: {c: null, d: x}, e: [null, {f: null}], conditions: [{observedGeneration: null}, null]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, want := fixtures.Map(t, test.status), fixtures.Map(t, test.want)
			if got := transform.ReturnedStatus(status, generations); !reflect.DeepEqual(got, want) {
				t.Errorf("want %v\ngot  %v", want, got)
			}
		})
	}
	if got := transform.ReturnedStatus(nil, generations); got == nil || len(got) > 0 {
		t.Errorf("no status became %v", got)
	}
}

// checkReturned checks the invariants for any status.
func checkReturned(t *testing.T, status map[string]any, generations transform.Generations) {
	t.Helper()
	before := runtime.DeepCopyJSON(status)
	got := transform.ReturnedStatus(status, generations)
	if !reflect.DeepEqual(status, before) {
		t.Fatalf("the status was changed from %v to %v", before, status)
	}
	if observed, ok := got["observedGeneration"].(int64); ok {
		most := generations.Source
		if !generations.Applied {
			most--
		}
		if observed < 0 || observed > max(most, 0) {
			t.Errorf("%+v: %v was observed", generations, observed)
		}
	}
	if !reflect.DeepEqual(shape(got), shape(before)) {
		t.Errorf("more than numbers changed\nfrom %v\nto   %v", before, got)
	}
	if generations.Applied && generations.Source == generations.Target {
		if again := transform.ReturnedStatus(got, generations); !reflect.DeepEqual(again, got) {
			t.Errorf("not idempotent: %v, then %v", got, again)
		}
	}
	fixtures.Scribble(got)
	if !reflect.DeepEqual(status, before) {
		t.Fatalf("what is returned shares parts with the status %v", before)
	}
}

// shape replaces all values of observedGeneration.
func shape(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		result := make(map[string]any, len(typed))
		for key, item := range typed {
			if _, ok := item.(map[string]any); key == "observedGeneration" && !ok {
				item = "a number"
			}
			result[key] = shape(item)
		}
		return result
	case []any:
		result := make([]any, len(typed))
		for index, item := range typed {
			result[index] = shape(item)
		}
		return result
	default:
		return value
	}
}

func (g generator) status(depth int) any {
	if depth == 0 {
		return []any{nil, int64(g.IntN(5)), float64(g.IntN(5)), 1.5, "x", map[string]any{}, []any{}}[g.IntN(7)]
	}
	result := map[string]any{}
	for range g.IntN(6) {
		key := g.pick("observedGeneration", "conditions", "a", "parents")
		switch g.IntN(3) {
		case 0:
			result[key] = g.status(0)
		case 1:
			result[key] = g.status(depth - 1)
		default:
			list := make([]any, g.IntN(3))
			for index := range list {
				list[index] = g.status(depth - 1)
			}
			result[key] = list
		}
	}
	return result
}

func TestReturnedStatusOfAnything(t *testing.T) {
	for seed := range uint64(5000) {
		g := seeded(seed)
		generations := transform.Generations{Source: int64(g.IntN(5)), Target: int64(g.IntN(5)), Applied: g.IntN(2) == 0}
		checkReturned(t, g.status(4).(map[string]any), generations)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzReturnedStatus(f *testing.F) {
	f.Add(`{"observedGeneration":3,"conditions":[{"observedGeneration":3.0},null,[]]}`, int64(10), int64(3), true)
	f.Add(`{"observedGeneration":1e400,"conditions":{"conditions":[[{"observedGeneration":-1}]]}}`, int64(0), int64(-1), false)
	f.Add(`{"observedGeneration":9223372036854775807}`, int64(math.MinInt64), int64(math.MaxInt64), false)
	f.Fuzz(func(t *testing.T, text string, source, target int64, applied bool) {
		var status map[string]any
		if utiljson.Unmarshal([]byte(text), &status) != nil || status == nil {
			return
		}
		checkReturned(t, status, transform.Generations{Source: source, Target: target, Applied: applied})
	})
}
