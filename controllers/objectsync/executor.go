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

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/notfound"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// executor makes the requests of plans.
type executor struct {
	states    *keyStates
	mailbox   *mailboxView
	upsync    *upsyncCaches
	primaries *primaries
	toTarget  *targetWriter
	toMailbox *mailboxWriter
	reporter  *reporter
	// upsyncReadsMailbox is true if a rule for upsync reads the mailbox object.
	upsyncReadsMailbox bool
	// requestCompleteness asks the controllers of all primaries to finish their initial sync, unless answered returns true first.
	requestCompleteness func(answered func() bool)
}

// executeDown executes the plan for a mailbox object and its copies.
func (e *executor) executeDown(ctx context.Context, s *plan.Snapshot, p plan.DownPlan) (outcome, error) {
	e.request(s, p.Wants)
	if s.HasNoSource() {
		e.states.forgetHistory(s.Key)
	}
	if len(s.Down.Copies) == 0 {
		e.states.setDeletion(s.Key, nil)
	}
	if p.Finalizer == plan.ConfigureFinalizer {
		if err := e.toMailbox.configureFinalizer(ctx, s.Key, s.InMailbox); err != nil {
			return requeueIfOutdated(outcome{}, err)
		}
	}
	claimsErr := e.primaries.execute(s, p.Claims)
	result := outcome{decision: p.Decision, deferred: p.Deferred, requeueAfter: p.RequeueAfter}
	e.requestVerification(s, p)
	if p.Err != nil {
		return result, errors.Join(p.Err, claimsErr)
	}
	var errs []error
	for _, operation := range p.Operations {
		errs = append(errs, e.executeOperation(ctx, s, operation, &result))
	}
	if p.ReturnStatus {
		returned, err := e.toMailbox.returnStatus(ctx, s, p.Desired)
		result.statusReturned = returned
		errs = append(errs, err)
	}
	err := errors.Join(append(errs, claimsErr)...)
	if err == nil && p.MarkFinished {
		err = e.toMailbox.markFinished(ctx, s)
	}
	if err == nil && p.Decision.Cause != plan.Removed {
		e.states.forgetRemoval(s.Key, s.Down.Removed)
	}
	if err == nil && p.Finalizer == plan.RemoveFinalizer {
		err = e.toMailbox.removeFinalizer(ctx, s.Key, s.InMailbox)
	}
	return requeueIfOutdated(result, err)
}

// requestVerification requests what the plan needs verified: the version of a source, or its absence.
func (e *executor) requestVerification(s *plan.Snapshot, p plan.DownPlan) {
	if p.VersionToVerify > 0 {
		e.mailbox.mailboxes.VerifyVersion(e.mailbox.name, e.mailbox.resource.GroupVersionResource, s.Key, p.VersionToVerify)
	}
	if p.AbsenceToVerify != "" {
		e.mailbox.mailboxes.NoteVersion(e.mailbox.name, e.mailbox.resource.GroupVersionResource, s.Key, s.Down.SourceVersion(e.mailbox.name.String()))
		e.mailbox.verifyAbsence(s.Key, p.AbsenceToVerify)
	}
}

// executeOperation executes one decision about a target object. A repair is delayed if another client keeps undoing it.
func (e *executor) executeOperation(ctx context.Context, s *plan.Snapshot, o plan.Operation, result *outcome) error {
	if o.Repair {
		if wait := e.states.nextRepairDelay(s.Key); wait > 0 {
			result.requeueAfter = wait
			if o.Decision.Cause == plan.Removed {
				return newRemovedError(o.Desired)
			}
			return errors.Join(e.toTarget.fieldConflictError(ctx, o), e.returnStatusAnyway(ctx, s, o))
		}
	}
	err := e.toTarget.write(ctx, o)
	switch {
	case err != nil && o.Decision.Cause == plan.Removed:
		// The target may also refuse the copy because its namespace is terminating. Such a try does not count as a repair.
		e.states.refundRepair(s.Key)
	case err == nil && o.Desired != nil && s.Down.Spec.Mutation.UsesOther():
		e.states.recordWrite(s.Key, s.InMailbox.GetResourceVersion())
	case err != nil && o.Decision.Action == plan.Apply:
		// The copy still exists, with a status.
		return errors.Join(err, e.returnStatusAnyway(ctx, s, o))
	}
	return err
}

// returnStatusAnyway returns the status of a copy that could not be brought in sync.
func (e *executor) returnStatusAnyway(ctx context.Context, s *plan.Snapshot, o plan.Operation) error {
	_, err := e.toMailbox.returnStatus(ctx, s, o.Desired)
	return err
}

// request makes the plan's requests that are no writes.
func (e *executor) request(s *plan.Snapshot, wants plan.Wants) {
	if wants.FullObject {
		// The cache fetches the object. An event follows.
		_ = e.mailbox.mailboxes.RequireFullObject(e.mailbox.resource.GroupVersionResource, e.mailbox.name, s.InMailbox)
	}
	if wants.Claims != nil {
		e.requestCompleteness(wants.Claims)
	}
	if wants.TakeAbsence != "" {
		e.mailbox.takeVerifiedAbsence(s.Key, wants.TakeAbsence)
	}
	if wants.RenameTo != nil {
		e.states.addRename(s.Key, *wants.RenameTo)
	}
}

// confirmMissing asks the target about an object whose deletion nobody observed: it may have been deleted while the hub was away.
func (e *executor) confirmMissing(ctx context.Context, s *plan.Snapshot) *plan.MissingAnswer {
	ref, answer := s.Up.Missing.Ref, &plan.MissingAnswer{State: plan.Unknown}
	api, rules := e.upsync.target.apiOf(ref.Resource), e.upsync.rules
	object, err := e.toTarget.objects.Get(requestclass.With(ctx, requestclass.Extra), api.GroupVersionResource, ref.Key)
	switch {
	case err == nil:
		if name, ok := e.upsync.keyFor(api, s.Matcher, object); ok && name == s.Key {
			// The upsync cache will contain the object soon.
			return answer
		}
		if plan.IsNeverUpsynced(e.mailbox.owner, object) || rules.IsUnrelatedOnTarget(s.Matcher, api, object) {
			answer.State = plan.Deselected
		}
	case notfound.Proves(err, ref.Resource, ref.Key.Name):
		answer.State = plan.SourceNotFound
	default:
		// The error of an API that is not served proves nothing about its objects.
		answer.Err = fmt.Errorf("cannot find out whether %s %s is gone from the target: %w", ref.Resource, ref.Key, err)
	}
	return answer
}

// executeUp executes the plan for a mailbox object that is, or was, upsynced.
func (e *executor) executeUp(ctx context.Context, s *plan.Snapshot, p plan.UpPlan) (outcome, error) {
	u := s.Up
	e.request(s, p.Wants)
	result := outcome{decision: p.Decision, up: true, requeueAfter: p.RequeueAfter, heldBack: u.Object != nil && isHeldBack(p.Decision)}
	if to := p.Wants.RenameTo; to != nil && !e.mailbox.isFree(*to) {
		// The object of the new name was created after the pass observed the mailbox, so no event enqueues this key again.
		result.requeueAfter = retryBaseDelay
	}
	e.reporter.recordPrunedPaths(u.Selection.Configs, p.PrunedPaths)
	if p.Err != nil {
		return result, p.Err
	}
	if p.Repair {
		if wait := e.states.nextRepairDelay(s.Key); wait > 0 {
			result.requeueAfter = wait
			if p.Decision.Cause == plan.Removed {
				return result, errRemovedInMailbox
			}
			return result, fmt.Errorf("%w: somebody in the mailbox, or spec.mutation.up of the PublishedResource, keeps changing it %v", errFieldConflict, p.Decision.Fields)
		}
	}
	log.FromContext(ctx).V(1).Info("decided about an upsync", "decision", p.Decision.String())
	err := e.executeMailboxWrite(ctx, s, p, &result)
	return requeueIfOutdated(result, err)
}

// executeMailboxWrite makes the write that the plan decided on. An object in sync gets its status, and publishes its claims.
func (e *executor) executeMailboxWrite(ctx context.Context, s *plan.Snapshot, p plan.UpPlan, result *outcome) error {
	err := e.toMailbox.write(ctx, s, p)
	if err == nil && p.Decision.Cause == plan.InSync {
		result.statusReturned, err = e.toMailbox.writeUpsyncedStatus(ctx, s, s.InMailbox)
		err = errors.Join(err, e.primaries.publishUpClaims(s), nameConflict(s.Up))
	}
	switch {
	case err != nil && p.Decision.Cause == plan.Removed:
		// A failed write does not count as a repair.
		e.states.refundRepair(s.Key)
	case err == nil && p.Decision.Cause != plan.Removed:
		e.states.forgetRemoval(s.Key, s.Up.Removed)
	}
	if err == nil && e.upsyncReadsMailbox && p.Decision.Action == plan.Update {
		e.states.recordWrite(s.Key, s.Up.Object.GetResourceVersion())
	}
	return err
}

// requeueIfOutdated turns the error of a write to an outdated object into a requeue: the cache will contain the newer object
// soon. So does it with the error of a write that the target will allow soon.
func requeueIfOutdated(result outcome, err error) (outcome, error) {
	switch {
	case errors.Is(err, errOutdated):
		result.requeueAfter, result.outdated, err = plan.CacheTimeout, true, nil
	case errors.Is(err, errSettling):
		result.requeueAfter, result.outdated, err = settlingRetryDelay, true, nil
	}
	return result, err
}
