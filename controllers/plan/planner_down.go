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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// DownPlan is the decision of one pass about a mailbox object and its copies.
type DownPlan struct {
	Decision Decision
	// Err is why the object fails. If it is set, the pass writes nothing to the target.
	Err   error
	Wants Wants
	// Finalizer is the change of the hub's finalizer on the mailbox object.
	Finalizer FinalizerPlan
	// Claims is the change of the object's claims, since the object may be a primary.
	Claims ClaimsPlan
	// AbsenceToVerify is the absence that kcp must confirm: that the mailbox object is really gone or deselected. Empty for none.
	AbsenceToVerify State
	// VersionToVerify is a version of the source to verify: kcp must have this version or a later one. Zero for none.
	VersionToVerify uint64
	// Operations are the writes to the target in order. The pass tries all of them, even after a failure.
	Operations []Operation
	// ReturnStatus writes the status of the target object to the mailbox object.
	ReturnStatus bool
	// MarkFinished annotates the mailbox object, because it has run to completion.
	MarkFinished bool
	Desired      *transform.Desired
	// RequeueAfter is the delay until the next pass if no event comes; zero for none.
	RequeueAfter time.Duration
	// Deferred are fields that stay unchanged on the target until the source changes.
	Deferred []string
}

// Operation is one decision about one target object. It usually takes one request. It takes more if the namespace is missing,
// fields must be relinquished, or the target refuses the request.
type Operation struct {
	Decision Decision
	Copy     Copy
	Desired  *transform.Desired
	// Propagation is the propagation policy for the deletion of a copy.
	Propagation metav1.DeletionPropagation
	// Repair is true if another writer may undo the write again. Such writes back off.
	Repair bool
}

// FinalizerPlan is a change of the hub's finalizer on a mailbox object.
type FinalizerPlan int

// The zero value does not change the finalizer.
const (
	_ FinalizerPlan = iota
	// ConfigureFinalizer sets or removes the finalizer as the PublishedResource requires.
	ConfigureFinalizer
	// RemoveFinalizer removes the finalizer.
	RemoveFinalizer
)

// ClaimsPlan is a change of a primary's claims on related objects.
type ClaimsPlan int

const (
	// KeepClaims does not change the claims.
	KeepClaims ClaimsPlan = iota
	// MarkProcessed does not change the claims, and marks the primary as processed.
	MarkProcessed
	// MarkClaimsUnresolved keeps the claims until the primary can be resolved.
	MarkClaimsUnresolved
	// SetClaims resolves the relations of the primary.
	SetClaims
	// RemoveClaims removes the claims.
	RemoveClaims
)

// Planner plans a pass. It is pure: equal snapshots give equal plans.
type Planner struct {
	Resource Resource
	Down     transform.Down
	Up       transform.Up
	// HasContent is set by `kubectl synchub explain`, which does not have the key of the hashes in marks. It reports whether the
	// copy has the content of an object that was desired before. The planner then assumes that copies have the desired content,
	// and the caller compares them.
	HasContent func(before *transform.Desired) bool
}

// NewPlanner returns a planner for a resource in the mailbox of a SyncTarget.
func NewPlanner(resource Resource, owner ownership.Owner, hasher ownership.Hasher, mailbox logicalcluster.Name, syncTarget string) Planner {
	return Planner{
		Resource: resource,
		Down: transform.Down{
			Owner: owner, Hasher: hasher, Mailbox: mailbox.String(), SyncTarget: syncTarget,
			Resource: resource.GroupResource(), Namespaced: resource.Namespaced,
		},
		Up: transform.Up{
			Owner: owner, Hasher: hasher, Mailbox: mailbox.String(), SyncTarget: syncTarget,
			Resource: resource.GroupResource(), Namespaced: resource.Namespaced, Version: resource.Version, Kind: resource.Kind,
		},
	}
}

// PlanDown decides about a mailbox object and its copies on the target.
func (p Planner) PlanDown(s *Snapshot) DownPlan {
	result := p.planDown(s.Down, s)
	result.Wants = s.Down.Wants
	return result
}

func (p Planner) planDown(d *DownSnapshot, s *Snapshot) DownPlan {
	result := DownPlan{Decision: Decision{Action: None, Cause: Cause(d.State)}}
	switch {
	case d.Err != nil:
		return DownPlan{Err: d.Err, Claims: MarkClaimsUnresolved}
	case d.State == Selected:
		return p.planPresent(d, s)
	case d.State == Suspended:
		result.Claims = SetClaims
		if d.DestinationErr != nil {
			result.Claims = MarkClaimsUnresolved
		}
		return result
	case d.State == Unknown:
		result.Claims = MarkProcessed
		if d.Selection.Unresolved != nil {
			result.Claims = MarkClaimsUnresolved
		}
		return result
	default:
		return p.planAbsent(d, s)
	}
}

// planPresent decides about an object that belongs on the target.
func (p Planner) planPresent(d *DownSnapshot, s *Snapshot) DownPlan {
	result := DownPlan{Finalizer: ConfigureFinalizer, Claims: SetClaims, RequeueAfter: d.Destination.requeueAfter()}
	switch {
	case d.DestinationErr != nil:
		result.Claims, result.Err = MarkClaimsUnresolved, d.DestinationErr
		return result
	case d.Excluded:
		result.Claims, result.Decision = RemoveClaims, Decision{Action: None, Cause: ExcludedByUpsync}
		return result
	}
	result.Desired, result.Err = p.desiredOnTarget(d, s)
	if result.Err != nil {
		return result
	}
	if !d.Held && d.isNewerThanSource(s.InMailbox, result.Desired.Mark) {
		result.Decision, result.VersionToVerify = Decision{Action: None, Cause: NewerThanSource}, d.Destination.Observed.Mark.SourceVersion
		result.RequeueAfter = newerThanSourceRetry
		return result
	}
	source := SourceState{State: Selected, Desired: result.Desired, AbsenceVerified: d.AbsenceVerified, Rebound: d.Rebound}
	result.Decision, result.Err = DecideDown(source, d.Destination.Observed, d.DroppedPaths)
	if result.Decision.Cause == Missing {
		result.Decision = p.decideMissing(d, s, result.Desired)
	}
	switch {
	case result.Err != nil:
	case result.Decision.Cause == InSync:
		result.ReturnStatus, result.Deferred = true, deferredPaths(result.Desired)
		result.MarkFinished = p.isAboutToExpire(d, s)
		result.Operations = p.formerNameOperations(d)
	case result.Decision.Cause == BeingDeleted:
		// The last status of a finished object is its result.
		result.ReturnStatus = d.Destination.Observed.Finished
	case result.Decision.Cause == Finished:
		result.ReturnStatus, result.MarkFinished = d.hasResultOf(result.Desired), !p.isMarkedFinished(s)
	case result.Decision.Action == VerifyAbsence:
		result.AbsenceToVerify = Deselected
	case result.Decision.Action != None:
		result.Operations = []Operation{p.operation(d, result.Decision, result.Desired)}
		if result.Decision.Action == Create {
			result.RequeueAfter = CacheTimeout
		}
	}
	if d.Held {
		result.hold()
	}
	return result
}

// operation returns the write to the destination.
func (p Planner) operation(d *DownSnapshot, decision Decision, desired *transform.Desired) Operation {
	operation := Operation{
		Decision: decision, Copy: d.Destination, Desired: desired,
		Repair: decision.Cause == Drifted || decision.Cause == Removed || d.isNonConverging(decision),
	}
	if decision.Action == Delete {
		operation.Propagation = d.propagation(d.Destination)
	}
	return operation
}

// decideMissing decides about an object that has no copy on the target, but may have had one.
func (p Planner) decideMissing(d *DownSnapshot, s *Snapshot, desired *transform.Desired) Decision {
	switch {
	case p.isMarkedFinished(s), d.hasResultOf(desired):
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

// isMarkedFinished reports whether the mailbox object has a valid annotation that this run of it has finished.
func (p Planner) isMarkedFinished(s *Snapshot) bool {
	text, _ := Annotation(s.InMailbox, ownership.FinishedAnnotation)
	if text == "" {
		return false
	}
	run, ok := p.Down.RunOf(s.InMailbox)
	return ok && p.Down.Owner.HasFinished(text, run)
}

// isAboutToExpire reports whether the copy has run to completion, and its cluster deletes it after some time. The hub may not be
// running then, so it annotates the mailbox object before.
func (p Planner) isAboutToExpire(d *DownSnapshot, s *Snapshot) bool {
	if !d.Destination.Observed.Finished {
		return false
	}
	_, expires, _ := unstructured.NestedFieldNoCopy(s.InMailbox.Object, "spec", "ttlSecondsAfterFinished")
	return expires && !p.isMarkedFinished(s)
}

// desiredOnTarget returns the desired object on the target for the mailbox object, given the observed copy.
func (p Planner) desiredOnTarget(d *DownSnapshot, s *Snapshot) (*transform.Desired, error) {
	observed := d.Destination.Observed
	switch {
	case observed == nil:
		return p.Down.Desired(s.InMailbox, d.Spec)
	case p.HasContent == nil:
		return p.Down.DesiredForMark(s.InMailbox, d.Spec, observed.Mark, func(before *transform.Desired) bool { return before.Mark.Hash == observed.Mark.Hash })
	}
	desired, err := p.Down.DesiredForMark(s.InMailbox, d.Spec, observed.Mark, p.HasContent)
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
func (p Planner) formerNameOperations(d *DownSnapshot) []Operation {
	var operations []Operation
	for _, existing := range d.Copies {
		if existing.Ref() != d.Destination.Ref() {
			operations = append(operations, Operation{Decision: DecideFormerName(existing.Observed), Copy: existing, Propagation: metav1.DeletePropagationBackground})
		}
	}
	return operations
}

// planAbsent decides about the copies of an object that does not belong on the target.
func (p Planner) planAbsent(d *DownSnapshot, s *Snapshot) DownPlan {
	result := DownPlan{Decision: Decision{Action: None, Cause: Cause(d.State)}}
	source := SourceState{State: d.State, AbsenceVerified: d.AbsenceVerified}
	former := len(d.Copies) > 0
	for _, existing := range d.Copies {
		decision, err := DecideDown(source, existing.Observed, nil)
		if err != nil {
			result.Err = err
			return result
		}
		result.Decision = decision
		former = former && decision.IsKept()
		switch {
		case d.Held && (decision.Action == VerifyAbsence || decision.isHeld()):
			result.Err = &HeldError{Copy: existing.Ref(), Removal: true}
			continue
		case decision.Action == VerifyAbsence:
			result.AbsenceToVerify = d.State
			continue
		}
		result.Operations = append(result.Operations, Operation{Decision: decision, Copy: existing, Propagation: d.propagation(existing)})
	}
	if (former || len(d.Copies) == 0) && !d.Held {
		p.planEnd(&result, d, s, former)
	}
	return result
}

// planEnd completes the plan when the target has no copies, or only copies that are kept.
func (p Planner) planEnd(result *DownPlan, d *DownSnapshot, s *Snapshot, former bool) {
	if d.MayClaim && !d.AbsenceVerified {
		// Removing the claims deletes related objects, so it needs a verified absence too.
		result.AbsenceToVerify = d.State
		return
	}
	if s.Up == nil {
		result.Claims = RemoveClaims
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
