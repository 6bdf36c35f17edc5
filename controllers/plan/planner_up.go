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

	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// UpPlan is the decision of one pass about a mailbox object that is, or was, upsynced.
type UpPlan struct {
	Decision Decision
	// Err is why the object fails. If it is set, the pass writes nothing to the mailbox.
	Err   error
	Wants Wants
	// Confirm is true if the plan needs the target's response about [UpSnapshot.Missing]. The snapshot is planned again with the
	// response.
	Confirm bool
	// AbsenceToVerify is the absence that kcp must confirm; empty for none.
	AbsenceToVerify State
	Desired         *transform.Desired
	// RequeueAfter is the delay until the next pass if no event comes; zero for none.
	RequeueAfter time.Duration
	// Repair is true if another writer may undo the write again. Such writes back off.
	Repair bool
	// PrunedPaths are the fields of the source that the schema of the mailbox does not have.
	PrunedPaths []string
}

// PlanUp decides about the mailbox object that an object of the target is upsynced as.
func (p Planner) PlanUp(s *Snapshot) UpPlan {
	if s.Up.Missing == nil {
		return p.planUp(s.Up, s, SourceState{State: s.Up.State, AbsenceVerified: s.Up.AbsenceVerified}, UpPlan{Wants: s.Up.Wants})
	}
	source, result := decideMissing(s.Up.Missing)
	if result.Err != nil || result.Confirm {
		return result
	}
	return p.planUp(s.Up, s, source, result)
}

func (p Planner) planUp(u *UpSnapshot, s *Snapshot, source SourceState, result UpPlan) UpPlan {
	if source.State == Selected {
		source, result.Err = p.desiredInMailbox(u, s, &result)
		if result.Err != nil {
			return result
		}
	}
	if u.Incomplete && source.Desired != nil {
		result.Decision, result.Err = Decision{Action: None, Cause: Cause(Unknown)}, u.IncompleteErr
		return result
	}
	observed := p.Resource.NewMailboxObject(s.InMailbox, u.Mark, source.Desired)
	if observed != nil && observed.Mark.Adopted && source.Desired != nil {
		source.Desired = source.Desired.AsAdopted()
	}
	result.Desired = source.Desired
	result.Decision, result.Err = DecideUp(source, observed, u.DroppedPaths)
	if u.isRemoval(result.Decision, source.Desired) {
		result.Decision.Cause = Removed
	}
	switch {
	case result.Err != nil:
	case result.Decision.Action == VerifyAbsence:
		result.AbsenceToVerify = Deselected
	case result.Decision.Action == Create:
		result.RequeueAfter = CacheTimeout
	}
	result.Repair = result.Decision.Cause == Drifted || result.Decision.Cause == Removed || u.isNonConverging(result.Decision)
	return result
}

// isRemoval reports whether the mailbox object is missing because another client removed it.
func (u *UpSnapshot) isRemoval(decision Decision, desired *transform.Desired) bool {
	return decision.Cause == Missing && u.Removed.isOf(desired, u.Spec.Mutation.UsesOther())
}

// isNonConverging reports whether the mailbox object is to be changed although its source has not changed since the last write: a
// mutation that reads the mailbox object may never converge.
func (u *UpSnapshot) isNonConverging(decision Decision) bool {
	return u.WrittenBefore && decision.Action == Update && decision.Cause == Changed
}

// desiredInMailbox returns the desired object in the mailbox for the object of the target.
func (p Planner) desiredInMailbox(u *UpSnapshot, s *Snapshot, result *UpPlan) (SourceState, error) {
	desired, err := p.Up.Desired(u.Object, u.API.GroupResource(), u.Spec)
	if err != nil {
		return SourceState{}, err
	}
	result.PrunedPaths = desired.PrunedPaths
	if u.Denied != nil {
		return SourceState{}, u.Denied
	}
	if u.Name != s.Key {
		// The conversion has changed, and the upsync cache is being replaced.
		return SourceState{State: Unknown}, nil
	}
	return SourceState{State: Selected, Desired: desired}, nil
}
