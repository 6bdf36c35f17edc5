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
	"slices"
	"sync"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"
)

// countAccounts returns the number of usages.
func countAccounts(owner *Mailboxes) (count int) {
	owner.parts.usages.each(func(logicalcluster.Name, *usage, bool) { count++ })
	return count
}

// A mailbox that came and went leaves nothing behind, in any order of removal.
func TestDeletedMailboxesLeaveNoAccounts(t *testing.T) {
	const mailbox logicalcluster.Name = "short-lived"
	object := configMapIn(mailbox, "object", 1_000)
	binding := bindings(mailbox)[0]
	for name, goes := range map[string]func(t *testing.T, c *testInformer, unbind func()){
		"the binding last": func(t *testing.T, c *testInformer, unbind func()) {
			t.Helper()
			c.remove(t, object)
			if countAccounts(c.owner) != 1 {
				t.Error("the account of a mailbox without objects is dropped while the mailbox is shown")
			}
			unbind()
		},
		"the binding first": func(t *testing.T, c *testInformer, unbind func()) { t.Helper(); unbind(); c.remove(t, object) },
		"while it is closed": func(t *testing.T, c *testInformer, unbind func()) {
			t.Helper()
			c.owner.parts.evictions.evict(mailbox, false, 1)
			unbind()
			c.remove(t, object)
		},
		"and is closed then": func(t *testing.T, c *testInformer, unbind func()) {
			t.Helper()
			unbind()
			c.remove(t, object)
			c.owner.parts.evictions.evict(mailbox, true, 1)
			c.owner.parts.options.Clock.(*testclock.FakeClock).Step(readmitAfter)
			c.owner.parts.evictions.readmitNext(t.Context(), c.owner.parts.evictions.listEvicted(), c.owner.parts.release)
			if c.owner.parts.usages.evicted.Load() > 0 {
				t.Error("it stays closed")
			}
		},
		"and is read then": func(t *testing.T, c *testInformer, unbind func()) {
			t.Helper()
			unbind()
			c.remove(t, object)
			_, _ = c.transform(object)
			_ = c.owner.Limits.MailboxLimitError(mailbox)
			c.owner.parts.absences.verifier.RequireRelist(mailbox, configMaps)
		},
		"before it is known which mailboxes there are": func(t *testing.T, c *testInformer, unbind func()) {
			t.Helper()
			unbind()
			shown := c.endpoint.informers[bindingsResource]
			delete(c.endpoint.informers, bindingsResource)
			c.remove(t, object)
			c.endpoint.informers[bindingsResource] = shown
			c.endpoint.onCacheFilled(bindingsResource)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newTotal(t, &labelPolicy{}, 0, mailbox)
			owner := c.owner
			calls := recordAbsenceCalls(owner)
			bound := c.endpoint.informers[bindingsResource].shared.GetIndexer()
			c.update(t, object)
			g.Expect(countAccounts(owner)).To(Equal(1))
			client := c.endpoint.clientFor(mailbox)
			goes(t, c, func() {
				g.Expect(bound.Delete(binding)).To(Succeed())
				c.endpoint.onBindingDeleted(binding)
			})
			g.Expect(countAccounts(owner)).To(BeZero())
			g.Expect(calls.take()).To(ContainElement("forget " + mailbox.String()))
			g.Expect(c.endpoint.clientFor(mailbox)).NotTo(BeIdenticalTo(client))
		})
	}
}

// No count is lost while mailboxes and their objects come and go: each usage matches its mailbox, and when all objects are
// gone there is no usage.
func TestNoCountIsLostWhileAccountsAreDropped(t *testing.T) {
	for name, test := range map[string]struct {
		mailboxes []logicalcluster.Name
		// objects is how many each worker has at most.
		objects int
		bound   bool
	}{
		"few objects": {[]logicalcluster.Name{"one"}, 1, false}, "many": {[]logicalcluster.Name{"one", "two", "three"}, 100, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newTotal(t, &labelPolicy{limits: Limits{Bytes: 1 << 30}}, 1<<40)
			owner := c.owner
			done := make(chan struct{})
			var counting, binding sync.WaitGroup
			if test.bound {
				binding.Go(func() { c.bindAndUnbind(test.mailboxes, done) })
			}
			counted := make([][]*cachedObject, 4)
			for worker := range counted {
				counting.Go(func() { counted[worker] = c.comeAndGo(test.mailboxes, worker, test.objects) })
			}
			counting.Wait()
			close(done)
			binding.Wait()

			want, all := map[logicalcluster.Name]int64{}, slices.Concat(counted...)
			for _, one := range all {
				want[mailboxOf(one.current.Load())] += one.countedBytes
			}
			for _, mailbox := range test.mailboxes {
				g.Expect(owner.parts.usages.of(mailbox, false).bytes).To(Equal(want[mailbox]), mailbox.String())
			}
			for _, one := range all {
				c.counted.update(one, nil)
			}
			for _, mailbox := range test.mailboxes {
				c.unbind(mailbox)
			}
			g.Expect(owner.parts.limits.memory.cached.Bytes()).To(BeZero())
			g.Expect(countAccounts(owner)).To(BeZero())
		})
	}
}

func (c *testInformer) unbind(mailbox logicalcluster.Name) {
	binding := bindings(mailbox)[0]
	_ = c.endpoint.informers[bindingsResource].shared.GetIndexer().Delete(binding)
	c.endpoint.onBindingDeleted(binding)
}

// bindAndUnbind binds and unbinds mailboxes until done is closed.
func (c *testInformer) bindAndUnbind(mailboxes []logicalcluster.Name, done <-chan struct{}) {
	random := rand.New(rand.NewPCG(8, 9)) //nolint:gosec // a test that can be repeated
	for {
		select {
		case <-done:
			return
		default:
		}
		mailbox := mailboxes[random.IntN(len(mailboxes))]
		c.unbind(mailbox)
		if random.IntN(3) == 0 {
			_ = c.endpoint.informers[bindingsResource].shared.GetIndexer().Add(bindings(mailbox)[0])
		}
	}
}

// comeAndGo counts objects of mailboxes that come, change and go, no more than so many at once, and returns those that are left.
func (c *testInformer) comeAndGo(mailboxes []logicalcluster.Name, worker, most int) (left []*cachedObject) {
	random := rand.New(rand.NewPCG(uint64(worker), 7)) //nolint:gosec // a test that can be repeated
	// Objects are made before, so that little is done but counting.
	objects := make([]*unstructured.Unstructured, most)
	for i := range objects {
		objects[i] = configMapIn(mailboxes[i%len(mailboxes)], fmt.Sprintf("%d-%d", worker, i), 10)
	}
	for range 50_000 {
		if len(left) == most || len(left) > 0 && random.IntN(2) == 0 {
			last := left[len(left)-1]
			if random.IntN(3) == 0 {
				c.counted.update(last, last)
			}
			c.counted.update(last, nil)
			left = left[:len(left)-1]
			continue
		}
		made := newCachedObject(objects[len(left)], random.Int64N(1_000)+1)
		c.counted.update(nil, made)
		left = append(left, made)
	}
	return left
}

// A mailbox that is evicted while its usage is being dropped stays evicted.
func TestAClosureOutlastsADrop(t *testing.T) {
	g := NewWithT(t)
	const mailbox logicalcluster.Name = "short-lived"
	c := newTotal(t, &labelPolicy{}, 0)
	owner := c.owner
	for range 500 {
		var both sync.WaitGroup
		both.Go(func() { owner.parts.evictions.evict(mailbox, false, 1) })
		both.Go(func() {
			owner.parts.usages.lock(mailbox, false).lock.Unlock()
			owner.parts.usages.deleteUnused(mailbox)
		})
		both.Wait()
		g.Expect(owner.parts.usages.isEvicted(mailbox, false)).To(BeTrue())
		owner.parts.release(mailbox)
		g.Expect(owner.parts.usages.evicted.Load()).To(BeZero())
		g.Expect(countAccounts(owner)).To(BeZero())
	}
}
