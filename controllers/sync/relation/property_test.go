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

package relation_test

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

// checkChanged tries that every answer that is different is announced.
func (w *world) checkChanged(of about, done string, before, after []verdict) {
	w.t.Helper()
	heard := w.announced[of]
	for index, candidate := range w.candidates {
		was, is := before[index], after[index]
		// That absence means nothing any more need not be known: nothing is to be done about it.
		different := is
		different.unrelated = is.unrelated || was.unrelated
		differs := different != was
		w.count("different", differs)
		if differs && !slices.ContainsFunc(heard, func(change relation.Change) bool { return change.Concerns(candidate.Key) }) {
			w.t.Fatalf("%s: %v: %s was %+v and is %+v, but that is not announced: %+v", done, of, describe(candidate), was, is, heard)
		}
	}
}

// checkFounded tries that nothing else is announced.
func (w *world) checkFounded(of about, done string, former []said, settling bool) {
	w.t.Helper()
	changed := slices.Concat(w.without(of, former, w.naive.words), w.without(of, w.naive.words, former))
	for _, change := range w.announced[of] {
		w.count("all", change.All)
		w.count("names", len(change.Names) > 0)
		w.count("namespaces", len(change.Namespaces) > 0)
		if reason := unfounded(change, changed, settling); reason != "" {
			w.t.Fatalf("%s: %v: announced is %+v, but %s", done, of, change, reason)
		}
	}
}

// without returns what only the first was told about an API.
func (w *world) without(of about, words, others []said) []said {
	return slices.DeleteFunc(slices.Clone(words), func(word said) bool {
		return word.about != of || word.relation == nil || slices.ContainsFunc(others, func(other said) bool {
			return other.contributor == word.contributor && other.primary == word.primary && other.about == of && other.identifier == word.identifier &&
				other.relation == word.relation && other.wanted.Equal(word.wanted)
		})
	})
}

// unfounded returns what of a change has no cause in what is said otherwise than before.
func unfounded(change relation.Change, changed []said, settling bool) string {
	if !change.All && len(change.Names)+len(change.Namespaces) == 0 {
		return "it is empty"
	}
	caused := func(cause func(relation.Wanted) bool) bool {
		return slices.ContainsFunc(changed, func(word said) bool { return cause(word.wanted) })
	}
	if change.All && !settling && !caused(func(wanted relation.Wanted) bool { return wanted.NamespaceSelector != nil }) {
		return "nobody looks everywhere"
	}
	for _, namespace := range change.Namespaces {
		if !caused(func(wanted relation.Wanted) bool {
			return slices.Contains(wanted.Namespaces, namespace) || wanted.NamespaceSelector != nil && wanted.Home == namespace
		}) {
			return "nobody looks in namespace " + namespace
		}
	}
	for _, name := range change.Names {
		if !caused(func(wanted relation.Wanted) bool {
			return slices.Contains(wanted.Names, name) || wanted.Home == name.Namespace && slices.Contains(wanted.SpreadNames, name.Name)
		}) {
			return "nobody names " + name.String()
		}
	}
	return ""
}

// checkPlaces compares where the register says that originals are with where they are wanted.
func (w *world) checkPlaces(of about, done string) {
	w.t.Helper()
	wantNames, wantNamespaces, wantAll := w.places(of)
	names, namespaces, all := w.register.Wanted(of.side, of.resource)
	if len(wantNames) > 8 {
		w.count("many names", true)
		for name := range wantNames {
			wantNamespaces[name.Namespace] = struct{}{}
		}
		// As many as show that there are too many.
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

// places returns where what is wanted can be.
func (w *world) places(of about) (names map[types.NamespacedName]struct{}, namespaces map[string]struct{}, all bool) {
	names, namespaces = map[types.NamespacedName]struct{}{}, map[string]struct{}{}
	for _, word := range w.naive.words {
		if word.about != of || word.relation == nil {
			continue
		}
		wanted := word.wanted
		searches := wanted.Owner != "" || wanted.Selector != nil && !selectsNothing(wanted.Selector)
		maps.Copy(names, set(wanted.Names))
		if searches {
			maps.Copy(namespaces, set(wanted.Namespaces))
		}
		selector := wanted.NamespaceSelector
		all = all || selector != nil && !selectsNothing(selector) && (searches || len(wanted.SpreadNames) > 0)
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

func TestAnswersLikeTheNaive(t *testing.T) {
	tried := map[string]int{}
	for seed := range uint64(30) {
		g := seeded(seed)
		world := newWorld(t, g, 40)
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

func FuzzRegister(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(10) {
		random, data := seeded(seed), make([]byte, 300)
		for index := range data {
			data[index] = "0123456789abcdef"[random.IntN(16)]
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		source := &choices{data[:min(len(data), 1000)]}
		world := newWorld(t, generator{source}, 8)
		for len(source.bytes) > 0 {
			world.step(generator{source})
		}
	})
}
