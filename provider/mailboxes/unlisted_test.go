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

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/kcp"
)

// An object that a new list lacks no longer counts. A mailbox whose binding a new list lacks is Unknown.
func TestALaterListLacksObjects(t *testing.T) {
	g := NewWithT(t)
	a, b := object(here, "a"), object(here, "b")
	a.SetUID("a")
	b.SetUID("b")
	shard := newFakeShard(t, caches{bindingsResource: bindings(here, there), configMaps: {a, b, object(there, "a")}})
	mailboxes := startMailboxes(t, configMaps)
	subscriber := &recorder{}
	mailboxes.Subscribe(configMaps, here, subscriber)
	mailboxes.setEndpoints([]string{shard.url()})
	g.Eventually(mailboxes.HasSynced).Should(BeTrue())
	g.Eventually(stateOf(mailboxes, configMaps, there, "a")).Should(Equal(Present))
	watched := mailboxes.parts.endpoints.byURL[shard.url()].informers
	g.Eventually(watched[configMaps].counted.size.Objects).Should(BeEquivalentTo(3))
	g.Eventually(watched[bindingsResource].counted.size.Objects).Should(BeEquivalentTo(2))
	subscriber.received()

	shard.refuse(true)
	shard.serve(bindingsResource, bindings(here)...)
	shard.serve(configMaps, a)
	g.Expect(stateOf(mailboxes, configMaps, here, "b")()).To(Equal(Present), "as it was last seen")
	shard.refuse(false)
	g.Eventually(stateOf(mailboxes, configMaps, here, "b")).Should(Equal(Absent))
	g.Eventually(stateOf(mailboxes, configMaps, there, "a")).Should(Equal(Unknown))
	g.Eventually(watched[configMaps].counted.size.Objects).Should(BeEquivalentTo(1))
	g.Expect(watched[configMaps].counted.size.Bytes()).To(Equal(cachesize.SizeOf(a)))
	g.Eventually(watched[bindingsResource].counted.size.Objects).Should(BeEquivalentTo(1))
	g.Expect(stateOf(mailboxes, configMaps, here, "a")()).To(Equal(Present))
	events, _, _ := subscriber.received()
	g.Expect(events).To(ConsistOf(Event{Key: key("b"), Old: events[0].Old}))
}

// Lists leave out the objects of an evicted mailbox: the objects leave the cache without a deletion event.
func TestAListLacksAnEvictedMailbox(t *testing.T) {
	g := NewWithT(t)
	c := newTestInformer(t, &labelPolicy{})
	c.update(t, configMapOf("a", 10, selectedLabel))
	held := c.shared.GetIndexer().List()[0]
	tombstone := cache.DeletedFinalStateUnknown{Key: "any", Obj: held}
	ignores := kcp.NewUnlistedDeleter(c.shared)
	g.Expect(ignores(held)).To(BeFalse())
	g.Expect(ignores(cache.DeletedFinalStateUnknown{Key: "evicted"})).To(BeTrue())
	g.Expect(c.shared.GetIndexer().List()).To(HaveLen(1))
	c.events = nil

	c.owner.parts.evictions.evict(here, false, 1)
	g.Expect(ignores(tombstone)).To(BeTrue())
	g.Expect(c.shared.GetIndexer().List()).To(BeEmpty())
	c.handler.OnDelete(tombstone)
	g.Expect(c.counted.size.Objects()).To(BeZero())
	c.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "any", Obj: newPlaceholder(here)})
	g.Expect(c.events).To(BeEmpty())
}
