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

	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
)

// Action is what to do about one object on a target, or on the way up in a mailbox.
type Action string

const (
	// None means that nothing is to be done.
	None Action = "None"
	// Create applies the desired object if none of its name exists.
	Create Action = "Create"
	// Apply applies the desired object to the one observed, fenced by its UID.
	Apply Action = "Apply"
	// Delete deletes the object observed, fenced by its UID.
	Delete Action = "Delete"
	// UpdateMark writes the marks on the object observed, fenced by its UID, and nothing else.
	UpdateMark Action = "UpdateMark"
	// Release takes the marks off the object observed, fenced by its UID, and leaves it.
	Release Action = "Release"
	// Update writes the desired object over the one held in the mailbox, if that is still as it was seen.
	Update Action = "Update"
	// Conflict leaves the object alone and reports that the name is taken.
	Conflict Action = "Conflict"
	// VerifyAbsence asks for the proof that the source is really gone or no longer selected; then decide again.
	VerifyAbsence Action = "VerifyAbsence"
)

// Writes tells whether an action is a write to the other side.
func (a Action) Writes() bool {
	switch a {
	case Create, Apply, Delete, UpdateMark, Release, Update:
		return true
	default:
		return false
	}
}

// Cause is why an action is taken, or why none is.
type Cause string

const (
	// Missing: the target holds no object of ours.
	Missing Cause = "Missing"
	// Changed: the source, or the way it is transformed, has changed.
	Changed Cause = "Changed"
	// Drifted: somebody else changed fields that are ours.
	Drifted Cause = "Drifted"
	// InSync: the target holds what it must.
	InSync Cause = "InSync"
	// BeingDeleted: the object observed is being deleted; the next event tells when it is gone.
	BeingDeleted Cause = "BeingDeleted"
	// NameTaken: an object of this name is there that came from another source, or that is not ours.
	NameTaken Cause = "NameTaken"
	// ExcludedByUpsync: the object is selected for coming up as well, so it does not go down.
	ExcludedByUpsync Cause = "ExcludedByUpsync"
	// Suspended: every selection of the object is suspended.
	Suspended Cause = "Suspended"
	// Unknown: the mailbox cannot be read now, so nothing may be concluded from what it does not show.
	Unknown Cause = "Unknown"
	// SourceNotFound: the source is no longer in the mailbox.
	SourceNotFound Cause = "SourceNotFound"
	// Terminating: the source has a deletionTimestamp.
	Terminating Cause = "Terminating"
	// FormerMailbox: the object came from a mailbox that was lost; it is kept until somebody decides about it.
	FormerMailbox Cause = "FormerMailbox"
	// Deselected: no SyncerConfig selects the source any more.
	Deselected Cause = "Deselected"
)

// IsAbsence tells whether a state of a source means that nothing of it belongs on the other side.
func (c Cause) IsAbsence() bool { return c == SourceNotFound || c == Terminating || c == Deselected }

// Source is the state of an object's source: an object in the mailbox on the way down, on the target on the way up.
type Source struct {
	// State is InSync when the source exists and is selected; else Unknown, Suspended, ExcludedByUpsync, SourceNotFound, Terminating or
	// Deselected.
	State Cause
	// Desired is set if State is InSync.
	Desired *transform.Desired
	// AbsenceVerified is true once the absence of a source that is SourceNotFound, Terminating or Deselected has been proven.
	AbsenceVerified bool
}

// Decision is what to do about one object, and why.
type Decision struct {
	Action Action
	Cause  Cause
	// Fields lists the paths that drifted.
	Fields []string
}

// String is meant for logs.
func (d Decision) String() string {
	if len(d.Fields) > 0 {
		return fmt.Sprintf("%s (%s: %v)", d.Action, d.Cause, d.Fields)
	}
	return fmt.Sprintf("%s (%s)", d.Action, d.Cause)
}

// SameSource tells whether two marks speak of one source. Its UID may differ: a source that was deleted and made again
// goes on with what its predecessor placed.
func SameSource(a, b ownership.Mark) bool {
	a.Source.UID, b.Source.UID = "", ""
	return a.Source == b.Source
}

// sameMark tells whether the observed mark says what the desired one does. That an object was adopted is known only
// from the observed one.
func sameMark(desired, observed ownership.Mark) bool {
	desired.Adopted = observed.Adopted
	return desired == observed
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(item string) bool { return !slices.Contains(all, item) })
}
