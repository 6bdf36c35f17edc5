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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// observeDown reads all copies of the mailbox object, and the place where the object belongs.
func (c *Controller) observeDown(s *snapshot) *downSnapshot {
	d := &downSnapshot{copies: c.observeTargetsOf(s.key)}
	d.state, d.selection, d.err = c.downState(s, d.copies)
	switch {
	case d.err != nil:
	case d.state == plan.InSync:
		c.observeDestination(s, d, d.copies)
		if d.destinationErr == nil {
			d.excluded = len(d.copies) == 0 && c.isExcludedByUpsync(s.matcher, s.source, d.destination)
			d.tolerated = c.targetExpectations.droppedPaths(d.destination.ref())
			d.writtenBefore = c.failures.hasWritten(s.key, s.source.GetResourceVersion())
		}
	case d.state == plan.Suspended:
		c.observeSuspendedDestination(s, d)
	case d.state.IsAbsence():
		c.observeAbsence(s, d)
	}
	return d
}

// observeDestination finds the place on the target where the object belongs.
func (c *Controller) observeDestination(s *snapshot, d *downSnapshot, copies []targetCopy) {
	d.destination, d.spec, d.destinationErr = c.destinationOf(s.matcher, s.source, d.selection, copies)
}

// observeSuspendedDestination finds where a suspended object is: the related objects stay suspended with it.
func (c *Controller) observeSuspendedDestination(s *snapshot, d *downSnapshot) {
	d.selection.Suspended = true
	switch {
	case s.source == nil:
		d.destinationErr = errNotReadable
	case len(d.copies) > 0:
		d.destination = d.copies[0]
	default:
		c.observeDestination(s, d, nil)
	}
}

// observeAbsence finds out what may be concluded from the absence of the object. A verified absence counts once, so it is taken only
// where something depends on it.
func (c *Controller) observeAbsence(s *snapshot, d *downSnapshot) {
	d.mayClaim = s.up == nil && len(c.primaryTracker.relations) > 0 && c.primaryTracker.mayClaim(s.key)
	if len(d.copies) > 0 || d.mayClaim {
		d.absenceVerified = c.Mailboxes.TakeVerifiedAbsence(c.Mailbox, c.absenceCandidate(s.key, d.state))
	}
	d.settled = c.HasSynced() && !c.hasUncachedTarget(s.key)
}

// destinationOf returns the place on the target where a mailbox object belongs, and how the object changes on its way there. The copies
// have been observed before.
func (c *Controller) destinationOf(matcher *selection.Matcher, source *unstructured.Unstructured, selected objectSelection, copies []targetCopy) (targetCopy, transform.SyncSpec, error) {
	spec, err := c.downSpec(selected, source)
	if err != nil {
		return targetCopy{}, spec, err
	}
	name, err := c.down.Name(source, spec)
	if err != nil {
		return targetCopy{}, spec, err
	}
	destination, err := c.observeNamed(name, copies)
	if err != nil {
		return destination, spec, err
	}
	spec.Version = destination.target.Version
	if err := c.checkTargetNamespace(destination.target, destination.key); err != nil {
		return destination, spec, err
	}
	if destination.object != nil && c.cachesWholeObjects {
		spec.Other = destination.object.Object
	}
	if destination.observed != nil && spec.Relation != "" {
		candidate := c.relatedObjectInMailbox(matcher, source)
		spec.Relation = c.relationForMark(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), candidate, spec.Relation, destination.observed.Mark.Relation)
	}
	return destination, spec, nil
}

// downState returns whether the mailbox object belongs on the target, and how it is selected. The error is why the object fails.
func (c *Controller) downState(s *snapshot, copies []targetCopy) (plan.Cause, objectSelection, error) {
	if s.source == nil {
		if c.isSuspended(s.matcher, c.selectionObjectByName(s.key)) || c.isRelatedSuspended(s.matcher, s.key, copies) {
			return plan.Suspended, objectSelection{}, nil
		}
		return plan.SourceNotFound, objectSelection{}, nil
	}
	selected, ok := c.selectDown(s.matcher, s.source)
	if !ok && s.matcher.IsPartial() {
		selected.unresolved = errPartialMatcher
	}
	if !ok || s.source.GetDeletionTimestamp() != nil {
		return c.unselectedState(s, selected, ok, copies), selected, nil
	}
	switch {
	case errors.Is(selected.unresolved, errNotReadable):
		missing := c.incompleteReason(s.source)
		if !isLimitError(missing) {
			return plan.Unknown, selected, nil
		}
		if _, byConfig := c.selectedByConfig(s.matcher, s.source); byConfig || selected.related != nil {
			return plan.Unknown, selected, missing
		}
		return plan.Unknown, selected, nil
	case selected.unresolved != nil:
		return plan.Unknown, selected, selected.unresolved
	case selected.Suspended:
		return plan.Suspended, selected, nil
	default:
		return plan.InSync, selected, nil
	}
}

// unselectedState returns the state of an object that nothing selects, or that is being deleted.
func (c *Controller) unselectedState(s *snapshot, selected objectSelection, ok bool, copies []targetCopy) plan.Cause {
	switch terminating := s.source.GetDeletionTimestamp() != nil; {
	case c.isSuspended(s.matcher, c.selectionObject(s.source)), terminating && ok && selected.related != nil && selected.Suspended:
		return plan.Suspended
	case terminating:
		return plan.Terminating
	case s.matcher.IsPartial(), len(copies) > 0 && c.mayBeRelated(s.matcher, s.source, copies):
		return plan.Unknown
	default:
		return plan.Deselected
	}
}

// isSuspended reports whether every config that could select an object of this name is suspended.
func (c *Controller) isSuspended(matcher *selection.Matcher, object selection.Object) bool {
	if c.Resource.RelatedOnly || c.Resource.SelectAll && selection.IsUserObject(object) {
		return false
	}
	return matcher.IsSuspended(object)
}

// isExcludedByUpsync reports whether the destination of an object is selected for upsync.
func (c *Controller) isExcludedByUpsync(matcher *selection.Matcher, source *unstructured.Unstructured, destination targetCopy) bool {
	return c.Resource.IsExcludedByUpsync(matcher, source, destination.target.TargetAPI, destination.key)
}

func (c *Controller) absenceCandidate(key types.NamespacedName, cause plan.Cause) mailboxes.AbsenceCandidate {
	return mailboxes.AbsenceCandidate{Resource: c.Resource.GroupVersionResource, Key: key, Missing: cause == plan.SourceNotFound}
}
