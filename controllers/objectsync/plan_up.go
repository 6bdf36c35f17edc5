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
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
)

// planUp decides about the mailbox object that an object of the target is upsynced as.
func (p planner) planUp(u *upSnapshot, s *snapshot) syncPlan {
	result := syncPlan{up: true}
	source := plan.Source{State: u.state, AbsenceVerified: u.absenceVerified}
	if result.err = u.err; result.err != nil {
		return result
	}
	if u.state == plan.InSync {
		source, result.err = p.desiredInMailbox(u, s, &result)
		if result.err != nil {
			return result
		}
	}
	if u.incomplete != nil && source.Desired != nil {
		result.decision, result.err = plan.Decision{Action: plan.None, Cause: plan.Unknown}, limitErrorOnly(u.incomplete)
		return result
	}
	held := p.observeInMailbox(s.source, source.Desired)
	if held != nil && held.Mark.Adopted && source.Desired != nil {
		source.Desired = source.Desired.AsAdopted()
	}
	result.desired = source.Desired
	result.decision, result.err = plan.Up(source, held, u.tolerated)
	switch {
	case result.err != nil:
	case result.decision.Action == plan.VerifyAbsence:
		result.verifyAbsence = plan.Deselected
	case result.decision.Cause == plan.InSync:
		result.returnStatus, result.claims = true, setClaims
	case result.decision.Action == plan.Create:
		result.requeueAfter = expectationTimeout
	}
	result.repair = result.decision.Cause == plan.Drifted || u.isNonConverging(result.decision)
	return result
}

// isNonConverging reports whether the mailbox object is to be changed although its source is as it was at the last write: a mutation
// that reads the mailbox object may never come to an end.
func (u *upSnapshot) isNonConverging(decision plan.Decision) bool {
	return u.writtenBefore && decision.Action == plan.Update && decision.Cause == plan.Changed
}

// desiredInMailbox returns what the mailbox must hold for the object of the target.
func (p planner) desiredInMailbox(u *upSnapshot, s *snapshot, result *syncPlan) (plan.Source, error) {
	desired, err := p.up.Desired(u.object, u.target.GroupResource(), u.spec)
	if err != nil {
		return plan.Source{}, err
	}
	result.droppedFields = desired.DroppedPaths
	if u.denied != nil {
		return plan.Source{}, u.denied
	}
	if keyOf(desired.Object) != s.key {
		// Another conversion is in force by now; the upsync cache is being replaced.
		return plan.Source{State: plan.Unknown}, nil
	}
	return plan.Source{State: plan.InSync, Desired: desired}, nil
}

// limitErrorOnly returns why an object is not cached whole; nil if it is only being fetched.
func limitErrorOnly(incomplete error) error {
	if isLimitError(incomplete) {
		return incomplete
	}
	return nil
}
