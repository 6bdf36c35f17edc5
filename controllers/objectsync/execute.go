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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// executeDown carries out the plan for a mailbox object and its copies.
func (c *Controller) executeDown(ctx context.Context, s *plan.Snapshot, p plan.Plan) (outcome, error) {
	if s.HasNoSource() {
		c.states.forgetHistory(s.Key)
	}
	if p.Finalizer == plan.ConfigureFinalizer {
		if err := c.configureFinalizer(ctx, s.Key, s.InMailbox); err != nil {
			return requeueIfOutdated(outcome{}, err)
		}
	}
	claimsErr := c.executeClaims(s, p.Claims)
	result := outcome{decision: p.Decision, deferred: p.Deferred, requeueAfter: p.RequeueAfter}
	c.requestVerification(s, p)
	if p.Err != nil {
		return result, errors.Join(p.Err, claimsErr)
	}
	var errs []error
	for _, operation := range p.Operations {
		errs = append(errs, c.executeOperation(ctx, s, operation, &result))
	}
	if p.ReturnStatus {
		returned, err := c.returnStatus(ctx, s, p.Desired)
		result.statusReturned = returned
		errs = append(errs, err)
	}
	err := errors.Join(append(errs, claimsErr)...)
	if err == nil && p.MarkFinished {
		err = c.markFinished(ctx, s)
	}
	if err == nil && p.Decision.Cause != plan.Removed {
		c.states.forgetRemoval(s.Key, s.Down.Removed)
	}
	if err == nil && p.Finalizer == plan.RemoveFinalizer {
		err = c.removeFinalizer(ctx, s.Key, s.InMailbox)
	}
	return requeueIfOutdated(result, err)
}

// requestVerification requests what the plan needs verified: the version of a source, or its absence.
func (c *Controller) requestVerification(s *plan.Snapshot, p plan.Plan) {
	if p.VersionToVerify > 0 {
		c.Mailboxes.VerifyVersion(c.Mailbox, c.Resource.GroupVersionResource, s.Key, p.VersionToVerify)
	}
	if p.AbsenceToVerify != "" {
		c.Mailboxes.NoteVersion(c.Mailbox, c.Resource.GroupVersionResource, s.Key, s.Down.SourceVersion(c.Mailbox.String()))
		c.Mailboxes.VerifyAbsence(c.Mailbox, c.absenceCandidate(s.Key, p.AbsenceToVerify))
	}
}

// executeOperation carries out one decision about an object of the target. A repair waits if somebody keeps undoing it.
func (c *Controller) executeOperation(ctx context.Context, s *plan.Snapshot, o plan.Operation, result *outcome) error {
	if o.Repair {
		if wait := c.states.nextRepairDelay(s.Key); wait > 0 {
			result.requeueAfter = wait
			if o.Decision.Cause == plan.Removed {
				return newRemovedError(o.Desired)
			}
			return errors.Join(c.fieldConflictError(ctx, o), c.returnStatusAnyway(ctx, s, o))
		}
	}
	err := c.write(ctx, o)
	switch {
	case err != nil && o.Decision.Cause == plan.Removed:
		// The copy may be refused until its namespace is gone, too. Only what was made can be removed again.
		c.states.refundRepair(s.Key)
	case err == nil && o.Desired != nil && s.Down.Spec.Mutation.UsesOther():
		c.states.recordWrite(s.Key, s.InMailbox.GetResourceVersion())
	case err != nil && o.Decision.Action == plan.Apply:
		// The copy still exists, with a status.
		return errors.Join(err, c.returnStatusAnyway(ctx, s, o))
	}
	return err
}

// markFinished notes on a mailbox object that it has run to completion, so that it is not run again after a restart of the hub either.
func (c *Controller) markFinished(ctx context.Context, s *plan.Snapshot) error {
	run, ok := c.planner.Down.RunOf(s.InMailbox)
	if !ok {
		return nil
	}
	patch, err := mailboxwrite.MergePatch(map[string]any{"metadata": map[string]any{
		"uid": s.InMailbox.GetUID(), "annotations": map[string]any{ownership.FinishedAnnotation: c.Owner.FinishedValue(run)},
	}})
	if err != nil {
		return err
	}
	if _, err := c.mailboxWriter.Patch(requestclass.With(ctx, requestclass.Extra), s.Key, patch); err != nil && !errors.Is(err, mailboxwrite.ErrUnreachable) {
		return fmt.Errorf("%w: cannot note that the object has run: %w", errMailboxRefused, err)
	}
	return nil
}

// returnStatusAnyway returns the status of a copy that could not be brought in sync.
func (c *Controller) returnStatusAnyway(ctx context.Context, s *plan.Snapshot, o plan.Operation) error {
	_, err := c.returnStatus(ctx, s, o.Desired)
	return err
}

// write makes the write that an operation decided on, with the requests that it needs.
func (c *Controller) write(ctx context.Context, o plan.Operation) error {
	var err error
	switch o.Decision.Action {
	case plan.None:
		return nil
	case plan.Create:
		err = c.createOnTarget(ctx, o.Copy, o.Desired)
	case plan.Apply:
		if o.Decision.Cause == plan.Restored {
			err = c.adoptRestored(requestclass.With(ctx, requestclass.Extra), o)
			break
		}
		err = c.applyToTarget(ctx, o.Copy, o.Desired, o.Copy.Observed.UID)
		if err == nil && o.Copy.Observed.Mark.Policy == ownership.PolicyCreateOnly {
			err = c.removeOverwriteAnnotation(ctx, o.Copy, o.Desired)
		}
	case plan.UpdateMark:
		err = c.updateMark(ctx, o.Copy, o.Desired, o.Copy.Observed)
	case plan.Delete:
		err = c.deleteFromTarget(ctx, o.Copy, o.Copy.Observed.UID, o.Propagation)
	case plan.Release:
		err = c.releaseOnTarget(ctx, o.Copy)
	case plan.Conflict:
		err = &nameTakenError{ref: o.Copy.Ref(), reason: "it came from " + describeFormer(o)}
	case plan.VerifyAbsence, plan.Update:
		err = fmt.Errorf("%s is no action on the target", o.Decision)
	}
	if err != nil {
		return err
	}
	log.FromContext(ctx).V(1).Info("wrote to the target", "decision", o.Decision.String(), "resource", o.Copy.API.GroupResource(), "name", o.Copy.Key)
	c.OnChange()
	return nil
}

// fieldConflictError names the field managers that keep changing the fields that the hub applies.
func (c *Controller) fieldConflictError(ctx context.Context, o plan.Operation) error {
	if len(o.Decision.Fields) == 0 {
		return fmt.Errorf("%w: spec.mutation.down of the PublishedResource returns a different object on every run", errFieldConflict)
	}
	object, err := c.Connection.Get(requestclass.With(ctx, requestclass.Extra), o.Copy.API.GroupVersionResource, o.Copy.Key)
	if err != nil {
		return err
	}
	managers, err := c.otherManagersOf(o.Desired, object, o.Decision.Fields)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %v keeps changing %v", errFieldConflict, managers, o.Decision.Fields)
}

// otherManagersOf returns the field managers of an object, beside the hub's, that own fields at the paths or below them.
func (c *Controller) otherManagersOf(desired *transform.Desired, object *unstructured.Unstructured, paths []string) ([]string, error) {
	managers, err := ownership.ManagersOf(desired.Object.Object, object.GetManagedFields(), paths)
	return slices.DeleteFunc(managers, func(manager string) bool { return manager == c.fieldManager }), err
}

// describeFormer names the object that a copy came from, if that is not the one that the operation is about.
func describeFormer(o plan.Operation) string {
	if plan.SameSource(o.Desired.Mark, o.Copy.Observed.Mark) {
		return "a former object of this name, of other users, whose end the hub has not seen"
	}
	return describeSource(o.Copy.Observed.Mark.Source)
}

func describeSource(source ownership.Source) string {
	return fmt.Sprintf("%s %s of the mailbox", source.Resource, types.NamespacedName{Namespace: source.Namespace, Name: source.Name})
}

// executeClaims changes the claims of a primary as planned, and marks the primary as processed unless its claims stay as they are.
// It returns an error if a relation cannot be resolved.
func (c *Controller) executeClaims(s *plan.Snapshot, claims plan.ClaimsPlan) error {
	switch claims {
	case plan.KeepClaims:
		return nil
	case plan.SetClaims:
		return c.publishDownClaims(s)
	case plan.MarkClaimsUnresolved:
		c.primaryTracker.markUnresolved(s.Key)
	case plan.RemoveClaims:
		c.primaryTracker.remove(s.Key)
	case plan.MarkProcessed:
	}
	c.primaryProcessed(s.Key)
	return nil
}

// executeUp carries out a plan for a mailbox object that is, or was, upsynced.
func (c *Controller) executeUp(ctx context.Context, s *plan.Snapshot, p plan.Plan) (outcome, error) {
	u := s.Up
	result := outcome{decision: p.Decision, up: true, requeueAfter: p.RequeueAfter}
	c.recordPrunedPaths(u.Selection.Configs, p.PrunedPaths)
	if p.Err != nil {
		return result, p.Err
	}
	if p.Repair {
		if wait := c.states.nextRepairDelay(s.Key); wait > 0 {
			result.requeueAfter = wait
			if p.Decision.Cause == plan.Removed {
				return result, errRemovedInMailbox
			}
			return result, fmt.Errorf("%w: somebody in the mailbox, or spec.mutation.up of the PublishedResource, keeps changing it %v", errFieldConflict, p.Decision.Fields)
		}
	}
	log.FromContext(ctx).V(1).Info("decided about an upsync", "decision", p.Decision.String())
	err := c.writeToMailbox(ctx, s, p, &result)
	switch {
	case err != nil && p.Decision.Cause == plan.Removed:
		// Only what was made can be removed again.
		c.states.refundRepair(s.Key)
	case err == nil && p.Decision.Cause != plan.Removed:
		c.states.forgetRemoval(s.Key, u.Removed)
	}
	if err == nil && c.upsyncReadsMailbox && p.Decision.Action == plan.Update {
		c.states.recordWrite(s.Key, u.Object.GetResourceVersion())
	}
	return requeueIfOutdated(result, err)
}

// writeToMailbox makes the write that the plan decided on. An object in sync gets its status, and publishes its claims.
func (c *Controller) writeToMailbox(ctx context.Context, s *plan.Snapshot, p plan.Plan, result *outcome) error {
	switch p.Decision.Action {
	case plan.None:
		if p.Decision.Cause != plan.InSync {
			return nil
		}
		returned, err := c.writeUpsyncedStatus(ctx, s, s.InMailbox)
		result.statusReturned = returned
		return errors.Join(err, c.publishUpClaims(s), c.nameConflict(s.Up))
	case plan.Create:
		return c.createInMailbox(ctx, s, p.Desired)
	case plan.Update:
		err := c.updateInMailbox(ctx, s, p.Desired)
		if IsImmutable(err) && c.planner.SupersedesInMailbox(s, p.Desired) {
			// The source was deleted and made again, so the mailbox object may be as well.
			return c.deleteFromMailbox(requestclass.With(ctx, requestclass.Extra), s.Key, s.InMailbox)
		}
		return err
	case plan.Conflict:
		return c.resolveMailboxConflict(ctx, s, p.Desired)
	case plan.VerifyAbsence:
		c.Mailboxes.VerifyAbsence(c.Mailbox, c.absenceCandidate(s.Key, p.AbsenceToVerify))
		return nil
	case plan.Delete:
		return c.deleteFromMailbox(ctx, s.Key, s.InMailbox)
	case plan.Release:
		return c.releaseInMailbox(ctx, s.Key, s.InMailbox)
	default:
		return fmt.Errorf("%s is no decision about an object of the mailbox", p.Decision)
	}
}

// requeueIfOutdated makes a write that came too late no failure: the cache is about to show the newer object.
func requeueIfOutdated(result outcome, err error) (outcome, error) {
	if errors.Is(err, errOutdated) {
		result.requeueAfter, result.outdated, err = plan.CacheTimeout, true, nil
	}
	return result, err
}
