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
)

// mustWait reports whether a pass would write new content to a destination that no placement's rollout admits
// yet.
func (w *workspace) mustWait(key pairKey, s *pairSnapshot, planned plan.UpPlan) bool {
	if !s.desired || planned.Desired == nil {
		return false
	}
	switch planned.Decision.Action {
	case plan.Create, plan.Conflict:
	case plan.Delete:
		if planned.Decision.Cause != plan.Superseded {
			return false
		}
	case plan.Update:
		if s.Up.Mark != nil && s.Up.Mark.Hash == planned.Desired.Mark.Hash {
			// The content stays: somebody changed the copy, or only other parts of the mark differ.
			return false
		}
	default:
		return false
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	entry := w.objects[key.objectKey]
	return entry != nil && !entry.isAdmitted(key.mailbox)
}

// isAdmitted reports whether a placement admits the object to a mailbox. One of several placements is enough.
// It requires the lock.
func (o *object) isAdmitted(mailbox logicalcluster.Name) bool {
	return slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool {
		destination, ok := one.mailboxes[mailbox]
		return ok && (one.rollout == nil || one.Rollout.AdmitsAll() || one.rollout.isAdmitted(destination.UID))
	})
}

// recordWaiting records that a pair waits for the rollout. An existing copy stays as it is.
func (w *workspace) recordWaiting(key pairKey) {
	w.lock.Lock()
	defer w.lock.Unlock()
	entry, found := w.pairAt(key)
	if found == nil {
		return
	}
	if found.placed || !found.waiting {
		w.reportRequests.Publish(w.cluster)
		w.enqueueWantedStatus(key.objectKey, entry)
	}
	if found.failure != nil {
		w.names.set(key, w.cluster, false)
	}
	w.change(entry, key.mailbox, func() { found.setResult(false, true, nil, nil) })
	w.enqueueWithdrawals(key.objectKey, entry, key.mailbox)
}
