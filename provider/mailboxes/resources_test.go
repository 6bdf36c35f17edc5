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
	"time"
	"weak"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
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

func TestUnwatch(t *testing.T) {
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
		mailboxes.Watch(secrets)
		g.Eventually(isReset).Should(BeTrue(), "what is there must be looked at")
		g.Expect(known(secrets)()).To(BeTrue())
		g.Eventually(func() int { return shard.watchers(secrets) }).Should(Equal(1))
		g.Expect(watchRoutines()).To(BeNumerically(">", before))
		shard.tell(secrets, "ADDED", object(here, "c"))
		g.Eventually(func() State {
			_, state := mailboxes.Get(secrets, here, key("c"))
			return state
		}).Should(Equal(Present))
		remembered := weak.Make(mailboxes.endpoints[shard.url()].informers[secrets])

		mailboxes.Unwatch(secrets)
		mailboxes.Unwatch(secrets)
		g.Expect(known(secrets)()).To(BeFalse())
		_, state := mailboxes.Get(secrets, here, key("b"))
		g.Expect(state).To(Equal(Unknown))
		g.Expect(known(configMaps)()).To(BeTrue(), "others stay")
		g.Eventually(func() int { return shard.watchers(secrets) }).Should(BeZero())
		g.Eventually(watchRoutines).Should(BeNumerically("<=", before))
		g.Eventually(func() any {
			runtime.GC()
			return remembered.Value()
		}).Should(BeNil(), "the cache must be gone")
		subscriber.received()
	}

	for _, resource := range []schema.GroupVersionResource{configMaps, bindingsResource} {
		mailboxes.Unwatch(resource)
		g.Expect(known(resource)()).To(BeTrue(), "%s is always watched", resource.Resource)
	}
}

// Nothing is suspected, proven or known of a resource that is let go, and nothing can be as long as it is.
func TestUnwatchDropsCandidates(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes(configMaps)
	mailboxes.Watch(secrets)
	early, kept := missingObject(secrets, "a"), missingObject(configMaps, "a")
	mailboxes.VerifyAbsence(here, early)
	mailboxes.VerifyAbsence(here, kept)
	state := mailboxes.absence.states[here]
	state.verifiedCaches[secrets], state.verifiedCaches[configMaps] = "1", "1"
	setVerified(mailboxes.absence, early, kept)
	mailboxes.VerifyAbsence(here, missingObject(secrets, "b"))
	mailboxes.VerifyAbsence(here, missingObject(configMaps, "b"))

	mailboxes.Unwatch(secrets)
	mailboxes.VerifyAbsence(here, missingObject(secrets, "c"))
	g.Expect(state.pending).To(And(HaveLen(1), HaveKey(missingObject(configMaps, "b"))))
	g.Expect(state.verifiedCaches).To(And(HaveLen(1), HaveKey(configMaps)))
	g.Expect(mailboxes.TakeVerifiedAbsence(here, early)).To(BeFalse())
	g.Expect(mailboxes.TakeVerifiedAbsence(here, kept)).To(BeTrue())

	// A round that was under way decides nothing of it.
	setVerified(mailboxes.absence, missingObject(secrets, "b"))
	g.Expect(mailboxes.TakeVerifiedAbsence(here, missingObject(secrets, "b"))).To(BeFalse())
	mailboxes.Watch(secrets)
	mailboxes.VerifyAbsence(here, missingObject(secrets, "d"))
	g.Expect(state.pending).To(HaveKey(missingObject(secrets, "d")))
}

// A run of rounds that waits only for what is let go ends at once.
func TestUnwatchEndsPasses(t *testing.T) {
	g := NewWithT(t)
	tried := make(chan string, 100)
	now := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	mailboxes := New(Options{
		Workspace: "root:synchub", Export: "mailbox.example.org", Clock: now, Log: funcr.New(func(_, line string) { tried <- line }, funcr.Options{}),
	})
	mailboxes.ctx = t.Context()
	mailboxes.Watch(secrets)
	mailboxes.VerifyAbsence(here, missingObject(secrets, "a"))
	collect := func() {
		g.Eventually(now.HasWaiters).Should(BeTrue())
		now.Step(batchPeriod)
	}
	g.Eventually(func() <-chan string {
		collect()
		return tried
	}).Should(Receive(ContainSubstring("nothing can be proven now")))
	g.Eventually(now.HasWaiters).Should(BeTrue(), "the next round is long after")

	mailboxes.Unwatch(secrets)
	ended := make(chan struct{})
	go func() {
		mailboxes.absence.wait()
		close(ended)
	}()
	// However long it takes, by this clock it is not long.
	g.Eventually(func() <-chan struct{} {
		now.Step(time.Millisecond)
		return ended
	}).Should(BeClosed())
}

// The watches follow what is set, at each endpoint; those that stay are not touched.
func TestSetResources(t *testing.T) {
	g := NewWithT(t)
	shards := []*fakeShard{newFakeShard(t, caches{bindingsResource: bindings(here)}), newFakeShard(t, caches{bindingsResource: bindings(there)})}
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.setEndpoints([]string{shards[0].url(), shards[1].url()})
	watches := func() (all []map[schema.GroupVersionResource]*wildcardInformer) {
		for _, shard := range shards {
			all = append(all, maps.Clone(mailboxes.endpoints[shard.url()].informers))
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

// readingSubscriber is a subscriber that asks the mailboxes whenever it is told something.
type readingSubscriber struct {
	mailboxes *Mailboxes
	resource  schema.GroupVersionResource
}

func (a readingSubscriber) OnEvent(event Event) {
	a.mailboxes.Get(a.resource, here, event.Key)
	a.mailboxes.VerifyAbsence(here, AbsenceCandidate{Resource: a.resource, Key: event.Key, Missing: true})
}

func (a readingSubscriber) OnAbsenceDecided(key types.NamespacedName) {
	a.mailboxes.TakeVerifiedAbsence(here, AbsenceCandidate{Resource: a.resource, Key: key, Missing: true})
}

func (a readingSubscriber) OnReset() {
	a.mailboxes.List(a.resource, here)
	a.mailboxes.Client(here)
	a.mailboxes.Subscribe(a.resource, there, a)()
}

// Whoever sets resources and endpoints waits for subscribers, which ask for what only the lock gives.
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
	// One informer calls it, never two at a time.
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
