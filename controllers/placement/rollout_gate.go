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

package placement

import (
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// mustWait reports whether a pass would write new content to a destination that no placement's rollout admits
// yet.
func (w *workspace) mustWait(key pairKey, s *pairSnapshot, planned plan.UpPlan) bool {
	if !s.desired || !bringsNewContent(s.Up.Mark, planned) {
		return false
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	entry := w.objects[key.objectKey]
	return entry != nil && !entry.isAdmitted(key.mailbox)
}

// bringsNewContent reports whether a plan brings new content to a destination. mark is the mark of the copy; nil if there is none.
func bringsNewContent(mark *ownership.Mark, planned plan.UpPlan) bool {
	switch action := planned.Decision.Action; {
	case planned.Desired == nil:
		return false
	case action == plan.Update:
		// With the same content, somebody changed the copy, or only other parts of the mark differ.
		return mark == nil || mark.Hash != planned.Desired.Mark.Hash
	case action == plan.Delete:
		return planned.Decision.Cause == plan.Superseded
	default:
		return action == plan.Create || action == plan.Conflict
	}
}

// isAdmitted reports whether a placement admits the object to a mailbox. One of several placements is enough.
// It requires the lock.
func (o *object) isAdmitted(mailbox logicalcluster.Name) bool {
	return slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool {
		destination, ok := one.mailboxes[mailbox]
		return ok && (one.rollout == nil || one.Rollout.AdmitsAll() || one.rollout.isAdmitted(destination.UID))
	})
}
