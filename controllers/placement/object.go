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

// object is the state of one object of the workspace. The lock of [pairs] guards it.
type object struct {
	// selectedBy are the placements that select the object, the oldest first.
	selectedBy []*resolvedPlacement
	// absence is the reason why no placement places the object; empty if one does. verified is true once kcp
	// has confirmed the reason.
	absence  plan.State
	verified bool
	pairs    map[logicalcluster.Name]*pair
	// customization is the customization request of the source.
	customization customization.Request
	// isBeyondLimit is true if the object lacks pairs at some destinations, because the workspace has reached
	// its limit of pairs.
	isBeyondLimit bool
	// contentHash is the hash of the source, see [rules.ContentHash].
	contentHash uint64
	// aggregationError is why the statuses of the copies cannot be combined.
	aggregationError string
}

// isSelectedBy reports whether a placement selects the object.
func (o *object) isSelectedBy(placement types.UID) bool {
	return slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool { return one.UID == placement })
}

// isWantedAt reports whether a placement wants the object in a mailbox.
func (o *object) isWantedAt(mailbox logicalcluster.Name) bool {
	return slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool {
		_, ok := one.mailboxes[mailbox]
		return ok
	})
}

// isAdmitted reports whether a placement admits the object to a mailbox. One of several placements is enough.
func (o *object) isAdmitted(mailbox logicalcluster.Name) bool {
	return slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool {
		destination, ok := one.mailboxes[mailbox]
		return ok && (one.rollout == nil || one.Rollout.AdmitsAll() || one.rollout.isAdmitted(destination.UID))
	})
}

// destinations returns the number of mailboxes in which the object is desired.
func (o *object) destinations() (count int) {
	for _, found := range o.pairs {
		if found.desired {
			count++
		}
	}
	return count
}

// hasFailure reports whether the object fails at some destination with a reason.
func (o *object) hasFailure(reason string) bool {
	for _, found := range o.pairs {
		if found.failure != nil && found.failure.Reason == reason {
			return true
		}
	}
	return false
}

// move moves a pair from one phase to another in the rollouts of the placements that select the object, and reports whether a
// decision about them may change.
func (o *object) move(mailbox logicalcluster.Name, from, to pairPhase) (mayChange bool) {
	if from == to {
		return false
	}
	for _, one := range o.selectedBy {
		if _, ok := one.mailboxes[mailbox]; ok && one.rollout != nil {
			mayChange = one.rollout.move(mailbox, from, to) || mayChange
		}
	}
	return mayChange
}

// moveAll adds all pairs to the rollouts of the placements that select the object, or removes them. It reports whether a
// decision about them may change.
func (o *object) moveAll(in bool) (mayChange bool) {
	if !slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool { return one.rollout != nil }) {
		return false
	}
	for mailbox, found := range o.pairs {
		from, to := notCounted, found.phase()
		if !in {
			from, to = to, from
		}
		mayChange = o.move(mailbox, from, to) || mayChange
	}
	return mayChange
}

// resetRollouts invalidates the decisions about the object.
func (o *object) resetRollouts() {
	for _, one := range o.selectedBy {
		if one.rollout != nil {
			one.rollout.reset()
		}
	}
}

// mustSelect reports whether the object must be selected before its copies are withdrawn: a mailbox showed the copy before the hub
// selected its source, or the source exists again.
func (o *object) mustSelect(hasSource bool) bool {
	return o.absence == "" && len(o.selectedBy) == 0 || o.absence == plan.SourceNotFound && hasSource
}

// withdrawal returns why a copy of the object that is not desired is withdrawn; empty if it must stay for now. isCertain is false while
// further placements may select the object.
func (o *object) withdrawal(isCertain bool) plan.State {
	switch {
	case o.absence == plan.SourceNotFound:
		return plan.SourceNotFound
	case o.absence == plan.Terminating:
		// The source is visible, and somebody deletes it.
		return plan.Deselected
	case !isCertain, o.absence == "" && o.isMoving():
		return ""
	default:
		return plan.Deselected
	}
}

// isMoving reports whether withdrawn copies must stay because the object has not arrived at its new
// destinations. All new mailboxes must have the object, and at least one new cluster. A failed copy counts as
// arrived, unless a placement chooses its clusters. A copy that waits for a rollout of new content has arrived.
func (o *object) isMoving() bool {
	if slices.ContainsFunc(o.selectedBy, (*resolvedPlacement).awaitsMailbox) {
		return true
	}
	chooses := slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool { return one.Choice != nil })
	hasDesired, hasArrived := false, false
	for _, found := range o.pairs {
		if !found.desired {
			continue
		}
		if !found.placed && (!found.waiting || !found.hasCopy) && (found.failure == nil || chooses) {
			return true
		}
		hasDesired = true
		hasArrived = hasArrived || found.failure != nil || found.waiting || found.syncStatus.hasArrived(chooses)
	}
	return hasDesired && !hasArrived
}

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

// setSelected sets the placements that select an object, and enqueues its pairs: all of them if the object may have changed,
// else the changed ones. If no placement selects it, absent is the reason, and isVerified reports whether kcp has confirmed
// that. It requires the lock.
func (p *pairs) setSelected(key objectKey, selected []*resolvedPlacement, absent plan.State, isVerified func() bool, changed bool) {
	entry := p.objects[key]
	wasSelected, isSelected := entry != nil && len(entry.selectedBy) > 0, len(selected) > 0
	if wasSelected != isSelected || !wasSelected && changed {
		p.reports.requestExcluded()
	}
	if entry == nil && !isSelected {
		return
	}
	entry = p.ensureObject(key)
	changed = changed || !samePlacements(entry.selectedBy, selected)
	if isSelected {
		absent = ""
	}
	changed = entry.setAbsence(absent, isVerified) || changed
	wantedStatus := wantsStatus(entry.selectedBy)
	mayChange := entry.moveAll(false)
	entry.selectedBy = selected
	p.setDesired(key, entry, mailboxesOf(selected), changed)
	if changed {
		entry.resetRollouts()
	}
	if entry.moveAll(true) || mayChange {
		p.requests.rollout.Publish(p.cluster)
	}
	if wantedStatus || wantsStatus(selected) {
		p.enqueueStatus(key, entry)
	}
	p.reports.request()
}

// setAbsence sets the reason why the object is absent; empty if it is not. It returns true if the absence has
// just been verified.
func (o *object) setAbsence(absent plan.State, isVerified func() bool) bool {
	if o.absence != absent {
		o.absence, o.verified = absent, false
	}
	if absent == "" || o.verified {
		return false
	}
	o.verified = absent == plan.Terminating || isVerified()
	return o.verified
}

// mailboxesOf returns the mailboxes of the destinations of some placements.
func mailboxesOf(selected []*resolvedPlacement) map[logicalcluster.Name]struct{} {
	wanted := map[logicalcluster.Name]struct{}{}
	for _, placement := range selected {
		for mailbox := range placement.mailboxes {
			wanted[mailbox] = struct{}{}
		}
	}
	return wanted
}

// setDesired sets the mailboxes in which an object is desired, and enqueues its pairs: all of them if the
// object has changed, else the changed ones. At the limit it adds no new pairs. It requires the lock.
func (p *pairs) setDesired(key objectKey, entry *object, wanted map[logicalcluster.Name]struct{}, changed bool) {
	entry.isBeyondLimit = false
	for mailbox := range wanted {
		at, found := pairKey{key, mailbox}, entry.pairs[mailbox]
		if p.limit.isReached() && (found == nil || !found.desired && !found.hasCopy) {
			entry.isBeyondLimit = true
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
	for mailbox, found := range entry.pairs {
		at := pairKey{key, mailbox}
		if _, ok := wanted[mailbox]; ok {
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

// enqueueCustomizedBy enqueues the objects that name a Customizer.
func (p *pairs) enqueueCustomizedBy(customizer types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for key := range p.customized[customizer] {
		for mailbox := range p.objects[key].pairs {
			p.contentChanged(pairKey{key, mailbox})
		}
	}
}

// enqueueCustomizedAt enqueues the customized objects at some mailboxes.
func (p *pairs) enqueueCustomizedAt(mailboxes map[logicalcluster.Name]struct{}) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, keys := range p.customized {
		for key := range keys {
			for mailbox := range mailboxes {
				p.contentChanged(pairKey{key, mailbox})
			}
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
	p.change(entry, key.mailbox, func() { found.changes++ })
	entry.resetRollouts()
	p.tasks.add(key.task())
}
