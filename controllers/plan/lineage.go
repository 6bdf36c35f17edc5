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
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// lineage is the relation of a copy's source to the mailbox object that now has the source's name.
type lineage int

const (
	// sameObject: they are the same object, or the current object stands for the former one, because the mailbox was created
	// again or a placement created a copy of the same workload object again.
	sameObject lineage = iota
	// successor: the same users deleted the object and created another one.
	successor
	// stranger: the object belongs to other users, who now have the name.
	stranger
)

// lineageOf compares the sources of a desired and an observed object whose marks name the same source.
func lineageOf(desired *transform.Desired, observed *TargetObject) lineage {
	was, is := observed.Identity, desired.Identity
	isPlacedAgain := was.Workspace != "" && was.Workspace == is.Workspace
	switch {
	case isPlacedAgain && was.Object == is.Object:
		return sameObject
	case isPlacedAgain && !observed.FormerMailbox:
		return successor
	case isPlacedAgain, observed.Mark.Source.UID == desired.Mark.Source.UID:
		return sameObject
	case was.Workspace == "" && observed.FormerMailbox:
		// The users of a new mailbox take over the copies of the former one.
		return sameObject
	case was.Workspace == "" && is.Workspace == "":
		return successor
	default:
		return stranger
	}
}

// Supersedes reports whether the desired object is another one than the source of the observed copy.
func Supersedes(desired *transform.Desired, observed *TargetObject) bool {
	return observed != nil && lineageOf(desired, observed) != sameObject
}

// mustReplace reports whether a copy must be deleted before its source's successor can have a copy: a stranger must not get the
// content of the former copy, and objects of some kinds have an identity. A copy whose deletion would delete other objects is
// taken over instead.
func mustReplace(source SourceState, observed *TargetObject) bool {
	switch lineageOf(source.Desired, observed) {
	case stranger:
		return !observed.Retain
	case successor:
		return !observed.Retain && !source.Rebound && transform.HasIdentity(source.Desired.Object.GroupVersionKind().GroupKind())
	default:
		return false
	}
}

// downSuperseded decides about a copy that must be replaced, as if its source were absent. The new object's copy is created once
// the name is free.
func downSuperseded(source SourceState, observed *TargetObject) Decision {
	if observed.FormerMailbox || observed.Restored || source.Rebound {
		// It is unknown whether users deleted the former object.
		return Decision{Action: Conflict, Cause: NameTaken}
	}
	return downAbsent(Superseded, source.AbsenceVerified, observed)
}

// isSuccessorOf reports whether the source of an object in the mailbox was deleted and created again.
func isSuccessorOf(desired, observed ownership.Mark) bool {
	return SameSource(desired, observed) && desired.Source.UID != observed.Source.UID
}
