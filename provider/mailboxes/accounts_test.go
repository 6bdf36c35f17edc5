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

// countAccounts returns how many accounts there are.
func countAccounts(owner *Mailboxes) (count int) {
	owner.eachAccount(func(logicalcluster.Name, *account, bool) { count++ })
	return count
}

// Of a mailbox that came and went nothing is left, whatever goes first.
func TestMailboxesThatGoLeaveNothing(t *testing.T) {
	const mailbox logicalcluster.Name = "short-lived"
	object := in(mailbox, "object", 1_000)
	binding := bindings(mailbox)[0]
	for name, goes := range map[string]func(t *testing.T, c *cached, unbind func()){
		"the binding last": func(t *testing.T, c *cached, unbind func()) {
			t.Helper()
			c.removes(t, object)
			if countAccounts(c.endpoint.owner) != 1 {
				t.Error("the account of a mailbox without objects is dropped while the mailbox is shown")
			}
			unbind()
		},
		"the binding first": func(t *testing.T, c *cached, unbind func()) { t.Helper(); unbind(); c.removes(t, object) },
		"while it is closed": func(t *testing.T, c *cached, unbind func()) {
			t.Helper()
			c.endpoint.owner.close(mailbox, false, 1)
			unbind()
			c.removes(t, object)
		},
		"and is closed then": func(t *testing.T, c *cached, unbind func()) {
			t.Helper()
			unbind()
			c.removes(t, object)
			c.endpoint.owner.close(mailbox, true, 1)
			c.endpoint.owner.clock.(*testclock.FakeClock).Step(reopenAfter)
			c.endpoint.owner.reopen(t.Context(), c.endpoint.owner.closures())
			if c.endpoint.owner.closed.Load() > 0 {
				t.Error("it stays closed")
			}
		},
		"and is read then": func(t *testing.T, c *cached, unbind func()) {
			t.Helper()
			unbind()
			c.removes(t, object)
			_, _ = c.transform(object)
			_ = c.endpoint.owner.LimitError(mailbox)
			c.endpoint.owner.prover.distrust(mailbox, configMaps)
		},
		"before it is known which mailboxes there are": func(t *testing.T, c *cached, unbind func()) {
			t.Helper()
			unbind()
			shown := c.endpoint.watches[bindingsResource]
			delete(c.endpoint.watches, bindingsResource)
			c.removes(t, object)
			c.endpoint.watches[bindingsResource] = shown
			c.endpoint.filled(bindingsResource)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newTotal(t, &byLabel{}, 0, mailbox)
			owner := c.endpoint.owner
			bound := c.endpoint.watches[bindingsResource].informer.GetIndexer()
			c.shows(t, object)
			g.Expect(countAccounts(owner)).To(Equal(1))
			client := c.endpoint.in(mailbox)
			goes(t, c, func() {
				g.Expect(bound.Delete(binding)).To(Succeed())
				c.endpoint.bindingGone(binding)
			})
			g.Expect(countAccounts(owner)).To(BeZero())
			g.Expect(owner.prover.docs).NotTo(HaveKey(mailbox))
			g.Expect(c.endpoint.in(mailbox)).NotTo(BeIdenticalTo(client))
		})
	}
}

// However mailboxes come and go while their objects do, no count is lost: each account has what its mailbox has, and when all is
// gone there is no account.
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
			c := newTotal(t, &byLabel{limits: Limits{Bytes: 1 << 30}}, 1<<40)
			owner := c.endpoint.owner
			done := make(chan struct{})
			var counting, binding sync.WaitGroup
			if test.bound {
				binding.Go(func() { c.bindAndUnbind(test.mailboxes, done) })
			}
			counted := make([][]*item, 4)
			for worker := range counted {
				counting.Go(func() { counted[worker] = c.comeAndGo(test.mailboxes, worker, test.objects) })
			}
			counting.Wait()
			close(done)
			binding.Wait()

			want, all := map[logicalcluster.Name]int64{}, slices.Concat(counted...)
			for _, one := range all {
				want[mailboxOf(one.held.Load())] += one.charged
			}
			for _, mailbox := range test.mailboxes {
				g.Expect(owner.account(mailbox).bytes).To(Equal(want[mailbox]), mailbox.String())
			}
			for _, one := range all {
				c.count(one, nil)
			}
			for _, mailbox := range test.mailboxes {
				c.unbind(mailbox)
			}
			g.Expect(owner.total.held.Bytes()).To(BeZero())
			g.Expect(countAccounts(owner)).To(BeZero())
		})
	}
}

func (c *cached) unbind(mailbox logicalcluster.Name) {
	binding := bindings(mailbox)[0]
	_ = c.endpoint.watches[bindingsResource].informer.GetIndexer().Delete(binding)
	c.endpoint.bindingGone(binding)
}

// bindAndUnbind does so with mailboxes until it is done.
func (c *cached) bindAndUnbind(mailboxes []logicalcluster.Name, done <-chan struct{}) {
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
			_ = c.endpoint.watches[bindingsResource].informer.GetIndexer().Add(bindings(mailbox)[0])
		}
	}
}

// comeAndGo counts objects of mailboxes that come, change and go, no more than so many at once, and returns those that are left.
func (c *cached) comeAndGo(mailboxes []logicalcluster.Name, worker, most int) (left []*item) {
	random := rand.New(rand.NewPCG(uint64(worker), 7)) //nolint:gosec // a test that can be repeated
	// Objects are made before, so that little is done but counting.
	objects := make([]*unstructured.Unstructured, most)
	for i := range objects {
		objects[i] = in(mailboxes[i%len(mailboxes)], fmt.Sprintf("%d-%d", worker, i), 10)
	}
	for range 50_000 {
		if len(left) == most || len(left) > 0 && random.IntN(2) == 0 {
			last := left[len(left)-1]
			if random.IntN(3) == 0 {
				c.count(last, last)
			}
			c.count(last, nil)
			left = left[:len(left)-1]
			continue
		}
		made := newItem(objects[len(left)], random.Int64N(1_000)+1)
		c.count(nil, made)
		left = append(left, made)
	}
	return left
}

// A mailbox that is closed while its account is being dropped is closed.
func TestAClosureOutlastsADrop(t *testing.T) {
	g := NewWithT(t)
	const mailbox logicalcluster.Name = "short-lived"
	c := newTotal(t, &byLabel{}, 0)
	owner := c.endpoint.owner
	for range 500 {
		var both sync.WaitGroup
		both.Go(func() { owner.close(mailbox, false, 1) })
		both.Go(func() {
			owner.openAccount(mailbox, false).lock.Unlock()
			owner.dropUnused(mailbox)
		})
		both.Wait()
		g.Expect(owner.isClosed(mailbox, false)).To(BeTrue())
		owner.letGo(mailbox)
		g.Expect(owner.closed.Load()).To(BeZero())
		g.Expect(countAccounts(owner)).To(BeZero())
	}
}
