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

func withDocket(mailboxes *Mailboxes, mailbox logicalcluster.Name, do func(*docket)) {
	mailboxes.prover.lock.Lock()
	defer mailboxes.prover.lock.Unlock()
	do(mailboxes.prover.docketLocked(mailbox))
}

// The hub is ready when its caches are filled, but neither what kcp does not serve nor a dead shard keeps it from that.
func TestSynced(t *testing.T) {
	all := caches{bindingsResource: bindings(here), configMaps: nil, secrets: nil}
	for name, tt := range map[string]struct {
		served caches
		// others are further endpoints.
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
			mailboxes.Watch(secrets)
			urls := tt.others
			if tt.served != nil {
				urls = append(urls, newShard(t, tt.served).url())
			}
			mailboxes.setEndpoints(urls)
			// It is decided when nothing is awaited any more.
			g.Eventually(func() bool {
				for _, endpoint := range mailboxes.endpoints {
					if endpoint.isFilling() {
						return false
					}
				}
				return true
			}).WithTimeout(patience).WithPolling(pollEach).Should(BeTrue())
			g.Expect(mailboxes.Synced()).To(Equal(tt.want))
		})
	}
}

// A cache that is being filled is waited for, unless nobody wants it any more.
func TestSyncedWaitsForWhatIsBeingFilled(t *testing.T) {
	g := NewWithT(t)
	shard := newShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a")}, secrets: nil})
	releaseConfigMaps := shard.hold(configMaps)
	defer shard.hold(secrets)()
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.Watch(secrets)
	mailboxes.setEndpoints([]string{shard.url()})
	g.Eventually(func() int { return shard.watchers(bindingsResource) }).WithTimeout(patience).Should(Equal(1))
	g.Expect(mailboxes.Synced()).To(BeFalse())
	releaseConfigMaps()
	g.Eventually(stateOf(mailboxes, configMaps, here, "a")).WithTimeout(patience).Should(Equal(Present))
	g.Expect(mailboxes.Synced()).To(BeFalse())
	mailboxes.Unwatch(secrets)
	g.Expect(mailboxes.Synced()).To(BeTrue())
}

// A resource that is not served yet shows up as soon as it is.
func TestServedLater(t *testing.T) {
	g := NewWithT(t)
	shard := newShard(t, caches{bindingsResource: bindings(here), configMaps: nil})
	mailboxes := startMailboxes(t, configMaps)
	subscriber := &recorder{}
	mailboxes.Subscribe(secrets, here, subscriber)
	mailboxes.setEndpoints([]string{shard.url()})
	mailboxes.Watch(secrets)
	g.Eventually(mailboxes.Synced).WithTimeout(patience).Should(BeTrue())
	g.Expect(stateOf(mailboxes, secrets, here, "a")()).To(Equal(Unknown))
	_, _, _ = subscriber.told()

	shard.serve(secrets, object(here, "a"))
	g.Eventually(stateOf(mailboxes, secrets, here, "a")).WithTimeout(patience).Should(Equal(Present))
	g.Eventually(func() int {
		_, _, resets := subscriber.told()
		return resets
	}).WithTimeout(patience).Should(BeNumerically(">", 0))
}

// Before the bindings are known nothing can be seen, and whoever looked then must be told to look again.
func TestBindingsMayComeLast(t *testing.T) {
	g := NewWithT(t)
	shard := newShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a")}})
	release := shard.hold(bindingsResource)
	mailboxes := startMailboxes(t, configMaps)
	saw := make(chan State, 100)
	mailboxes.Subscribe(configMaps, here, looker{func() { saw <- stateOf(mailboxes, configMaps, here, "a")() }})
	mailboxes.setEndpoints([]string{shard.url()})
	g.Eventually(func() int { return shard.watchers(configMaps) }).WithTimeout(patience).Should(Equal(1))
	g.Expect(stateOf(mailboxes, configMaps, here, "a")()).To(Equal(Unknown))
	release()
	g.Eventually(saw).WithTimeout(patience).Should(Receive(Equal(Present)))
}

// looker is a subscriber that looks when it is told to look again.
type looker struct{ look func() }

func (looker) OnEvent(Event)                 {}
func (looker) OnProven(types.NamespacedName) {}
func (l looker) OnReset()                    { l.look() }

// An endpoint that comes, goes or is filled anew is no matter for mailboxes that are elsewhere.
func TestEndpointsKeepToTheirMailboxes(t *testing.T) {
	g := NewWithT(t)
	one := newShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a")}})
	two := newShard(t, caches{bindingsResource: bindings(there), configMaps: {object(there, "a")}})
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.setEndpoints([]string{one.url()})
	g.Eventually(stateOf(mailboxes, configMaps, here, "a")).WithTimeout(patience).Should(Equal(Present))
	before := settled(g, 2)
	subscriber, elsewhere := &recorder{}, &recorder{}
	mailboxes.Subscribe(configMaps, here, subscriber)
	mailboxes.Subscribe(configMaps, there, elsewhere)
	suspect := vanished(configMaps, "b")

	for range 2 {
		mailboxes.setEndpoints([]string{two.url(), one.url()})
		resets := 0
		g.Eventually(func() int {
			_, _, more := elsewhere.told()
			resets += more
			return resets
		}).WithTimeout(patience).Should(BeNumerically(">=", 2), "for its binding, and when each of its caches is filled")
		g.Eventually(stateOf(mailboxes, configMaps, there, "a")).WithTimeout(patience).Should(Equal(Present))
		g.Eventually(func() int { return two.watchers(configMaps) }).WithTimeout(patience).Should(Equal(1))
		two.tell(configMaps, "ADDED", object(there, "c"))
		g.Eventually(stateOf(mailboxes, configMaps, there, "c")).WithTimeout(patience).Should(Equal(Present))
		g.Expect(testutil.ToFloat64(endpointUp.WithLabelValues(two.url()))).To(Equal(1.0))

		// What was proven there is void when the endpoint goes, and what was suspected is dropped.
		suspected := func(docket *docket) { docket.pending[suspect] = struct{}{} }
		withDocket(mailboxes, there, suspected)
		mailboxes.prover.deliver(there, verdict{proven: []Suspect{suspect}})
		withDocket(mailboxes, there, suspected)
		elsewhere.told()
		mailboxes.setEndpoints([]string{one.url()})
		g.Expect(mailboxes.Proven(there, suspect)).To(BeFalse())
		withDocket(mailboxes, there, func(docket *docket) { g.Expect(docket.pending).To(BeEmpty()) })
		g.Expect(stateOf(mailboxes, configMaps, there, "a")()).To(Equal(Unknown))
		_, ok := mailboxes.Client(there)
		g.Expect(ok).To(BeFalse())
		events, _, _ := elsewhere.told()
		g.Expect(events).To(BeEmpty(), "nothing is said to be deleted")
		g.Eventually(func() int { return two.watchers(configMaps) + two.watchers(bindingsResource) }).WithTimeout(patience).Should(BeZero())
		g.Eventually(watchRoutines).WithTimeout(patience).Should(BeNumerically("<=", before))
	}

	events, proven, resets := subscriber.told()
	g.Expect(events).To(BeEmpty())
	g.Expect(proven).To(BeEmpty())
	g.Expect(resets).To(BeZero())
	g.Expect(stateOf(mailboxes, configMaps, here, "a")()).To(Equal(Present))
	g.Expect(endpointUp.DeleteLabelValues(two.url())).To(BeFalse(), "the metric goes with the endpoint")
}

// While a mailbox is seen at two endpoints nobody knows which speaks the truth. When one lets it go, it is looked at anew.
func TestAMailboxThatMoves(t *testing.T) {
	for name, letGo := range map[string]func(*Mailboxes, *shard, *shard){
		"its old binding is deleted": func(_ *Mailboxes, old, _ *shard) { old.tell(bindingsResource, "DELETED", bindings(here)[0]) },
		"its old endpoint goes":      func(mailboxes *Mailboxes, _, current *shard) { mailboxes.setEndpoints([]string{current.url()}) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			old := newShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a"), object(here, "b")}})
			current := newShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "b"), object(here, "c")}})
			mailboxes := startMailboxes(t, configMaps)
			saw := make(chan State, 100)
			mailboxes.Subscribe(configMaps, here, looker{func() { saw <- stateOf(mailboxes, configMaps, here, "a")() }})
			mailboxes.setEndpoints([]string{old.url()})
			g.Eventually(saw).WithTimeout(patience).Should(Receive(Equal(Present)))

			mailboxes.setEndpoints([]string{old.url(), current.url()})
			g.Eventually(stateOf(mailboxes, configMaps, here, "a")).WithTimeout(patience).Should(Equal(Unknown))
			g.Expect(stateOf(mailboxes, configMaps, here, "c")()).To(Equal(Unknown))
			_, ok := mailboxes.Client(here)
			g.Expect(ok).To(BeFalse())
			suspect := vanished(configMaps, "a")
			withDocket(mailboxes, here, func(docket *docket) { docket.proven[suspect], docket.inStep[configMaps] = struct{}{}, "1" })
			g.Eventually(func() int { return old.watchers(bindingsResource) }).WithTimeout(patience).Should(Equal(1))

			letGo(mailboxes, old, current)
			g.Eventually(saw).WithTimeout(patience).Should(Receive(Equal(Absent)))
			g.Expect(stateOf(mailboxes, configMaps, here, "c")()).To(Equal(Present))
			g.Expect(mailboxes.Proven(here, suspect)).To(BeFalse(), "what one endpoint proved says nothing of another one")
			g.Expect(mailboxes.prover.isInStep(here, configMaps, "1")).To(BeFalse())
		})
	}
}

// A dead endpoint is said to be so, and to be back.
func TestAnEndpointThatDiesAndComesBack(t *testing.T) {
	g := NewWithT(t)
	shard := newShard(t, caches{bindingsResource: bindings(here), configMaps: {object(here, "a")}})
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.setEndpoints([]string{shard.url()})
	up := func() float64 { return testutil.ToFloat64(endpointUp.WithLabelValues(shard.url())) }
	g.Eventually(stateOf(mailboxes, configMaps, here, "a")).WithTimeout(patience).Should(Equal(Present))
	g.Eventually(up).WithTimeout(patience).Should(Equal(1.0))
	g.Eventually(func() int { return shard.watchers(bindingsResource) }).WithTimeout(patience).Should(Equal(1))

	shard.refuse(true)
	g.Eventually(up).WithTimeout(patience).Should(Equal(0.0))
	g.Expect(stateOf(mailboxes, configMaps, here, "a")()).To(Equal(Present), "as it was last seen")
	g.Expect(mailboxes.Synced()).To(BeTrue())
	shard.refuse(false)
	g.Eventually(up).WithTimeout(patience).Should(Equal(1.0))
}

// A request without an answer ends with its endpoint.
func TestAnEndpointThatHangsCanGo(t *testing.T) {
	g := NewWithT(t)
	shard := newShard(t, caches{bindingsResource: bindings(here), configMaps: nil})
	defer shard.hold(bindingsResource)()
	defer shard.hold(configMaps)()
	mailboxes := startMailboxes(t, configMaps)
	before := settled(g, 0)
	mailboxes.setEndpoints([]string{shard.url()})
	g.Eventually(shard.waiting).WithTimeout(patience).Should(Equal(2))
	gone := make(chan struct{})
	go func() {
		mailboxes.setEndpoints(nil)
		close(gone)
	}()
	g.Eventually(gone).WithTimeout(patience).Should(BeClosed())
	g.Eventually(watchRoutines).WithTimeout(patience).Should(BeNumerically("<=", before))
}
