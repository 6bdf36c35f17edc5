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
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// callingSubscriber is a subscriber that calls a function with its name.
type callingSubscriber struct {
	name string
	call func(name, what string)
}

func (c callingSubscriber) OnEvent(event Event) { c.call(c.name, "event of "+event.Key.Name) }
func (c callingSubscriber) OnAbsenceDecided(key types.NamespacedName) {
	c.call(c.name, "proof of "+key.Name)
}
func (c callingSubscriber) OnReset() { c.call(c.name, "reset") }

func TestSubscribers(t *testing.T) {
	g := NewWithT(t)
	mailboxes := newMailboxes(configMaps, secrets)
	handler := addEndpoint(t, mailboxes, "https://one", nil).eventHandler(configMaps)
	var calls []string
	subscribe := func(name string, resource schema.GroupVersionResource, mailbox logicalcluster.Name) (unsubscribe func()) {
		return mailboxes.Subscribe(resource, mailbox, callingSubscriber{name, func(name, what string) { calls = append(calls, name+": "+what) }})
	}
	expect := func(want ...string) {
		t.Helper()
		g.Expect(calls).To(Equal(want))
		calls = nil
	}
	everywhere := func(logicalcluster.Name) bool { return true }
	endFirst := subscribe("first", configMaps, here)
	subscribe("elsewhere", configMaps, there)
	endSecond := subscribe("second", configMaps, here)
	subscribe("otherwise", secrets, here)

	handler.OnAdd(object(here, "a"), false)
	expect("first: event of a", "second: event of a")
	absenceCache{mailboxes.Caches, mailboxes.Subscriptions}.OnAbsenceDecided(here, missingObject(configMaps, "b"))
	expect("first: proof of b", "second: proof of b")
	mailboxes.parts.subscriptions.resetMailbox(here)
	expect("first: reset", "second: reset", "otherwise: reset")
	mailboxes.parts.subscriptions.notifyReset(configMaps, func(mailbox logicalcluster.Name) bool { return mailbox == there })
	expect("elsewhere: reset")

	// The same subscriber may come again; each subscription ends by itself, and once.
	endAgain := subscribe("first", configMaps, here)
	handler.OnDelete(object(here, "a"))
	expect("first: event of a", "second: event of a", "first: event of a")
	endFirst()
	endFirst()
	handler.OnDelete(object(here, "a"))
	expect("second: event of a", "first: event of a")
	endSecond()
	endAgain()
	mailboxes.parts.subscriptions.notifyReset(configMaps, everywhere)
	expect("elsewhere: reset")
	mailboxes.parts.subscriptions.resetMailbox(here)
	expect("otherwise: reset")
	handler.OnAdd(object(here, "a"), false)
	expect()
}

// callingObserver is an observer that calls a function.
type callingObserver func(what string)

func (c callingObserver) OnEvent(resource schema.GroupVersionResource, mailbox logicalcluster.Name, event Event) {
	c(fmt.Sprintf("event of %s %s in %s", resource.Resource, event.Key.Name, mailbox))
}

func (c callingObserver) OnAbsenceDecided(resource schema.GroupVersionResource, mailbox logicalcluster.Name, key types.NamespacedName) {
	c(fmt.Sprintf("proof of %s %s in %s", resource.Resource, key.Name, mailbox))
}

func (c callingObserver) OnReset(mailbox logicalcluster.Name) { c("reset of " + mailbox.String()) }

// The observer gets the events of every mailbox, after its subscribers, and a reset for a mailbox that is not visible any
// more.
func TestObserver(t *testing.T) {
	g := NewWithT(t)
	mailboxes := newMailboxes(configMaps, secrets)
	handler := addEndpoint(t, mailboxes, "https://one", nil).eventHandler(configMaps)
	var calls []string
	mailboxes.Subscribe(configMaps, here, callingSubscriber{"first", func(name, what string) { calls = append(calls, name+": "+what) }})
	handler.OnAdd(object(here, "early"), false)
	mailboxes.SetObserver(callingObserver(func(what string) { calls = append(calls, what) }))
	handler.OnAdd(object(here, "a"), false)
	handler.OnAdd(object(there, "b"), false)
	absenceCache{mailboxes.Caches, mailboxes.Subscriptions}.OnAbsenceDecided(there, missingObject(configMaps, "b"))
	mailboxes.parts.subscriptions.resetMailbox(there)
	mailboxes.parts.release(there)
	g.Expect(calls).To(Equal([]string{
		"first: event of early",
		"first: event of a", "event of configmaps a in " + here.String(), "event of configmaps b in " + there.String(),
		"proof of configmaps b in " + there.String(), "reset of " + there.String(), "reset of " + there.String(),
	}))
	g.Expect(mailboxes.BindingState(there)).To(Equal(BindingUnknown))
}

// Keys without subscribers are removed, and all other keys have their subscribers in the order of subscription.
func TestSubscribersAsAList(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test must be repeatable
		var subscribers Subscriptions
		type made struct {
			name string
			end  func()
		}
		want := map[subscriptionKey][]made{}
		routeOf := func() subscriptionKey {
			return subscriptionKey{[]schema.GroupVersionResource{configMaps, secrets}[random.IntN(2)], []logicalcluster.Name{here, there}[random.IntN(2)]}
		}
		for number := range 200 {
			key := routeOf()
			if all := want[key]; len(all) > 0 && random.IntN(2) == 0 {
				at := random.IntN(len(all))
				all[at].end()
				want[key] = slices.Delete(all, at, at+1)
			} else {
				name := fmt.Sprint(number)
				want[key] = append(all, made{name, subscribers.Subscribe(key.resource, key.mailbox, callingSubscriber{name: name})})
			}
			for key, all := range want {
				var names, got []string
				for _, made := range all {
					names = append(names, made.name)
				}
				for _, subscription := range subscribers.get(key) {
					got = append(got, subscription.Subscriber.(callingSubscriber).name)
				}
				if !slices.Equal(got, names) {
					t.Fatalf("seed %d, step %d: want %v, got %v", seed, number, names, got)
				}
			}
		}
		for _, all := range want {
			for _, made := range all {
				made.end()
			}
		}
		subscribers.byKey.Range(func(key, _ any) bool {
			t.Errorf("seed %d: something is left of %v", seed, key)
			return true
		})
	}
}

// A lasting subscriber gets each event, in order, while other subscribers come and go.
func TestSubscribersComeAndGoUnderEvents(t *testing.T) {
	const events, visitors = 2000, 4
	mailboxes := newMailboxes(configMaps)
	handler := addEndpoint(t, mailboxes, "https://one", nil).eventHandler(configMaps)
	var received [2][]string
	for number := range received {
		// Events of one informer come one after the other.
		mailboxes.Subscribe(configMaps, here, callingSubscriber{"resident", func(_, what string) { received[number] = append(received[number], what) }})
	}
	var running sync.WaitGroup
	done := make(chan struct{})
	for range visitors {
		running.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					mailboxes.Subscribe(configMaps, here, &recorder{})()
				}
			}
		})
	}
	var want []string
	for number := range events {
		name := fmt.Sprint(number)
		want = append(want, "event of "+name)
		handler.OnAdd(object(here, name), false)
	}
	close(done)
	running.Wait()
	for _, got := range received {
		if !slices.Equal(got, want) {
			t.Errorf("want %d events in order, got %d", len(want), len(got))
		}
	}
	if left := len(mailboxes.parts.subscriptions.get(subscriptionKey{configMaps, here})); left != len(received) {
		t.Errorf("want %d subscriptions, got %d", len(received), left)
	}
}

// eventsOf returns a function that routes an update of an object to the mailbox's subscribers, for one mailbox of a fleet
// after the other, and the number of received events.
func eventsOf(tb testing.TB, mailboxes *Mailboxes, endpoint *endpoint, fleet []logicalcluster.Name) (route func(), received *int) {
	tb.Helper()
	handler := endpoint.eventHandler(configMaps)
	received = new(int)
	count := callingSubscriber{"counter", func(string, string) { *received++ }}
	for _, mailbox := range fleet {
		tb.Cleanup(mailboxes.Subscribe(configMaps, mailbox, count))
	}
	// An event has just been decoded, so its data is in the processor's caches. Only the state of the fleet is not.
	old := fixtures.ConfigMap.MailboxObject(tb)
	annotations := map[string]any{"example.com/owner": "team-shop"}
	old.Object["metadata"].(map[string]any)["annotations"] = annotations
	changed := old.DeepCopy()
	changed.SetResourceVersion("2")
	changed.Object["metadata"].(map[string]any)["annotations"] = annotations
	of := make([]any, len(fleet))
	for i, mailbox := range fleet {
		of[i] = mailbox.String()
	}
	next := 0
	return func() {
		annotations[logicalcluster.AnnotationKey] = of[next]
		next = (next + 1) % len(of)
		handler.OnUpdate(old, changed)
	}, received
}

// syntheticMailboxes returns the names of so many mailboxes, and begins with the existing ones.
func syntheticMailboxes(existing []logicalcluster.Name, count int) []logicalcluster.Name {
	all := slices.Clone(existing[:min(len(existing), count)])
	for number := len(all); number < count; number++ {
		all = append(all, logicalcluster.Name(fmt.Sprintf("madeup%010d", number)))
	}
	return all
}

// An event costs as much with many mailboxes as with one, and that is little.
func TestEventsCostTheSameInAnyFleet(t *testing.T) {
	cost := func(fleet int) float64 {
		const rounds = 100
		mailboxes := newMailboxes(configMaps)
		route, received := eventsOf(t, mailboxes, addEndpoint(t, mailboxes, "https://one", nil), syntheticMailboxes(nil, fleet))
		allocations := testing.AllocsPerRun(rounds, route)
		// It runs once more to warm up.
		if *received != rounds+1 {
			t.Errorf("a fleet of %d: %d calls for %d events", fleet, *received, rounds+1)
		}
		return allocations
	}
	one, many := cost(1), cost(10_000)
	if many > one {
		t.Errorf("an event makes %v allocations with one mailbox and %v with 10,000", one, many)
	}
	if one > allowedPerEvent {
		t.Errorf("to route an event takes %v allocations, %d at most are allowed", one, allowedPerEvent)
	}
}

// allowedPerEvent is how often an event may allocate: once for the text that the test's own subscriber makes.
const allowedPerEvent = 1

// These are for [BenchmarkEvents].
var (
	kcpKubeconfig = flag.String("kcp-kubeconfig", "", "the hub's kubeconfig of a kcp whose mailboxes are the first of a fleet; without it, all are made up")
	turns         = flag.Int("turns", 1, "how often fleets are compared")
)

func BenchmarkEvents(b *testing.B) {
	mailboxes, endpoint := mailboxesForBenchmark(b)
	existing := endpoint.mailboxes()
	for range *turns {
		for _, fleet := range []int{10, 1000} {
			b.Run(fmt.Sprintf("fleet=%d/real=%d", fleet, min(fleet, len(existing))), func(b *testing.B) {
				route, _ := eventsOf(b, mailboxes, endpoint, syntheticMailboxes(existing, fleet))
				b.ReportAllocs()
				for b.Loop() {
					route()
				}
			})
		}
	}
}

// mailboxesForBenchmark returns the mailboxes of the kcp, if there is one, and their endpoint.
func mailboxesForBenchmark(b *testing.B) (*Mailboxes, *endpoint) {
	b.Helper()
	if *kcpKubeconfig == "" {
		mailboxes := newMailboxes(configMaps)
		return mailboxes, addEndpoint(b, mailboxes, "https://one", nil)
	}
	access, err := kcp.Load(*kcpKubeconfig, kcp.Limits{QPS: 100, Burst: 100})
	if err != nil {
		b.Fatal(err)
	}
	mailboxes := New(Options{
		Access: access, Workspace: "root:synchub", Export: synchubv1alpha1.MailboxExport, Resources: []schema.GroupVersionResource{configMaps},
		Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mailboxes.Start(ctx); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() {
		cancel()
		running.Wait()
	})
	NewWithT(b).Eventually(mailboxes.HasSynced).WithContext(ctx).WithTimeout(time.Minute).Should(BeTrue())
	for _, endpoint := range mailboxes.parts.endpoints.byURL {
		return mailboxes, endpoint
	}
	b.Fatal("the kcp has no mailboxes")
	return nil, nil
}
