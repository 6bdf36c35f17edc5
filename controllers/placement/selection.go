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
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// limitRecheck is the delay before placements and objects beyond the limit are tried again: other pairs may be
// gone by then.
const limitRecheck = 30 * time.Second

// pairLimit bounds the desired pairs of a workspace, and so the memory of the hub. The lock of [pairs] guards it.
type pairLimit struct {
	max, desired int
	// isExceeded is true if objects lack pairs because there may be no more.
	isExceeded bool
}

func (l *pairLimit) isReached() bool { return l.desired >= l.max }

// retry reports whether all objects must be selected again, because some lack pairs and the workspace is below the limit
// again. It schedules another resolve as long as some objects lack pairs.
func (l *pairLimit) retry(next *placements, now time.Time) bool {
	if !l.isExceeded {
		return false
	}
	next.resolveBy(now.Add(limitRecheck))
	l.isExceeded = l.isReached()
	return !l.isExceeded
}

// ifOpen calls a function under the lock, unless the controller has dropped the workspace.
func (p *pairs) ifOpen(do func()) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.closed {
		do()
	}
}

// selectionResult contains the placements that select an object, and for a Namespace those that select only objects in it. If there
// are none, absent is the reason.
type selectionResult struct {
	selectedBy, containerFor []*resolvedPlacement
	absent                   plan.State
}

func (r selectionResult) isSelected() bool { return len(r.selectedBy) > 0 || len(r.containerFor) > 0 }

// all returns all placements.
func (r selectionResult) all() []*resolvedPlacement {
	return slices.Concat(r.selectedBy, r.containerFor)
}

// absence returns why no placement selects the object; empty if one does.
func (r selectionResult) absence() plan.State {
	if r.isSelected() {
		return ""
	}
	return r.absent
}

// setSelected sets which placements select an object, and enqueues its pairs: all of them if the object may have changed,
// else the changed ones. isVerified reports whether kcp has confirmed the reason of an absence. It requires the lock.
func (p *pairs) setSelected(key objectKey, next selectionResult, isVerified func() bool, changed bool) {
	entry := p.objects[key]
	wasSelected, isSelected := entry != nil && entry.isSelected(), next.isSelected()
	if wasSelected != isSelected || !wasSelected && changed {
		p.reports.requestExcluded()
	}
	if entry == nil && !isSelected {
		return
	}
	entry = p.ensureObject(key)
	changed = changed || !samePlacements(entry.selectedBy, next.selectedBy) || !samePlacements(entry.containerFor, next.containerFor)
	changed = entry.setAbsence(next.absence(), isVerified) || changed
	wantedStatus := wantsStatus(entry.selectedBy)
	mayChange := entry.moveAll(false)
	p.countContents(key, entry.selectedBy, next.selectedBy)
	p.recordFormer(key, entry, next)
	entry.selectedBy, entry.containerFor = next.selectedBy, next.containerFor
	p.setDesired(key, entry, entry.sitesOf(key), changed)
	if changed {
		entry.resetRollouts()
	}
	if entry.moveAll(true) || mayChange {
		p.requests.rollout.Publish(p.cluster)
	}
	if wantedStatus || wantsStatus(next.selectedBy) {
		p.enqueueStatus(key, entry)
	}
	p.reports.request()
}

// setDesired sets the sites at which an object is desired, and enqueues its pairs: all of them if the
// object has changed, else the changed ones. At the limit it adds no new pairs. It requires the lock.
func (p *pairs) setDesired(key objectKey, entry *object, wanted map[site]struct{}, changed bool) {
	entry.isOverLimit = false
	for one := range wanted {
		at, found := pairKey{key, one}, entry.pairs[one]
		if p.limit.isReached() && (found == nil || !found.desired && !found.hasCopy) {
			entry.isOverLimit = true
			if !p.limit.isExceeded {
				p.limit.isExceeded = true
				// The next resolve schedules a recheck: other pairs may be gone then.
				p.requests.resolve.Publish(p.cluster)
			}
			continue
		}
		found = p.ensurePair(at, entry)
		if !found.desired {
			p.setPairDesired(found)
		} else if !changed {
			continue
		} else {
			found.changes++
		}
		p.tasks.add(at.task())
	}
	for one, found := range entry.pairs {
		at := pairKey{key, one}
		if _, ok := wanted[one]; ok {
			continue
		}
		if found.desired || changed {
			p.tasks.add(at.task())
		}
		if found.desired {
			found.desired = false
			found.setResult(passResult{})
			p.limit.desired--
		}
		p.dropIfUnused(at)
	}
	p.dropObjectIfUnused(key, entry)
}

// setPairDesired makes a pair desired. It requires the lock.
func (p *pairs) setPairDesired(found *pair) {
	found.desired = true
	found.changes++
	p.limit.desired++
}

// contentChangedAt records that the desired content of an object's copies in some mailboxes may have changed. It requires the lock.
func (p *pairs) contentChangedAt(key objectKey, mailboxes map[logicalcluster.Name]struct{}) {
	for at := range p.objects[key].pairs {
		if _, ok := mailboxes[at.mailbox]; ok {
			p.contentChanged(pairKey{key, at})
		}
	}
}

// recordSource records the customization request and the hash of a source, which may be nil. It requires the lock.
func (p *pairs) recordSource(key objectKey, source *unstructured.Unstructured) {
	entry := p.objects[key]
	if entry == nil {
		return
	}
	var request customization.Request
	if source != nil {
		entry.contentHash = rules.ContentHash(key.resource.GroupResource(), source)
		// The passes for the object report an error.
		request, _ = customization.RequestOf(source)
	}
	p.setCustomization(key, entry, request)
}

// setCustomization sets the customization request of the source. It requires the lock.
func (p *pairs) setCustomization(key objectKey, entry *object, request customization.Request) {
	if entry.customization == request {
		return
	}
	p.customized.remove(key, entry.customization)
	if !request.IsZero() {
		p.customized.add(key, request)
	}
	entry.customization = request
}

// customized are the objects of a workspace whose copies differ from destination to destination, by the names of their
// Customizers; the zero name is for objects without one.
type customized map[types.NamespacedName]map[objectKey]struct{}

func (c customized) add(key objectKey, request customization.Request) {
	if c[request.Customizer] == nil {
		c[request.Customizer] = map[objectKey]struct{}{}
	}
	c[request.Customizer][key] = struct{}{}
}

func (c customized) remove(key objectKey, request customization.Request) {
	delete(c[request.Customizer], key)
	if len(c[request.Customizer]) == 0 {
		delete(c, request.Customizer)
	}
}

// enqueueCustomizedBy enqueues the objects that name a Customizer.
func (p *pairs) enqueueCustomizedBy(customizer types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for key := range p.customized[customizer] {
		for at := range p.objects[key].pairs {
			p.contentChanged(pairKey{key, at})
		}
	}
}

// enqueueCustomizedAt enqueues the customized objects at some mailboxes.
func (p *pairs) enqueueCustomizedAt(mailboxes map[logicalcluster.Name]struct{}) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, keys := range p.customized {
		for key := range keys {
			p.contentChangedAt(key, mailboxes)
		}
	}
}

// contentChanged records that the desired content of a copy may have changed, and enqueues the pair, if there is one.
// Rollouts admit nothing before a pass has been made for each pair. It requires the lock.
func (p *pairs) contentChanged(key pairKey) {
	entry, found := p.at(key)
	if found == nil {
		return
	}
	p.change(entry, key.site, func() { found.changes++ })
	entry.resetRollouts()
	p.tasks.add(key.task())
}
