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
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/targets"
)

// keysOf parses names in the form namespace/name.
func keysOf(names ...string) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		keys = append(keys, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return keys
}

// numbered returns a number of names in one namespace or, if the namespace contains a %d, each in its own namespace.
func numbered(namespace string, count int) []types.NamespacedName {
	var keys []types.NamespacedName
	for i := range count {
		at := namespace
		if strings.Contains(at, "%") {
			at = fmt.Sprintf(at, i)
		}
		keys = append(keys, types.NamespacedName{Namespace: at, Name: fmt.Sprintf("n%d", i)})
	}
	return keys
}

func TestRelatedWatchScope(t *testing.T) {
	everywhere := targets.Scope{All: true}
	for name, test := range map[string]struct {
		names      []types.NamespacedName
		namespaces []string
		all        bool
		selected   selection.Scope
		want       targets.Scope
	}{
		"nowhere":                       {nil, nil, false, selection.Scope{}, targets.Scope{}},
		"everywhere":                    {keysOf("a/x"), []string{"b"}, true, selection.Scope{}, everywhere},
		"a name":                        {keysOf("a/x"), nil, false, selection.Scope{}, targets.Scope{Names: keysOf("a/x")}},
		"some names":                    {keysOf("b/x", "a/y", "a/x"), nil, false, selection.Scope{}, targets.Scope{Names: keysOf("a/x", "a/y", "b/x")}},
		"a name in a namespace":         {keysOf("a/x", "b/x"), []string{"a"}, false, selection.Scope{}, targets.Scope{Namespaces: []string{"a"}, Names: keysOf("b/x")}},
		"as many names as watches":      {numbered("a", 8), nil, false, selection.Scope{}, targets.Scope{Names: numbered("a", 8)}},
		"more names":                    {numbered("a", 9), nil, false, selection.Scope{}, targets.Scope{Namespaces: []string{"a"}}},
		"more names in many namespaces": {numbered("a%d", 9), nil, false, selection.Scope{}, everywhere},
		"as many namespaces as watches": {nil, strings.Fields("a b c d e f g h"), false, selection.Scope{}, targets.Scope{Namespaces: strings.Fields("a b c d e f g h")}},
		"more namespaces":               {nil, strings.Fields("a b c d e f g h i"), false, selection.Scope{}, everywhere},
		"a name in no namespace":        {keysOf("/x"), nil, false, selection.Scope{}, targets.Scope{Names: keysOf("/x")}},
		"many names in no namespace":    {numbered("", 9), nil, false, selection.Scope{}, everywhere},
		"all in no namespace":           {nil, []string{""}, false, selection.Scope{}, everywhere},

		"a selected name beside":            {keysOf("a/x"), nil, false, selection.Scope{Names: keysOf("b/y")}, targets.Scope{Names: keysOf("a/x", "b/y")}},
		"all are selected":                  {keysOf("a/x"), nil, false, selection.Scope{All: true}, everywhere},
		"all, and a selected name":          {nil, nil, true, selection.Scope{Names: keysOf("a/x")}, everywhere},
		"one name twice":                    {keysOf("a/x"), nil, false, selection.Scope{Names: keysOf("a/x")}, targets.Scope{Names: keysOf("a/x")}},
		"a name in a selected namespace":    {keysOf("a/x", "b/x"), nil, false, selection.Scope{Namespaces: []string{"a"}}, targets.Scope{Namespaces: []string{"a"}, Names: keysOf("b/x")}},
		"a selected name in a namespace":    {nil, []string{"a"}, false, selection.Scope{Names: keysOf("a/x", "b/x")}, targets.Scope{Namespaces: []string{"a"}, Names: keysOf("b/x")}},
		"a namespace twice":                 {nil, []string{"a"}, false, selection.Scope{Namespaces: []string{"a"}}, targets.Scope{Namespaces: []string{"a"}}},
		"too many names together":           {numbered("a", 5), nil, false, selection.Scope{Names: numbered("b", 5)}, targets.Scope{Namespaces: []string{"a", "b"}}},
		"too many namespaces together":      {nil, strings.Fields("a b c d e"), false, selection.Scope{Namespaces: strings.Fields("f g h i j")}, everywhere},
		"names and namespaces, just enough": {numbered("z", 4), strings.Fields("a b c d"), false, selection.Scope{}, targets.Scope{Namespaces: strings.Fields("a b c d"), Names: numbered("z", 4)}},
		"names and namespaces, too many":    {numbered("z", 5), strings.Fields("a b c d"), false, selection.Scope{}, targets.Scope{Namespaces: strings.Fields("a b c d z")}},
	} {
		r := relatedWatchScope{}
		r.add(test.names, test.namespaces, test.all)
		before := r.String()
		if got := r.union(test.selected); !sameScope(got, test.want) {
			t.Errorf("%s: want %+v, got %+v", name, test.want, got)
		}
		if r.String() != before {
			t.Errorf("%s: the union has changed the scope: %s, then %s", name, before, r.String())
		}
		if nowhere := len(test.names)+len(test.namespaces) == 0 && !test.all; r.isEmpty() != nowhere {
			t.Errorf("%s: isEmpty is not %v", name, !nowhere)
		}
	}
}

func sameScope(a, b targets.Scope) bool {
	return a.All == b.All && slices.Equal(a.Namespaces, b.Namespaces) && slices.Equal(a.Names, b.Names)
}

// finds reports whether a scope contains an object of a name.
func finds(scope targets.Scope, key types.NamespacedName) bool {
	return scope.All || slices.Contains(scope.Namespaces, key.Namespace) || slices.Contains(scope.Names, key)
}

// After any additions, the scope contains all added names, with at most maxWatches watches. Equal scopes have equal texts, so
// that a cache is replaced only if its scope has changed.
func TestRelatedWatchScopeOfAnyHistory(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a repeatable history
		r, wanted, found := relatedWatchScope{}, []types.NamespacedName{}, map[string]bool{}
		for range 12 {
			before, scopeBefore := r.String(), r.union(selection.Scope{})
			wanted = append(wanted, addAnything(random, &r)...)
			selected := selection.Scope{}
			if random.IntN(2) == 0 {
				selected.Names = []types.NamespacedName{anyName(random)}
			}
			if err := scopeIsWrong(r.union(selected), slices.Concat(wanted, selected.Names)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			after := r.String()
			if (after == before) != sameScope(r.union(selection.Scope{}), scopeBefore) {
				t.Fatalf("seed %d: %s and %s for %+v and %+v", seed, before, after, scopeBefore, r.union(selection.Scope{}))
			}
			// A scope that returned to a former value could replace the cache endlessly.
			if after != before && found[after] {
				t.Fatalf("seed %d: the scope narrows to %s", seed, after)
			}
			found[after] = true
		}
	}
}

func anyName(random *rand.Rand) types.NamespacedName {
	return types.NamespacedName{Namespace: fmt.Sprint("s", random.IntN(12)), Name: fmt.Sprint("n", random.IntN(4))}
}

// addAnything extends a scope, and returns names that the scope must contain then.
func addAnything(random *rand.Rand, r *relatedWatchScope) (wanted []types.NamespacedName) {
	var names []types.NamespacedName
	var spaces []string
	for range random.IntN(4) {
		names = append(names, anyName(random))
	}
	if random.IntN(3) == 0 {
		spaces = append(spaces, anyName(random).Namespace)
	}
	for _, space := range spaces {
		wanted = append(wanted, types.NamespacedName{Namespace: space, Name: "any"})
	}
	wanted = append(wanted, names...)
	r.add(names, spaces, random.IntN(40) == 0)
	return wanted
}

func scopeIsWrong(scope targets.Scope, wanted []types.NamespacedName) error {
	for _, key := range wanted {
		if !finds(scope, key) {
			return fmt.Errorf("%v is not found in %+v", key, scope)
		}
	}
	if watches := len(scope.Names) + len(scope.Namespaces); watches > maxWatches || scope.All && watches > 0 {
		return fmt.Errorf("%d watches for %+v", watches, scope)
	}
	return nil
}

// A scope of many names becomes one of namespaces, and contains every name still.
func TestRelatedWatchScopeContains(t *testing.T) {
	var scope relatedWatchScope
	if scope.contains(shop("a")) {
		t.Error("an empty scope contains an object")
	}
	for name := 'a'; name <= 'z'; name++ {
		scope.add([]types.NamespacedName{shop(string(name))}, nil, false)
		if !scope.contains(shop("a")) || !scope.contains(shop(string(name))) {
			t.Errorf("a name is missing after %c: %s", name, &scope)
		}
	}
	if scope.contains(types.NamespacedName{Namespace: "bank", Name: "a"}) {
		t.Error("the scope contains an object of another namespace")
	}
}
