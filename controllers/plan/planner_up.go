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
func (p Planner) PlanUp(s *Snapshot) UpPlan {
	u := s.Up
	source, result := SourceState{State: u.State, AbsenceVerified: u.AbsenceVerified}, UpPlan{Plan: Plan{Wants: u.Wants}}
	if u.Missing != nil {
		source, result = decideMissing(u.Missing)
	}
	result.Key, result.InMailbox, result.Configs = s.Key, s.InMailbox, u.Selection.Configs
	if result.Err == nil && !result.Confirm {
		p.planUp(&result, u, source)
	}
	result.Excluded = u.Object != nil && result.Decision.isExcluded()
	if result.Decision.Cause != Removed {
		result.ForgetRemoval = u.Removed
	}
	if result.Decision.Cause == InSync {
		result.Conflicting = u.Conflicting
		result.Claims = p.setClaims(claimant{
			key: s.Key, inMailbox: s.InMailbox, onTarget: u.Object, namespace: u.Object.GetNamespace(), selection: u.Selection, matcher: s.Matcher,
		})
	}
	return result
}

func (p Planner) planUp(result *UpPlan, u *UpSnapshot, source SourceState) {
	if source.State == Selected {
		source, result.Err = p.desiredInMailbox(u, result)
		if result.Err != nil {
			return
		}
	}
	if u.Incomplete && source.Desired != nil {
		result.Decision, result.Err = Decision{Action: None, Cause: Cause(Unknown)}, u.IncompleteErr
		return
	}
	observed := p.Resource.NewMailboxObject(result.InMailbox, u.Mark, source.Desired)
	if observed != nil && source.Desired != nil {
		result.ReplaceIfImmutable = observed.isReplacedBy(source.Desired)
		if observed.Mark.Adopted {
			source.Desired = source.Desired.AsAdopted()
		}
	}
	result.Desired = source.Desired
	result.Decision, result.Err = DecideUp(source, observed, u.DroppedPaths)
	if u.isRemoval(result.Decision, source.Desired) {
		result.Decision.Cause = Removed
	}
	result.followUp(u)
	if !p.Resource.Native {
		// kcp owns the status of a native object.
		result.Status = StatusReturn{OnTarget: u.Object, Applied: true, Selection: u.Selection, SyncTarget: u.Spec.Inputs.SyncTarget}
	}
	result.Repair = result.Decision.Cause == Drifted || result.Decision.Cause == Removed || u.isNonConverging(result.Decision)
}

// followUp adds what the decision needs after its write.
func (r *UpPlan) followUp(u *UpSnapshot) {
	switch {
	case r.Err != nil:
	case r.Decision.Action == VerifyAbsence:
		r.Wants.VerifyAbsence = Deselected
	case r.Decision.Action == Create:
		r.RequeueAfter = CacheTimeout
	case r.Decision.Action == Update && u.Spec.Mutation.UsesOther():
		r.WrittenFor = u.Object.GetResourceVersion()
	}
}

// isRemoval reports whether the mailbox object is missing because another client removed it.
func (u *UpSnapshot) isRemoval(decision Decision, desired *transform.Desired) bool {
	return decision.Cause == Missing && u.Removed.isOf(desired, u.Spec.Mutation.UsesOther())
}

// isNonConverging reports whether the mailbox object is to be changed although its source has not changed since the last write: a
// mutation that reads the mailbox object may never converge.
func (u *UpSnapshot) isNonConverging(decision Decision) bool {
	return u.WrittenBefore && u.Spec.Mutation.UsesOther() && decision.Action == Update && decision.Cause == Changed
}

// desiredInMailbox returns the desired object in the mailbox for the object of the target.
func (p Planner) desiredInMailbox(u *UpSnapshot, result *UpPlan) (SourceState, error) {
	desired, err := p.Up.Desired(u.Object, u.API.GroupResource(), u.Spec)
	if err != nil {
		return SourceState{}, err
	}
	result.PrunedPaths = desired.PrunedPaths
	if u.Denied != nil {
		return SourceState{}, u.Denied
	}
	if u.Name != result.Key {
		// The conversion has changed, and the upsync cache is being replaced.
		return SourceState{State: Unknown}, nil
	}
	return SourceState{State: Selected, Desired: desired}, nil
}
