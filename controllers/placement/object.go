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

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// object is the state of one object of the workspace. The lock of [pairs] guards it.
type object struct {
	// selectedBy are the placements that select the object, the oldest first.
	selectedBy []*resolvedPlacement
	// containerFor are the placements that select an object in this Namespace, and not the Namespace.
	containerFor []*resolvedPlacement
	// absence is the reason why no placement places the object; empty if one does. verified is true once kcp
	// has confirmed the reason.
	absence  plan.State
	verified bool
	pairs    map[site]*pair
	// customization is the customization request of the source.
	customization customization.Request
	// isOverLimit is true if the object lacks pairs at some destinations, because the workspace has reached
	// its limit of pairs.
	isOverLimit bool
	// contentHash is the hash of the source, see [rules.ContentHash].
	contentHash uint64
}

// isSelected reports whether a placement selects the object, or an object in it.
func (o *object) isSelected() bool { return len(o.selectedBy) > 0 || len(o.containerFor) > 0 }

// isSelectedBy reports whether a placement selects the object.
func (o *object) isSelectedBy(placement types.UID) bool {
	return slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool { return one.UID == placement })
}

// isWantedAt reports whether a placement wants the copy of a pair.
func (o *object) isWantedAt(key pairKey) bool {
	return slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool { return one.wants(key) }) || o.isContainerAt(key)
}

// isContainerAt reports whether the object is a Namespace whose copy contains the copies of other objects, on a cluster where
// each workspace has namespaces of its own.
func (o *object) isContainerAt(key pairKey) bool {
	return slices.ContainsFunc(o.containerFor, func(one *resolvedPlacement) bool { return one.wants(key) && one.hasOwnNamespaces(key.mailbox) })
}

// isAdmitted reports whether a placement admits the copy of a pair. One of several placements is enough. A container is always
// admitted.
func (o *object) isAdmitted(key pairKey) bool {
	return o.isContainerAt(key) || slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool {
		destination, ok := one.mailboxes[key.mailbox]
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
	for at, found := range o.pairs {
		from, to := notCounted, found.phase()
		if !in {
			from, to = to, from
		}
		mayChange = o.move(at.mailbox, from, to) || mayChange
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
	return o.absence == "" && !o.isSelected() || o.absence == plan.SourceNotFound && hasSource
}

// withdrawal returns why a copy of the object that is not desired is withdrawn; empty if it must stay for now. isCertain is false while
// further placements may select the object.
func (o *object) withdrawal(mailbox logicalcluster.Name, isCertain bool) plan.State {
	switch {
	case o.absence == plan.SourceNotFound:
		return plan.SourceNotFound
	case o.absence == plan.Terminating:
		// The source is visible, and somebody deletes it.
		return plan.Deselected
	case !isCertain, o.absence == "" && (o.isMigrating() || o.isMigratingWithin(mailbox)):
		return ""
	default:
		return plan.Deselected
	}
}

// isMigrating reports whether withdrawn copies must stay because the object has not arrived at its new
// destinations. All new mailboxes must have the object, and at least one new cluster. A failed copy counts as
// arrived, unless a placement chooses its clusters. A copy that waits for a rollout of new content has arrived.
func (o *object) isMigrating() bool {
	if slices.ContainsFunc(o.selectedBy, (*resolvedPlacement).awaitsMailbox) {
		return true
	}
	chooses := slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool { return one.Choice != nil })
	hasDesired, isAvailable := false, false
	for _, found := range o.pairs {
		if !found.desired {
			continue
		}
		if !found.placed && (!found.waiting || !found.hasCopy) && (found.failure == nil || chooses) {
			return true
		}
		hasDesired = true
		isAvailable = isAvailable || found.failure != nil || found.waiting || found.syncStatus.isAvailable(chooses)
	}
	return hasDesired && !isAvailable
}

// isMigratingWithin reports whether a withdrawn copy must stay because the object gets another name in the same mailbox, and the
// cluster does not have it under that name.
func (o *object) isMigratingWithin(mailbox logicalcluster.Name) bool {
	for at, found := range o.pairs {
		if at.mailbox == mailbox && found.desired && !found.syncStatus.isAvailable(true) {
			return true
		}
	}
	return false
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
