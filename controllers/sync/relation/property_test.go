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
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

// world is a register and a naive one that are told the same.
type world struct {
	t        *testing.T
	register *relation.Register
	naive    *naive
	// announced is what the subscribers heard of the last step.
	announced map[about][]relation.Change
	// candidates are those that are asked about, answers the last ones.
	candidates []relation.Candidate
	answers    map[about][]verdict
	tried      map[string]int
}

// verdict is all that can be answered about a candidate.
type verdict struct {
	relation    *relation.Relation
	contributor string
	primary     types.NamespacedName
	// away stands for all that is said about it.
	away      string
	unrelated bool
}

// ask returns what a register says of a candidate.
func ask(register *relation.Register, of about, candidate relation.Candidate) verdict {
	answer, _ := register.Find(of.side, of.resource, candidate)
	return verdict{
		relation: answer.Relation, contributor: answer.Contributor, primary: answer.Primary, away: answer.Wanted.About.Away,
		unrelated: register.Unrelated(of.side, of.resource, candidate),
	}
}

func newWorld(t *testing.T, g generator) *world {
	w := &world{
		t: t, register: relation.NewRegister(), naive: &naive{contributors: map[string]*spoken{}},
		answers: map[about][]verdict{}, tried: map[string]int{},
	}
	for range 40 {
		w.candidates = append(w.candidates, g.candidate())
	}
	for _, of := range abouts {
		w.register.Subscribe(of.side, of.resource, func(change relation.Change) {
			w.announced[of] = append(w.announced[of], change)
			// The register can be changed from here.
			w.register.Subscribe(of.side, of.resource, func(relation.Change) { t.Error("called after the end of a subscription") })()
		})
		w.answers[of] = w.ask(of)
	}
	return w
}

// step does something at random, and compares everything.
func (w *world) step(g generator) {
	w.t.Helper()
	former, wasSettled := slices.Clone(w.naive.words), map[about]bool{}
	for _, of := range abouts {
		wasSettled[of] = w.naive.settled(of)
	}
	w.announced = map[about][]relation.Change{}
	done := w.act(g, pick(g, contributors...))
	for _, of := range abouts {
		answers := w.ask(of)
		w.checkChanged(of, done, w.answers[of], answers)
		w.checkFounded(of, done, former, !wasSettled[of] && w.naive.settled(of))
		w.answers[of] = answers
		w.checkPlaces(of, done)
	}
	w.checkResources(done)
}

// act lets a contributor say something.
func (w *world) act(g generator, name string) (done string) {
	primary := g.primary()
	switch g.IntN(40) {
	case 0, 1:
		relations := g.relations()
		w.register.Begin(name, relations)
		w.naive.begin(name, relations)
		return name + " begins"
	case 2, 3, 4:
		w.register.Complete(name)
		w.naive.complete(name)
		return name + " is complete"
	case 5:
		keep := g.IntN(2) == 0
		w.register.End(name, keep)
		w.naive.end(name, keep)
		return fmt.Sprintf("%s ends, keep %v", name, keep)
	case 6, 7, 8, 9:
		w.register.Remove(name, primary)
		w.naive.remove(name, primary)
		return fmt.Sprintf("%s removes %s", name, primary)
	case 10:
		w.sayAllAgain(g, name)
		return name + " says all again"
	}
	of := w.someRelation(g, name)
	if g.IntN(12) == 0 {
		w.register.Fail(name, primary, of)
		w.naive.fail(name, primary, of)
		return fmt.Sprintf("%s fails for %s by %s", name, primary, of.Identifier)
	}
	wanted := g.wanted(primary.Namespace)
	w.register.Set(name, primary, of, wanted)
	w.naive.set(name, primary, of, wanted)
	return fmt.Sprintf("%s wants for %s by %s: %+v", name, primary, of.Identifier, wanted)
}

// someRelation returns one that a contributor may speak about, and sometimes one that it may not.
func (w *world) someRelation(g generator, name string) *relation.Relation {
	if speaker := w.naive.contributors[name]; speaker != nil && g.IntN(50) > 0 {
		return pick(g, speaker.relations...)
	}
	return g.relation("creds")
}

// sayAllAgain makes a contributor say, in a new round, what it said in the last.
func (w *world) sayAllAgain(g generator, name string) {
	speaker := w.naive.contributors[name]
	if speaker == nil {
		return
	}
	relations := slices.Clone(speaker.relations)
	if g.IntN(2) == 0 {
		// What a PublishedResource says is compiled anew.
		for index, former := range relations {
			relations[index] = new(*former)
		}
	}
	w.register.Begin(name, relations)
	w.naive.begin(name, relations)
	for _, word := range slices.Clone(w.naive.words) {
		for _, of := range relations {
			if word.contributor == name && word.about == aboutOf(of) && word.identifier == of.Identifier && g.IntN(10) > 0 {
				w.register.Set(name, word.primary, of, word.wanted)
				w.naive.set(name, word.primary, of, word.wanted)
			}
		}
	}
}

// ask asks both about all candidates.
func (w *world) ask(of about) []verdict {
	w.t.Helper()
	settled := w.naive.settled(of)
	if got := w.register.Settled(of.side, of.resource); got != settled {
		w.t.Fatalf("%v is settled: %v, want %v", of, got, settled)
	}
	var answers []verdict
	for _, candidate := range w.candidates {
		got := ask(w.register, of, candidate)
		first, open := w.naive.related(of, candidate)
		want := verdict{unrelated: first == nil && settled && !open}
		if first != nil {
			want.relation, want.contributor, want.primary, want.away = first.relation, first.contributor, first.primary, first.wanted.About.Away
		}
		if got != want {
			w.t.Fatalf("%v: %s is %+v, want %+v", of, describe(candidate), got, want)
		}
		related, primary, ok := w.register.Related(of.side, of.resource, candidate)
		if related != want.relation || primary != want.primary || ok != (first != nil) {
			w.t.Fatalf("%v: %s is related by %+v to %s, %v, want %+v", of, describe(candidate), related, primary, ok, want)
		}
		w.count("related", ok)
		w.count("unrelated", got.unrelated)
		w.count("open", open && first == nil)
		answers = append(answers, got)
	}
	return answers
}

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
	any := func(cause func(relation.Wanted) bool) bool {
		return slices.ContainsFunc(changed, func(word said) bool { return cause(word.wanted) })
	}
	if change.All && !settling && !any(func(wanted relation.Wanted) bool { return wanted.NamespaceSelector != nil }) {
		return "nobody looks everywhere"
	}
	for _, namespace := range change.Namespaces {
		if !any(func(wanted relation.Wanted) bool {
			return slices.Contains(wanted.Namespaces, namespace) || wanted.NamespaceSelector != nil && wanted.Home == namespace
		}) {
			return "nobody looks in namespace " + namespace
		}
	}
	for _, name := range change.Names {
		if !any(func(wanted relation.Wanted) bool {
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
	wantNames, wantNamespaces, wantAll := map[types.NamespacedName]struct{}{}, map[string]struct{}{}, false
	for _, word := range w.naive.words {
		if word.about != of || word.relation == nil {
			continue
		}
		searches := word.wanted.Owner != "" || word.wanted.Selector != nil && !selectsNothing(word.wanted.Selector)
		for _, name := range word.wanted.Names {
			wantNames[name] = struct{}{}
		}
		if searches {
			for _, namespace := range word.wanted.Namespaces {
				wantNamespaces[namespace] = struct{}{}
			}
		}
		selector := word.wanted.NamespaceSelector
		wantAll = wantAll || selector != nil && !selectsNothing(selector) && (searches || len(word.wanted.SpreadNames) > 0)
	}
	names, namespaces, all := w.register.Wanted(of.side, of.resource)
	if len(wantNames) > 8 {
		w.count("many names", true)
		for name := range wantNames {
			wantNamespaces[name.Namespace] = struct{}{}
		}
		if len(names) < 9 || slices.ContainsFunc(names, func(name types.NamespacedName) bool { _, ok := wantNames[name]; return !ok }) {
			w.t.Fatalf("%s: %v is wanted under %v, of %v", done, of, names, wantNames)
		}
	} else if got := set(names); len(got) != len(names) || !maps.Equal(got, wantNames) {
		w.t.Fatalf("%s: %v is wanted under %v, want %v", done, of, names, wantNames)
	}
	if got := set(namespaces); len(got) != len(namespaces) || !maps.Equal(got, wantNamespaces) || all != wantAll {
		w.t.Fatalf("%s: %v is wanted in %v, %v, want %v, %v", done, of, namespaces, all, wantNamespaces, wantAll)
	}
}

func set[T comparable](list []T) map[T]struct{} {
	result := map[T]struct{}{}
	for _, item := range list {
		result[item] = struct{}{}
	}
	return result
}

func (w *world) checkResources(done string) {
	w.t.Helper()
	want := map[about]struct{}{}
	for _, speaker := range w.naive.contributors {
		for _, of := range speaker.abouts {
			want[of] = struct{}{}
		}
	}
	for _, side := range []struct {
		about
		got []schema.GroupResource
	}{
		{about{side: inMailbox}, w.register.Resources(inMailbox)},
		{about{side: onTarget}, w.register.Resources(onTarget)},
	} {
		var listed []schema.GroupResource
		for of := range want {
			if of.side == side.side {
				listed = append(listed, of.resource)
			}
		}
		slices.SortFunc(listed, func(a, b schema.GroupResource) int {
			return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
		})
		if !slices.Equal(side.got, listed) {
			w.t.Fatalf("%s: resources of %s are %v, want %v", done, side.side, side.got, listed)
		}
	}
}

func (w *world) count(sort string, is bool) {
	if is {
		w.tried[sort]++
	}
}

func TestAnswersLikeTheNaive(t *testing.T) {
	tried := map[string]int{}
	for seed := range uint64(40) {
		g := seeded(seed)
		world := newWorld(t, g)
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
		random, data := seeded(seed), make([]byte, 600)
		for index := range data {
			data[index] = byte(random.IntN(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		source := &choices{data}
		world := newWorld(t, generator{source})
		for len(source.bytes) > 0 {
			world.step(generator{source})
		}
	})
}
