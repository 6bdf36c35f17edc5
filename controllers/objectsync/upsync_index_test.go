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
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// The names, objects and ends that random histories are about.
var (
	someKeys = []types.NamespacedName{{Namespace: "shop", Name: "a"}, {Namespace: "shop", Name: "b"}, {Name: "c"}}
	someRefs = []plan.Ref{
		{Resource: schema.GroupResource{Resource: "configmaps"}, Key: types.NamespacedName{Namespace: "shop", Name: "a"}},
		{Resource: schema.GroupResource{Resource: "configmaps"}, Key: types.NamespacedName{Namespace: "shop", Name: "b"}},
		{Resource: schema.GroupResource{Group: "example.com", Resource: "widgets"}, Key: types.NamespacedName{Name: "c"}},
		{Resource: schema.GroupResource{Group: "example.com", Resource: "widgets"}, Key: types.NamespacedName{Namespace: "shop", Name: "a"}},
	}
)

func anyOf[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }

// upsyncFact is one fact in the index.
type upsyncFact struct {
	key types.NamespacedName
	at  plan.Ref
}

// upsyncIndexModel is a model of the index that searches all facts.
type upsyncIndexModel struct {
	facts []upsyncFact
	ended map[plan.Ref]types.UID
}

func (n *upsyncIndexModel) refsOf(key types.NamespacedName) []plan.Ref {
	var all []plan.Ref
	for _, fact := range n.facts {
		if fact.key == key {
			all = append(all, fact.at)
		}
	}
	slices.SortFunc(all, func(a, b plan.Ref) int {
		return cmp.Or(cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return all
}

func (n *upsyncIndexModel) drop(is func(upsyncFact) bool) { n.facts = slices.DeleteFunc(n.facts, is) }

// step makes a random change in both the model and the index, and returns its description.
func (n *upsyncIndexModel) step(random *rand.Rand, tested *upsyncIndex) string {
	fact := upsyncFact{anyOf(random, someKeys), anyOf(random, someRefs)}
	uid := types.UID(strconv.Itoa(random.IntN(3)))
	switch random.IntN(9) {
	case 8:
		comesUp := random.IntN(2) == 0
		var concerned []types.NamespacedName
		n.drop(func(f upsyncFact) bool {
			other := f.at == fact.at && (!comesUp || f.key != fact.key)
			if other {
				concerned = append(concerned, f.key)
			}
			return other || f == fact
		})
		if comesUp {
			concerned = append(concerned, fact.key)
			n.facts = append(n.facts, fact)
			delete(n.ended, fact.at)
		}
		got := tested.move(fact.at, fact.key, comesUp)
		byName := func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) }
		slices.SortFunc(concerned, byName)
		slices.SortFunc(got, byName)
		if !slices.Equal(got, concerned) {
			return fmt.Sprintf("WRONG: move %v (%v) concerns %v, want %v", fact, comesUp, got, concerned)
		}
		return fmt.Sprint("move ", fact, comesUp)
	case 0:
		tested.removeResource(fact.at.Resource)
		n.drop(func(f upsyncFact) bool { return f.at.Resource == fact.at.Resource })
		return fmt.Sprint("forget ", fact.at.Resource)
	case 1:
		tested.forgetSourceDeleted(fact.at)
		delete(n.ended, fact.at)
		return fmt.Sprint("settled ", fact.at)
	case 2, 3, 4:
		tested.lock.Lock()
		tested.delete(fact.key, fact.at)
		tested.lock.Unlock()
		n.drop(func(f upsyncFact) bool { return f == fact })
		if uid != "0" { // otherwise the deletion was not observed
			tested.setSourceDeleted(fact.at, uid)
			n.ended[fact.at] = uid
		}
		return fmt.Sprint("remove ", fact, uid)
	default:
		tested.add(fact.key, fact.at)
		n.drop(func(f upsyncFact) bool { return f == fact })
		n.facts = append(n.facts, fact)
		delete(n.ended, fact.at)
		return fmt.Sprint("add ", fact)
	}
}

func (n *upsyncIndexModel) differs(tested *upsyncIndex) error {
	var keys []types.NamespacedName
	for _, key := range someKeys {
		if got, want := tested.refsOf(key), n.refsOf(key); !slices.Equal(got, want) {
			return fmt.Errorf("the sources of %s are %v, want %v", key, got, want)
		}
		if len(n.refsOf(key)) > 0 {
			keys = append(keys, key)
		}
	}
	got := tested.allKeys()
	slices.SortFunc(got, func(a, b types.NamespacedName) int { return slices.Index(someKeys, a) - slices.Index(someKeys, b) })
	if !slices.Equal(got, keys) {
		return fmt.Errorf("the keys are %v, want %v", got, keys)
	}
	for _, at := range someRefs {
		for _, uid := range []types.UID{"", "1", "2"} {
			if got, want := tested.isSourceDeleted(at, uid), uid != "" && n.ended[at] == uid; got != want {
				return fmt.Errorf("the deletion of %v with UID %q is recorded: %v, want %v", at, uid, got, want)
			}
		}
	}
	if names, refs := len(tested.keys), len(tested.refs); len(n.facts)+len(n.ended) == 0 && names+refs > 0 {
		return fmt.Errorf("%d keys and %d objects are kept without a fact", names, refs)
	}
	return nil
}

func TestUpsyncIndexOfAnyHistory(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // a repeatable history
		tested, naive := newUpsyncIndex(), &upsyncIndexModel{ended: map[plan.Ref]types.UID{}}
		var history []string
		for range 40 {
			history = append(history, naive.step(random, tested))
			if last := history[len(history)-1]; strings.HasPrefix(last, "WRONG") {
				t.Fatalf("seed %d: %s after %q", seed, last, history)
			}
			if err := naive.differs(tested); err != nil {
				t.Fatalf("seed %d: %v after %q", seed, err, history)
			}
		}
	}
}

// The first of several objects does not depend on the order of events, so that every hub chooses the same one, also after a
// restart.
func TestUpsyncIndexInAnyOrder(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // a repeatable order
		states := newUpsyncIndex()
		for _, index := range random.Perm(len(someRefs)) {
			states.add(someKey, someRefs[index])
		}
		if got := states.refsOf(someKey); !slices.Equal(got, someRefs) {
			t.Fatalf("seed %d: got %v", seed, got)
		}
	}
}

// A caller may change the returned slice.
func TestUpsyncIndexReturnsCopies(t *testing.T) {
	states := newUpsyncIndex()
	states.add(someKey, someRefs[0])
	states.add(someKey, someRefs[1])
	returned := states.refsOf(someKey)
	returned[0], returned[1] = returned[1], returned[0]
	states.removeResource(schema.GroupResource{Resource: "none"})
	if got := states.refsOf(someKey); !slices.Equal(got, someRefs[:2]) {
		t.Errorf("got %v", got)
	}
}
