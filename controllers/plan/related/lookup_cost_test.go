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

package related

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

// kinds are the queries of primaries by the primary's number.
var kinds = map[string]func(number int) Query{
	"names": func(number int) Query {
		return Query{SourceNamespace: "a", Names: []types.NamespacedName{{Namespace: "a", Name: fmt.Sprintf("x%d", number)}, {Namespace: "a", Name: "shared"}}}
	},
	"names in selected namespaces": func(number int) Query {
		return Query{SourceNamespace: "a", NamesInSelectedNamespaces: []string{fmt.Sprintf("x%d", number), "shared"}, NamespaceSelector: labels.Everything()}
	},
	"labels by the primary's name": func(number int) Query {
		return Query{SourceNamespace: "a", Namespaces: []string{"a"}, Selector: labels.SelectorFromSet(labels.Set{"app": fmt.Sprintf("x%d", number), "shared": "yes"})}
	},
	"the same labels": func(int) Query {
		return Query{SourceNamespace: "a", Namespaces: []string{"a"}, Selector: labels.SelectorFromSet(labels.Set{"shared": "yes"})}
	},
	"labels in the primary's namespace": func(number int) Query {
		home := fmt.Sprintf("n%d", number)
		return Query{SourceNamespace: home, Namespaces: []string{home}, Selector: labels.Everything()}
	},
	"owners": func(number int) Query {
		return Query{SourceNamespace: "a", Namespaces: []string{"a"}, Owner: types.UID(fmt.Sprintf("x%d", number))}
	},
}

// newFilledRegistry returns a registry with this number of primaries with claims.
func newFilledRegistry(number int, query func(int) Query) (*Registry, *bucket) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	relation := &Relation{Identifier: "creds", Origin: synchubv1alpha1.RelatedOriginMailbox, OnTarget: resource, InMailbox: resource}
	register := NewRegistry()
	register.BeginInitialSync("apps", []*Relation{relation})
	for index := range number {
		register.SetClaim("apps", types.NamespacedName{Namespace: "a", Name: fmt.Sprintf("p%06d", index)}, relation, query(index))
	}
	return register, register.bucket(bucketKeyOf(relation))
}

func someObjects() []Object {
	var all []Object
	for _, name := range []string{"x5", "shared", "other"} {
		for _, namespace := range []string{"a", "n5", ""} {
			for _, selected := range []bool{false, true} {
				all = append(all, Object{
					Key: types.NamespacedName{Namespace: namespace, Name: name}, NamespaceSelected: selected,
					Labels: map[string]string{"app": name, "shared": "yes"}, OwnerReferences: []metav1.OwnerReference{{UID: types.UID(name)}},
				})
			}
		}
	}
	return all
}

// A look-up visits as many claims with many primaries as with few.
func TestLookupsDoNotGrow(t *testing.T) {
	for title, query := range kinds {
		t.Run(title, func(t *testing.T) {
			var considered [][]int
			for _, number := range []int{10, 3000} {
				_, bucket := newFilledRegistry(number, query)
				var counts []int
				for _, object := range someObjects() {
					count := 0
					for range bucket.matchingGroups(object) {
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

// Removed claims leave no entries.
func TestNoEntriesAreLeft(t *testing.T) {
	for title, query := range kinds {
		t.Run(title, func(t *testing.T) {
			register, bucket := newFilledRegistry(10, query)
			for index := range 10 {
				register.RemovePrimary("apps", types.NamespacedName{Namespace: "a", Name: fmt.Sprintf("p%06d", index)})
			}
			if left := len(bucket.groups) + len(bucket.scopes.names) + len(bucket.scopes.searchedNamespaces) + len(bucket.scopes.namespacesOfNames) + len(register.publishedResources["apps"].claims); left > 0 {
				t.Errorf("%d entries are left: %+v", left, bucket)
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	for title, query := range kinds {
		for _, number := range []int{10, 10000} {
			register, bucket := newFilledRegistry(number, query)
			object := someObjects()[0]
			b.Run(fmt.Sprintf("%s/primaries=%d", title, number), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					register.Find(bucket.key.origin, bucket.key.resource, object)
				}
			})
		}
	}
}
