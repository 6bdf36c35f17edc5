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

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// executeDown carries out the plan for a mailbox object and its copies.
func (c *Controller) executeDown(ctx context.Context, s *plan.Snapshot, p plan.Plan) (outcome, error) {
	if s.Source == nil {
		c.states.forgetHistory(s.Key)
	}
	if p.Finalizer == plan.SetFinalizer {
		if err := c.ensureFinalizer(ctx, s.Key, s.Source); err != nil {
			return requeueIfStale(outcome{}, err)
		}
	}
	claimsErr := c.executeClaims(s, p.Claims)
	result := outcome{decision: p.Decision, deferred: p.Deferred, requeueAfter: p.RequeueAfter}
	if p.VerifyAbsence != "" {
		c.Mailboxes.VerifyAbsence(c.Mailbox, c.absenceCandidate(s.Key, p.VerifyAbsence))
	}
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
	if err == nil && p.Finalizer == plan.DropFinalizer {
		err = c.removeFinalizer(ctx, s.Key, s.Source)
	}
	return requeueIfStale(result, err)
}

// executeOperation makes one write to the target. A repair waits if somebody keeps undoing it.
func (c *Controller) executeOperation(ctx context.Context, s *plan.Snapshot, o plan.Operation, result *outcome) error {
	if o.Repair {
		if wait := c.states.driftBackoff(s.Key); wait > 0 {
			result.requeueAfter = wait
			return errors.Join(c.fieldConflictError(ctx, o), c.returnStatusAnyway(ctx, s, o))
		}
	}
	err := c.write(ctx, o)
	switch {
	case err == nil && o.Desired != nil && s.Down.Spec.Mutation.UsesOther():
		c.states.recordWrite(s.Key, s.Source.GetResourceVersion())
	case err != nil && o.Decision.Action == plan.Apply:
		// The copy still exists, with a status.
		return errors.Join(err, c.returnStatusAnyway(ctx, s, o))
	}
	return err
}

// returnStatusAnyway returns the status of a copy that could not be brought in sync.
func (c *Controller) returnStatusAnyway(ctx context.Context, s *plan.Snapshot, o plan.Operation) error {
	_, err := c.returnStatus(ctx, s, o.Desired)
	return err
}

// write makes one write to the target.
func (c *Controller) write(ctx context.Context, o plan.Operation) error {
	var err error
	switch o.Decision.Action {
	case plan.None:
		return nil
	case plan.Create:
		err = c.createOnTarget(ctx, o.Copy, o.Desired)
	case plan.Apply:
		err = c.applyToTarget(ctx, o.Copy, o.Desired, o.Copy.Observed.UID)
		if err == nil && o.Copy.Observed.Mark.Policy == ownership.PolicyCreateOnly {
			err = c.removeOverwriteAnnotation(ctx, o.Copy, o.Desired)
		}
	case plan.UpdateMark:
		err = c.updateMark(ctx, o.Copy, o.Desired, o.Copy.Observed)
	case plan.Delete:
		err = c.deleteFromTarget(ctx, o.Copy, o.Copy.Observed.UID)
	case plan.Release:
		err = c.releaseOnTarget(ctx, o.Copy)
	case plan.Conflict:
		err = &nameTakenError{ref: o.Copy.Ref(), reason: "it came from " + describeSource(o.Copy.Observed.Mark.Source)}
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
	object, err := c.Connection.Get(requestmetrics.WithClass(ctx, requestmetrics.Extra), o.Copy.API.GroupVersionResource, o.Copy.Key)
	if err != nil {
		return err
	}
	managers, err := ownership.ManagersOf(o.Desired.Object.Object, object.GetManagedFields(), o.Decision.Fields)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %v keeps changing %v", errFieldConflict, managers, o.Decision.Fields)
}

func describeSource(source ownership.Source) string {
	return fmt.Sprintf("%s %s of the mailbox", source.Resource, types.NamespacedName{Namespace: source.Namespace, Name: source.Name})
}

// executeClaims registers the related objects that are synced with this one. It returns an error if a relation cannot be
// resolved.
func (c *Controller) executeClaims(s *plan.Snapshot, claims plan.ClaimsPlan) error {
	switch claims {
	case plan.KeepClaims:
		return nil
	case plan.SetClaims:
		return c.updateRelated(s)
	case plan.UnresolveClaims:
		c.primaryTracker.markUnresolved(s.Key)
	case plan.RemoveClaims:
		c.primaryTracker.remove(s.Key)
	case plan.ProcessClaims:
	}
	c.primaryProcessed(s.Key)
	return nil
}

// executeUp carries out a plan for a mailbox object that is, or was, upsynced.
func (c *Controller) executeUp(ctx context.Context, s *plan.Snapshot, p plan.Plan) (outcome, error) {
	u := s.Up
	result := outcome{decision: p.Decision, up: true, requeueAfter: p.RequeueAfter}
	c.recordDroppedFields(u.Selection.Configs, p.DroppedFields)
	if p.Err != nil {
		return result, p.Err
	}
	if p.Repair {
		if wait := c.states.driftBackoff(s.Key); wait > 0 {
			result.requeueAfter = wait
			return result, fmt.Errorf("%w: somebody in the mailbox, or spec.mutation.up of the PublishedResource, keeps changing it %v", errFieldConflict, p.Decision.Fields)
		}
	}
	log.FromContext(ctx).V(1).Info("decided about an upsync", "decision", p.Decision.String())
	err := c.writeToMailbox(ctx, s, p, &result)
	if err == nil && c.upsyncReadsMailbox && p.Decision.Action == plan.Update {
		c.states.recordWrite(s.Key, u.Object.GetResourceVersion())
	}
	return requeueIfStale(result, err)
}

// writeToMailbox makes the write that the plan decided on. An object in sync gets its status, and publishes its claims.
func (c *Controller) writeToMailbox(ctx context.Context, s *plan.Snapshot, p plan.Plan, result *outcome) error {
	switch p.Decision.Action {
	case plan.None:
		if p.Decision.Cause != plan.InSync {
			return nil
		}
		returned, err := c.writeUpsyncedStatus(ctx, s, s.Source)
		result.statusReturned = returned
		return errors.Join(err, c.updateUpsyncedRelated(s), c.nameConflict(s.Up))
	case plan.Create:
		return c.createInMailbox(ctx, s, p.Desired)
	case plan.Update:
		return c.updateInMailbox(ctx, s, p.Desired)
	case plan.Conflict:
		return c.resolveMailboxConflict(ctx, s, p.Desired)
	case plan.VerifyAbsence:
		c.Mailboxes.VerifyAbsence(c.Mailbox, c.absenceCandidate(s.Key, p.VerifyAbsence))
		return nil
	case plan.Delete:
		return c.deleteFromMailbox(ctx, s.Key, s.Source)
	case plan.Release:
		return c.releaseInMailbox(ctx, s.Key, s.Source)
	default:
		return fmt.Errorf("%s is no decision about an object of the mailbox", p.Decision)
	}
}

// requeueIfStale makes a write that came too late no failure: the cache is about to show the newer object.
func requeueIfStale(result outcome, err error) (outcome, error) {
	if errors.Is(err, errStale) {
		result.requeueAfter, result.stale, err = plan.CacheTimeout, true, nil
	}
	return result, err
}
