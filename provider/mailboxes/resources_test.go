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
	return routines("mailboxes.startWatching", "third_party/informers", "watch.(*StreamWatcher)")
}

// routines returns how many goroutines are in one of these places.
func routines(places ...string) (count int) {
	var text strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&text, 2) // a builder takes all
	for stack := range strings.SplitSeq(text.String(), "\n\n") {
		if slices.ContainsFunc(places, func(place string) bool { return strings.Contains(stack, place) }) {
			count++
		}
	}
	return count
}

// settled returns how many goroutines belong to watches, once so many of them are answered.
func settled(g Gomega, watches int) int {
	g.Eventually(func() int { return routines("watch.(*StreamWatcher)") }).WithTimeout(patience).Should(Equal(watches))
	return watchRoutines()
}

func TestUnwatch(t *testing.T) {
	g := NewWithT(t)
	shard := newShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a")}, secrets: {object(here, "b")}})
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
		_, _, resets := subscriber.told()
		return resets > 0
	}
	mailboxes.setEndpoints([]string{shard.url()})
	g.Eventually(known(configMaps)).WithTimeout(patience).Should(BeTrue())
	before := settled(g, 2)

	for range 3 {
		mailboxes.Watch(secrets)
		g.Eventually(isReset).WithTimeout(patience).Should(BeTrue(), "what is there must be looked at")
		g.Expect(known(secrets)()).To(BeTrue())
		g.Eventually(func() int { return shard.watchers(secrets) }).WithTimeout(patience).Should(Equal(1))
		g.Expect(watchRoutines()).To(BeNumerically(">", before))
		shard.tell(secrets, "ADDED", object(here, "c"))
		g.Eventually(func() State {
			_, state := mailboxes.Get(secrets, here, key("c"))
			return state
		}).WithTimeout(patience).Should(Equal(Present))
		remembered := weak.Make(mailboxes.endpoints[shard.url()].watches[secrets])

		mailboxes.Unwatch(secrets)
		mailboxes.Unwatch(secrets)
		g.Expect(known(secrets)()).To(BeFalse())
		_, state := mailboxes.Get(secrets, here, key("b"))
		g.Expect(state).To(Equal(Unknown))
		g.Expect(known(configMaps)()).To(BeTrue(), "others stay")
		g.Eventually(func() int { return shard.watchers(secrets) }).WithTimeout(patience).Should(BeZero())
		g.Eventually(watchRoutines).WithTimeout(patience).Should(BeNumerically("<=", before))
		g.Eventually(func() any {
			runtime.GC()
			return remembered.Value()
		}).WithTimeout(patience).Should(BeNil(), "the cache must be gone")
		subscriber.told()
	}

	for _, resource := range []schema.GroupVersionResource{configMaps, bindingsResource} {
		mailboxes.Unwatch(resource)
		g.Expect(known(resource)()).To(BeTrue(), "%s is always watched", resource.Resource)
	}
}

// Nothing is suspected, proven or known of a resource that is let go, and nothing can be as long as it is.
func TestUnwatchDropsSuspects(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes(configMaps)
	mailboxes.Watch(secrets)
	early, kept := vanished(secrets, "a"), vanished(configMaps, "a")
	mailboxes.Prove(here, early)
	mailboxes.Prove(here, kept)
	docket := mailboxes.prover.docs[here]
	docket.inStep[secrets], docket.inStep[configMaps] = "1", "1"
	decide(mailboxes.prover, early, kept)
	mailboxes.Prove(here, vanished(secrets, "b"))
	mailboxes.Prove(here, vanished(configMaps, "b"))

	mailboxes.Unwatch(secrets)
	mailboxes.Prove(here, vanished(secrets, "c"))
	g.Expect(docket.pending).To(And(HaveLen(1), HaveKey(vanished(configMaps, "b"))))
	g.Expect(docket.inStep).To(And(HaveLen(1), HaveKey(configMaps)))
	g.Expect(mailboxes.Proven(here, early)).To(BeFalse())
	g.Expect(mailboxes.Proven(here, kept)).To(BeTrue())

	// A round that was under way decides nothing of it.
	decide(mailboxes.prover, vanished(secrets, "b"))
	g.Expect(mailboxes.Proven(here, vanished(secrets, "b"))).To(BeFalse())
	mailboxes.Watch(secrets)
	mailboxes.Prove(here, vanished(secrets, "d"))
	g.Expect(docket.pending).To(HaveKey(vanished(secrets, "d")))
}

// A run of rounds that waits only for what is let go ends at once.
func TestUnwatchEndsRounds(t *testing.T) {
	g := NewWithT(t)
	tried := make(chan string, 100)
	now := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	mailboxes := New(nil, "root:synchub", "mailbox.example.org", nil, now, funcr.New(func(_, line string) { tried <- line }, funcr.Options{}))
	mailboxes.ctx = t.Context()
	mailboxes.Watch(secrets)
	mailboxes.Prove(here, vanished(secrets, "a"))
	collect := func() {
		g.Eventually(now.HasWaiters).WithTimeout(patience).Should(BeTrue())
		now.Step(collectFor)
	}
	g.Eventually(func() <-chan string {
		collect()
		return tried
	}).WithTimeout(patience).Should(Receive(ContainSubstring("nothing can be proven now")))
	g.Eventually(now.HasWaiters).WithTimeout(patience).Should(BeTrue(), "the next round is long after")

	mailboxes.Unwatch(secrets)
	ended := make(chan struct{})
	go func() {
		mailboxes.prover.wait()
		close(ended)
	}()
	// However long it takes, by this clock it is not long.
	g.Eventually(func() <-chan struct{} {
		now.Step(time.Millisecond)
		return ended
	}).WithTimeout(patience).WithPolling(pollEach).Should(BeClosed())
}

// The watches follow what is set, at each endpoint; those that stay are not touched.
func TestSetResources(t *testing.T) {
	g := NewWithT(t)
	shards := []*shard{newShard(t, caches{bindingsResource: bindings(here)}), newShard(t, caches{bindingsResource: bindings(there)})}
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.setEndpoints([]string{shards[0].url(), shards[1].url()})
	watches := func() (all []map[schema.GroupVersionResource]*watching) {
		for _, shard := range shards {
			all = append(all, maps.Clone(mailboxes.endpoints[shard.url()].watches))
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
		g.Expect(mailboxes.watched()).To(ConsistOf(slices.Collect(maps.Keys(expected))))
		for number := range shards {
			g.Expect(slices.Collect(maps.Keys(after[number]))).To(ConsistOf(slices.Collect(maps.Keys(expected))))
			for resource, watching := range before[number] {
				if expected[resource] {
					g.Expect(after[number][resource]).To(BeIdenticalTo(watching), "%s stays", resource)
				} else {
					g.Expect(watching.ctx.Err()).To(HaveOccurred(), "%s is gone", resource)
				}
			}
		}
	}
}

// asker is a subscriber that asks the mailboxes whenever it is told something.
type asker struct {
	mailboxes *Mailboxes
	resource  schema.GroupVersionResource
}

func (a asker) OnEvent(event Event) {
	a.mailboxes.Get(a.resource, here, event.Key)
	a.mailboxes.Prove(here, Suspect{Resource: a.resource, Key: event.Key, Vanished: true})
}

func (a asker) OnProven(key types.NamespacedName) {
	a.mailboxes.Proven(here, Suspect{Resource: a.resource, Key: key, Vanished: true})
}

func (a asker) OnReset() {
	a.mailboxes.List(a.resource, here)
	a.mailboxes.Client(here)
	a.mailboxes.Subscribe(a.resource, there, a)()
}

// Whoever sets resources and endpoints waits for subscribers, which ask for what only the lock gives.
func TestResourcesAndEndpointsChangeWhileSubscribersAsk(t *testing.T) {
	served := caches{bindingsResource: bindings(here), configMaps: objects(here, 50), secrets: objects(here, 50), newConfigMaps: objects(here, 50)}
	one, two := newShard(t, served), newShard(t, served)
	mailboxes := startMailboxes(t, configMaps)
	for _, resource := range []schema.GroupVersionResource{configMaps, secrets, newConfigMaps} {
		mailboxes.Subscribe(resource, here, asker{mailboxes, resource})
	}
	mailboxes.setEndpoints([]string{one.url()})
	var running sync.WaitGroup
	for _, resources := range [][]schema.GroupVersionResource{{secrets}, {newConfigMaps}, {secrets, newConfigMaps}, nil} {
		running.Go(func() {
			for range 10 {
				mailboxes.SetResources(resources)
				mailboxes.Synced()
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
	}).WithTimeout(patience).Should(BeTrue())
}
