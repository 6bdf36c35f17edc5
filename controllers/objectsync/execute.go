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
func (c *Controller) executeDown(ctx context.Context, s *snapshot, p syncPlan) (outcome, error) {
	if s.source == nil {
		c.failures.forgetHistory(s.key)
	}
	if p.finalizer == setFinalizer {
		if err := c.ensureFinalizer(ctx, s.key, s.source); err != nil {
			return requeueIfStale(outcome{}, err)
		}
	}
	claims := c.executeClaims(s, p.claims)
	result := outcome{decision: p.decision, deferred: p.deferred, requeueAfter: p.requeueAfter}
	if p.verifyAbsence != "" {
		c.Mailboxes.VerifyAbsence(c.Mailbox, c.absenceCandidate(s.key, p.verifyAbsence))
	}
	if p.err != nil {
		return result, errors.Join(p.err, claims)
	}
	var errs []error
	for _, operation := range p.operations {
		errs = append(errs, c.executeOperation(ctx, s, operation, &result))
	}
	if p.returnStatus {
		returned, err := c.returnStatus(ctx, s, p.desired)
		result.statusReturned = returned
		errs = append(errs, err)
	}
	err := errors.Join(append(errs, claims)...)
	if err == nil && p.finalizer == dropFinalizer {
		err = c.removeFinalizer(ctx, s.key, s.source)
	}
	return requeueIfStale(result, err)
}

// executeOperation makes one write to the target. A repair waits if somebody keeps undoing it.
func (c *Controller) executeOperation(ctx context.Context, s *snapshot, o operation, result *outcome) error {
	if o.repair {
		if wait := c.failures.driftBackoff(s.key); wait > 0 {
			result.requeueAfter = wait
			return errors.Join(c.fieldConflictError(ctx, o), c.returnStatusAnyway(ctx, s, o))
		}
	}
	err := c.write(ctx, o)
	switch {
	case err == nil && o.desired != nil && s.down.spec.Mutation.UsesOther():
		c.failures.recordWrite(s.key, s.source.GetResourceVersion())
	case err != nil && o.decision.Action == plan.Apply:
		// The copy lives on although it could not be changed.
		return errors.Join(err, c.returnStatusAnyway(ctx, s, o))
	}
	return err
}

// returnStatusAnyway returns the status of a copy that could not be brought in sync.
func (c *Controller) returnStatusAnyway(ctx context.Context, s *snapshot, o operation) error {
	_, err := c.returnStatus(ctx, s, o.desired)
	return err
}

// write makes one write to the target.
func (c *Controller) write(ctx context.Context, o operation) error {
	var err error
	switch o.decision.Action {
	case plan.None:
		return nil
	case plan.Create:
		err = c.createOnTarget(ctx, o.copy, o.desired)
	case plan.Apply:
		err = c.applyToTarget(ctx, o.copy, o.desired, o.copy.observed.UID)
		if err == nil && o.copy.observed.Mark.Policy == ownership.PolicyCreateOnly {
			err = c.removeOverwriteAnnotation(ctx, o.copy, o.desired)
		}
	case plan.UpdateMark:
		err = c.updateMark(ctx, o.copy, o.desired, o.copy.observed)
	case plan.Delete:
		err = c.deleteFromTarget(ctx, o.copy, o.copy.observed.UID)
	case plan.Release:
		err = c.releaseOnTarget(ctx, o.copy)
	case plan.Conflict:
		err = &nameTakenError{ref: o.copy.ref(), reason: "it came from " + describeSource(o.copy.observed.Mark.Source)}
	case plan.VerifyAbsence, plan.Update:
		err = fmt.Errorf("%s is no action on the target", o.decision)
	}
	log.FromContext(ctx).V(1).Info("wrote to the target", "decision", o.decision.String(), "resource", o.copy.target.GroupResource(), "name", o.copy.key)
	if err == nil {
		c.OnChange()
	}
	return err
}

// fieldConflictError names the field managers that keep changing the fields that the hub applies.
func (c *Controller) fieldConflictError(ctx context.Context, o operation) error {
	if len(o.decision.Fields) == 0 {
		return fmt.Errorf("%w: spec.mutation.down of the PublishedResource makes another object of it each time", errFieldConflict)
	}
	object, err := c.Connection.Get(requestmetrics.WithClass(ctx, requestmetrics.Extra), o.copy.target.GroupVersionResource, o.copy.key)
	if err != nil {
		return err
	}
	managers, err := ownership.ManagersOf(o.desired.Object.Object, object.GetManagedFields(), o.decision.Fields)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %v keeps changing %v", errFieldConflict, managers, o.decision.Fields)
}

func describeSource(source ownership.Source) string {
	return fmt.Sprintf("%s %s of the mailbox", source.Resource, types.NamespacedName{Namespace: source.Namespace, Name: source.Name})
}

// executeClaims publishes which related objects travel with the object. The error is why a relation cannot be resolved.
func (c *Controller) executeClaims(s *snapshot, claims claimsPlan) error {
	switch claims {
	case keepClaims:
		return nil
	case setClaims:
		return c.updateRelated(s)
	case unresolveClaims:
		c.primaryTracker.markUnresolved(s.key)
	case removeClaims:
		c.primaryTracker.remove(s.key)
	case processClaims:
	}
	c.primaryProcessed(s.key)
	return nil
}

// requeueIfStale makes a write that came too late no failure: the cache is about to show the newer object.
func requeueIfStale(result outcome, err error) (outcome, error) {
	if errors.Is(err, errStale) {
		result.requeueAfter, result.stale, err = expectationTimeout, true, nil
	}
	return result, err
}
