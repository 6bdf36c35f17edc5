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

package related_test

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/tier"
)

// checkChanged checks that every changed result is notified.
func (w *modelComparison) checkChanged(of bucketKey, done string, before, after []result) {
	w.t.Helper()
	changes := w.changes[of]
	for index, object := range w.objects {
		was, is := before[index], after[index]
		// No controller acts on an incomplete bucket, so no notification is needed.
		different := is
		different.unrelated = is.unrelated || was.unrelated
		differs := different != was
		w.count("different", differs)
		if differs && !slices.ContainsFunc(changes, func(change related.Change) bool { return change.Affects(object.Key) }) {
			w.t.Fatalf("%s: %v: %s was %+v and is %+v, but it is not in the changes %+v", done, of, describe(object), was, is, changes)
		}
	}
}

// checkCaused checks that nothing else is notified.
func (w *modelComparison) checkCaused(of bucketKey, done string, former []modelClaim, settling bool) {
	w.t.Helper()
	changed := slices.Concat(w.without(of, former, w.model.claims), w.without(of, w.model.claims, former))
	for _, change := range w.changes[of] {
		w.count("all", change.All)
		w.count("names", len(change.Names) > 0)
		w.count("namespaces", len(change.Namespaces) > 0)
		if reason := uncaused(change, changed, settling); reason != "" {
			w.t.Fatalf("%s: %v: announced is %+v, but %s", done, of, change, reason)
		}
	}
}

// without returns the claims on an API that are only in the first list.
func (w *modelComparison) without(of bucketKey, words, excluded []modelClaim) []modelClaim {
	return slices.DeleteFunc(slices.Clone(words), func(word modelClaim) bool {
		return word.key != of || word.relation == nil || slices.ContainsFunc(excluded, func(other modelClaim) bool {
			return other.publishedResource == word.publishedResource && other.primary == word.primary && other.key == of && other.identifier == word.identifier &&
				other.relation == word.relation && other.query.Equal(word.query)
		})
	})
}

// uncaused returns the part of a change that no changed claim explains.
func uncaused(change related.Change, changed []modelClaim, settling bool) string {
	if !change.All && len(change.Names)+len(change.Namespaces) == 0 {
		return "it is empty"
	}
	caused := func(cause func(related.Query) bool) bool {
		return slices.ContainsFunc(changed, func(word modelClaim) bool { return cause(word.query) })
	}
	if change.All && !settling && !caused(func(query related.Query) bool { return query.NamespaceSelector != nil }) {
		return "no claim covers all namespaces"
	}
	for _, namespace := range change.Namespaces {
		if !caused(func(query related.Query) bool {
			return slices.Contains(query.Namespaces, namespace) || query.NamespaceSelector != nil && query.SourceNamespace == namespace
		}) {
			return "no claim covers namespace " + namespace
		}
	}
	for _, name := range change.Names {
		if !caused(func(query related.Query) bool {
			return slices.Contains(query.Names, name) || query.SourceNamespace == name.Namespace && slices.Contains(query.NamesInSelectedNamespaces, name.Name)
		}) {
			return "nobody names " + name.String()
		}
	}
	return ""
}

// checkScope compares the source scopes of the registry and the model.
func (w *modelComparison) checkScope(of bucketKey, done string) {
	w.t.Helper()
	wantNames, wantNamespaces, wantAll := w.sourceScope(of)
	names, namespaces, all := w.registry.SourceScope(of.origin, of.resource)
	if len(wantNames) > 8 {
		w.count("many names", true)
		for name := range wantNames {
			wantNamespaces[name.Namespace] = struct{}{}
		}
		// The lists are long enough to show that there are too many names.
		maps.DeleteFunc(wantNames, func(name types.NamespacedName, _ struct{}) bool {
			return len(names) >= 9 && !slices.Contains(names, name)
		})
	}
	if got := set(names); len(got) != len(names) || !maps.Equal(got, wantNames) {
		w.t.Fatalf("%s: %v is wanted under %v, want %v", done, of, names, wantNames)
	}
	if got := set(namespaces); len(got) != len(namespaces) || !maps.Equal(got, wantNamespaces) || all != wantAll {
		w.t.Fatalf("%s: %v is wanted in %v, %v, want %v, %v", done, of, namespaces, all, wantNamespaces, wantAll)
	}
}

// sourceScope returns the model's scope of claimed objects.
func (w *modelComparison) sourceScope(of bucketKey) (names map[types.NamespacedName]struct{}, namespaces map[string]struct{}, all bool) {
	names, namespaces = map[types.NamespacedName]struct{}{}, map[string]struct{}{}
	for _, word := range w.model.claims {
		if word.key != of || word.relation == nil {
			continue
		}
		query := word.query
		searches := query.Owner != "" || query.Selector != nil && !selectsNothing(query.Selector)
		maps.Copy(names, set(query.Names))
		if searches {
			maps.Copy(namespaces, set(query.Namespaces))
		}
		selector := query.NamespaceSelector
		all = all || selector != nil && !selectsNothing(selector) && (searches || len(query.NamesInSelectedNamespaces) > 0)
	}
	return names, namespaces, all
}

func set[T comparable](list []T) map[T]struct{} {
	result := map[T]struct{}{}
	for _, item := range list {
		result[item] = struct{}{}
	}
	return result
}

func TestMatchesLikeTheModel(t *testing.T) {
	tier.Thorough(t)
	tried := map[string]int{}
	for seed := range uint64(30) {
		g := seeded(seed)
		world := newModelComparison(t, g, 40)
		for range 150 {
			world.step(g)
		}
		for sort, count := range world.tried {
			tried[sort] += count
		}
	}
	t.Logf("%v", tried)
	for sort, least := range map[string]int{
		"related": 50000, "unrelated": 50000, "open": 2000, "different": 5000, "all": 300, "names": 300, "namespaces": 300, "many names": 20,
	} {
		if tried[sort] < least {
			t.Errorf("%s: %d times, want at least %d: that tries too little", sort, tried[sort], least)
		}
	}
}

func FuzzRegistry(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(10) {
		random, data := seeded(seed), make([]byte, 300)
		for index := range data {
			data[index] = "0123456789abcdef"[random.IntN(16)]
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		source := &fixtures.Choices{Bytes: data[:min(len(data), 1000)]}
		world := newModelComparison(t, generator{source}, 8)
		for len(source.Bytes) > 0 {
			world.step(generator{source})
		}
	})
}
