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

import "github.com/synchub-dev/synchub/controllers/plan/transform"

// PlanUp decides about the mailbox object that an object of the target is upsynced as.
func (p Planner) PlanUp(s *Snapshot) Plan {
	u := s.Up
	result := Plan{}
	source := SourceState{State: u.State, AbsenceVerified: u.AbsenceVerified}
	if result.Err = u.Err; result.Err != nil {
		return result
	}
	if u.State == Selected {
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

// isRemoval reports whether the mailbox object is missing because somebody else removed it.
func (u *UpSnapshot) isRemoval(decision Decision, desired *transform.Desired) bool {
	return decision.Cause == Missing && u.Removed.isOf(desired, u.Spec.Mutation.UsesOther())
}

// isNonConverging reports whether the mailbox object is to be changed although its source is as it was at the last write: a mutation
// that reads the mailbox object may never come to an end.
func (u *UpSnapshot) isNonConverging(decision Decision) bool {
	return u.WrittenBefore && decision.Action == Update && decision.Cause == Changed
}

// desiredInMailbox returns the desired object in the mailbox for the object of the target.
func (p Planner) desiredInMailbox(u *UpSnapshot, s *Snapshot, result *Plan) (SourceState, error) {
	desired, err := p.Up.Desired(u.Object, u.API.GroupResource(), u.Spec)
	if err != nil {
		return SourceState{}, err
	}
	result.PrunedPaths = desired.PrunedPaths
	if u.Denied != nil {
		return SourceState{}, u.Denied
	}
	if u.Name != s.Key {
		// Another conversion is in force by now; the upsync cache is being replaced.
		return SourceState{State: Unknown}, nil
	}
	return SourceState{State: Selected, Desired: desired}, nil
}
