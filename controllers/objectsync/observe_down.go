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
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// observeDown reads all copies of the mailbox object, and the place where the object belongs.
func (c *Controller) observeDown(s *plan.Snapshot) *plan.DownSnapshot {
	d := &plan.DownSnapshot{Copies: c.observeCopiesOf(s.Key)}
	if c.Held != nil {
		d.Held, d.Lost = c.Held(), c.Lost()
	}
	if len(d.Copies) == 0 {
		c.states.setDeletion(s.Key, nil)
	}
	d.State, d.Selection, d.Err = c.downState(s, d.Copies)
	switch {
	case d.Err != nil:
	case d.State == plan.Selected:
		d.Destination, d.Spec, d.DestinationErr = c.destinationOf(s.Matcher, s.InMailbox, d.Selection, d.Copies)
		if d.DestinationErr == nil {
			d.Excluded = len(d.Copies) == 0 && c.Resource.IsExcludedByUpsync(s.Matcher, s.InMailbox, d.Destination.API, d.Destination.Key)
			d.DroppedPaths = c.states.targetExpectations.DroppedPaths(d.Destination.Ref())
			d.WrittenBefore = c.states.hasWritten(s.Key, s.InMailbox.GetResourceVersion())
			d.Removed = c.states.removal(s.Key)
			c.observeSuperseded(s, d)
			if c.askMayBelongToCopy(s, d) {
				d.State = plan.Unknown
			}
		}
	case d.State == plan.Suspended:
		c.observeSuspendedDestination(s, d)
	case d.State.IsAbsence():
		c.observeAbsence(s, d)
	}
	return d
}

// observeSuspendedDestination finds where a suspended object is: the related objects stay suspended with it.
func (c *Controller) observeSuspendedDestination(s *plan.Snapshot, d *plan.DownSnapshot) {
	d.Selection.Suspended = true
	switch {
	case s.InMailbox == nil:
		d.DestinationErr = errNotReadable
	case len(d.Copies) > 0:
		d.Destination = d.Copies[0]
	default:
		d.Destination, d.Spec, d.DestinationErr = c.destinationOf(s.Matcher, s.InMailbox, d.Selection, nil)
	}
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

// destinationOf returns the place on the target where a mailbox object belongs, and how the object changes on its way there. It
// reuses the observed copies.
func (c *Controller) destinationOf(matcher *selection.Matcher, source *unstructured.Unstructured, selected plan.ObjectSelection, copies []plan.Copy) (plan.Copy, transform.SyncSpec, error) {
	spec, err := c.downSpec(selected, source)
	if err != nil {
		return plan.Copy{}, spec, err
	}
	spec.Inputs.SyncTarget = c.SyncTargetInput()
	name, err := c.planner.Down.Name(source, spec)
	if err != nil {
		return plan.Copy{}, spec, err
	}
	destination, err := c.observeNamed(name, copies)
	if err != nil {
		return destination, spec, err
	}
	spec.Version = destination.API.Version
	if err := c.checkTargetNamespace(destination.API, destination.Key); err != nil {
		return destination, spec, err
	}
	if destination.Object != nil && c.cachesWholeObjects {
		spec.Inputs.Other = destination.Object.Object
	}
	if destination.Observed != nil && spec.Relation != "" {
		candidate := c.relatedObjectInMailbox(matcher, source)
		spec.Relation = c.relationForMark(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), candidate, spec.Relation, destination.Observed.Mark.Relation)
	}
	return destination, spec, nil
}

// downSpec returns how a mailbox object changes on its way down.
func (c *Controller) downSpec(selected plan.ObjectSelection, source *unstructured.Unstructured) (transform.SyncSpec, error) {
	if selected.Related != nil {
		return c.relatedDownSpec(selected, source)
	}
	return c.Resource.DownSpec(selected.Policy, selected.Conversion), nil
}

// downState returns whether the mailbox object belongs on the target, and how it is selected. The error is why the object fails.
func (c *Controller) downState(s *plan.Snapshot, copies []plan.Copy) (plan.State, plan.ObjectSelection, error) {
	if s.InMailbox == nil {
		if c.isSuspended(s.Matcher, c.selectionObjectByName(s.Key)) || c.isRelatedSuspended(s.Matcher, s.Key, copies) {
			return plan.Suspended, plan.ObjectSelection{}, nil
		}
		return plan.SourceNotFound, plan.ObjectSelection{}, nil
	}
	selected, ok := c.selectDown(s.Matcher, s.InMailbox)
	if !ok && c.isUnresolved(s.Matcher, s.InMailbox) {
		selected.Unresolved = errPartialMatcher
	}
	if !ok || s.InMailbox.GetDeletionTimestamp() != nil {
		return c.unselectedState(s, selected, ok, copies), selected, nil
	}
	switch {
	case errors.Is(selected.Unresolved, errNotReadable):
		missing := c.requireFullObject(s.InMailbox)
		if !isLimitError(missing) {
			return plan.Unknown, selected, nil
		}
		if _, byConfig := c.Resource.Selects(s.Matcher, s.InMailbox); byConfig || selected.Related != nil {
			return plan.Unknown, selected, missing
		}
		return plan.Unknown, selected, nil
	case selected.Unresolved != nil:
		return plan.Unknown, selected, selected.Unresolved
	case selected.Suspended:
		return plan.Suspended, selected, nil
	default:
		return plan.Selected, selected, nil
	}
}

// unselectedState returns the state of an object that nothing selects, or that is being deleted.
func (c *Controller) unselectedState(s *plan.Snapshot, selected plan.ObjectSelection, ok bool, copies []plan.Copy) plan.State {
	switch terminating := s.InMailbox.GetDeletionTimestamp() != nil; {
	case c.isSuspended(s.Matcher, c.Resource.SelectionObject(s.InMailbox)), terminating && ok && selected.Related != nil && selected.Suspended:
		return plan.Suspended
	case terminating:
		return plan.Terminating
	case c.isUnresolved(s.Matcher, s.InMailbox), len(copies) > 0 && c.askMayBeRelated(s.Matcher, s.InMailbox, copies):
		return plan.Unknown
	case len(copies) > 0 && plan.IsUpsyncedBy(c.Owner.ForPlacements(), s.InMailbox):
		// The hub placed the object. It withdraws one by deleting it from the mailbox, so somebody else has changed the config for placements,
		// or the object's label, and the hub is about to repair that.
		return plan.Unknown
	default:
		return plan.Deselected
	}
}

// isUnresolved reports whether nothing is known of a mailbox object that no config selects.
func (c *Controller) isUnresolved(matcher *selection.Matcher, object *unstructured.Unstructured) bool {
	return matcher.HasUnresolved() && matcher.IsUnresolved(c.Resource.SelectionObject(object))
}

// isSuspended reports whether every config that could select an object of this name is suspended.
func (c *Controller) isSuspended(matcher *selection.Matcher, object selection.Object) bool {
	if c.Resource.RelatedOnly || c.Resource.SelectAll && selection.IsUserObject(object) {
		return false
	}
	return matcher.IsSuspended(object)
}

func (c *Controller) absenceCandidate(key types.NamespacedName, state plan.State) absence.Candidate {
	return absence.Candidate{Resource: c.Resource.GroupVersionResource, Key: key, Missing: state == plan.SourceNotFound}
}

// observeNamed returns the place on the target of that name, with the copy that is there. Copies that were observed before are
// reused.
func (c *Controller) observeNamed(name conversion.Name, existing []plan.Copy) (plan.Copy, error) {
	if err := c.checkConvertedKind(name.GVK.GroupKind()); err != nil {
		return plan.Copy{}, err
	}
	target := c.targetResourceForKind(name.GVK.GroupKind())
	if target == nil {
		return plan.Copy{}, fmt.Errorf("%w %s, the API of the copy", errNotServed, name.GVK.GroupKind())
	}
	key := types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
	for _, observed := range existing {
		if observed.Ref() == target.Ref(key) {
			return observed, nil
		}
	}
	return c.observeCopy(target, key), nil
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
