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

package mailboxes

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

var newConfigMaps = schema.GroupVersionResource{Version: "v2", Resource: "configmaps"}

// watchRoutines returns how many goroutines of this process belong to watches.
func watchRoutines() int {
	return routines("mailboxes.startWildcardInformer", "third_party/informers", "watch.(*StreamWatcher)")
}

// routines returns how many goroutines are in one of these places.
func routines(functions ...string) (count int) {
	var text strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&text, 2) // a builder takes all
	for stack := range strings.SplitSeq(text.String(), "\n\n") {
		if slices.ContainsFunc(functions, func(place string) bool { return strings.Contains(stack, place) }) {
			count++
		}
	}
	return count
}

// goroutinesWhenWatching returns how many goroutines belong to watches, once so many of them are answered.
func goroutinesWhenWatching(g Gomega, watches int) int {
	g.Eventually(func() int { return routines("watch.(*StreamWatcher)") }).Should(Equal(watches))
	return watchRoutines()
}

func TestAResourceIsNoLongerWatched(t *testing.T) {
	g := NewWithT(t)
	shard := newFakeShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a")}, secrets: {object(here, "b")}})
	mailboxes := startMailboxes(t, configMaps)
	subscriber := &recorder{}
	mailboxes.Subscribe(secrets, here, subscriber)
	known := func(resource schema.GroupVersionResource) func() bool {
		return func() bool {
			_, known := mailboxes.List(resource, here)
			return known
		}
	}
	isReset := func() bool {
		_, _, resets := subscriber.received()
		return resets > 0
	}
	mailboxes.setEndpoints([]string{shard.url()})
	g.Eventually(known(configMaps)).Should(BeTrue())
	before := goroutinesWhenWatching(g, 2)

	for range 3 {
		mailboxes.SetResources([]schema.GroupVersionResource{secrets})
		g.Eventually(isReset).Should(BeTrue(), "the present objects must be reconciled")
		g.Expect(known(secrets)()).To(BeTrue())
		g.Eventually(func() int { return shard.watchers(secrets) }).Should(Equal(1))
		g.Expect(watchRoutines()).To(BeNumerically(">", before))
		shard.send(secrets, "ADDED", object(here, "c"))
		g.Eventually(func() State {
			_, state := mailboxes.Get(secrets, here, key("c"))
			return state
		}).Should(Equal(Present))
		remembered := weak.Make(mailboxes.parts.endpoints.byURL[shard.url()].informers[secrets])

		mailboxes.SetResources(nil)
		mailboxes.SetResources(nil)
		g.Expect(known(secrets)()).To(BeFalse())
		_, state := mailboxes.Get(secrets, here, key("b"))
		g.Expect(state).To(Equal(Unknown))
		g.Expect(known(configMaps)()).To(BeTrue(), "other resources stay")
		g.Eventually(func() int { return shard.watchers(secrets) }).Should(BeZero())
		g.Eventually(watchRoutines).Should(BeNumerically("<=", before))
		g.Eventually(func() any {
			runtime.GC()
			return remembered.Value()
		}).Should(BeNil(), "the cache must be gone")
		subscriber.received()
	}

	mailboxes.SetResources(nil)
	for _, resource := range []schema.GroupVersionResource{configMaps, bindingsResource} {
		g.Expect(known(resource)()).To(BeTrue(), "%s is always watched", resource.Resource)
	}
}

// The candidates of a resource are forgotten with its watch, and none is verified until it is watched again.
func TestCandidatesOfAResourceThatIsNoLongerWatched(t *testing.T) {
	g := NewWithT(t)
	mailboxes := newMailboxes(configMaps)
	calls := recordAbsenceCalls(mailboxes)
	mailboxes.SetResources([]schema.GroupVersionResource{secrets})
	mailboxes.Absences.VerifyAbsence(here, missingObject(secrets, "a"))
	mailboxes.SetResources(nil)
	mailboxes.Absences.VerifyAbsence(here, missingObject(secrets, "b"))
	mailboxes.Absences.VerifyAbsence(here, missingObject(configMaps, "c"))
	mailboxes.SetResources([]schema.GroupVersionResource{secrets})
	mailboxes.Absences.VerifyAbsence(here, missingObject(secrets, "d"))
	g.Expect(calls.take()).To(Equal([]string{"verify here secrets a", "forget secrets", "verify here configmaps c", "verify here secrets d"}))
}

// The watches at each endpoint follow the set resources. Watches of resources that stay are not touched.
func TestSetResources(t *testing.T) {
	g := NewWithT(t)
	shards := []*fakeShard{newFakeShard(t, caches{bindingsResource: bindings(here)}), newFakeShard(t, caches{bindingsResource: bindings(there)})}
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.setEndpoints([]string{shards[0].url(), shards[1].url()})
	watches := func() (all []map[schema.GroupVersionResource]*wildcardInformer) {
		for _, shard := range shards {
			all = append(all, maps.Clone(mailboxes.parts.endpoints.byURL[shard.url()].informers))
		}
		return all
	}
	candidates := []schema.GroupVersionResource{secrets, newConfigMaps, configMaps, bindingsResource}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test must be repeatable
	for range 30 {
		var wanted []schema.GroupVersionResource
		for _, resource := range candidates {
			for range random.IntN(3) {
				wanted = append(wanted, resource)
			}
		}
		before := watches()
		mailboxes.SetResources(wanted)
		after := watches()
		mailboxes.SetResources(wanted)
		g.Expect(watches()).To(Equal(after), "twice is as good as once")
		expected := map[schema.GroupVersionResource]bool{bindingsResource: true, configMaps: true}
		for _, resource := range wanted {
			expected[resource] = true
		}
		g.Expect(mailboxes.watchedResources()).To(ConsistOf(slices.Collect(maps.Keys(expected))))
		for number := range shards {
			g.Expect(slices.Collect(maps.Keys(after[number]))).To(ConsistOf(slices.Collect(maps.Keys(expected))))
			for resource, informer := range before[number] {
				if expected[resource] {
					g.Expect(after[number][resource]).To(BeIdenticalTo(informer), "%s stays", resource)
				} else {
					g.Expect(informer.ctx.Err()).To(HaveOccurred(), "%s is gone", resource)
				}
			}
		}
	}
}

// readingSubscriber is a subscriber that reads the mailboxes in each call.
type readingSubscriber struct {
	mailboxes *Mailboxes
	resource  schema.GroupVersionResource
}

func (a readingSubscriber) OnEvent(event Event) {
	a.mailboxes.Get(a.resource, here, event.Key)
	a.mailboxes.Absences.VerifyAbsence(here, absence.Candidate{Resource: a.resource, Key: event.Key, Missing: true})
}

func (a readingSubscriber) OnAbsenceDecided(key types.NamespacedName) {
	a.mailboxes.Absences.TakeVerifiedAbsence(here, absence.Candidate{Resource: a.resource, Key: key, Missing: true})
}

func (a readingSubscriber) OnReset() {
	a.mailboxes.List(a.resource, here)
	a.mailboxes.Client(here)
	a.mailboxes.Subscribe(a.resource, there, a)()
}

// Callers that set resources and endpoints wait for subscribers, which read state under the same lock.
func TestResourcesAndEndpointsChangeWhileSubscribersAsk(t *testing.T) {
	served := caches{bindingsResource: bindings(here), configMaps: objects(here, 50), secrets: objects(here, 50), newConfigMaps: objects(here, 50)}
	one, two := newFakeShard(t, served), newFakeShard(t, served)
	mailboxes := startMailboxes(t, configMaps)
	for _, resource := range []schema.GroupVersionResource{configMaps, secrets, newConfigMaps} {
		mailboxes.Subscribe(resource, here, readingSubscriber{mailboxes, resource})
	}
	mailboxes.setEndpoints([]string{one.url()})
	var running sync.WaitGroup
	for _, resources := range [][]schema.GroupVersionResource{{secrets}, {newConfigMaps}, {secrets, newConfigMaps}, nil} {
		running.Go(func() {
			for range 10 {
				mailboxes.SetResources(resources)
				mailboxes.HasSynced()
			}
		})
	}
	// A subscriber is called by one informer at a time.
	running.Go(func() {
		for _, urls := range [][]string{{two.url()}, {one.url(), two.url()}, nil, {two.url(), nowhere}, {one.url()}} {
			mailboxes.setEndpoints(urls)
		}
	})
	running.Wait()
	mailboxes.SetResources([]schema.GroupVersionResource{secrets})
	NewWithT(t).Eventually(func() bool {
		_, known := mailboxes.List(secrets, here)
		return known
	}).Should(BeTrue())
}
