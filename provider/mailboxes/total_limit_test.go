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
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
)

// configMapIn returns a selected ConfigMap of about so many bytes in a mailbox.
func configMapIn(mailbox logicalcluster.Name, name string, size int) *unstructured.Unstructured {
	made := configMapOf(name, size/2, selectedLabel)
	made.SetUID(types.UID(mailbox.String() + "/" + name))
	annotations := made.GetAnnotations()
	annotations[logicalcluster.AnnotationKey] = mailbox.String()
	made.SetAnnotations(annotations)
	return made
}

// newTotal returns a cache of mailboxes that may take so many bytes together.
func newTotal(t *testing.T, policy CachePolicy, limit int64, all ...logicalcluster.Name) *testInformer {
	t.Helper()
	c := newTestInformer(t, policy)
	owner := c.owner
	owner.parts.limits.memory.limit = limit
	c.shared = filled(t, nil)
	c.endpoint.informers[bindingsResource] = newFilledInformer(t, c.endpoint, bindingsResource, bindings(all...))
	owner.parts.endpoints.byURL["https://one"] = c.endpoint
	return c
}

func (c *testInformer) updateFairShare() {
	(&fairShareUpdater{c.owner.parts}).update()
}

// runReviews runs all enqueued reviews, and returns the number of mailboxes.
func (c *testInformer) runReviews(t *testing.T) (count int) {
	t.Helper()
	owner := c.owner
	for ; owner.parts.reviews.queue.Len() > 0; count++ {
		mailbox, _ := owner.parts.reviews.queue.Get()
		if _, err := (&reviewer{owner.parts}).review(t.Context(), mailbox); err != nil {
			t.Fatal(err)
		}
		owner.parts.reviews.queue.Forget(mailbox)
		owner.parts.reviews.queue.Done(mailbox)
	}
	return count
}

// The largest mailboxes are cut first, down to a fair share, and small ones are not affected. When one of the largest is
// emptied, the mailboxes that were cut are reviewed, and their objects are fetched.
func TestTotalLimitIsShared(t *testing.T) {
	g := NewWithT(t)
	const limit, size = 1_000_000, 20_000
	c := newTotal(t, &labelPolicy{}, limit, "small", "large", "huge")
	owner := c.owner
	g.Expect(ProjectionOf(c.update(t, configMapIn("small", "first", size)))).To(Equal(FullObject))
	for number := range 22 {
		c.update(t, configMapIn("large", fmt.Sprint("object-", number), size))
	}
	g.Expect(owner.parts.limits.memory.isAboveSoftLimit()).To(BeFalse())
	for number := range 100 {
		c.update(t, configMapIn("huge", fmt.Sprint("object-", number), size))
	}
	g.Expect(owner.parts.limits.memory.cached.Bytes()).To(BeNumerically("<=", limit+100*2_000), "the caches stay within the limit, apart from identities")
	g.Expect(owner.Limits.MailboxLimitError("huge")).To(MatchError(ContainSubstring("all mailboxes together have more than the hub's 1000000 bytes")))
	g.Expect(owner.Limits.MailboxLimitError("small").IdentityOnly).To(BeZero())

	c.updateFairShare()
	for c.runReviews(t) > 0 {
	}
	level := owner.parts.limits.memory.fairShare.Load()
	g.Expect(level).To(And(BeNumerically(">", limit/4), BeNumerically("<", limit/2)))
	g.Expect(owner.parts.limits.memory.cached.Bytes()).To(BeNumerically("<=", owner.parts.limits.memory.softLimit()))
	for _, mailbox := range []logicalcluster.Name{"large", "huge"} {
		usage := owner.parts.usages.of(mailbox, false)
		g.Expect(usage.bytes).To(And(BeNumerically("<=", level), BeNumerically(">", level-2*size)), mailbox.String())
		g.Expect(owner.Limits.MailboxLimitError(mailbox)).To(MatchError(And(ContainSubstring(fmt.Sprint(level)), ContainSubstring("--mailboxes-max-bytes"))))
	}
	g.Expect(ProjectionOf(c.update(t, configMapIn("small", "second", size)))).To(Equal(FullObject), "a small mailbox may grow")
	c.updateFairShare()
	g.Expect(owner.parts.limits.memory.fairShare.Load()).To(Equal(level), "nothing has changed by much")
	g.Expect(c.runReviews(t)).To(BeZero())

	for number := range 100 {
		c.remove(t, configMapIn("huge", fmt.Sprint("object-", number), size))
	}
	for owner.parts.reviews.queue.Len() > 0 {
		mailbox, _ := owner.parts.reviews.queue.Get()
		g.Expect(mailbox).To(BeEquivalentTo("huge"))
		owner.parts.reviews.queue.Done(mailbox)
	}
	c.updateFairShare()
	g.Expect(owner.parts.limits.memory.fairShare.Load()).To(BeZero())
	mailbox, _ := owner.parts.reviews.queue.Get()
	g.Expect(mailbox).To(BeEquivalentTo("large"))
	g.Expect(owner.parts.reviews.queue.Len()).To(BeZero())
}

// An initial list does not count before it is complete, but it cannot exceed the limit.
func TestAFirstListFitsTheTotal(t *testing.T) {
	g := NewWithT(t)
	const limit, size, count = 1_000_000, 20_000, 300
	c := newTotal(t, &labelPolicy{}, limit)
	owner := c.owner
	c.admission.beginList()
	var bytes int64
	for number := range count {
		listed, _ := c.transform(configMapIn(logicalcluster.Name(fmt.Sprint("mailbox-", number/10)), fmt.Sprint(number), size))
		bytes += listed.(*cachedObject).currentSize()
		g.Expect(owner.parts.limits.memory.pending.Load()).To(Equal(bytes))
	}
	g.Expect(bytes).To(BeNumerically("<=", limit+count*2_000))
	g.Expect(owner.parts.limits.memory.wake).To(Receive(), "the level is set")
	c.admission.beginList()
	g.Expect(owner.parts.limits.memory.pending.Load()).To(BeZero(), "the list failed, and is requested again")
}

// The total is the sum of the mailboxes' usages, however many mailboxes come, change and go.
func TestTotalIsTheSumOfAllUsages(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(9, 10)) //nolint:gosec // a test that can be repeated
	var all []logicalcluster.Name
	for number := range 40 {
		all = append(all, logicalcluster.Name(fmt.Sprint("mailbox-", number)))
	}
	c := newTotal(t, &labelPolicy{}, 300_000, all...)
	owner := c.owner
	for step := range 2_000 {
		made := configMapIn(all[random.IntN(len(all))>>random.IntN(5)], fmt.Sprint(random.IntN(6)), random.IntN(12_000))
		if random.IntN(5) == 0 {
			c.remove(t, made)
		} else {
			c.update(t, made)
		}
		if step%50 == 0 {
			c.updateFairShare()
		}
		var sum int64
		owner.parts.usages.each(func(_ logicalcluster.Name, account *usage, _ bool) { sum += account.bytes })
		g.Expect(owner.parts.limits.memory.cached.Bytes()).To(Equal(sum), "step %d", step)
		g.Expect(sum).To(BeNumerically("<=", owner.parts.limits.memory.limit+240*2_000))
	}
}

// The cache holds nothing of a mailbox with too many objects: the mailbox is Unknown, no absence is verified there, and events
// are dropped. Once the mailbox is readmitted its objects are listed, and until then no missing object counts as gone.
func TestAMailboxIsEvicted(t *testing.T) {
	g := NewWithT(t)
	c := newTotal(t, &labelPolicy{limits: Limits{Bytes: 20_000}}, 0, here, there)
	owner := c.owner
	c.update(t, configMapIn(there, "other", 100))
	calls := recordAbsenceCalls(owner)
	var last *unstructured.Unstructured
	for number := 0; !owner.parts.usages.isEvicted(here, false); number++ {
		g.Expect(number).To(BeNumerically("<", 30))
		last = configMapIn(here, fmt.Sprint("object-", number), 10_000)
		c.update(t, last)
		c.runReviews(t)
	}
	g.Expect(owner.parts.evictions.wake).To(Receive())
	g.Expect(owner.Limits.MailboxLimitError(here)).To(MatchError(And(ContainSubstring("or more"), ContainSubstring("20000 bytes"))))
	_, state := owner.Get(configMaps, here, key(last.GetName()))
	g.Expect(state).To(Equal(Unknown))
	_, known := owner.List(configMaps, here)
	g.Expect(known).To(BeFalse())
	_, state = owner.Get(configMaps, there, key("other"))
	g.Expect(state).To(Equal(Present), "other mailboxes are not affected")
	g.Expect(calls.take()).To(ContainElement("forget here"), "its verified absences are void")
	g.Expect(absenceCache{owner.Caches, owner.Subscriptions}.IsIncomplete(here)).To(BeTrue())
	g.Expect(absenceCache{owner.Caches, owner.Subscriptions}.IsIncomplete(there)).To(BeFalse())

	held := len(c.shared.GetStore().ListKeys())
	for number := range 50 {
		c.update(t, configMapIn(here, fmt.Sprint("more-", number), 10))
	}
	g.Expect(c.shared.GetStore().ListKeys()).To(HaveLen(held+1), "events are dropped except for a placeholder")

	owner.parts.evictions.dropFromCaches(evictionKey{here, false})
	g.Expect(c.shared.GetStore().ListKeys()).To(HaveLen(2), "the other mailbox's object, and the placeholder")
	g.Expect(c.counted.byUID).To(HaveLen(1))
	g.Expect([]int64{owner.parts.usages.of(here, false).objects, owner.parts.usages.of(here, false).bytes}).To(Equal([]int64{0, 0}))
	g.Expect(owner.Limits.MailboxLimitError(here).Objects).To(BeNumerically(">", 10), "it is still reported")

	owner.parts.evictions.readmit(here, false)
	stateOf := func() State {
		_, state := owner.Get(configMaps, here, key(last.GetName()))
		return state
	}
	g.Expect(stateOf()).To(Equal(Unknown), "it is not listed yet")
	_, state = owner.Get(configMaps, there, key("other"))
	g.Expect(state).To(Equal(Present), "other mailboxes are not affected")
	former := c.waiters.markers()[0]
	owner.parts.evictions.evict(here, false, 1)
	owner.parts.evictions.readmit(here, false)
	c.handler.OnAdd(former, false)
	g.Expect(stateOf()).To(Equal(Unknown), "a list that began before does not count")
	g.Expect(c.shared.GetIndexer().Add(c.waiters.markers()[0])).To(Succeed())
	c.handler.OnUpdate(former, c.waiters.markers()[0])
	g.Expect(stateOf()).To(Equal(Absent))
	g.Expect(owner.parts.relists.awaiting.Load()).To(BeZero())
	g.Expect(c.shared.GetStore().ListKeys()).To(HaveLen(2), "the marker of the list is gone")
	owner.parts.evictions.evict(here, false, 1)
	owner.parts.evictions.readmit(here, false)
	g.Expect(calls.take()).To(ContainElement("forget here"), "objects that the caches do not hold yet must not count as gone")
	owner.parts.release(here)
	g.Expect(owner.parts.relists.awaiting.Load()).To(BeZero(), "no mailbox waits after its deletion")
	g.Expect(ProjectionOf(c.update(t, configMapIn(here, "again", 100)))).To(Equal(FullObject))
}

// The objects of a mailbox that is evicted again and again are counted less and less often.
func TestReadmissionsBecomeRarer(t *testing.T) {
	g := NewWithT(t)
	now := testclock.NewFakeClock(time.Unix(1_000, 0))
	var evicted evictionState
	var waits []time.Duration
	for range 12 {
		evicted.recordFailure(now.Now())
		waits = append(waits, evicted.nextAttempt().Sub(now.Now()))
		now.SetTime(evicted.nextAttempt())
	}
	g.Expect(waits[:3]).To(Equal([]time.Duration{readmitAfter, 2 * readmitAfter, 4 * readmitAfter}))
	g.Expect(waits[11]).To(Equal(maxReadmitDelay))
	now.Step(3 * maxReadmitDelay)
	evicted.recordFailure(now.Now())
	g.Expect(evicted.nextAttempt().Sub(now.Now())).To(Equal(readmitAfter))
}

// The limit for all mailboxes costs no allocation for each event.
func TestTheTotalCostsNoAllocation(t *testing.T) {
	g := NewWithT(t)
	allocations := func(limit int64) float64 {
		c := newTotal(t, &labelPolicy{limits: Limits{Bytes: 1 << 20}}, limit)
		before := cachedItem(t, c, configMapIn(here, "object", 1_000))
		return testing.AllocsPerRun(200, func() {
			made, _ := c.transform(configMapIn(here, "object", 1_000))
			c.handler.OnUpdate(before, made)
			before = made.(*cachedObject)
		})
	}
	g.Expect(allocations(1 << 30)).To(Equal(allocations(0)))
}

// cachedItem returns the cache's entry of an object.
func cachedItem(t *testing.T, c *testInformer, object *unstructured.Unstructured) *cachedObject {
	t.Helper()
	c.update(t, object)
	return c.shared.GetIndexer().List()[0].(*cachedObject)
}
