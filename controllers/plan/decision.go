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
	"slices"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// Action is a write to one object on the other side, or none.
type Action string

const (
	// None does nothing.
	None Action = "None"
	// Create applies the desired object if no object has its name.
	Create Action = "Create"
	// Apply applies the desired object to the observed one, with its UID as a precondition.
	Apply Action = "Apply"
	// Delete deletes the observed object, with its UID as a precondition, and in a workspace its resourceVersion too.
	Delete Action = "Delete"
	// UpdateMark writes only the marks on the observed object, with its UID as a precondition.
	UpdateMark Action = "UpdateMark"
	// Release removes the marks from the observed object, with the preconditions of Delete, and leaves the object.
	Release Action = "Release"
	// Update replaces the content of the mailbox object, unless it has changed since it was observed.
	Update Action = "Update"
	// Conflict leaves the object alone and reports that its name is taken.
	Conflict Action = "Conflict"
	// Report leaves the copy alone, and reports the fields with other values.
	Report Action = "Report"
	// VerifyAbsence asks kcp whether the source is really gone or deselected. The key is planned again with the result.
	VerifyAbsence Action = "VerifyAbsence"
)

// Writes reports whether the action writes to the other side.
func (a Action) Writes() bool {
	switch a {
	case Create, Apply, Delete, UpdateMark, Release, Update:
		return true
	default:
		return false
	}
}

// Cause is the reason for an action, also for None: one of the following constants, or the [State] of the source.
type Cause string

const (
	// Missing: the other side has no copy.
	Missing Cause = "Missing"
	// Changed: the source, or a rule that transforms it, has changed.
	Changed Cause = "Changed"
	// Drifted: somebody else changed fields that the hub applied.
	Drifted Cause = "Drifted"
	// InSync: the other side has the desired object.
	InSync Cause = "InSync"
	// BeingDeleted: the copy is being deleted. An event follows when it is gone.
	BeingDeleted Cause = "BeingDeleted"
	// NameTaken: the object of this name is from another source, or is not the hub's.
	NameTaken Cause = "NameTaken"
	// ExcludedByUpsync: the object is selected for upsync too, so it is not downsynced.
	ExcludedByUpsync Cause = "ExcludedByUpsync"
	// NewerThanSource: the copy was written for a later version of the source than the one in the mailbox's cache. The cache may
	// lag behind, or kcp went back to an earlier state.
	NewerThanSource Cause = "NewerThanSource"
	// Removed: another client removed the hub's copy from the target or the mailbox.
	Removed Cause = "Removed"
	// Finished: the object has run to completion, and its copy is gone. It is not run again.
	Finished Cause = "Finished"
	// Superseded: the copy's source was deleted, and another object was created under the same name. The new object gets its own
	// copy.
	Superseded Cause = "Superseded"
	// Restored: the object was restored from a backup of the hub's copy, not written by the hub.
	Restored Cause = "Restored"
	// FormerMailbox: the source was in a former mailbox of the SyncTarget. The copy is kept until an operator decides.
	FormerMailbox Cause = "FormerMailbox"
)

// State is whether a source belongs on the other side. Every state except [Selected] is also a [Cause].
type State string

const (
	// Selected: the source exists and belongs on the other side.
	Selected State = "Selected"
	// Suspended: every config that selects the object is suspended.
	Suspended State = "Suspended"
	// Unknown: a cache cannot answer now, so an absent object proves nothing.
	Unknown State = "Unknown"
	// SourceNotFound: the source no longer exists.
	SourceNotFound State = "SourceNotFound"
	// Terminating: the source has a deletionTimestamp.
	Terminating State = "Terminating"
	// Deselected: the source is no longer selected.
	Deselected State = "Deselected"
)

// IsAbsence reports whether the state means that no copy belongs on the other side.
func (s State) IsAbsence() bool { return s == SourceNotFound || s == Terminating || s == Deselected }

// SourceState is the state of a source: of a mailbox object for a downsync, of a target object for an upsync.
type SourceState struct {
	State State
	// Desired is set if State is Selected.
	Desired *transform.Desired
	// AbsenceVerified is true if the absence is certain: the absence of the source or, if State is Selected, of the object that
	// the source supersedes.
	AbsenceVerified bool
	// Rebound is true if kcp deleted the mailbox's objects although no user did. An object that was created again then stands for
	// the former one.
	Rebound bool
}

// Decision is an action on one object, and its cause.
type Decision struct {
	Action Action
	Cause  Cause
	// Fields are the paths that drifted.
	Fields []string
}

// String returns the decision for logs.
func (d Decision) String() string {
	if len(d.Fields) > 0 {
		return fmt.Sprintf("%s (%s: %v)", d.Action, d.Cause, d.Fields)
	}
	return fmt.Sprintf("%s (%s)", d.Action, d.Cause)
}

// IsKept reports whether a copy stays although its source is gone, until an operator decides.
func (d Decision) IsKept() bool {
	return d.Action == None && (d.Cause == FormerMailbox || d.Cause == Restored)
}

// isExcluded reports whether a config is suspended, or leaves the object to upsync. Such an object counts in the config's status,
// although it causes no write and no failure.
func (d Decision) isExcluded() bool {
	return d.Cause == Cause(Suspended) || d.Cause == ExcludedByUpsync
}

// SameSource reports whether two marks name the same source. The UIDs may differ, see [Supersedes].
func SameSource(a, b ownership.Mark) bool {
	a.Source.UID, b.Source.UID = "", ""
	return a.Source == b.Source
}

// sameMark reports whether the observed mark equals the desired one. Only the observed mark records whether the object was
// adopted. Its source version may be older, because some changes of the source do not change the copy.
func sameMark(desired, observed ownership.Mark) bool {
	desired.Adopted, desired.SourceVersion = observed.Adopted, observed.SourceVersion
	return desired == observed
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(item string) bool { return !slices.Contains(all, item) })
}
