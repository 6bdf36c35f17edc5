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
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

// compiled returns a placement with the given numbers of tests, of selectors in each test, and of values in
// each selector.
func compiled(t *testing.T, tests, selectors, values int) *rules.Placement {
	t.Helper()
	placement := &edgev2alpha1.EdgePlacement{}
	for i := range tests {
		var one edgev2alpha1.DownsyncObjectTest
		for j := range selectors {
			requirement := metav1.LabelSelectorRequirement{Key: fmt.Sprintf("k%d-%d", i, j), Operator: metav1.LabelSelectorOpNotIn}
			for k := range values {
				requirement.Values = append(requirement.Values, fmt.Sprint(k))
			}
			one.LabelSelectors = append(one.LabelSelectors, metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}})
		}
		placement.Spec.Downsync = append(placement.Spec.Downsync, one)
	}
	found, err := rules.Compile(placement)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The cost of testing one object is bounded for any selectors that users write.
func TestPlacementsHaveAFewSelectors(t *testing.T) {
	plain, one, large, broad := compiled(t, 256, 0, 0), compiled(t, 1, 1, 1), compiled(t, 256, 64, 1), compiled(t, 1, 1, maxCost)
	half := compiled(t, 64, 20, 1)
	for name, c := range map[string]struct {
		placements []*rules.Placement
		want       int
	}{
		"names cost nothing":             {[]*rules.Placement{plain, plain, plain}, 3},
		"256 tests with 64 selectors":    {[]*rules.Placement{one, large, one}, 2},
		"one selector with many values":  {[]*rules.Placement{broad, one}, 1},
		"several that are much together": {[]*rules.Placement{half, half, half, one}, 3},
	} {
		if got := withinCost(c.placements, func(one *rules.Placement) *rules.Placement { return one }); len(got) != c.want {
			t.Errorf("%s: %d placements are within the cost, want %d", name, len(got), c.want)
		}
	}
}
