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

package placement

import (
	gosync "sync"
	"sync/atomic"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// pair is the state of an object at one destination. The lock of [pairs] guards it.
type pair struct {
	// desired is true if a placement wants the copy, and hasCopy if the mailbox shows one.
	desired, hasCopy bool
	// placed is true if the copy is as desired. waiting is true if the rollout holds the pair back. undecided
	// is true if the last pass could not decide about the pair.
	placed, waiting, undecided bool
	// inPass is true during a pass, which may write.
	inPass bool
	// changes is the number of changes of the content so far, and observedChanges the number at the last pass.
	changes, observedChanges uint32
	// failure is why the copy cannot be as desired; nil if nothing has failed.
	failure *failure
	// syncStatus is the sync status of the copy; nil if the copy is not placed, or no sync controller has tried
	// it.
	syncStatus *syncStatus
	// heldSince is when the copy first had to wait for the CRDs of the workspace; zero if it never did.
	heldSince time.Time
	backoff   *writes.DriftBackoff
}

// passResult is the result of a pass for a pair, see the fields of pair.
type passResult struct {
	placed, waiting bool
	failure         *failure
	syncStatus      *syncStatus
}

// result returns the result of the last pass.
func (p *pair) result() passResult {
	return passResult{p.placed, p.waiting, p.failure, p.syncStatus}
}

// setResult sets the result of a pass.
func (p *pair) setResult(next passResult) {
	p.placed, p.waiting, p.failure, p.syncStatus = next.placed, next.waiting, next.failure, next.syncStatus
}

// changesCopy reports whether another result is about another content of the copy, or another failure of it. The status of the source
// depends on these.
func (r passResult) changesCopy(next passResult) bool {
	return r.placed != next.placed || r.waiting != next.waiting || !r.failure.equal(next.failure)
}

// equal reports whether two results look the same to users.
func (r passResult) equal(next passResult) bool {
	return !r.changesCopy(next) && r.syncStatus.equal(next.syncStatus)
}

// pairs are the pairs of a workspace: which object is desired at which destination, and the result of the last pass for
// it. The methods send no requests.
type pairs struct {
	cluster logicalcluster.Name
	tasks   *tasks
	reports *reports
	// requests get the workspace when its placements must be resolved, or its rollouts may continue, and the configs that
	// may have to change.
	requests *requests
	names    *nameWaiters
	// reflections gets the namespaces of copies.
	reflections *reflectionIndex
	// inMailboxes and deletions are updated with the objects.
	inMailboxes *mailboxPairs
	deletions   *deletions
	// deleting is true if a placement waits for the withdrawal of its copies.
	deleting atomic.Bool

	lock gosync.Mutex
	// writes are the writes to mailboxes that the caches do not show yet.
	writes writes.Expectations[pairKey, *unstructured.Unstructured]
	// closed is true once the controller has dropped the workspace.
	closed bool
	// objects have an entry if a placement selects them, or if they have a copy.
	objects map[objectKey]*object
	// contents counts the objects that each placement selects, by namespace.
	contents contents
	// crds are the keys of objects that are CustomResourceDefinitions, and namespaces of those that are Namespaces.
	crds, namespaces map[objectKey]struct{}

	limit pairLimit
	// customized are the objects whose copies differ from destination to destination.
	customized customized
	// formerly are the placements that last selected an object that none selects.
	formerly map[objectKey][]placementRef
	// statusErrors are the reasons why the status of sources can be neither written nor removed. A source may have one without an entry
	// in objects: the hub removes its status once no placement selects it.
	statusErrors map[objectKey]string
}

func newPairs(s *shared, cluster logicalcluster.Name, tasks *tasks, reports *reports) *pairs {
	p := &pairs{
		cluster: cluster, tasks: tasks, reports: reports, requests: s.requests, names: s.names, reflections: s.reflections, inMailboxes: s.inMailboxes, deletions: &deletions{},
		objects: map[objectKey]*object{}, contents: contents{}, crds: map[objectKey]struct{}{}, namespaces: map[objectKey]struct{}{},
		limit: pairLimit{max: s.options.MaxPairs}, customized: customized{}, formerly: map[objectKey][]placementRef{}, statusErrors: map[objectKey]string{},
	}
	p.writes = writes.NewExpectations[pairKey, *unstructured.Unstructured](&p.lock, s.options.Clock)
	return p
}

// at returns a pair with its object; nil if there is none. It requires the lock.
func (p *pairs) at(key pairKey) (*object, *pair) {
	entry := p.objects[key.objectKey]
	if entry == nil || entry.pairs[key.site] == nil {
		return nil, nil
	}
	return entry, entry.pairs[key.site]
}

// inspect calls a function with a pair and its object, under the lock. It does nothing if there is no such pair.
func (p *pairs) inspect(key pairKey, do func(*object, *pair)) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if entry, found := p.at(key); found != nil {
		do(entry, found)
	}
}

// locked calls a function with all objects, under the lock.
func (p *pairs) locked(do func(objects map[objectKey]*object)) {
	p.lock.Lock()
	defer p.lock.Unlock()
	do(p.objects)
}

// onCopy records that a mailbox shows a copy of an object of the workspace, or that the copy is gone. It returns the workspaces with copies in
// the namespace if these have changed.
func (p *pairs) onCopy(key pairKey, before, after *unstructured.Unstructured) (affected []logicalcluster.Name) {
	if after == nil && before != nil {
		p.writes.DeletionObserved(key, before.GetUID())
	}
	p.lock.Lock()
	entry := p.ensureObject(key.objectKey)
	found := p.ensurePair(key, entry)
	if found.hasCopy != (after != nil) && key.name.Namespace != "" {
		by := 1
		if found.hasCopy {
			by = -1
		}
		affected = p.reflections.users.change(key.site, p.cluster, by)
	}
	found.hasCopy = after != nil
	if found.hasCopy && !found.desired && entry.isWantedAt(key) {
		p.change(entry, key.site, func() { p.setPairDesired(found) })
	}
	p.enqueueWantedStatus(key.objectKey, entry)
	p.dropIfUnused(key)
	p.lock.Unlock()
	p.tasks.add(key.task())
	return affected
}

// ensureObject returns the state of an object, which it creates if there is none. It requires the lock.
func (p *pairs) ensureObject(key objectKey) *object {
	found, ok := p.objects[key]
	if !ok {
		found = &object{pairs: map[site]*pair{}}
		p.objects[key] = found
		if key.isCRD() {
			p.crds[key] = struct{}{}
		}
		if key.resource == namespaces {
			p.namespaces[key] = struct{}{}
		}
	}
	return found
}

// ensurePair returns a pair of an object, which it creates if there is none. The first pair of a resource changes the config
// of its mailbox. It requires the lock.
func (p *pairs) ensurePair(key pairKey, entry *object) *pair {
	found := entry.pairs[key.site]
	if found == nil {
		found = &pair{}
		entry.pairs[key.site] = found
		p.count(key, 1)
	}
	return found
}

// count counts one pair more or less in its mailbox. It requires the lock.
func (p *pairs) count(key pairKey, by int) {
	if p.inMailboxes.change(key, by) {
		p.requests.config.Publish(configKey{mailbox: key.mailbox})
	}
	if key.resource == namespaces {
		// Entries for upsync may name it.
		p.requests.config.Publish(configKey{key.mailbox, p.cluster})
	}
}

// namespacesAt returns the namespaces of the workspace that a mailbox has or gets, with their names there. Where workspaces share the
// namespaces, they include the namespaces of objects that other clusters get.
func (p *pairs) namespacesAt(mailbox logicalcluster.Name, areShared bool) map[string]string {
	p.lock.Lock()
	defer p.lock.Unlock()
	found := map[string]string{}
	if areShared {
		for namespace := range p.contents {
			found[namespace] = namespace
		}
	}
	for key := range p.namespaces {
		for at := range p.objects[key].pairs {
			if at.mailbox == mailbox {
				found[key.name.Name] = at.inMailbox
			}
		}
	}
	return found
}

// mayHaveCopy reports whether the mailbox of a pair has a copy, or is about to show one. It requires the lock.
func (p *pairs) mayHaveCopy(key pairKey, found *pair) bool {
	return found.hasCopy || found.inPass || p.writes.IsPending(key)
}

// dropIfUnused drops a pair that is neither desired nor has a copy, and its object after the last pair. It requires the lock.
func (p *pairs) dropIfUnused(key pairKey) {
	entry := p.objects[key.objectKey]
	if entry == nil {
		return
	}
	if found := entry.pairs[key.site]; found != nil && !found.desired && !p.mayHaveCopy(key, found) {
		delete(entry.pairs, key.site)
		p.count(key, -1)
		p.names.set(key, p.cluster, false)
		if p.deleting.Load() {
			p.requests.resolve.Publish(p.cluster)
		}
	}
	p.dropObjectIfUnused(key.objectKey, entry)
}

// dropObjectIfUnused drops an object that no placement selects and that has no copy. It requires the lock.
func (p *pairs) dropObjectIfUnused(key objectKey, entry *object) {
	if len(entry.pairs) == 0 && len(entry.selectedBy) == 0 {
		p.setCustomization(key, entry, customization.Request{})
		delete(p.objects, key)
		delete(p.formerly, key)
		delete(p.statusErrors, key)
		p.deletions.forget(key)
		delete(p.crds, key)
		delete(p.namespaces, key)
	}
}

// closeIfEmpty closes the workspace unless it has objects, and reports whether it is closed.
func (p *pairs) closeIfEmpty() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.closed = len(p.objects) == 0
	return p.closed
}

// enqueueAt enqueues all pairs of a mailbox.
func (p *pairs) enqueueAt(mailbox logicalcluster.Name) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for key, entry := range p.objects {
		for at := range entry.pairs {
			if at.mailbox == mailbox {
				p.tasks.add(pairKey{key, at}.task())
			}
		}
	}
}

// enqueueWithdrawals enqueues the copies of an object that must be withdrawn, except from one site. It
// requires the lock.
func (p *pairs) enqueueWithdrawals(key objectKey, entry *object, except site) {
	for at, found := range entry.pairs {
		if !found.desired && found.hasCopy && at != except {
			p.tasks.add(pairKey{key, at}.task())
		}
	}
}

// enqueueWantedStatus enqueues the write of the status of an object's source if a placement requests it. It
// requires the lock.
func (p *pairs) enqueueWantedStatus(key objectKey, entry *object) {
	if wantsStatus(entry.selectedBy) {
		p.enqueueStatus(key, entry)
	}
}

// enqueueStatus enqueues the write of the status of an object's source. It requires the lock.
func (p *pairs) enqueueStatus(key objectKey, entry *object) {
	if entry.destinations() > 1 {
		p.tasks.queue.AddAfter(aggregationDelay, key.statusTask())
		return
	}
	p.tasks.add(key.statusTask())
}

// beginPass returns the number of changes of a pair so far, for [pairs.endPass].
func (p *pairs) beginPass(key pairKey) (changes uint32) {
	p.inspect(key, func(_ *object, found *pair) {
		found.inPass = true
		changes = found.changes
	})
	return changes
}

// endPass records that a pass for a pair has processed a number of changes. decided is false if the pass could
// not decide whether the mailbox has the present content. It returns plan.CacheTimeout if the pair is not
// desired and a write is pending, since the cache may never show that copy; else zero.
func (p *pairs) endPass(key pairKey, changes uint32, decided bool) (again time.Duration) {
	p.inspect(key, func(entry *object, found *pair) {
		found.inPass = false
		if found.observedChanges != changes {
			// The status was not returned before, see statusRequestOf.
			p.enqueueWantedStatus(key.objectKey, entry)
		}
		p.change(entry, key.site, func() {
			found.undecided = !decided && (found.undecided || found.observedChanges != changes)
			found.observedChanges = changes
		})
		p.dropIfUnused(key)
		if !found.desired && !found.hasCopy && p.writes.IsPending(key) {
			again = plan.CacheTimeout
		}
	})
	return again
}

// setResult records the result of a pass. isNewFailure is true if the object has not failed at any destination for this reason.
func (p *pairs) setResult(key pairKey, next passResult) (isNewFailure bool) {
	p.inspect(key, func(entry *object, found *pair) {
		before := found.result()
		isNewFailure = next.failure != nil && !entry.hasFailure(next.failure.Reason)
		if awaitsName := next.failure != nil && next.failure.Reason == plan.ReasonConflict; awaitsName || before.failure != nil {
			p.names.set(key, p.cluster, awaitsName)
		}
		p.change(entry, key.site, func() { found.setResult(next) })
		p.enqueueWithdrawals(key.objectKey, entry, key.site)
		if before.equal(next) {
			return
		}
		p.reports.request()
		if before.changesCopy(next) {
			p.enqueueWantedStatus(key.objectKey, entry)
		}
		if key.isCRD() && !p.awaitsCRDs(key.mailbox) {
			// The other pairs at the destination may have waited for it.
			p.tasks.add(task{site: site{mailbox: key.mailbox}})
		}
	})
	return isNewFailure
}

// change changes a pair of an object, and updates its phase in the rollouts. It requires the lock.
func (p *pairs) change(entry *object, at site, change func()) {
	found := entry.pairs[at]
	before := found.phase()
	change()
	if entry.move(at.mailbox, before, found.phase()) {
		p.requests.rollout.Publish(p.cluster)
	}
}

// awaitsCRDs reports whether a CRD of the workspace is still on its way to a destination: neither synced there
// nor failed. It requires the lock.
func (p *pairs) awaitsCRDs(mailbox logicalcluster.Name) bool {
	for key := range p.crds {
		found := p.objects[key].pairs[site{mailbox: mailbox}]
		if found != nil && found.desired && found.failure == nil && !found.syncStatus.isAvailable(false) {
			return true
		}
	}
	return false
}
