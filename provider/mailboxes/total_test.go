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

// in returns a selected ConfigMap of about so many bytes in a mailbox.
func in(mailbox logicalcluster.Name, name string, size int) *unstructured.Unstructured {
	made := configMapOf(name, size/2, selectedLabel)
	made.SetUID(types.UID(mailbox.String() + "/" + name))
	annotations := made.GetAnnotations()
	annotations[logicalcluster.AnnotationKey] = mailbox.String()
	made.SetAnnotations(annotations)
	return made
}

// newTotal returns a cache of mailboxes that may take so many bytes together.
func newTotal(t *testing.T, policy Policy, limit int64, all ...logicalcluster.Name) *cached {
	t.Helper()
	c := newCached(t, policy)
	owner := c.endpoint.owner
	owner.total.limit = limit
	c.informer = filled(t, nil)
	c.held.Within(&owner.total.held)
	c.endpoint.watches[bindingsResource] = &watching{endpoint: c.endpoint, resource: bindingsResource, informer: filled(t, bindings(all...)), cancel: func() {}}
	owner.endpoints["https://one"] = c.endpoint
	return c
}

// reviewed reviews what is to be reviewed, and returns of how many mailboxes.
func (c *cached) reviewed(t *testing.T) (count int) {
	t.Helper()
	owner := c.endpoint.owner
	for ; owner.reviews.Len() > 0; count++ {
		mailbox, _ := owner.reviews.Get()
		if _, err := owner.review(t.Context(), mailbox); err != nil {
			t.Fatal(err)
		}
		owner.reviews.Forget(mailbox)
		owner.reviews.Done(mailbox)
	}
	return count
}

// The largest mailboxes are cut first, down to a common level, and those that are small notice nothing. When one of the largest
// is emptied, those that were cut are reviewed, to be fetched.
func TestTheTotalIsShared(t *testing.T) {
	g := NewWithT(t)
	const limit, size = 1_000_000, 20_000
	c := newTotal(t, &byLabel{}, limit, "small", "large", "huge")
	owner := c.endpoint.owner
	g.Expect(ExtentOf(c.shows(t, in("small", "first", size)))).To(Equal(Whole))
	for number := range 22 {
		c.shows(t, in("large", fmt.Sprint("object-", number), size))
	}
	g.Expect(owner.total.isTight()).To(BeFalse())
	for number := range 100 {
		c.shows(t, in("huge", fmt.Sprint("object-", number), size))
	}
	g.Expect(owner.total.held.Bytes()).To(BeNumerically("<=", limit+100*2_000), "no more is held than fits, and which objects the others are")
	g.Expect(owner.LimitError("huge")).To(MatchError(ContainSubstring("all mailboxes together have more than the hub's 1000000 bytes")))
	g.Expect(owner.LimitError("small").Beyond).To(BeZero())

	owner.setLevel()
	for c.reviewed(t) > 0 {
	}
	level := owner.total.level.Load()
	g.Expect(level).To(And(BeNumerically(">", limit/4), BeNumerically("<", limit/2)))
	g.Expect(owner.total.held.Bytes()).To(BeNumerically("<=", owner.total.comfort()))
	for _, mailbox := range []logicalcluster.Name{"large", "huge"} {
		account := owner.account(mailbox)
		g.Expect(account.bytes).To(And(BeNumerically("<=", level), BeNumerically(">", level-2*size)), mailbox.String())
		g.Expect(owner.LimitError(mailbox)).To(MatchError(And(ContainSubstring(fmt.Sprint(level)), ContainSubstring("--mailboxes-max-bytes"))))
	}
	g.Expect(ExtentOf(c.shows(t, in("small", "second", size)))).To(Equal(Whole), "a small mailbox may grow")
	owner.setLevel()
	g.Expect(owner.total.level.Load()).To(Equal(level), "nothing has changed by much")
	g.Expect(c.reviewed(t)).To(BeZero())

	for number := range 100 {
		c.removes(t, in("huge", fmt.Sprint("object-", number), size))
	}
	for owner.reviews.Len() > 0 {
		mailbox, _ := owner.reviews.Get()
		g.Expect(mailbox).To(BeEquivalentTo("huge"))
		owner.reviews.Done(mailbox)
	}
	owner.setLevel()
	g.Expect(owner.total.level.Load()).To(BeZero())
	mailbox, _ := owner.reviews.Get()
	g.Expect(mailbox).To(BeEquivalentTo("large"))
	g.Expect(owner.reviews.Len()).To(BeZero())
}

// While a first list comes in nothing is counted yet, and still no more is held than fits.
func TestAFirstListFitsTheTotal(t *testing.T) {
	g := NewWithT(t)
	const limit, size, count = 1_000_000, 20_000, 300
	c := newTotal(t, &byLabel{}, limit)
	owner := c.endpoint.owner
	c.beginFill()
	var bytes int64
	for number := range count {
		listed, _ := c.transform(in(logicalcluster.Name(fmt.Sprint("mailbox-", number/10)), fmt.Sprint(number), size))
		bytes += listed.(*item).heldSize()
		g.Expect(owner.total.coming.Load()).To(Equal(bytes))
	}
	g.Expect(bytes).To(BeNumerically("<=", limit+count*2_000))
	g.Expect(owner.total.wake).To(Receive(), "the level is set")
	c.beginFill()
	g.Expect(owner.total.coming.Load()).To(BeZero(), "the list has failed, and is asked for again")
}

// However many mailboxes come, change and go, the total is what they take, each by itself.
func TestTheTotalIsTheSumOfTheAccounts(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(9, 10)) //nolint:gosec // a test that can be repeated
	var all []logicalcluster.Name
	for number := range 40 {
		all = append(all, logicalcluster.Name(fmt.Sprint("mailbox-", number)))
	}
	c := newTotal(t, &byLabel{}, 300_000, all...)
	owner := c.endpoint.owner
	for step := range 2_000 {
		made := in(all[random.IntN(len(all))>>random.IntN(5)], fmt.Sprint(random.IntN(6)), random.IntN(12_000))
		if random.IntN(5) == 0 {
			c.removes(t, made)
		} else {
			c.shows(t, made)
		}
		if step%50 == 0 {
			owner.setLevel()
		}
		var sum int64
		owner.eachAccount(func(_ logicalcluster.Name, account *account, _ bool) { sum += account.bytes })
		g.Expect(owner.total.held.Bytes()).To(Equal(sum), "step %d", step)
		g.Expect(sum).To(BeNumerically("<=", owner.total.limit+240*2_000))
	}
}

// Of a mailbox with more objects than can be known nothing is held: it is Unknown, nothing is proven of it, and what the watch
// tells of it is dropped. When it is opened its objects are listed, and until then nothing that is missing is believed to be gone.
func TestAMailboxIsClosed(t *testing.T) {
	g := NewWithT(t)
	c := newTotal(t, &byLabel{limits: Limits{Bytes: 20_000}}, 0, here, there)
	owner := c.endpoint.owner
	c.shows(t, in(there, "other", 100))
	gone := Suspect{Resource: configMaps, Key: key("gone"), Vanished: true}
	doubtful := func() bool {
		docket := owner.prover.docketLocked(here)
		isDoubtful := len(docket.proven) == 0 && docket.inStep[configMaps] == ""
		docket.proven[gone], docket.inStep[configMaps] = struct{}{}, "1"
		return isDoubtful
	}
	g.Expect(doubtful()).To(BeTrue())
	var last *unstructured.Unstructured
	for number := 0; !owner.isClosed(here, false); number++ {
		g.Expect(number).To(BeNumerically("<", 30))
		last = in(here, fmt.Sprint("object-", number), 10_000)
		c.shows(t, last)
		c.reviewed(t)
	}
	g.Expect(owner.closing).To(Receive())
	g.Expect(owner.LimitError(here)).To(MatchError(And(ContainSubstring("or more"), ContainSubstring("20000 bytes"))))
	_, state := owner.Get(configMaps, here, key(last.GetName()))
	g.Expect(state).To(Equal(Unknown))
	_, known := owner.List(configMaps, here)
	g.Expect(known).To(BeFalse())
	_, state = owner.Get(configMaps, there, key("other"))
	g.Expect(state).To(Equal(Present), "others notice nothing")
	g.Expect(doubtful()).To(BeTrue(), "what was proven of it is forgotten")
	verdict, _ := owner.prover.round(t.Context(), here, []Suspect{{Resource: configMaps, Key: key(last.GetName())}, {Resource: configMaps, Key: key(last.GetName()), Vanished: true}})
	g.Expect(verdict.proven).To(BeEmpty())
	g.Expect(verdict.cleared).To(BeEmpty())

	held := len(c.informer.GetStore().ListKeys())
	for number := range 50 {
		c.shows(t, in(here, fmt.Sprint("more-", number), 10))
	}
	g.Expect(c.informer.GetStore().ListKeys()).To(HaveLen(held+1), "what comes is dropped but for a placeholder")

	owner.evict(closureOf{here, false})
	g.Expect(c.informer.GetStore().ListKeys()).To(HaveLen(2), "that of the other mailbox, and the placeholder")
	g.Expect(c.items).To(HaveLen(1))
	g.Expect([]int64{owner.account(here).objects, owner.account(here).bytes}).To(Equal([]int64{0, 0}))
	g.Expect(owner.LimitError(here).Objects).To(BeNumerically(">", 10), "it is still told")

	owner.open(here, false)
	stateOf := func() State {
		_, state := owner.Get(configMaps, here, key(last.GetName()))
		return state
	}
	g.Expect(stateOf()).To(Equal(Unknown), "it is not listed yet")
	_, state = owner.Get(configMaps, there, key("other"))
	g.Expect(state).To(Equal(Present), "others notice nothing")
	former := c.endsOfList()[0]
	owner.close(here, false, 1)
	owner.open(here, false)
	c.handler.OnAdd(former, false)
	g.Expect(stateOf()).To(Equal(Unknown), "a list that began before does not count")
	g.Expect(c.informer.GetIndexer().Add(c.endsOfList()[0])).To(Succeed())
	c.handler.OnUpdate(former, c.endsOfList()[0])
	g.Expect(stateOf()).To(Equal(Absent))
	g.Expect(owner.unlisted.Load()).To(BeZero())
	g.Expect(c.informer.GetStore().ListKeys()).To(HaveLen(2), "what ended the list is gone")
	owner.close(here, false, 1)
	owner.open(here, false)
	owner.letGo(here)
	g.Expect(owner.unlisted.Load()).To(BeZero(), "nobody waits for what is gone")
	g.Expect(doubtful()).To(BeTrue(), "what the caches do not hold yet must not be taken for gone")
	g.Expect(ExtentOf(c.shows(t, in(here, "again", 100)))).To(Equal(Whole))
}

// A mailbox that is closed again and again is counted less and less often.
func TestClosuresBecomeLonger(t *testing.T) {
	g := NewWithT(t)
	now := testclock.NewFakeClock(time.Unix(1_000, 0))
	var closed closure
	var waits []time.Duration
	for range 12 {
		closed.exceeded(now.Now())
		waits = append(waits, closed.due().Sub(now.Now()))
		now.SetTime(closed.due())
	}
	g.Expect(waits[:3]).To(Equal([]time.Duration{reopenAfter, 2 * reopenAfter, 4 * reopenAfter}))
	g.Expect(waits[11]).To(Equal(reopenAtLatest))
	now.Step(3 * reopenAtLatest)
	closed.exceeded(now.Now())
	g.Expect(closed.due().Sub(now.Now())).To(Equal(reopenAfter))
}

// What bounds the total costs an event no allocation.
func TestTheTotalCostsNoAllocation(t *testing.T) {
	g := NewWithT(t)
	allocations := func(limit int64) float64 {
		c := newTotal(t, &byLabel{limits: Limits{Bytes: 1 << 20}}, limit)
		before := placed(t, c, in(here, "object", 1_000))
		return testing.AllocsPerRun(200, func() {
			made, _ := c.transform(in(here, "object", 1_000))
			c.handler.OnUpdate(before, made)
			before = made.(*item)
		})
	}
	g.Expect(allocations(1 << 30)).To(Equal(allocations(0)))
}

// placed returns the item by which the cache holds an object.
func placed(t *testing.T, c *cached, object *unstructured.Unstructured) *item {
	t.Helper()
	c.shows(t, object)
	return c.informer.GetIndexer().List()[0].(*item)
}
