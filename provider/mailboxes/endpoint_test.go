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
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// stateOf returns a function that looks up an object.
func stateOf(mailboxes *Mailboxes, resource schema.GroupVersionResource, mailbox logicalcluster.Name, name string) func() State {
	return func() State {
		_, state := mailboxes.Get(resource, mailbox, key(name))
		return state
	}
}

// The hub is ready when its caches are filled. Neither a resource that kcp does not serve nor a dead shard delays that.
func TestHasSynced(t *testing.T) {
	all := caches{bindingsResource: bindings(here), configMaps: nil, secrets: nil}
	for name, tt := range map[string]struct {
		served caches
		// The URLs of additional endpoints.
		others []string
		want   bool
	}{
		"all is served":                       {all, nil, true},
		"a published resource is not":         {caches{bindingsResource: nil, configMaps: nil}, nil, true},
		"a dead shard":                        {all, []string{nowhere}, true},
		"a malformed URL":                     {all, []string{"://", "http://127.0.0.1/x"}, true},
		"no binding can be seen":              {caches{configMaps: nil, secrets: nil}, nil, false},
		"a dead shard and no other":           {nil, []string{nowhere}, false},
		"a dead shard and one without any":    {caches{}, []string{nowhere}, false},
		"nothing but URLs that cannot be one": {nil, []string{"://"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			mailboxes := startMailboxes(t, configMaps)
			mailboxes.SetResources([]schema.GroupVersionResource{secrets})
			urls := tt.others
			if tt.served != nil {
				urls = append(urls, newFakeShard(t, tt.served).url())
			}
			mailboxes.setEndpoints(urls)
			// HasSynced is final when no cache is being filled any more.
			g.Eventually(func() bool {
				for _, endpoint := range mailboxes.endpoints {
					if endpoint.isSyncing() {
						return false
					}
				}
				return true
			}).Should(BeTrue())
			g.Expect(mailboxes.HasSynced()).To(Equal(tt.want))
		})
	}
}

// The cache is awaited while it is filled, unless it is no longer needed.
func TestHasSyncedWaitsForFillingCaches(t *testing.T) {
	g := NewWithT(t)
	shard := newFakeShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a")}, secrets: nil})
	releaseConfigMaps := shard.hold(configMaps)
	defer shard.hold(secrets)()
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.SetResources([]schema.GroupVersionResource{secrets})
	mailboxes.setEndpoints([]string{shard.url()})
	g.Eventually(func() int { return shard.watchers(bindingsResource) }).Should(Equal(1))
	g.Expect(mailboxes.HasSynced()).To(BeFalse())
	releaseConfigMaps()
	g.Eventually(stateOf(mailboxes, configMaps, here, "a")).Should(Equal(Present))
	g.Expect(mailboxes.HasSynced()).To(BeFalse())
	mailboxes.SetResources(nil)
	g.Expect(mailboxes.HasSynced()).To(BeTrue())
}

// The objects of a resource appear as soon as kcp serves the resource.
func TestServedLater(t *testing.T) {
	g := NewWithT(t)
	shard := newFakeShard(t, caches{bindingsResource: bindings(here), configMaps: nil})
	mailboxes := startMailboxes(t, configMaps)
	subscriber := &recorder{}
	mailboxes.Subscribe(secrets, here, subscriber)
	mailboxes.setEndpoints([]string{shard.url()})
	mailboxes.SetResources([]schema.GroupVersionResource{secrets})
	g.Eventually(mailboxes.HasSynced).Should(BeTrue())
	g.Expect(stateOf(mailboxes, secrets, here, "a")()).To(Equal(Unknown))
	_, _, _ = subscriber.received()

	shard.serve(secrets, object(here, "a"))
	g.Eventually(stateOf(mailboxes, secrets, here, "a")).Should(Equal(Present))
	g.Eventually(func() int {
		_, _, resets := subscriber.received()
		return resets
	}).Should(BeNumerically(">", 0))
}

// Before the bindings are known all objects are Unknown, so subscribers must be reset afterwards.
func TestBindingsMayComeLast(t *testing.T) {
	g := NewWithT(t)
	shard := newFakeShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a")}})
	release := shard.hold(bindingsResource)
	mailboxes := startMailboxes(t, configMaps)
	states := make(chan State, 100)
	mailboxes.Subscribe(configMaps, here, resetObserver{func() { states <- stateOf(mailboxes, configMaps, here, "a")() }})
	mailboxes.setEndpoints([]string{shard.url()})
	g.Eventually(func() int { return shard.watchers(configMaps) }).Should(Equal(1))
	g.Expect(stateOf(mailboxes, configMaps, here, "a")()).To(Equal(Unknown))
	release()
	g.Eventually(states).Should(Receive(Equal(Present)))
}

// resetObserver is a subscriber that calls a function for each reset.
type resetObserver struct{ onReset func() }

func (resetObserver) OnEvent(Event)                         {}
func (resetObserver) OnAbsenceDecided(types.NamespacedName) {}
func (l resetObserver) OnReset()                            { l.onReset() }

// An endpoint that starts, stops or is filled again does not affect the mailboxes of other endpoints.
func TestEndpointsKeepToTheirMailboxes(t *testing.T) {
	g := NewWithT(t)
	one := newFakeShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a")}})
	two := newFakeShard(t, caches{bindingsResource: bindings(there), configMaps: {object(there, "a")}})
	mailboxes := startMailboxes(t, configMaps)
	calls := recordAbsenceCalls(mailboxes)
	mailboxes.setEndpoints([]string{one.url()})
	g.Eventually(stateOf(mailboxes, configMaps, here, "a")).Should(Equal(Present))
	before := goroutinesWhenWatching(g, 2)
	subscriber, elsewhere := &recorder{}, &recorder{}
	mailboxes.Subscribe(configMaps, here, subscriber)
	mailboxes.Subscribe(configMaps, there, elsewhere)

	for range 2 {
		mailboxes.setEndpoints([]string{two.url(), one.url()})
		resets := 0
		g.Eventually(func() int {
			_, _, more := elsewhere.received()
			resets += more
			return resets
		}).Should(BeNumerically(">=", 2), "for its binding, and when each of its caches is filled")
		g.Eventually(stateOf(mailboxes, configMaps, there, "a")).Should(Equal(Present))
		g.Eventually(func() int { return two.watchers(configMaps) }).Should(Equal(1))
		two.send(configMaps, "ADDED", object(there, "c"))
		g.Eventually(stateOf(mailboxes, configMaps, there, "c")).Should(Equal(Present))
		g.Expect(testutil.ToFloat64(endpointUp.WithLabelValues(two.url()))).To(Equal(1.0))
		// The cache shows an object before the handlers of its event have run, and the subscriber's handler is the last one.
		g.Eventually(func() []Event {
			events, _, _ := elsewhere.received()
			return events
		}).Should(ContainElement(HaveField("Key.Name", "c")))
		calls.take()
		mailboxes.setEndpoints([]string{one.url()})
		g.Expect(calls.take()).To(Equal([]string{"forget there"}), "its verified absences and candidates are void")
		g.Expect(stateOf(mailboxes, configMaps, there, "a")()).To(Equal(Unknown))
		_, ok := mailboxes.Client(there)
		g.Expect(ok).To(BeFalse())
		events, _, _ := elsewhere.received()
		g.Expect(events).To(BeEmpty(), "no deletions are reported")
		g.Eventually(func() int { return two.watchers(configMaps) + two.watchers(bindingsResource) }).Should(BeZero())
		g.Eventually(watchRoutines).Should(BeNumerically("<=", before))
	}

	events, proven, resets := subscriber.received()
	g.Expect(events).To(BeEmpty())
	g.Expect(proven).To(BeEmpty())
	g.Expect(resets).To(BeZero())
	g.Expect(stateOf(mailboxes, configMaps, here, "a")()).To(Equal(Present))
	g.Expect(endpointUp.DeleteLabelValues(two.url())).To(BeFalse(), "the metric is removed with the endpoint")
}

// While two endpoints show a mailbox, its state is Unknown. When one does not any more, the mailbox is reset.
func TestAMailboxThatMoves(t *testing.T) {
	for name, letGo := range map[string]func(*Mailboxes, *fakeShard, *fakeShard){
		"its old binding is deleted":  func(_ *Mailboxes, old, _ *fakeShard) { old.send(bindingsResource, "DELETED", bindings(here)[0]) },
		"its old endpoint is removed": func(mailboxes *Mailboxes, _, current *fakeShard) { mailboxes.setEndpoints([]string{current.url()}) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			old := newFakeShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a"), object(here, "b")}})
			current := newFakeShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "b"), object(here, "c")}})
			mailboxes := startMailboxes(t, configMaps)
			calls := recordAbsenceCalls(mailboxes)
			states := make(chan State, 100)
			mailboxes.Subscribe(configMaps, here, resetObserver{func() { states <- stateOf(mailboxes, configMaps, here, "a")() }})
			mailboxes.setEndpoints([]string{old.url()})
			g.Eventually(states).Should(Receive(Equal(Present)))

			mailboxes.setEndpoints([]string{old.url(), current.url()})
			g.Eventually(stateOf(mailboxes, configMaps, here, "a")).Should(Equal(Unknown))
			g.Expect(stateOf(mailboxes, configMaps, here, "c")()).To(Equal(Unknown))
			_, ok := mailboxes.Client(here)
			g.Expect(ok).To(BeFalse())
			g.Eventually(func() int { return old.watchers(bindingsResource) }).Should(Equal(1))

			letGo(mailboxes, old, current)
			g.Eventually(states).Should(Receive(Equal(Absent)))
			g.Expect(stateOf(mailboxes, configMaps, here, "c")()).To(Equal(Present))
			g.Expect(calls.take()).To(ContainElement("forget here"), "an absence at one endpoint proves nothing about another endpoint")
		})
	}
}

// A dead endpoint is reported as dead, and later as back.
func TestEndpointRestarts(t *testing.T) {
	g := NewWithT(t)
	shard := newFakeShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a")}})
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.setEndpoints([]string{shard.url()})
	up := func() float64 { return testutil.ToFloat64(endpointUp.WithLabelValues(shard.url())) }
	g.Eventually(stateOf(mailboxes, configMaps, here, "a")).Should(Equal(Present))
	g.Eventually(up).Should(Equal(1.0))
	g.Eventually(func() int { return shard.watchers(bindingsResource) }).Should(Equal(1))

	shard.refuse(true)
	g.Eventually(up).Should(Equal(0.0))
	g.Expect(stateOf(mailboxes, configMaps, here, "a")()).To(Equal(Present), "as it was last seen")
	g.Expect(mailboxes.HasSynced()).To(BeTrue())
	shard.refuse(false)
	g.Eventually(up).Should(Equal(1.0))
}

// Stopping an endpoint ends its unanswered requests.
func TestHangingEndpointIsRemoved(t *testing.T) {
	g := NewWithT(t)
	shard := newFakeShard(t, caches{bindingsResource: bindings(here), configMaps: nil})
	defer shard.hold(bindingsResource)()
	defer shard.hold(configMaps)()
	mailboxes := startMailboxes(t, configMaps)
	before := goroutinesWhenWatching(g, 0)
	mailboxes.setEndpoints([]string{shard.url()})
	g.Eventually(shard.waiting).Should(Equal(2))
	gone := make(chan struct{})
	go func() {
		mailboxes.setEndpoints(nil)
		close(gone)
	}()
	g.Eventually(gone).Should(BeClosed())
	g.Eventually(watchRoutines).Should(BeNumerically("<=", before))
}
