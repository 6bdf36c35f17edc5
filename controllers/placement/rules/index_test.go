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

package rules_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

// TestIndex compares an index with a test of all placements, for random placements and objects with few values.
func TestIndex(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // it makes test cases
	selected, unknown := 0, 0
	for range 300 {
		placements := make([]*rules.Placement, random.IntN(8))
		for i := range placements {
			var spec edgev2alpha1.EdgePlacementSpec
			for range random.IntN(3) {
				spec.Downsync = append(spec.Downsync, randomTest(random))
			}
			placements[i] = compile(t, spec)
		}
		index := rules.NewIndex(placements)
		for range 20 {
			object := randomObject(random)
			var want []int
			wantKnown := true
			for i, placement := range placements {
				is, decided := placement.Selects(object)
				if is {
					want = append(want, i)
				}
				wantKnown = wantKnown && decided
			}
			if got, known := index.PlacementsFor(object); !slices.Equal(got, want) || known != wantKnown {
				t.Fatalf("%+v: got %v, known %t, want %v, known %t", object, got, known, want, wantKnown)
			}
			if len(want) > 0 {
				selected++
			}
			if !wantKnown {
				unknown++
			}
		}
	}
	if selected < 500 || unknown < 100 {
		t.Errorf("only %d of 6000 objects were selected, and %d had unknown labels: the cases test too little", selected, unknown)
	}
}

// An index has at most maxEntries entries, and finds the placements beyond them too.
func TestLargeIndex(t *testing.T) {
	t.Parallel()
	var placements []*rules.Placement
	for i := range 70 {
		names := make([]string, 1024)
		for j := range names {
			names[j] = fmt.Sprintf("p%d-%d", i, j)
		}
		placements = append(placements, compile(t, edgev2alpha1.EdgePlacementSpec{Downsync: []edgev2alpha1.DownsyncObjectTest{{ObjectNames: names}}}))
	}
	index := rules.NewIndex(placements)
	for _, position := range []int{0, 63, 64, 69} {
		object := &rules.Object{Resource: "configmaps", Namespace: "shop", Name: fmt.Sprintf("p%d-7", position), Labels: labels.Set{}}
		if got, known := index.PlacementsFor(object); !known || !slices.Equal(got, []int{position}) {
			t.Errorf("%s: %v", object.Name, got)
		}
	}
}

var someNames = []string{"a", "b", "*"}

func randomNames(random *rand.Rand) (names []string) {
	for range max(0, random.IntN(5)-2) {
		names = append(names, someNames[random.IntN(len(someNames))])
	}
	return names
}

func randomSelectors(random *rand.Rand) (selectors []metav1.LabelSelector) {
	operators := []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists}
	for range max(0, random.IntN(5)-2) {
		var one metav1.LabelSelector
		for range random.IntN(3) {
			requirement := metav1.LabelSelectorRequirement{Key: someNames[random.IntN(2)], Operator: operators[random.IntN(3)]}
			if requirement.Operator != metav1.LabelSelectorOpExists {
				requirement.Values = someNames[:1+random.IntN(2)]
			}
			one.MatchExpressions = append(one.MatchExpressions, requirement)
		}
		selectors = append(selectors, one)
	}
	return selectors
}

func randomTest(random *rand.Rand) edgev2alpha1.DownsyncObjectTest {
	return edgev2alpha1.DownsyncObjectTest{
		Resources: randomNames(random), Namespaces: randomNames(random), ObjectNames: randomNames(random),
		NamespaceSelectors: randomSelectors(random), LabelSelectors: randomSelectors(random),
	}
}

func randomObject(random *rand.Rand) *rules.Object {
	value := func() string { return []string{"a", "b", "c"}[random.IntN(3)] }
	set := func() labels.Set {
		made := labels.Set{}
		for range random.IntN(3) {
			made[value()] = value()
		}
		return made
	}
	object := &rules.Object{Resource: value(), Name: value(), Labels: set()}
	if random.IntN(4) > 0 {
		object.Namespace = value()
	}
	namespace, known := set(), random.IntN(3) > 0
	object.NamespaceLabels = func() (labels.Labels, bool) { return namespace, known }
	return object
}

// BenchmarkPlacementsFor finds the placement of an object among many.
func BenchmarkPlacementsFor(b *testing.B) {
	for _, count := range []int{10, 1000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			placements := make([]*rules.Placement, count)
			for i := range placements {
				var err error
				placements[i], err = rules.Compile(&edgev2alpha1.EdgePlacement{Spec: edgev2alpha1.EdgePlacementSpec{Downsync: []edgev2alpha1.DownsyncObjectTest{
					{Resources: []string{"deployments"}, LabelSelectors: []metav1.LabelSelector{labelled("app", fmt.Sprint(i))}},
				}}})
				if err != nil {
					b.Fatal(err)
				}
			}
			index, object := rules.NewIndex(placements), &rules.Object{Resource: "deployments", Name: "web", Namespace: "prod", Labels: labels.Set{"app": "3"}}
			for b.Loop() {
				if selected, _ := index.PlacementsFor(object); len(selected) != 1 {
					b.Fatal(selected)
				}
			}
		})
	}
}
