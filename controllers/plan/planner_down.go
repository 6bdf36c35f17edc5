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

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// PlanDown decides about a mailbox object and its copies on the target.
func (p Planner) PlanDown(s *Snapshot) DownPlan {
	d := s.Down
	result := DownPlan{
		Plan:          Plan{Key: s.Key, InMailbox: s.InMailbox, Wants: d.Wants, Decision: Decision{Action: None, Cause: Cause(d.State)}},
		ForgetHistory: s.hasNoSource(), ForgetDeletion: len(d.Copies) == 0,
	}
	primary := claimant{
		key: s.Key, inMailbox: s.InMailbox, onTarget: d.Destination.Object, namespace: d.Destination.Key.Namespace,
		selection: d.Selection, matcher: s.Matcher,
	}
	switch {
	case d.Err != nil:
		result.Decision, result.Err, result.Claims.Action = Decision{}, d.Err, MarkClaimsUnresolved
	case d.State == Selected:
		p.planPresent(&result, d, primary)
	case d.State == Suspended && d.DestinationErr == nil:
		result.Claims = p.setClaims(primary)
	case d.State == Suspended, d.State == Unknown && d.Selection.Unresolved != nil:
		result.Claims.Action = MarkClaimsUnresolved
	case d.State == Unknown:
		result.Claims.Action = MarkProcessed
	default:
		planAbsent(&result, d, s.Up != nil)
	}
	if result.Wants.VerifyAbsence != "" {
		result.Wants.Witness = d.latestSourceVersion(p.Down.Mailbox)
	}
	result.Excluded = s.InMailbox != nil && result.Decision.isExcluded()
	if result.Decision.Cause != Removed {
		result.ForgetRemoval = d.Removed
	}
	return result
}

// planPresent decides about an object that belongs on the target.
func (p Planner) planPresent(result *DownPlan, d *DownSnapshot, primary claimant) {
	result.Finalizer, result.RequeueAfter, result.Decision = ConfigureFinalizer, d.Destination.requeueAfter(), Decision{}
	switch {
	case d.DestinationErr != nil:
		result.Claims.Action, result.Err = MarkClaimsUnresolved, d.DestinationErr
		return
	case d.Excluded:
		result.Claims.Action, result.Decision = RemoveClaims, Decision{Action: None, Cause: ExcludedByUpsync}
		return
	}
	result.Claims = p.setClaims(primary)
	result.Desired, result.Err = p.desiredOnTarget(result.InMailbox, d)
	if result.Err != nil {
		return
	}
	if !d.Held && d.isNewerThanSource(result.Desired.Mark) {
		result.Decision, result.Wants.VerifyVersion = Decision{Action: None, Cause: NewerThanSource}, d.Destination.Observed.Mark.SourceVersion
		result.RequeueAfter = newerThanSourceRetry
		return
	}
	source := SourceState{State: Selected, Desired: result.Desired, AbsenceVerified: d.AbsenceVerified, Rebound: d.Rebound}
	result.Decision, result.Err = DecideDown(source, d.Destination.Observed, d.DroppedPaths)
	if result.Decision.Cause == Missing {
		result.Decision = p.decideMissing(result.InMailbox, d, result.Desired)
	}
	result.Status = p.statusFor(d, result.Desired)
	if result.Err == nil {
		p.planPresentWrites(result, d)
	}
	if d.Held {
		result.hold()
	}
}

// planPresentWrites plans the writes that follow from the decision about an object that belongs on the target.
func (p Planner) planPresentWrites(result *DownPlan, d *DownSnapshot) {
	decision := result.Decision
	switch {
	case decision.Cause == InSync:
		result.ReturnStatus, result.Deferred = true, deferredPaths(result.Desired)
		if isAboutToExpire(result.InMailbox, d.Destination.Observed) {
			result.FinishedMark = p.finishedMark(result.InMailbox)
		}
		result.Operations = formerNameOperations(d)
	case decision.Action == Report:
		result.ReturnStatus, result.Deferred = true, deferredPaths(result.Desired)
		if isAboutToExpire(result.InMailbox, d.Destination.Observed) {
			result.FinishedMark = p.finishedMark(result.InMailbox)
		}
		result.Operations = append(formerNameOperations(d), Operation{Decision: decision, Copy: d.Destination, Desired: result.Desired})
	case decision.Cause == BeingDeleted:
		// The last status of a finished object is its result.
		result.ReturnStatus = d.Destination.Observed.Finished
	case decision.Cause == Finished:
		result.ReturnStatus, result.FinishedMark = d.hasResultOf(result.Desired), p.finishedMark(result.InMailbox)
	case decision.Action == VerifyAbsence:
		result.Wants.VerifyAbsence = Deselected
	case decision.Action != None:
		result.Operations = []Operation{d.operation(decision, result.Desired, result.InMailbox.GetResourceVersion())}
		if decision.Action == Create {
			result.RequeueAfter = CacheTimeout
		}
	}
}

// operation returns the write to the destination, for a version of the source.
func (d *DownSnapshot) operation(decision Decision, desired *transform.Desired, version string) Operation {
	operation := Operation{
		Decision: decision, Copy: d.Destination, Desired: desired,
		Repair: decision.Cause == Drifted || decision.Cause == Removed || d.isNonConverging(decision),
	}
	if d.Spec.Mutation.UsesOther() {
		operation.WrittenFor = version
	}
	if decision.Action == Delete {
		operation.Propagation = d.propagation(d.Destination)
	}
	return operation
}

// propagation returns the propagation policy for a copy's deletion: the source's policy if the copy is from the deleted object,
// and not from a predecessor of the same name.
func (d *DownSnapshot) propagation(existing Copy) metav1.DeletionPropagation {
	if d.Deletion != nil && d.State != Deselected && existing.Observed.Mark.Source.UID == d.Deletion.UID {
		return d.Deletion.Propagation
	}
	return metav1.DeletePropagationBackground
}

// statusFor returns the status that the mailbox object gets from its copy, or from the last version of a removed copy.
func (p Planner) statusFor(d *DownSnapshot, desired *transform.Desired) StatusReturn {
	status := StatusReturn{Selection: d.Selection, SyncTarget: d.Spec.Inputs.SyncTarget}
	switch observed := d.Destination.Observed; {
	case !d.Selection.StatusReturn, !p.Resource.StatusReturn:
	case observed == nil && d.Removed != nil:
		status.OnTarget, status.Applied = d.Removed.Finished, d.Removed.Mark.Hash == desired.Mark.Hash
	case observed == nil, Supersedes(desired, observed):
		// The status is another object's.
	default:
		status.OnTarget, status.Applied = d.Destination.Object, observed.Mark.Hash == desired.Mark.Hash
	}
	return status
}

// decideMissing decides about an object that has no copy on the target, but may have had one.
func (p Planner) decideMissing(source *unstructured.Unstructured, d *DownSnapshot, desired *transform.Desired) Decision {
	switch {
	case p.isMarkedFinished(source), d.hasResultOf(desired):
		return Decision{Action: None, Cause: Finished}
	case d.Removed.isOf(desired, d.Spec.Mutation.UsesOther()):
		return Decision{Action: Create, Cause: Removed}
	default:
		return Decision{Action: Create, Cause: Missing}
	}
}

// hasResultOf reports whether the removed copy has the result of a run of the desired object.
func (d *DownSnapshot) hasResultOf(desired *transform.Desired) bool {
	return d.Removed.isOf(desired, d.Spec.Mutation.UsesOther()) && d.Removed.Finished != nil
}

// isMarkedFinished reports whether a mailbox object has a valid annotation that this run of it has finished.
func (p Planner) isMarkedFinished(source *unstructured.Unstructured) bool {
	text, _ := Annotation(source, ownership.FinishedAnnotation)
	if text == "" {
		return false
	}
	run, ok := p.Down.RunOf(source)
	return ok && p.Down.Owner.HasFinished(text, run)
}

// finishedMark returns the annotation for a mailbox object that has run to completion; empty if the object has it, or its kind does
// not run to completion.
func (p Planner) finishedMark(source *unstructured.Unstructured) string {
	run, ok := p.Down.RunOf(source)
	if !ok || p.isMarkedFinished(source) {
		return ""
	}
	return p.Down.Owner.FinishedValue(run)
}

// isAboutToExpire reports whether a copy has run to completion, and its cluster deletes it after some time. The hub may not be
// running then, so it annotates the mailbox object before.
func isAboutToExpire(source *unstructured.Unstructured, observed *TargetObject) bool {
	if !observed.Finished {
		return false
	}
	_, expires, _ := unstructured.NestedFieldNoCopy(source.Object, "spec", "ttlSecondsAfterFinished")
	return expires
}

// desiredOnTarget returns the desired object on the target for a mailbox object, given the observed copy.
func (p Planner) desiredOnTarget(source *unstructured.Unstructured, d *DownSnapshot) (*transform.Desired, error) {
	observed := d.Destination.Observed
	switch {
	case observed == nil:
		return p.Down.Desired(source, d.Spec)
	case p.HasContent == nil:
		return p.Down.DesiredForMark(source, d.Spec, observed.Mark, func(before *transform.Desired) bool { return before.Mark.Hash == observed.Mark.Hash })
	}
	desired, err := p.Down.DesiredForMark(source, d.Spec, observed.Mark, p.HasContent)
	if err != nil {
		return nil, err
	}
	return desired.AsMarked(observed.Mark), nil
}

// isNonConverging reports whether the copy is to be changed although the source has not changed since the last write: a mutation
// that reads the copy may never converge.
func (d *DownSnapshot) isNonConverging(decision Decision) bool {
	return d.WrittenBefore && d.Spec.Mutation.UsesOther() && decision.Action == Apply && decision.Cause == Changed
}

// formerNameOperations removes the copies under other names and kinds, now that the object is in sync at its destination.
func formerNameOperations(d *DownSnapshot) []Operation {
	var operations []Operation
	for _, existing := range d.Copies {
		if existing.Ref() != d.Destination.Ref() {
			operations = append(operations, Operation{Decision: DecideFormerName(existing.Observed), Copy: existing, Propagation: metav1.DeletePropagationBackground})
		}
	}
	return operations
}

// planAbsent decides about the copies of an object that does not belong on the target. isUpsynced is true if an object of the target
// is, or was, upsynced under the key.
func planAbsent(result *DownPlan, d *DownSnapshot, isUpsynced bool) {
	source := SourceState{State: d.State, AbsenceVerified: d.AbsenceVerified}
	former := len(d.Copies) > 0
	for _, existing := range d.Copies {
		decision, err := DecideDown(source, existing.Observed, nil)
		if err != nil {
			result.Err = err
			return
		}
		result.Decision = decision
		former = former && decision.IsKept()
		switch {
		case d.Held && (decision.Action == VerifyAbsence || decision.isHeld()):
			result.Err = &HeldError{Copy: existing.Ref(), Removal: true}
			continue
		case decision.Action == VerifyAbsence:
			result.Wants.VerifyAbsence = d.State
			continue
		}
		result.Operations = append(result.Operations, Operation{Decision: decision, Copy: existing, Propagation: d.propagation(existing)})
	}
	if (former || len(d.Copies) == 0) && !d.Held {
		planEnd(result, d, former, isUpsynced)
	}
}

// planEnd completes the plan when the target has no copies, or only copies that are kept.
func planEnd(result *DownPlan, d *DownSnapshot, former, isUpsynced bool) {
	if d.MayClaim && !d.AbsenceVerified {
		// Removing the claims deletes related objects, so it needs a verified absence too.
		result.Wants.VerifyAbsence = d.State
		return
	}
	if !isUpsynced {
		result.Claims.Action = RemoveClaims
	}
	if former || d.AllCopiesCached {
		result.Finalizer = RemoveFinalizer
	}
}

// deferredPaths returns the paths of the deferred fields.
func deferredPaths(desired *transform.Desired) (paths []string) {
	for _, field := range desired.DeferredFields {
		paths = append(paths, field.Path.String())
	}
	return paths
}
