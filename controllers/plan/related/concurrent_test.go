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
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// requerier is a subscriber that looks up objects again on every notification, like a controller.
type requerier struct {
	lock     sync.Mutex
	registry *related.Registry
	of       bucketKey
	objects  []related.Object
	results  []result
}

func (m *requerier) changed(change related.Change) {
	for index, object := range m.objects {
		if change.Affects(object.Key) {
			m.ask(index)
		}
	}
}

// ask keeps the latest result: of two overlapping calls, the older one never wins.
func (m *requerier) ask(index int) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.results[index] = ask(m.registry, m.of, m.objects[index])
}

// Several PublishedResources change their claims during look-ups. In the end every mirror equals the model.
func TestConcurrency(t *testing.T) {
	register, g := related.NewRegistry(), seeded(1)
	var mirrors []*requerier
	for _, of := range abouts {
		mirror := &requerier{registry: register, of: of, results: make([]result, 40)}
		for index := range mirror.results {
			mirror.objects = append(mirror.objects, g.object())
			mirror.ask(index)
		}
		register.Subscribe(of.origin, of.resource, mirror.changed)
		mirrors = append(mirrors, mirror)
	}
	naives := make([]*model, len(contributors))
	var primaries sync.WaitGroup
	for index, name := range contributors {
		naives[index] = &model{publishedResources: map[string]*modelPublishedResource{}}
		world, g := &modelComparison{t: t, registry: register, model: naives[index]}, seeded(g.seed())
		primaries.Go(func() {
			for range 300 {
				world.act(g, name)
			}
		})
	}
	stop := askAll(mirrors)
	primaries.Wait()
	stop()
	whole := &model{publishedResources: map[string]*modelPublishedResource{}}
	for _, part := range naives {
		maps.Copy(whole.publishedResources, part.publishedResources)
		whole.claims = slices.Concat(whole.claims, part.claims)
	}
	related := 0
	for _, mirror := range mirrors {
		final := &modelComparison{t: t, registry: register, model: whole, objects: mirror.objects, tried: map[string]int{}}
		for index, want := range final.ask(mirror.of) {
			got := mirror.results[index]
			// Subscribers are not notified that a bucket became incomplete, since they need not act on it.
			if got.unrelated && !want.unrelated && want.relation == nil {
				got.unrelated = false
			}
			if got != want {
				t.Errorf("%v: the mirror shows %+v of %s, want %+v", mirror.of, got, describe(mirror.objects[index]), want)
			}
		}
		related += final.tried["related"]
	}
	if related < 10 {
		t.Errorf("%d candidates are related in the end: that tries too little", related)
	}
}

// askAll looks up every object until it is stopped.
func askAll(mirrors []*requerier) (stop func()) {
	done := make(chan struct{})
	var askers sync.WaitGroup
	for _, mirror := range mirrors {
		askers.Go(func() {
			for index := 0; ; index = (index + 1) % len(mirror.objects) {
				select {
				case <-done:
					return
				default:
					register, side, resource := mirror.registry, mirror.of.origin, mirror.of.resource
					register.Find(side, resource, mirror.objects[index])
					register.SourceScope(side, resource)
					register.Subscribe(side, resource, func(related.Change) {})()
				}
			}
		})
	}
	return func() {
		close(done)
		askers.Wait()
	}
}

// An object that moves from one PublishedResource to another is never unrelated in between.
func TestNeverUnrelatedInBetween(t *testing.T) {
	register, creds := related.NewRegistry(), newRelation("creds")
	relations := []*related.Relation{creds}
	register.BeginInitialSync("0", relations)
	register.SetClaim("0", app, creds, named("a", "password"))
	register.CompleteInitialSync("0")
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		defer close(done)
		names, primaries := []string{"0", "1"}, []types.NamespacedName{app, database}
		for round := range 3000 {
			from, to := names[round%2], names[(round+1)%2]
			register.BeginInitialSync(to, relations)
			register.RemovePublishedResource(from)
			register.SetClaim(to, primaries[round%3%2], creds, named("a", "password"))
			register.CompleteInitialSync(to)
			// The PublishedResource begins again, its primary fails and recovers, and another one takes over.
			register.BeginInitialSync(to, relations)
			register.MarkUnresolved(to, primaries[round%3%2], creds)
			register.CompleteInitialSync(to)
			register.SetClaim(to, app, creds, named("a", "password"))
			register.RemovePrimary(to, database)
		}
	})
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if register.IsUnrelated(inMailbox, secrets.GroupResource(), password) {
						t.Error("it counts as unrelated")
						return
					}
				}
			}
		})
	}
	group.Wait()
}
