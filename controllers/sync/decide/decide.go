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

package decide

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

// Action is what to do about one object on a target.
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
	// Release takes the marks off the object observed, fenced by its UID, and leaves it.
	Release Action = "Release"
	// Prove asks for the proof that the source is really gone or no longer selected; then decide again.
	Prove Action = "Prove"
)

// Cause is why an action is taken, or why none is.
type Cause string

const (
	// Missing: the target holds no object of ours.
	Missing Cause = "Missing"
	// Changed: the source, or the way it is transformed, has changed.
	Changed Cause = "Changed"
	// Drifted: somebody else changed fields that are ours.
	Drifted Cause = "Drifted"
	// InStep: the target holds what it must.
	InStep Cause = "InStep"
	// Going: the object observed is being deleted; the next event tells when it is gone.
	Going Cause = "Going"
	// Suspended: every selection of the object is suspended.
	Suspended Cause = "Suspended"
	// Unknown: the mailbox cannot be read now, so nothing may be concluded from what it does not show.
	Unknown Cause = "Unknown"
	// Vanished: the source is no longer in the mailbox.
	Vanished Cause = "Vanished"
	// Terminating: the source has a deletionTimestamp.
	Terminating Cause = "Terminating"
	// Deselected: no SyncerConfig selects the source any more.
	Deselected Cause = "Deselected"
)

// Source is the state of an object's source in the mailbox.
type Source struct {
	// State is InStep when the source exists and is selected; else Unknown, Suspended, Vanished, Terminating or
	// Deselected.
	State Cause
	// Desired is set if State is InStep.
	Desired *transform.Desired
	// Proven is true once the absence of a source that is Vanished, Terminating or Deselected has been proven.
	Proven bool
}

// Observed is an object on the target that is marked as ours.
type Observed struct {
	// UID and Mark are the object's.
	UID  types.UID
	Mark ownership.Mark
	// Labelled is false if the owner label was removed.
	Labelled bool
	// Terminating is true if the object has a deletionTimestamp.
	Terminating bool
	// Fields is our managedFields entry, in the form FieldsV1.
	Fields []byte
	// Retain is true for objects whose removal takes others with it (namespaces, CRDs) unless the PublishedResource
	// allows that; such an object is released instead of deleted.
	Retain bool
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

// Down decides about one object on the target. observed is nil if the target holds no object of ours; tolerated lists
// the paths that the target is known not to keep, so that applying them again would change nothing.
func Down(source Source, observed *Observed, tolerated []string) (Decision, error) {
	switch source.State {
	case InStep:
		return present(source.Desired, observed, tolerated)
	case Unknown, Suspended:
		return Decision{Action: None, Cause: source.State}, nil
	case Vanished, Terminating, Deselected:
		return absent(source, observed), nil
	default:
		return Decision{}, fmt.Errorf("%q is not a state of a source", source.State)
	}
}

func present(desired *transform.Desired, observed *Observed, tolerated []string) (Decision, error) {
	switch {
	case observed == nil:
		return Decision{Action: Create, Cause: Missing}, nil
	case observed.Terminating:
		return Decision{Action: None, Cause: Going}, nil
	case desired.Mark.Policy == ownership.PolicyCreateOnly && observed.Mark.Policy == ownership.PolicyCreateOnly:
		return Decision{Action: None, Cause: InStep}, nil
	case desired.Mark != observed.Mark:
		return Decision{Action: Apply, Cause: Changed}, nil
	case !observed.Labelled:
		return Decision{Action: Apply, Cause: Drifted, Fields: []string{".metadata.labels." + ownership.OwnerLabel}}, nil
	}
	drifted, err := ownership.Uncovered(desired.Object.Object, observed.Fields)
	if err != nil {
		return Decision{}, err
	}
	if !contains(tolerated, drifted) {
		return Decision{Action: Apply, Cause: Drifted, Fields: drifted}, nil
	}
	return Decision{Action: None, Cause: InStep}, nil
}

func absent(source Source, observed *Observed) Decision {
	switch {
	case observed == nil:
		return Decision{Action: None, Cause: source.State}
	case observed.Terminating:
		return Decision{Action: None, Cause: Going}
	case !source.Proven:
		return Decision{Action: Prove, Cause: source.State}
	case observed.Mark.Policy == ownership.PolicyDelete && !observed.Retain:
		return Decision{Action: Delete, Cause: source.State}
	default:
		return Decision{Action: Release, Cause: source.State}
	}
}

func contains(all, some []string) bool {
	return !slices.ContainsFunc(some, func(item string) bool { return !slices.Contains(all, item) })
}
