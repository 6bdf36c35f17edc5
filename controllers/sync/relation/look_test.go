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

package relation

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// kinds are relations of primaries by their number.
var kinds = map[string]func(number int) Wanted{
	"names": func(number int) Wanted {
		return Wanted{Home: "a", Names: []types.NamespacedName{{Namespace: "a", Name: fmt.Sprintf("x%d", number)}, {Namespace: "a", Name: "shared"}}}
	},
	"names in selected namespaces": func(number int) Wanted {
		return Wanted{Home: "a", SpreadNames: []string{fmt.Sprintf("x%d", number), "shared"}, NamespaceSelector: labels.Everything()}
	},
	"labels by the primary's name": func(number int) Wanted {
		return Wanted{Home: "a", Namespaces: []string{"a"}, Selector: labels.SelectorFromSet(labels.Set{"app": fmt.Sprintf("x%d", number), "shared": "yes"})}
	},
	"the same labels": func(int) Wanted {
		return Wanted{Home: "a", Namespaces: []string{"a"}, Selector: labels.SelectorFromSet(labels.Set{"shared": "yes"})}
	},
	"labels in the primary's namespace": func(number int) Wanted {
		home := fmt.Sprintf("n%d", number)
		return Wanted{Home: home, Namespaces: []string{home}, Selector: labels.Everything()}
	},
	"owners": func(number int) Wanted {
		return Wanted{Home: "a", Namespaces: []string{"a"}, Owner: types.UID(fmt.Sprintf("x%d", number))}
	},
}

// filled returns a register in which so many primaries want something.
func filled(number int, wanted func(int) Wanted) (*Register, *book) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	relation := &Relation{Identifier: "creds", Origin: synchubv1alpha1.RelatedOriginMailbox, OnTarget: resource, InMailbox: resource}
	register := NewRegister()
	register.Begin("apps", []*Relation{relation})
	for index := range number {
		register.Set("apps", types.NamespacedName{Namespace: "a", Name: fmt.Sprintf("p%06d", index)}, relation, wanted(index))
	}
	return register, register.book(titleOf(relation))
}

func candidates() []Candidate {
	var all []Candidate
	for _, name := range []string{"x5", "shared", "other"} {
		for _, namespace := range []string{"a", "n5", ""} {
			for _, selected := range []bool{false, true} {
				all = append(all, Candidate{
					Key: types.NamespacedName{Namespace: namespace, Name: name}, Selected: selected,
					Labels: map[string]string{"app": name, "shared": "yes"}, Owners: []metav1.OwnerReference{{UID: types.UID(name)}},
				})
			}
		}
	}
	return all
}

// A look-up considers as many claims when there are many primaries as when there are few.
func TestLookUpsDoNotGrow(t *testing.T) {
	for title, wanted := range kinds {
		t.Run(title, func(t *testing.T) {
			var considered [][]int
			for _, number := range []int{10, 3000} {
				_, book := filled(number, wanted)
				var counts []int
				for _, candidate := range candidates() {
					count := 0
					for range book.candidates(candidate) {
						count++
					}
					counts = append(counts, count)
				}
				considered = append(considered, counts)
			}
			if !slices.Equal(considered[0], considered[1]) {
				t.Errorf("%v with 10 primaries, %v with 3000", considered[0], considered[1])
			}
			if slices.Max(considered[0]) == 0 || slices.Max(considered[0]) > 2 {
				t.Errorf("%v are considered, want one or two", considered[0])
			}
		})
	}
}

// Nothing is left of what is gone.
func TestNothingIsLeft(t *testing.T) {
	for title, wanted := range kinds {
		t.Run(title, func(t *testing.T) {
			register, book := filled(10, wanted)
			for index := range 10 {
				register.Remove("apps", types.NamespacedName{Namespace: "a", Name: fmt.Sprintf("p%06d", index)})
			}
			if left := len(book.drawers) + len(book.places.names) + len(book.places.searched) + len(book.places.namespaces) + len(register.contributors["apps"].words); left > 0 {
				t.Errorf("%d entries are left: %+v", left, book)
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	for title, wanted := range kinds {
		for _, number := range []int{10, 10000} {
			register, book := filled(number, wanted)
			candidate := candidates()[0]
			b.Run(fmt.Sprintf("%s/primaries=%d", title, number), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					register.Find(book.title.side, book.title.resource, candidate)
				}
			})
		}
	}
}
