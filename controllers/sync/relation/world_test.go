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
	"fmt"
	"slices"
	"testing"

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

func newWorld(t *testing.T, g generator, candidates int) *world {
	w := &world{
		t: t, register: relation.NewRegister(), naive: &naive{contributors: map[string]*spoken{}},
		answers: map[about][]verdict{}, tried: map[string]int{},
	}
	for range candidates {
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
		w.register.End(name)
		w.naive.end(name)
		return name + " ends"
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
		w.count("related", first != nil)
		w.count("unrelated", got.unrelated)
		w.count("open", open && first == nil)
		answers = append(answers, got)
	}
	return answers
}

func (w *world) count(sort string, is bool) {
	if is {
		w.tried[sort]++
	}
}
