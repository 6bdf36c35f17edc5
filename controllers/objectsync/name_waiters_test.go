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

package objectsync

import (
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// await returns a former name exactly when its last key has left it.
func TestNameWaitersOfAnyHistory(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // a repeatable history
		waiting, naive := nameWaiters{}, map[types.NamespacedName]plan.Ref{}
		// watched are the names that a caller would watch by the results of await.
		watched := map[plan.Ref]bool{}
		for step := range 40 {
			key := anyOf(random, someKeys)
			var at *plan.Ref
			if random.IntN(3) > 0 {
				selected := anyOf(random, someRefs)
				at = &selected
			}
			left := waiting.await(key, at)
			delete(naive, key)
			if left != nil {
				if !watched[*left] {
					t.Fatalf("seed %d, step %d: %v is given back twice", seed, step, *left)
				}
				delete(watched, *left)
			}
			if at != nil {
				naive[key] = *at
				watched[*at] = true
			}
			for _, place := range someRefs {
				var want []types.NamespacedName
				for _, key := range someKeys {
					if waited, ok := naive[key]; ok && waited == place {
						want = append(want, key)
					}
				}
				got := waiting.keysOf(place)
				slices.SortFunc(got, func(a, b types.NamespacedName) int { return slices.Index(someKeys, a) - slices.Index(someKeys, b) })
				if !slices.Equal(got, want) || watched[place] != (len(want) > 0) {
					t.Fatalf("seed %d, step %d: the keys waiting for %v are %v (watched: %v), want %v", seed, step, place, got, watched[place], want)
				}
			}
		}
	}
}
