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

package writes

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// The callback is called once, when the cache shows the write: by an event, by a reconcile that finds it there,
// or at once if the cache showed it before the response.
func TestOnShown(t *testing.T) {
	type steps = []func(*testExpectations)
	begin := func(m *testExpectations) { m.Started(someKey) }
	applied := func(m *testExpectations) { m.Finished(someKey, version("a", "7")) }
	deleted := func(m *testExpectations) { m.DeleteAccepted(t.Context(), someKey, "a") }
	gone := func(uid types.UID) func(*testExpectations) {
		return func(m *testExpectations) { m.DeletionObserved(someKey, uid) }
	}
	seen := func(object *unstructured.Unstructured) func(*testExpectations) {
		return func(m *testExpectations) { m.Observed(someKey, object) }
	}
	reconciled := func(object *unstructured.Unstructured) func(*testExpectations) {
		return func(m *testExpectations) { m.Current(someKey, object) }
	}
	for name, test := range map[string]struct {
		// before are the steps before the callback is set, and after the following ones.
		before, after steps
		want          int
	}{
		"nothing follows":                       {steps{begin, applied}, nil, 0},
		"an event":                              {steps{begin, applied}, steps{seen(version("a", "7"))}, 1},
		"an event of a newer version":           {steps{begin, applied}, steps{seen(version("a", "8"))}, 1},
		"an event of an older version":          {steps{begin, applied}, steps{seen(version("a", "6"))}, 0},
		"nothing in the cache":                  {steps{begin, applied}, steps{seen(nil), reconciled(nil)}, 0},
		"a reconcile":                           {steps{begin, applied}, steps{reconciled(version("a", "7"))}, 1},
		"a reconcile with the object before":    {steps{begin, applied}, steps{reconciled(version("a", "6"))}, 0},
		"an event and a reconcile":              {steps{begin, applied}, steps{seen(version("a", "7")), seen(version("a", "8")), reconciled(version("a", "8"))}, 1},
		"its end":                               {steps{begin, applied}, steps{gone("a")}, 1},
		"another's end":                         {steps{begin, applied}, steps{gone("b")}, 0},
		"another write":                         {steps{begin, applied}, steps{begin, applied, seen(version("a", "7"))}, 0},
		"the event was before the answer":       {steps{begin, seen(version("a", "7")), applied, reconciled(version("a", "7"))}, nil, 1},
		"its end was before the answer":         {steps{begin, gone("a"), applied}, nil, 1},
		"a deletion, not in the cache yet":      {steps{begin, deleted}, steps{reconciled(version("a", "5")), seen(version("a", "6"))}, 0},
		"a deletion, and its end":               {steps{begin, deleted}, steps{gone("a")}, 1},
		"a deletion, and another one":           {steps{begin, deleted}, steps{gone("b")}, 0},
		"a deletion, and nothing in the cache":  {steps{begin, deleted}, steps{reconciled(nil)}, 1},
		"a deletion whose end was before it":    {steps{begin, gone("a"), deleted}, nil, 1},
		"a deletion, and a reconcile after all": {steps{begin, deleted}, steps{gone("a"), reconciled(nil)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, calls := newTestExpectations[types.NamespacedName](clock.RealClock{}), 0
			for _, step := range test.before {
				step(m)
			}
			m.OnShown(someKey, func() { calls++ })
			for _, step := range test.after {
				step(m)
			}
			if calls != test.want {
				t.Errorf("called %d times, not %d", calls, test.want)
			}
		})
	}
}
