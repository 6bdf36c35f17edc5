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
	"time"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
)

// syncPlan is what one pass does about one key in one direction. [Controller.execute] carries it out; nothing in it needs another look
// at a cache.
type syncPlan struct {
	// up is true if the plan is about an upsync.
	up       bool
	decision plan.Decision
	// err is why the object fails whatever is written.
	err error
	// finalizer says what becomes of the hub's finalizer on the mailbox object, before anything else is done.
	finalizer finalizerPlan
	// claims says which related objects travel with the object.
	claims claimsPlan
	// verifyAbsence asks kcp whether the mailbox object is really gone, or deselected.
	verifyAbsence plan.Cause
	// operations are the writes to the target, first to last. One that fails does not keep the others from being tried.
	operations []operation
	// returnStatus writes the status of the target object to the mailbox object.
	returnStatus bool
	desired      *transform.Desired
	// requeueAfter is when to reconcile again though no event may come; zero for never.
	requeueAfter time.Duration
	// repair is true if the write may be undone again by whoever made it necessary, so that it is spaced out.
	repair bool
	// droppedFields are those of the source that the schema of the mailbox does not have.
	droppedFields []string
	// deferred are fields that are left to the target until the source changes.
	deferred []string
}

// operation is one write to the target: one request, but for the reads that follow a refusal.
type operation struct {
	decision plan.Decision
	copy     targetCopy
	desired  *transform.Desired
	// repair is true if the write may be undone again by whoever made it necessary, so that it is spaced out.
	repair bool
}

// finalizerPlan is what becomes of the hub's finalizer on a mailbox object.
type finalizerPlan int

// The zero value leaves the finalizer as it is.
const (
	_ finalizerPlan = iota
	// setFinalizer brings it in line with the PublishedResource.
	setFinalizer
	// dropFinalizer takes it off.
	dropFinalizer
)

// claimsPlan is what becomes of a primary's claims on related objects.
type claimsPlan int

const (
	// keepClaims leaves them as they are.
	keepClaims claimsPlan = iota
	// processClaims leaves them as they are, and counts the primary as processed.
	processClaims
	// unresolveClaims keeps them until the primary can be resolved.
	unresolveClaims
	// setClaims resolves the relations of the primary.
	setClaims
	// removeClaims ends them.
	removeClaims
)

// planner decides what a pass does. It is pure: two equal snapshots make two equal plans.
type planner struct {
	resource Resource
	owner    ownership.Owner
	down     transform.Down
	up       transform.Up
}

// planDown decides about a mailbox object and its copies on the target.
func (p planner) planDown(d *downSnapshot, s *snapshot) syncPlan {
	result := syncPlan{decision: plan.Decision{Action: plan.None, Cause: d.state}}
	switch {
	case d.err != nil:
		return syncPlan{err: d.err, claims: unresolveClaims}
	case d.state == plan.InSync:
		return p.planPresent(d, s)
	case d.state == plan.Suspended:
		result.claims = setClaims
		if d.destinationErr != nil {
			result.claims = unresolveClaims
		}
		return result
	case d.state == plan.Unknown:
		result.claims = processClaims
		if d.selection.unresolved != nil {
			result.claims = unresolveClaims
		}
		return result
	default:
		return p.planAbsent(d, s)
	}
}

// planPresent decides about an object that belongs on the target.
func (p planner) planPresent(d *downSnapshot, s *snapshot) syncPlan {
	result := syncPlan{finalizer: setFinalizer, claims: setClaims, requeueAfter: d.destination.requeueAfter()}
	switch {
	case d.destinationErr != nil:
		result.claims, result.err = unresolveClaims, d.destinationErr
		return result
	case d.excluded:
		result.claims, result.decision = removeClaims, plan.Decision{Action: plan.None, Cause: plan.ExcludedByUpsync}
		return result
	}
	result.desired, result.err = p.desiredOnTarget(d, s)
	if result.err != nil {
		return result
	}
	result.decision, result.err = plan.Down(plan.Source{State: plan.InSync, Desired: result.desired}, d.destination.observed, d.tolerated)
	switch {
	case result.err != nil:
	case result.decision.Cause == plan.InSync:
		result.returnStatus, result.deferred = true, deferredPaths(result.desired)
		result.operations = p.staleOperations(d)
	case result.decision.Action != plan.None:
		result.operations = []operation{{
			decision: result.decision, copy: d.destination, desired: result.desired,
			repair: result.decision.Cause == plan.Drifted || d.isNonConverging(result.decision),
		}}
		if result.decision.Action == plan.Create {
			result.requeueAfter = expectationTimeout
		}
	}
	return result
}

// desiredOnTarget returns what the target must hold for the mailbox object, given what it holds.
func (p planner) desiredOnTarget(d *downSnapshot, s *snapshot) (*transform.Desired, error) {
	observed := d.destination.observed
	if observed == nil {
		return p.down.Desired(s.source, d.spec)
	}
	return p.down.DesiredForMark(s.source, d.spec, observed.Mark, func(before *transform.Desired) bool { return before.Mark.Hash == observed.Mark.Hash })
}

// isNonConverging reports whether the copy is to be changed although the source is as it was at the last write: a mutation that
// reads the copy may never come to an end.
func (d *downSnapshot) isNonConverging(decision plan.Decision) bool {
	return d.writtenBefore && d.spec.Mutation.UsesOther() && decision.Action == plan.Apply && decision.Cause == plan.Changed
}

// staleOperations removes the copies under other names and kinds, now that the object is in sync at its destination.
func (p planner) staleOperations(d *downSnapshot) []operation {
	var operations []operation
	for _, existing := range d.copies {
		if existing.ref() != d.destination.ref() {
			operations = append(operations, operation{decision: plan.Stale(existing.observed), copy: existing})
		}
	}
	return operations
}

// planAbsent decides about the copies of an object that does not belong on the target.
func (p planner) planAbsent(d *downSnapshot, s *snapshot) syncPlan {
	result := syncPlan{decision: plan.Decision{Action: plan.None, Cause: d.state}}
	source := plan.Source{State: d.state, AbsenceVerified: d.absenceVerified}
	former := len(d.copies) > 0
	for _, existing := range d.copies {
		former = former && existing.observed.FormerMailbox
		decision, err := plan.Down(source, existing.observed, nil)
		if err != nil {
			result.err = err
			return result
		}
		result.decision = decision
		if decision.Action == plan.VerifyAbsence {
			result.verifyAbsence = d.state
			continue
		}
		result.operations = append(result.operations, operation{decision: decision, copy: existing})
	}
	if former || len(d.copies) == 0 {
		p.planEnd(&result, d, s, former)
	}
	return result
}

// planEnd decides what follows once nothing is left on the target but copies from a former mailbox.
func (p planner) planEnd(result *syncPlan, d *downSnapshot, s *snapshot, former bool) {
	if d.mayClaim && !d.absenceVerified {
		// To conclude that the primary claims nothing is as grave as to conclude that it is gone.
		result.verifyAbsence = d.state
		return
	}
	if s.up == nil {
		result.claims = removeClaims
	}
	if former || d.settled {
		result.finalizer = dropFinalizer
	}
}

// deferredPaths names the fields that are left to the target until the source changes.
func deferredPaths(desired *transform.Desired) (paths []string) {
	for _, field := range desired.DeferredFields {
		paths = append(paths, field.Path.String())
	}
	return paths
}
