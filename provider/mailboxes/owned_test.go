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
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// answers are answers of [Options.Owns] that a test changes.
type answers struct {
	lock  sync.Mutex
	owned map[logicalcluster.Name]bool
	asked int
}

func needing(mailboxes ...logicalcluster.Name) *answers {
	a := &answers{owned: map[logicalcluster.Name]bool{}}
	a.set(true, mailboxes...)
	return a
}

func (a *answers) set(isNeeded bool, mailboxes ...logicalcluster.Name) {
	a.lock.Lock()
	defer a.lock.Unlock()
	for _, mailbox := range mailboxes {
		a.owned[mailbox] = isNeeded
	}
}

func (a *answers) needs(mailbox logicalcluster.Name) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.asked++
	return a.owned[mailbox]
}

// ofMailbox returns an object of a mailbox.
func ofMailbox(mailbox logicalcluster.Name, name, version string) *unstructured.Unstructured {
	made := object(mailbox, name)
	made.SetUID(types.UID(mailbox.String() + "/" + name))
	made.SetResourceVersion(version)
	return made
}

func listOptionsAt(version string) metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: version}
}

// startNeeding returns mailboxes with one endpoint, the shard, that cache only the owned mailboxes.
func startNeeding(t *testing.T, answers *answers, policy CachePolicy, shard *fakeShard) *Mailboxes {
	t.Helper()
	options := testOptions()
	options.Owns, options.Clock, options.Policy = answers.needs, clock.RealClock{}, policy
	mailboxes := startMailboxesWith(t, options)
	if policy != nil {
		t.Cleanup(mailboxes.parts.reviews.queue.ShutDown)
	}
	recordAbsenceCalls(mailboxes)
	go (&Ownership{mailboxes.parts}).run(t.Context())
	mailboxes.SetResources([]schema.GroupVersionResource{configMaps})
	mailboxes.setEndpoints([]string{shard.url()})
	NewWithT(t).Eventually(mailboxes.HasSynced).Should(BeTrue())
	return mailboxes
}

// heldOf returns the objects of a mailbox that the cache of config maps holds, and their versions.
func heldOf(mailboxes *Mailboxes, mailbox logicalcluster.Name) func() []string {
	return func() (all []string) {
		for _, informer := range mailboxes.droppingInformers() {
			entries, _ := informer.shared.GetIndexer().ByIndex(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(mailbox))
			for _, entry := range entries {
				all = append(all, toObject(entry).GetName()+" "+toObject(entry).GetResourceVersion())
			}
		}
		slices.Sort(all)
		return all
	}
}

// takeListed returns the lists that were answered since the last time.
func (s *fakeShard) takeListed() (listed []string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	listed, s.listed = s.listed, nil
	return listed
}

// The objects of an unowned mailbox are not cached, and none of their events arrives.
func TestUnownedMailboxes(t *testing.T) {
	g := NewWithT(t)
	// A decoder would refuse an object without a kind.
	undecodable := func(name, version string) *unstructured.Unstructured {
		made := ofMailbox(there, name, version)
		delete(made.Object, "kind")
		return made
	}
	shard := newFakeShard(t, caches{bindingsResource: bindings(here, there), configMaps: {ofMailbox(here, "a", "1"), undecodable("a", "2")}})
	mailboxes := startNeeding(t, needing(here), &labelPolicy{}, shard)
	theirs := &recorder{}
	mailboxes.Subscribe(configMaps, there, theirs)
	g.Expect(stateOf(mailboxes, configMaps, here, "a")()).To(Equal(Present))
	g.Expect(stateOf(mailboxes, configMaps, there, "a")()).To(Equal(Unknown))
	_, known := mailboxes.List(configMaps, there)
	g.Expect(known).To(BeFalse())
	g.Expect(absenceCache{mailboxes.Caches, mailboxes.Subscriptions}.IsIncomplete(there)).To(BeTrue(), "no absence is verified")
	g.Expect(absenceCache{mailboxes.Caches, mailboxes.Subscriptions}.IsIncomplete(here)).To(BeFalse())
	g.Expect(mailboxes.BindingState(there)).To(Equal(BindingPresent), "bindings are cached of all")

	g.Eventually(func() int { return shard.watchers(configMaps) }).Should(Equal(1))
	shard.send(configMaps, "ADDED", undecodable("b", "3"))
	shard.send(configMaps, "DELETED", undecodable("a", "4"))
	shard.send(configMaps, "MODIFIED", ofMailbox(here, "a", "5"))
	g.Eventually(heldOf(mailboxes, here)).Should(ConsistOf("a 5"))
	g.Expect(heldOf(mailboxes, there)()).To(BeEmpty())
	informer := mailboxes.droppingInformers()[0]
	g.Eventually(informer.counted.size.Objects).Should(BeEquivalentTo(1))
	events, _, _ := theirs.received()
	g.Expect(events).To(BeEmpty())
	g.Expect(shard.takeListed()).To(ConsistOf("* apibindings", "* configmaps"))
}

// The objects of an acquired mailbox appear completely with one list of each resource, and no event is released during the list.
// Other mailboxes are not affected.
func TestAnAcquiredMailbox(t *testing.T) {
	g := NewWithT(t)
	shard := newFakeShard(t, caches{bindingsResource: bindings(here, there), configMaps: {
		ofMailbox(here, "a", "1"), ofMailbox(there, "kept", "2"), ofMailbox(there, "changed", "3"), ofMailbox(there, "deleted", "4"),
	}})
	answers := needing(here)
	mailboxes := startNeeding(t, answers, &labelPolicy{}, shard)
	theirs, ours := &recorder{}, &recorder{}
	mailboxes.Subscribe(configMaps, there, theirs)
	mailboxes.Subscribe(configMaps, here, ours)
	g.Eventually(func() int { return shard.watchers(configMaps) }).Should(Equal(1))
	shard.takeListed()
	release := shard.hold(configMaps)
	defer release()
	answers.set(true, there)
	g.Expect(stateOf(mailboxes, configMaps, there, "kept")()).To(Equal(Unknown), "an answer is valid until the next question")
	mailboxes.Ownership.RecheckOwned()
	g.Eventually(shard.waiting).Should(Equal(1))
	g.Expect(stateOf(mailboxes, configMaps, there, "kept")()).To(Equal(Unknown))

	shard.send(configMaps, "MODIFIED", ofMailbox(there, "changed", "11"))
	shard.send(configMaps, "DELETED", ofMailbox(there, "deleted", "12"))
	shard.send(configMaps, "ADDED", ofMailbox(there, "added", "13"))
	shard.send(configMaps, "MODIFIED", ofMailbox(here, "a", "14"))
	g.Eventually(heldOf(mailboxes, here)).Should(ConsistOf("a 14"), "other mailboxes do not wait")
	g.Expect(stateOf(mailboxes, configMaps, there, "kept")()).To(Equal(Unknown), "a part is not all")
	theirs.received()
	release()
	g.Eventually(stateOf(mailboxes, configMaps, there, "kept")).Should(Equal(Present))
	g.Expect(heldOf(mailboxes, there)()).To(ConsistOf("added 13", "changed 11", "kept 2"))
	g.Expect(stateOf(mailboxes, configMaps, there, "deleted")()).To(Equal(Absent))
	g.Expect(shard.takeListed()).To(ConsistOf("there configmaps"))
	g.Eventually(func() int { _, _, resets := theirs.received(); return resets }).Should(BeNumerically(">", 0))
	g.Eventually(mailboxes.droppingInformers()[0].counted.size.Objects).Should(BeEquivalentTo(4))
	g.Expect(mailboxes.parts.relists.awaiting.Load()).To(BeZero())
	g.Expect(shard.watchers(configMaps)).To(Equal(1))
	_, _, resets := ours.received()
	g.Expect(resets).To(BeZero())

	shard.send(configMaps, "DELETED", ofMailbox(there, "kept", "15"))
	g.Eventually(heldOf(mailboxes, there)).Should(ConsistOf("added 13", "changed 11"))
	g.Consistently(shard.takeListed, 2*relistInterval).Should(BeEmpty(), "nothing is listed again")
}

// A list whose watch ends is discarded: the mailbox is listed again with the next watch.
func TestTheWatchOfAnAcquiredMailboxEnds(t *testing.T) {
	g := NewWithT(t)
	shard := newFakeShard(t, caches{bindingsResource: bindings(here, there), configMaps: {ofMailbox(there, "a", "2"), ofMailbox(there, "b", "3")}})
	answers := needing(here)
	mailboxes := startNeeding(t, answers, nil, shard)
	g.Eventually(func() int { return shard.watchers(configMaps) }).Should(Equal(1))
	release := shard.hold(configMaps)
	answers.set(true, there)
	mailboxes.Ownership.RecheckOwned(there)
	g.Eventually(shard.waiting).Should(Equal(1))
	shard.serve(configMaps, ofMailbox(there, "a", "2"))
	shard.refuse(true)
	shard.refuse(false)
	release()
	g.Eventually(stateOf(mailboxes, configMaps, there, "a")).WithTimeout(time.Minute).Should(Equal(Present))
	g.Expect(heldOf(mailboxes, there)()).To(ConsistOf("a 2"))
}

// The objects of a released mailbox leave the caches, and no deletion is reported. Nothing is left.
func TestALostMailbox(t *testing.T) {
	g := NewWithT(t)
	shard := newFakeShard(t, caches{bindingsResource: bindings(here, there), configMaps: {ofMailbox(here, "a", "1"), ofMailbox(there, "a", "2"), ofMailbox(there, "b", "3")}})
	answers := needing(here, there)
	mailboxes := startNeeding(t, answers, &labelPolicy{}, shard)
	informer, theirs := mailboxes.droppingInformers()[0], &recorder{}
	mailboxes.Subscribe(configMaps, there, theirs)
	g.Eventually(informer.counted.size.Objects).Should(BeEquivalentTo(3))
	g.Eventually(func() int { return shard.watchers(configMaps) }).Should(Equal(1))
	theirs.received()
	calls := mailboxes.parts.absences.verifier.(*callRecorder)

	answers.set(false, there)
	mailboxes.Ownership.RecheckOwned(there)
	g.Expect(stateOf(mailboxes, configMaps, there, "a")()).To(Equal(Unknown), "at once")
	g.Expect(calls.take()).To(ContainElement("forget there"))
	g.Eventually(heldOf(mailboxes, there)).Should(BeEmpty())
	shard.send(configMaps, "DELETED", ofMailbox(there, "a", "4"))
	shard.send(configMaps, "MODIFIED", ofMailbox(here, "a", "5"))
	g.Eventually(heldOf(mailboxes, here)).Should(ConsistOf("a 5"))
	g.Eventually(informer.counted.size.Objects).Should(BeEquivalentTo(1))
	left, _ := mailboxes.Get(configMaps, here, key("a"))
	g.Eventually(informer.counted.size.Bytes).Should(Equal(cachesize.SizeOf(left)))
	g.Expect(mailboxes.parts.limits.memory.cached.Bytes()).To(Equal(informer.counted.size.Bytes() + mailboxes.parts.endpoints.byURL[shard.url()].informers[bindingsResource].counted.size.Bytes()))
	g.Eventually(func() bool { _, ok := mailboxes.parts.usages.objects.Load(there); return ok }).Should(BeFalse())
	informer.counted.lock.Lock()
	g.Expect(informer.counted.byUID).To(HaveLen(1))
	informer.counted.lock.Unlock()
	events, _, resets := theirs.received()
	g.Expect(events).To(BeEmpty(), "nothing was deleted")
	g.Expect(resets).To(BeNumerically(">", 0))

	// An object that was deleted while the mailbox was released is absent when the mailbox is acquired again.
	shard.lock.Lock()
	shard.caches[configMaps] = []*unstructured.Unstructured{ofMailbox(here, "a", "5"), ofMailbox(there, "b", "3")}
	shard.lock.Unlock()
	answers.set(true, there)
	mailboxes.Ownership.RecheckOwned(there)
	g.Eventually(stateOf(mailboxes, configMaps, there, "b")).Should(Equal(Present))
	g.Expect(stateOf(mailboxes, configMaps, there, "a")()).To(Equal(Absent))
	g.Eventually(informer.counted.size.Objects).Should(BeEquivalentTo(2))
}

// When a replica begins to lead it needs all mailboxes. That takes one list of each resource, for any number of mailboxes.
// Events of its own mailboxes do not wait for the list.
func TestAllMailboxesAreAcquired(t *testing.T) {
	g := NewWithT(t)
	var all []logicalcluster.Name
	var served []*unstructured.Unstructured
	for number := range 300 {
		all = append(all, logicalcluster.Name(fmt.Sprint("mailbox-", number)))
		served = append(served, ofMailbox(all[number], "a", "1"))
	}
	shard := newFakeShard(t, caches{bindingsResource: bindings(all...), configMaps: served, secrets: served})
	answers := needing(all[0])
	mailboxes := startNeeding(t, answers, nil, shard)
	mailboxes.SetResources([]schema.GroupVersionResource{configMaps, secrets})
	g.Eventually(func() int { return shard.watchers(configMaps) + shard.watchers(secrets) }).Should(Equal(2))
	shard.takeListed()
	release := shard.hold(configMaps)
	defer release()
	answers.set(true, all...)
	mailboxes.Ownership.RecheckOwned()
	g.Eventually(shard.waiting).Should(Equal(1))
	shard.send(configMaps, "MODIFIED", ofMailbox(all[0], "a", "11"))
	g.Eventually(heldOf(mailboxes, all[0])).Should(ContainElement("a 11"))
	shard.send(configMaps, "MODIFIED", ofMailbox(all[1], "a", "12"))
	g.Eventually(heldOf(mailboxes, all[1])).Should(ContainElement("a 12"))
	g.Expect(stateOf(mailboxes, configMaps, all[1], "a")()).To(Equal(Unknown), "a part is not all")
	release()
	for _, mailbox := range all {
		g.Eventually(stateOf(mailboxes, configMaps, mailbox, "a")).WithTimeout(time.Minute).Should(Equal(Present))
		g.Eventually(stateOf(mailboxes, secrets, mailbox, "a")).WithTimeout(time.Minute).Should(Equal(Present))
	}
	g.Expect(shard.takeListed()).To(ConsistOf("* configmaps", "* secrets"))
	g.Expect(heldOf(mailboxes, all[1])()).To(ContainElement("a 12"), "an event is newer than the list")
	g.Expect(shard.watchers(configMaps)+shard.watchers(secrets)).To(Equal(2), "the watches continue")
}

func TestListsOneByOne(t *testing.T) {
	for _, one := range []struct {
		waiting, all int
		want         bool
	}{{1, 1, true}, {4, 4, true}, {5, 5, false}, {12, 100, true}, {13, 100, false}, {1250, 10_000, true}, {10_000, 10_000, false}} {
		if got := listsOneByOne(one.waiting, one.all); got != one.want {
			t.Errorf("%d of %d: want %t, got %t", one.waiting, one.all, one.want, got)
		}
	}
}

// Entries that were in the cache or in the queue of the informer before the mailbox was unowned do not outlast its next list.
func TestOlderEntries(t *testing.T) {
	g := NewWithT(t)
	answers := needing(here)
	c := newTestInformer(t, &labelPolicy{})
	owner := c.owner
	owner.parts.options.Owns, owner.parts.owned.decide, owner.parts.endpoints.byURL["https://one"] = answers.needs, answers.needs, c.endpoint
	c.dropsUnowned = owner.parts.options.dropsUnowned(configMaps)
	g.Expect(c.dropsUnowned).To(BeTrue())
	c.update(t, configMapOf("older", 10, selectedLabel))
	c.update(t, configMapOf("kept", 10, selectedLabel))
	queued, _ := c.transform(configMapOf("queued", 10, selectedLabel))
	g.Expect(c.ignores(queued)).To(BeFalse())
	c.events = nil

	answers.set(false, here)
	owner.Ownership.RecheckOwned()
	g.Expect(c.ignores(queued)).To(BeTrue(), "it must not be cached again")
	placeholder, _ := c.transform(configMapOf("dropped", 10, selectedLabel))
	g.Expect(c.ignores(placeholder)).To(BeTrue())
	answers.set(true, here)
	owner.Ownership.RecheckOwned() // before the caches have dropped anything
	g.Expect(c.ignores(queued)).To(BeTrue(), "it may have been deleted")
	c.handler.OnAdd(queued, false)
	g.Expect(c.events).To(BeEmpty())
	c.update(t, configMapOf("kept", 10, selectedLabel))
	marker := c.waiters.markers()[0]
	g.Expect(c.ignores(marker)).To(BeFalse())
	g.Expect(c.shared.GetIndexer().Add(marker)).To(Succeed())
	c.handler.OnAdd(marker, false)
	g.Expect(heldOf(owner, here)()).To(ConsistOf(HavePrefix("kept")))
	g.Expect(c.counted.size.Objects()).To(BeEquivalentTo(1))
	c.outdated.Range(func(marker, _ any) bool { t.Errorf("%v is left", marker); return false })
	g.Expect(owner.parts.relists.awaiting.Load()).To(BeZero())
	for _, event := range c.events {
		g.Expect(event.New).NotTo(BeNil(), "no deletion is reported")
	}
}

// An entry of a mailbox that was released is removed by the handler, too: it may have been in the queue of the cache.
func TestLateEntries(t *testing.T) {
	g := NewWithT(t)
	answers := needing(here)
	c := newTestInformer(t, &labelPolicy{})
	owner := c.owner
	owner.parts.owned.decide, c.dropsUnowned = answers.needs, true
	first, _ := c.transform(configMapOf("a", 10, selectedLabel))
	second, _ := c.transform(configMapOf("a", 20, selectedLabel))
	g.Expect(c.shared.GetIndexer().Add(first)).To(Succeed())
	c.handler.OnAdd(first, false)
	c.events = nil
	answers.set(false, here)
	owner.Ownership.RecheckOwned(here)
	g.Expect(c.shared.GetIndexer().Update(second)).To(Succeed())
	c.handler.OnUpdate(first, second)
	g.Expect(c.shared.GetIndexer().List()).To(BeEmpty())
	c.handler.OnDelete(second)
	g.Expect(c.events).To(BeEmpty())
	g.Expect(c.counted.size.Objects()).To(BeZero())
	g.Expect(c.counted.byUID).To(BeEmpty())
}

// Owns is called once for each mailbox, and deleted mailboxes are forgotten once there are many.
func TestNeedsAreForgotten(t *testing.T) {
	g := NewWithT(t)
	answers := needing(here)
	mailboxes := newMailboxes()
	mailboxes.parts.owned.decide = answers.needs
	addEndpoint(t, mailboxes, "https://one", caches{bindingsResource: bindings(here, there)})
	for range 3 {
		for number := range minSweep {
			g.Expect(mailboxes.parts.owned.isUnownedText(fmt.Append(nil, "gone-", number))).To(BeTrue())
		}
		g.Expect(mailboxes.parts.owned.isUnowned(here)).To(BeFalse())
		g.Expect(mailboxes.parts.owned.isUnowned(there)).To(BeTrue())
	}
	g.Expect(answers.asked).To(Equal(minSweep + 2))
	mailboxes.parts.release("gone-1")
	g.Expect(mailboxes.parts.owned.states).To(Equal(map[logicalcluster.Name]ownership{here: owned, there: unowned}))
	mailboxes.parts.owned.isUnowned("gone-1")
	mailboxes.parts.release("gone-1")
	g.Expect(mailboxes.parts.owned.states).To(HaveLen(3), "few are kept")
}

// The lookup for each event allocates nothing, and entries of the caches take no more memory than without it.
func TestNeedsCostNoAllocation(t *testing.T) {
	mailboxes := newMailboxes()
	mailboxes.parts.owned.decide = needing(here).needs
	known := []byte("there")
	mailboxes.parts.owned.isUnownedText(known)
	if count := testing.AllocsPerRun(100, func() { mailboxes.parts.owned.isUnownedText(known) }); count > 0 {
		t.Errorf("a lookup takes %v allocations", count)
	}
	if size := unsafe.Sizeof(cachedObject{}); size > 64 {
		t.Errorf("an entry takes %d bytes, want at most 64", size)
	}
}

// Backfilled objects do not overtake events, and the watch does not resume at their versions.
func TestBackfillWatch(t *testing.T) {
	g := NewWithT(t)
	source := watch.NewFake()
	s := backfilled(source, listOptionsAt("7"))
	var got []string
	receive := func() {
		event, ok := <-s.ResultChan()
		if !ok {
			got = append(got, "end")
			return
		}
		object := event.Object.(*unstructured.Unstructured)
		text := fmt.Sprint(event.Type, " ", object.GetName(), " at ", object.GetResourceVersion())
		if restoreVersion(object) {
			text += " of " + object.GetResourceVersion()
		}
		got = append(got, text)
	}
	go source.Modify(ofMailbox(here, "before", "10"))
	receive()
	g.Expect(s.begin(here, 1)).To(BeTrue())
	go source.Delete(ofMailbox(here, "deleted", "11"))
	receive()
	go source.Add(ofMailbox(there, "listed", "12"))
	receive()
	listed := map[logicalcluster.Name]uint64{here: 1}
	completed := make(chan error, 1)
	go func() {
		for _, object := range []*unstructured.Unstructured{ofMailbox(here, "deleted", "3"), ofMailbox(here, "before", "4"), ofMailbox(there, "unowned", "4"), ofMailbox(here, "listed", "5")} {
			s.backfill(object)
		}
		completed <- s.complete(here, 1)
	}()
	receive()
	receive()
	receive()
	g.Expect(<-completed).NotTo(HaveOccurred())
	s.end(listed)
	g.Expect(s.begin(here, 1)).To(BeFalse(), "the list is complete")
	g.Expect(s.begin(here, 2)).To(BeTrue())
	source.Stop()
	receive()
	g.Expect(s.backfill(ofMailbox(here, "late", "6"))).To(BeFalse())
	g.Expect(s.backfill(ofMailbox(there, "unowned", "6"))).To(BeFalse())
	g.Expect(s.complete(here, 2)).To(MatchError(errWatchEnded))
	g.Expect(s.begin(here, 3)).To(BeFalse())
	s.Stop()
	s.Stop()
	g.Expect(got).To(Equal([]string{
		"MODIFIED before at 10", "DELETED deleted at 11", "ADDED listed at 12", "ADDED before at 12 of 4", "ADDED listed at 12 of 5", "ADDED (listed) at 12 of 1", "end",
	}))

	forged := ofMailbox(here, "forged", "1")
	forged.Object[listedVersionField] = "99"
	g.Expect(restoreVersion(forged)).To(BeFalse())
	g.Expect(forged.GetResourceVersion()).To(Equal("1"))
}

// The names of objects that change while a mailbox is listed are bounded: with more, the list of this mailbox, and of no
// other, is discarded.
func TestManyChangesWhileSplicing(t *testing.T) {
	g := NewWithT(t)
	source := watch.NewFake()
	s := backfilled(source, listOptionsAt("7"))
	defer s.Stop()
	g.Expect(s.begin(here, 1)).To(BeTrue())
	g.Expect(s.begin(there, 1)).To(BeTrue())
	go func() {
		for number := range maxChanged + 1 {
			source.Add(ofMailbox(here, fmt.Sprint(number), "8"))
		}
	}()
	for range maxChanged + 1 {
		<-s.ResultChan()
	}
	g.Expect(s.changed).To(HaveKeyWithValue(there, BeEmpty()))
	g.Expect(s.changed).NotTo(HaveKey(here))
	g.Expect(s.backfill(ofMailbox(here, "0", "5"))).To(BeTrue(), "the other list continues")
	g.Expect(s.complete(here, 1)).To(MatchError(errManyChanges))
	completed := make(chan error)
	go func() { completed <- s.complete(there, 1) }()
	g.Expect((<-s.ResultChan()).Object.(*unstructured.Unstructured).GetName()).To(Equal(endOfListName), "the object of the void list was not sent")
	g.Expect(<-completed).NotTo(HaveOccurred())
	g.Expect(s.begin(here, 1)).To(BeTrue(), "it is listed again")
}

// No object is backfilled while a watch sends its initial events, and a watch without readers ends.
func TestBackfillWatchOfInitialEvents(t *testing.T) {
	g := NewWithT(t)
	source := watch.NewFake()
	options := listOptionsAt("")
	options.SendInitialEvents = new(true)
	s := backfilled(source, options)
	go source.Add(ofMailbox(here, "a", "5"))
	<-s.ResultChan()
	g.Expect(s.begin(here, 1)).To(BeFalse())
	end := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "9", "annotations": map[string]any{"k8s.io/initial-events-end": "true"}}}}
	go source.Action(watch.Bookmark, end)
	<-s.ResultChan()
	g.Expect(s.begin(here, 1)).To(BeTrue())
	ended := make(chan bool)
	go func() { ended <- s.backfill(ofMailbox(here, "b", "6")) }()
	s.Stop()
	g.Eventually(ended).Should(Receive(BeFalse()))
	g.Eventually(s.ResultChan()).Should(BeClosed())
}
