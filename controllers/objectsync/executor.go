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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
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
	// requestCompleteness asks the controllers of all primaries to finish their initial sync, unless answered returns true first.
	requestCompleteness func(answered func() bool)
}

// executeDown executes the plan for a mailbox object and its copies.
func (e *executor) executeDown(ctx context.Context, p plan.DownPlan) (outcome, error) {
	result, err := e.writeDown(ctx, p)
	e.request(p.Key, p.InMailbox, p.Wants)
	return requeueIfOutdated(result, err)
}

// writeDown makes the writes of a plan for a mailbox object and its copies.
func (e *executor) writeDown(ctx context.Context, p plan.DownPlan) (outcome, error) {
	if p.ForgetHistory {
		e.states.forgetHistory(p.Key)
	}
	if p.ForgetDeletion {
		e.states.setDeletion(p.Key, nil)
	}
	if p.Finalizer == plan.ConfigureFinalizer {
		if err := e.toMailbox.configureFinalizer(ctx, p.Key, p.InMailbox); err != nil {
			return outcome{excluded: p.Excluded}, err
		}
	}
	claimsErr := e.primaries.publish(p.Key, p.Claims)
	result := outcome{decision: p.Decision, deferred: p.Deferred, requeueAfter: p.RequeueAfter, excluded: p.Excluded}
	if p.Err != nil {
		return result, errors.Join(p.Err, claimsErr)
	}
	var errs []error
	for _, operation := range p.Operations {
		errs = append(errs, e.executeOperation(ctx, p, operation, &result))
	}
	if p.ReturnStatus {
		returned, err := e.toMailbox.writeStatus(ctx, p.Key, p.InMailbox, p.Status)
		result.statusReturned = returned
		errs = append(errs, err)
	}
	err := errors.Join(append(errs, claimsErr)...)
	if err == nil && p.FinishedMark != "" {
		err = e.toMailbox.markFinished(ctx, p.Key, p.InMailbox.GetUID(), p.FinishedMark)
	}
	if err == nil {
		e.states.forgetRemoval(p.Key, p.ForgetRemoval)
	}
	if err == nil && p.Finalizer == plan.RemoveFinalizer {
		err = e.toMailbox.removeFinalizer(ctx, p.Key, p.InMailbox)
	}
	if err == nil {
		err = result.drift.asError()
	}
	return result, err
}

// executeOperation executes one decision about a target object. A repair is delayed if another client keeps undoing it.
func (e *executor) executeOperation(ctx context.Context, p plan.DownPlan, o plan.Operation, result *outcome) (err error) {
	if o.Decision.Action == plan.Report {
		result.drift, err = e.compare(ctx, p.Key, o)
		return err
	}
	if o.Repair {
		if wait := e.states.nextRepairDelay(p.Key); wait > 0 {
			result.requeueAfter = wait
			if o.Decision.Cause == plan.Removed {
				return newRemovedError(o.Desired)
			}
			return errors.Join(e.toTarget.fieldConflictError(ctx, o), e.returnStatusAnyway(ctx, p))
		}
	}
	err = e.toTarget.write(ctx, o)
	switch {
	case err != nil && o.Decision.Cause == plan.Removed:
		// The target may also refuse the copy because its namespace is terminating. Such a try does not count as a repair.
		e.states.refundRepair(p.Key)
	case err == nil && o.WrittenFor != "":
		e.states.recordWrite(p.Key, o.WrittenFor)
	case err != nil && o.Decision.Action == plan.Apply:
		// The copy still exists, with a status.
		return errors.Join(err, e.returnStatusAnyway(ctx, p))
	}
	return err
}

// compare reports how a copy differs from the desired object. It reads a copy once for each of its states.
func (e *executor) compare(ctx context.Context, key types.NamespacedName, o plan.Operation) (*driftReport, error) {
	if known := e.states.driftOf(key); known != nil && known.state == stateOf(o) {
		return known, nil
	}
	return e.toTarget.compare(ctx, o)
}

// returnStatusAnyway returns the status of a copy that could not be brought in sync.
func (e *executor) returnStatusAnyway(ctx context.Context, p plan.DownPlan) error {
	_, err := e.toMailbox.writeStatus(ctx, p.Key, p.InMailbox, p.Status)
	return err
}

// request makes the requests of a pass beside its writes.
func (e *executor) request(key types.NamespacedName, inMailbox *unstructured.Unstructured, wants plan.Wants) {
	if wants.Claims != nil {
		e.requestCompleteness(wants.Claims)
	}
	e.mailbox.request(key, inMailbox, wants)
}

// confirmMissing asks the target about an object whose deletion nobody observed: it may have been deleted while the hub was away.
func (e *executor) confirmMissing(ctx context.Context, key types.NamespacedName, ref plan.Ref, matcher *selection.Matcher) *plan.MissingAnswer {
	answer := &plan.MissingAnswer{State: plan.Unknown}
	api, rules := e.upsync.target.apiOf(ref.Resource), e.upsync.rules
	object, err := e.toTarget.objects.Get(requestclass.With(ctx, requestclass.Extra), api.GroupVersionResource, ref.Key)
	switch {
	case err == nil:
		if name, ok := e.upsync.keyFor(api, matcher, object); ok && name == key {
			// The upsync cache will contain the object soon.
			return answer
		}
		if plan.IsNeverUpsynced(e.mailbox.owner, object) || rules.IsUnrelatedOnTarget(matcher, api, object) {
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
func (e *executor) executeUp(ctx context.Context, p plan.UpPlan) (outcome, error) {
	result := outcome{decision: p.Decision, up: true, requeueAfter: p.RequeueAfter, excluded: p.Excluded}
	if to := p.RenameTo; to != nil {
		e.states.addRename(p.Key, *to)
		if !e.mailbox.isFree(*to) {
			// The object of the new name was created after the pass observed the mailbox, so no event enqueues this key again.
			result.requeueAfter = retryBaseDelay
		}
	}
	e.reporter.recordPrunedPaths(p.Configs, p.PrunedPaths)
	err := e.writeUp(ctx, p, &result)
	e.request(p.Key, p.InMailbox, p.Wants)
	return requeueIfOutdated(result, err)
}

// writeUp makes the write of a plan for an upsynced object. A repair is delayed if another client keeps undoing it. An object in sync
// gets its status, and publishes its claims.
func (e *executor) writeUp(ctx context.Context, p plan.UpPlan, result *outcome) error {
	if p.Err != nil {
		return p.Err
	}
	if p.Repair {
		if wait := e.states.nextRepairDelay(p.Key); wait > 0 {
			result.requeueAfter = wait
			if p.Decision.Cause == plan.Removed {
				return errRemovedInMailbox
			}
			return fmt.Errorf("%w: somebody in the mailbox, or spec.mutation.up of the PublishedResource, keeps changing it %v", errFieldConflict, p.Decision.Fields)
		}
	}
	log.FromContext(ctx).V(1).Info("decided about an upsync", "decision", p.Decision.String())
	err := e.toMailbox.write(ctx, p)
	if err == nil && p.Decision.Cause == plan.InSync {
		result.statusReturned, err = e.toMailbox.writeStatus(ctx, p.Key, p.InMailbox, p.Status)
		err = errors.Join(err, e.primaries.publish(p.Key, p.Claims), nameConflict(p.Conflicting))
	}
	switch {
	case err != nil && p.Decision.Cause == plan.Removed:
		// A failed write does not count as a repair.
		e.states.refundRepair(p.Key)
	case err == nil:
		e.states.forgetRemoval(p.Key, p.ForgetRemoval)
	}
	if err == nil && p.WrittenFor != "" {
		e.states.recordWrite(p.Key, p.WrittenFor)
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
