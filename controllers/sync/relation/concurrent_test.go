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
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

// mirror is a subscriber that asks again whenever something is announced, as a controller does.
type mirror struct {
	lock       sync.Mutex
	register   *relation.Register
	of         about
	candidates []relation.Candidate
	answers    []verdict
}

func (m *mirror) changed(change relation.Change) {
	for index, candidate := range m.candidates {
		if change.Concerns(candidate.Key) {
			m.ask(index)
		}
	}
}

// ask keeps the latest answer: that of two that overlap is not the older one.
func (m *mirror) ask(index int) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.answers[index] = ask(m.register, m.of, m.candidates[index])
}

// Several contributors speak at once, while others ask. In the end every mirror shows what a naive register says.
func TestConcurrency(t *testing.T) {
	register, g := relation.NewRegister(), seeded(1)
	var mirrors []*mirror
	for _, of := range abouts {
		mirror := &mirror{register: register, of: of, answers: make([]verdict, 40)}
		for index := range mirror.answers {
			mirror.candidates = append(mirror.candidates, g.candidate())
			mirror.ask(index)
		}
		register.Subscribe(of.side, of.resource, mirror.changed)
		mirrors = append(mirrors, mirror)
	}
	naives := make([]*naive, len(contributors))
	var speakers sync.WaitGroup
	for index, name := range contributors {
		naives[index] = &naive{contributors: map[string]*spoken{}}
		world, g := &world{t: t, register: register, naive: naives[index]}, seeded(g.seed())
		speakers.Go(func() {
			for range 300 {
				world.act(g, name)
			}
		})
	}
	stop := askAll(mirrors)
	speakers.Wait()
	stop()
	whole := &naive{contributors: map[string]*spoken{}}
	for _, part := range naives {
		maps.Copy(whole.contributors, part.contributors)
		whole.words = slices.Concat(whole.words, part.words)
	}
	related := 0
	for _, mirror := range mirrors {
		final := &world{t: t, register: register, naive: whole, candidates: mirror.candidates, tried: map[string]int{}}
		for index, want := range final.ask(mirror.of) {
			got := mirror.answers[index]
			// That absence means nothing any more is not announced: nothing is to be done about it.
			if got.unrelated && !want.unrelated && want.relation == nil {
				got.unrelated = false
			}
			if got != want {
				t.Errorf("%v: the mirror shows %+v of %s, want %+v", mirror.of, got, describe(mirror.candidates[index]), want)
			}
		}
		related += final.tried["related"]
	}
	if related < 10 {
		t.Errorf("%d candidates are related in the end: that tries too little", related)
	}
}

// askAll asks all there is to ask until it is stopped.
func askAll(mirrors []*mirror) (stop func()) {
	done := make(chan struct{})
	var askers sync.WaitGroup
	for _, mirror := range mirrors {
		askers.Go(func() {
			for index := 0; ; index = (index + 1) % len(mirror.candidates) {
				select {
				case <-done:
					return
				default:
					register, side, resource := mirror.register, mirror.of.side, mirror.of.resource
					register.Find(side, resource, mirror.candidates[index])
					register.Wanted(side, resource)
					register.Subscribe(side, resource, func(relation.Change) {})()
				}
			}
		})
	}
	return func() {
		close(done)
		askers.Wait()
	}
}

// What moves from one contributor to another is never unrelated in between.
func TestNeverUnrelatedInBetween(t *testing.T) {
	register, creds := relation.NewRegister(), newRelation("creds")
	relations := []*relation.Relation{creds}
	register.Begin("0", relations)
	register.Set("0", app, creds, named("a", "password"))
	register.Complete("0")
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		defer close(done)
		names, primaries := []string{"0", "1"}, []types.NamespacedName{app, database}
		for round := range 3000 {
			from, to := names[round%2], names[(round+1)%2]
			register.Begin(to, relations)
			register.End(from)
			register.Set(to, primaries[round%3%2], creds, named("a", "password"))
			register.Complete(to)
			// It begins again, its primary fails and comes back, and another takes over.
			register.Begin(to, relations)
			register.Fail(to, primaries[round%3%2], creds)
			register.Complete(to)
			register.Set(to, app, creds, named("a", "password"))
			register.Remove(to, database)
		}
	})
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if register.Unrelated(inMailbox, secrets.GroupResource(), password) {
						t.Error("it counts as unrelated")
						return
					}
				}
			}
		})
	}
	group.Wait()
}
