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
	"fmt"
	"time"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// newerThanSourceRetry is the delay until an object with a newer copy is planned again if no event comes.
const newerThanSourceRetry = 5 * time.Second

// HeldError means that a copy is neither removed nor changed, because kcp went back to an earlier state.
type HeldError struct {
	Copy Ref
	// Removal is true if the copy would be removed, and false if it would be overwritten.
	Removal bool
}

func (e *HeldError) Error() string {
	text := "kcp went back to an earlier state, and there the object differs: its copy is not overwritten"
	if e.Removal {
		text = "kcp went back to an earlier state, and there the object is not, or is not selected: its copy is not removed"
	}
	return fmt.Sprintf("%s until an operator confirms the restore (kubectl synchub confirm-restore)", text)
}

// hold removes the operations from a plan that must wait while kcp may have gone back to an earlier state: removals and
// overwrites. Creations and repairs of drift continue.
func (r *DownPlan) hold() {
	var others []Operation
	for _, operation := range r.Operations {
		if operation.Decision.isHeld() {
			r.Err = &HeldError{Copy: operation.Copy.Ref(), Removal: operation.Desired == nil}
			continue
		}
		others = append(others, operation)
	}
	r.Operations = others
	if r.Err != nil {
		r.Finalizer = 0
	}
}

// isHeld reports whether a decision removes a copy, or changes its content to the source's current content.
func (d Decision) isHeld() bool {
	switch d.Action {
	case Delete, Release, UpdateMark:
		return true
	case Apply:
		return d.Cause == Changed || d.Cause == Restored
	default:
		return false
	}
}

// isNewerThanSource reports whether a copy was written for a later version of the source than the one in the mailbox's cache, and
// no known loss of kcp explains that. A copy of another source with the same name on the target does not count.
func (d *DownSnapshot) isNewerThanSource(desired ownership.Mark) bool {
	observed := d.Destination.Observed
	if observed == nil || observed.Mark.SourceVersion <= d.Lost || observed.Mark.Mailbox != desired.Mailbox || !SameSource(observed.Mark, desired) {
		return false
	}
	return desired.SourceVersion > 0 && desired.SourceVersion < observed.Mark.SourceVersion
}

// latestSourceVersion returns the latest version of the source for which a copy was written; zero if that is unknown.
func (d *DownSnapshot) latestSourceVersion(mailbox string) (latest uint64) {
	for _, existing := range d.Copies {
		if existing.Observed.Mark.Mailbox == mailbox {
			latest = max(latest, existing.Observed.Mark.SourceVersion)
		}
	}
	return latest
}
