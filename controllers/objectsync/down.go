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
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// observedTarget is an object on the target that came from the mailbox.
type observedTarget struct {
	target   *targetResource
	key      types.NamespacedName
	object   *unstructured.Unstructured
	observed *plan.TargetObject
	// awaitsCache is true if the cache does not show the object yet, which was created a moment ago.
	awaitsCache bool
}

func (p observedTarget) ref() targetRef { return p.target.ref(p.key) }

// requeueAfter returns when to look whether the echo has come; zero if none is awaited.
func (p observedTarget) requeueAfter() time.Duration {
	if p.awaitsCache {
		return expectationTimeout
	}
	return 0
}

// reconcileDown brings in sync what an object of the mailbox is on the target. source is nil if there is none.
func (c *Controller) reconcileDown(ctx context.Context, key types.NamespacedName, source *unstructured.Unstructured) (outcome, error) {
	existing := c.observeTargetsOf(key)
	state, selected, err := c.downState(key, source, existing)
	switch {
	case err != nil:
		c.primaryTracker.markUnresolved(key)
		c.primaryProcessed(key)
		return outcome{}, err
	case state == plan.InSync:
		if err := c.ensureFinalizer(ctx, key, source); err != nil {
			return requeueIfStale(outcome{}, err)
		}
		return requeueIfStale(c.syncDown(ctx, key, source, selected, existing))
	case state == plan.Suspended:
		return outcome{decision: plan.Decision{Action: plan.None, Cause: state}}, c.updateSuspendedRelated(key, source, selected, existing)
	case state == plan.Unknown:
		if selected.unresolved != nil {
			c.primaryTracker.markUnresolved(key)
		}
		c.primaryProcessed(key)
		return outcome{decision: plan.Decision{Action: plan.None, Cause: state}}, nil
	default:
		result, err := c.removeTargets(ctx, key, c.absentSource(key, state, existing), existing)
		if err != nil || slices.ContainsFunc(existing, func(p observedTarget) bool { return !p.observed.FormerMailbox }) {
			return result, err
		}
		return requeueIfStale(result, c.finishRemoval(ctx, key, source, state, len(existing) > 0))
	}
}

// finishRemoval lets an object go of which nothing is left on the target: nothing travels with it any more.
func (c *Controller) finishRemoval(ctx context.Context, key types.NamespacedName, source *unstructured.Unstructured, state plan.Cause, former bool) error {
	if len(c.primaryTracker.relations) > 0 && len(c.upsyncIndex.refsOf(key)) == 0 {
		// That it wants nothing is as grave as that it is gone.
		if c.primaryTracker.mayClaim(key) && !c.Mailboxes.TakeVerifiedAbsence(c.Mailbox, c.absenceCandidate(key, state)) {
			c.Mailboxes.VerifyAbsence(c.Mailbox, c.absenceCandidate(key, state))
			return nil
		}
		c.primaryTracker.remove(key)
		c.primaryProcessed(key)
	}
	if !former && (!c.HasSynced() || c.hasUncachedTarget(key)) {
		return nil
	}
	return c.removeFinalizer(ctx, key, source)
}

// syncDown brings in sync an object of the mailbox that goes down.
func (c *Controller) syncDown(ctx context.Context, key types.NamespacedName, source *unstructured.Unstructured, selected objectSelection, existing []observedTarget) (outcome, error) {
	current, spec, err := c.observeDestination(source, selected, existing)
	if err != nil {
		c.primaryTracker.markUnresolved(key)
		c.primaryProcessed(key)
		return outcome{}, err
	}
	if len(existing) == 0 && c.isExcludedByUpsync(source, current) {
		c.primaryTracker.remove(key)
		c.primaryProcessed(key)
		return outcome{decision: plan.Decision{Action: plan.None, Cause: plan.ExcludedByUpsync}}, nil
	}
	related := c.updateRelated(key, selected, source, current)
	desired, err := c.desiredOnTarget(source, spec, current.observed)
	if err != nil {
		return outcome{}, errors.Join(err, related)
	}
	decision, err := plan.Down(plan.Source{State: plan.InSync, Desired: desired}, current.observed, c.targetExpectations.droppedPaths(current.ref()))
	if err != nil {
		return outcome{decision: decision}, err
	}
	returnStatus := func() (bool, error) { return c.returnStatus(ctx, key, source, current, desired, selected) }
	if decision.Cause == plan.InSync {
		returned, err := returnStatus()
		return outcome{decision: decision, deferred: deferredPaths(desired), statusReturned: returned, requeueAfter: current.requeueAfter()}, errors.Join(related, err, c.removeStaleTargets(ctx, current, existing))
	}
	if restless := c.isNonConverging(key, source, spec, decision); restless || decision.Cause == plan.Drifted {
		if wait := c.failures.driftBackoff(key); wait > 0 {
			contended := c.fieldConflictError(ctx, current, desired.Object, decision.Fields)
			_, err := returnStatus()
			return outcome{decision: decision, requeueAfter: wait}, errors.Join(contended, err)
		}
	}
	result := outcome{decision: decision, requeueAfter: current.requeueAfter()}
	if decision.Action == plan.Create {
		result.requeueAfter = expectationTimeout
	}
	err = c.execute(ctx, current, decision, desired)
	if err == nil && spec.Mutation.UsesOther() {
		c.failures.recordWrite(key, source.GetResourceVersion())
	}
	if err != nil && decision.Action == plan.Apply {
		// What the target holds lives on although it could not be changed.
		_, failed := returnStatus()
		err = errors.Join(err, failed)
	}
	return result, errors.Join(err, related)
}

// observeDestination returns where an object of the mailbox belongs on the target, with what is there of ours, and what it is to
// be there; seen is what came from it.
func (c *Controller) observeDestination(source *unstructured.Unstructured, selected objectSelection, existing []observedTarget) (observedTarget, transform.SyncSpec, error) {
	spec, err := c.downSpec(selected, source)
	if err != nil {
		return observedTarget{}, spec, err
	}
	name, err := c.down.Name(source, spec)
	if err != nil {
		return observedTarget{}, spec, err
	}
	current, err := c.observeNamed(name, existing)
	if err == nil {
		spec.Version = current.target.Version
		err = c.checkTargetNamespace(current.target, current.key)
	}
	if err == nil && current.object != nil && c.cachesWholeObjects {
		spec.Other = current.object.Object
	}
	return current, spec, err
}

// desiredOnTarget returns what the target must hold for an object of the mailbox, given what it holds.
func (c *Controller) desiredOnTarget(source *unstructured.Unstructured, spec transform.SyncSpec, observed *plan.TargetObject) (*transform.Desired, error) {
	if observed != nil && spec.Relation != "" {
		spec.Relation = c.relationForMark(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.relatedObjectInMailbox(c.matcher.Load(), source), spec.Relation, observed.Mark.Relation)
	}
	if observed == nil {
		return c.down.Desired(source, spec)
	}
	return c.down.DesiredForMark(source, spec, observed.Mark, func(before *transform.Desired) bool { return before.Mark.Hash == observed.Mark.Hash })
}

// deferredPaths names the fields that are left to the target until the source changes.
func deferredPaths(desired *transform.Desired) (paths []string) {
	for _, field := range desired.DeferredFields {
		paths = append(paths, field.Path.String())
	}
	return paths
}

// removeTargets takes away all that came from an object that is gone or does not go down any more, or leaves it as it is.
func (c *Controller) removeTargets(ctx context.Context, key types.NamespacedName, state plan.Source, existing []observedTarget) (outcome, error) {
	result := outcome{decision: plan.Decision{Action: plan.None, Cause: state.State}}
	var errs []error
	for _, target := range existing {
		decision, err := plan.Down(state, target.observed, nil)
		if err == nil {
			result.decision = decision
			if decision.Action == plan.VerifyAbsence {
				c.Mailboxes.VerifyAbsence(c.Mailbox, c.absenceCandidate(key, state.State))
				continue
			}
			err = c.execute(ctx, target, decision, nil)
		}
		errs = append(errs, err)
	}
	return result, errors.Join(errs...)
}

// removeStaleTargets takes away what an object was on the target under another name or kind, now that it is there under this
// one.
func (c *Controller) removeStaleTargets(ctx context.Context, current observedTarget, existing []observedTarget) error {
	var errs []error
	for _, target := range existing {
		if target.ref() != current.ref() {
			errs = append(errs, c.execute(ctx, target, plan.Stale(target.observed), nil))
		}
	}
	return errors.Join(errs...)
}

// execute carries out a decision about one object on the target.
func (c *Controller) execute(ctx context.Context, current observedTarget, decision plan.Decision, desired *transform.Desired) error {
	var err error
	switch decision.Action {
	case plan.None:
		return nil
	case plan.Create:
		err = c.createOnTarget(ctx, current, desired)
	case plan.Apply:
		err = c.applyToTarget(ctx, current, desired, current.observed.UID)
		if err == nil && current.observed.Mark.Policy == ownership.PolicyCreateOnly {
			err = c.removeOverwriteAnnotation(ctx, current, desired)
		}
	case plan.UpdateMark:
		err = c.updateMark(ctx, current, desired, current.observed)
	case plan.Delete:
		err = c.deleteFromTarget(ctx, current, current.observed.UID)
	case plan.Release:
		err = c.releaseOnTarget(ctx, current)
	case plan.Conflict:
		err = &nameTakenError{ref: current.ref(), reason: "it came from " + describeSource(current.observed.Mark.Source)}
	case plan.VerifyAbsence, plan.Update:
		err = fmt.Errorf("%s is no action on the target", decision)
	}
	log.FromContext(ctx).V(1).Info("acted", "decision", decision.String(), "target", current.target.GroupResource(), "name", current.key)
	if err == nil {
		c.OnChange()
	}
	return err
}

// downState returns the state of an object that may go down, and how it is chosen.
func (c *Controller) downState(key types.NamespacedName, source *unstructured.Unstructured, existing []observedTarget) (plan.Cause, objectSelection, error) {
	matcher := c.matcher.Load()
	if source == nil {
		c.failures.forgetHistory(key)
		if c.isSuspended(matcher, c.selectionObjectByName(key)) || c.isRelatedSuspended(key, existing) {
			return plan.Suspended, objectSelection{}, nil
		}
		return plan.SourceNotFound, objectSelection{}, nil
	}
	chosen, ok := c.selectDown(matcher, source)
	if !ok && matcher.IsPartial() {
		chosen.unresolved = errPartialMatcher
	}
	if !ok || source.GetDeletionTimestamp() != nil {
		return c.unselectedState(matcher, source, chosen, ok, existing), chosen, nil
	}
	switch {
	case errors.Is(chosen.unresolved, errNotReadable):
		missing := c.incompleteReason(source)
		if !isLimitError(missing) {
			return plan.Unknown, chosen, nil
		}
		if _, selected := c.selectedByConfig(matcher, source); selected || chosen.related != nil {
			return plan.Unknown, chosen, missing
		}
		return plan.Unknown, chosen, nil
	case chosen.unresolved != nil:
		return plan.Unknown, chosen, chosen.unresolved
	case chosen.Suspended:
		return plan.Suspended, chosen, nil
	default:
		return plan.InSync, chosen, nil
	}
}

// unselectedState returns the state of an object that is not chosen any more, or is being deleted.
func (c *Controller) unselectedState(matcher *selection.Matcher, source *unstructured.Unstructured, selected objectSelection, ok bool, existing []observedTarget) plan.Cause {
	switch terminating := source.GetDeletionTimestamp() != nil; {
	case c.isSuspended(matcher, c.selectionObject(source)), terminating && ok && selected.related != nil && selected.Suspended:
		return plan.Suspended
	case terminating:
		return plan.Terminating
	case matcher.IsPartial(), len(existing) > 0 && c.mayBeRelated(matcher, source, existing):
		return plan.Unknown
	default:
		return plan.Deselected
	}
}

// isSuspended tells whether all that speaks of objects of a name is suspended.
func (c *Controller) isSuspended(matcher *selection.Matcher, object selection.Object) bool {
	if c.Resource.RelatedOnly || c.Resource.SelectAll && selection.IsUserObject(object) {
		return false
	}
	return matcher.IsSuspended(object)
}

// isExcludedByUpsync tells whether what an object would be on the target is selected for coming up. What went down already stays.
func (c *Controller) isExcludedByUpsync(source *unstructured.Unstructured, current observedTarget) bool {
	return c.Resource.IsExcludedByUpsync(c.matcher.Load(), source, current.target.TargetAPI, current.key)
}

// absentSource is the state of a source that does not go down; of one that is gone nothing may be left on the target.
func (c *Controller) absentSource(key types.NamespacedName, state plan.Cause, existing []observedTarget) plan.Source {
	if !state.IsAbsence() {
		return plan.Source{State: state}
	}
	return plan.Source{State: state, AbsenceVerified: len(existing) > 0 && c.Mailboxes.TakeVerifiedAbsence(c.Mailbox, c.absenceCandidate(key, state))}
}

func (c *Controller) absenceCandidate(key types.NamespacedName, cause plan.Cause) mailboxes.AbsenceCandidate {
	return mailboxes.AbsenceCandidate{Resource: c.Resource.GroupVersionResource, Key: key, Missing: cause == plan.SourceNotFound}
}

// isNonConverging tells whether an object is to be changed although its source has not changed since the last time: a mutation
// that looks at the target's object may never come to an end.
func (c *Controller) isNonConverging(key types.NamespacedName, source *unstructured.Unstructured, spec transform.SyncSpec, decision plan.Decision) bool {
	if !spec.Mutation.UsesOther() || decision.Action != plan.Apply || decision.Cause != plan.Changed {
		return false
	}
	return c.failures.hasWritten(key, source.GetResourceVersion())
}

// fieldConflictError returns the error that names who holds the fields we keep losing.
func (c *Controller) fieldConflictError(ctx context.Context, current observedTarget, desired *unstructured.Unstructured, fields []string) error {
	if len(fields) == 0 {
		return fmt.Errorf("%w: spec.mutation.down of the PublishedResource makes another object of it each time", errFieldConflict)
	}
	object, err := c.Connection.Get(requestmetrics.WithClass(ctx, requestmetrics.Extra), current.target.GroupVersionResource, current.key)
	if err != nil {
		return err
	}
	holders, err := ownership.ManagersOf(desired.Object, object.GetManagedFields(), fields)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %v keeps changing %v", errFieldConflict, holders, fields)
}

func describeSource(source ownership.Source) string {
	return fmt.Sprintf("%s %s of the mailbox", source.Resource, types.NamespacedName{Namespace: source.Namespace, Name: source.Name})
}
