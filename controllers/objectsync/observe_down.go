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

package objectsync

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// observeDown reads all copies of the mailbox object, and the place where the object belongs. It adds what the hub remembers of them.
func (c *Controller) observeDown(s *plan.Snapshot) *plan.DownSnapshot {
	d := c.observer.Down(s)
	if c.Held != nil {
		d.Held, d.Lost = c.Held(), c.Lost()
	}
	if len(d.Copies) == 0 {
		c.states.setDeletion(s.Key, nil)
	}
	switch {
	case d.Err != nil:
	case d.State == plan.Selected && d.DestinationErr == nil:
		d.DroppedPaths = c.states.targetExpectations.DroppedPaths(d.Destination.Ref())
		d.WrittenBefore = c.states.hasWritten(s.Key, s.InMailbox.GetResourceVersion())
		d.Removed = c.states.removal(s.Key)
		c.observeSuperseded(s, d)
	case d.State.IsAbsence():
		c.observeAbsence(s, d)
	}
	return d
}

// observeAbsence reads whether the absence of the object is verified. A verified absence counts once, so observeAbsence takes it
// only where a decision depends on it.
func (c *Controller) observeAbsence(s *plan.Snapshot, d *plan.DownSnapshot) {
	d.MayClaim = s.Up == nil && len(c.primaryTracker.relations) > 0 && c.primaryTracker.mayClaim(s.Key)
	if len(d.Copies) > 0 || d.MayClaim {
		d.AbsenceVerified = c.Mailboxes.TakeVerifiedAbsence(c.Mailbox, c.absenceCandidate(s.Key, d.State))
	}
	d.Deletion = c.states.deletionOf(s.Key)
	d.AllCopiesCached = c.HasSynced() && !c.hasUncachedCopy(s.Key)
}

// observeSuperseded reads whether the absence of a former object of the same name is verified, if the copy may be of one.
func (c *Controller) observeSuperseded(s *plan.Snapshot, d *plan.DownSnapshot) {
	if observed := d.Destination.Observed; observed != nil && observed.Mark.Source.UID != s.InMailbox.GetUID() {
		d.AbsenceVerified = c.Mailboxes.TakeVerifiedAbsence(c.Mailbox, c.absenceCandidate(s.Key, plan.Deselected))
		d.Rebound = c.Mailboxes.WasRebound(c.Mailbox)
	}
}

func (c *Controller) absenceCandidate(key types.NamespacedName, state plan.State) absence.Candidate {
	return absence.Candidate{Resource: c.Resource.GroupVersionResource, Key: key, Missing: state == plan.SourceNotFound}
}

// observeCopiesOf returns all copies of a mailbox object.
func (c *Controller) observeCopiesOf(source types.NamespacedName) []plan.Copy {
	var all []plan.Copy
	for _, target := range c.targetResources {
		for _, object := range target.cache.ByIndex(bySource, source.String()) {
			if found := c.observeCopy(target, keyOf(object)); found.Observed != nil && sourceKey(found.Observed.Mark) == source {
				all = append(all, found)
			}
		}
	}
	return all
}

// hasUncachedCopy reports whether the hub wrote a copy of a mailbox object that the cache does not show yet.
func (c *Controller) hasUncachedCopy(source types.NamespacedName) bool {
	return c.states.targetExpectations.AnyWritten(func(written *cachedCopy) bool {
		return written.observed != nil && sourceKey(written.observed.Mark) == source
	})
}

func sourceKey(mark ownership.Mark) types.NamespacedName {
	return types.NamespacedName{Namespace: mark.Source.Namespace, Name: mark.Source.Name}
}

// observeCopy returns a place on the target with the copy that is there, if it is the hub's. The hub's own last write counts
// although the cache may not show it yet.
func (c *Controller) observeCopy(target *targetResource, key types.NamespacedName) plan.Copy {
	found := plan.Copy{API: target.TargetAPI, Key: key}
	cached := target.cache.Get(key)
	known, deleted := c.states.targetExpectations.Current(found.Ref(), cached)
	if known == nil || known.observed == nil {
		return found
	}
	found.Object, found.Observed, found.Uncached = known.Unstructured, known.observed, cached == nil
	if deleted && !known.observed.Terminating {
		observed := *known.observed
		observed.Terminating = true
		found.Observed = &observed
	}
	return found
}
