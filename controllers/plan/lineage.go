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

// lineage is how the source of a copy is related to the mailbox object that has its name now.
type lineage int

const (
	// sameObject: they are one object, or the present one stands for the former: its mailbox was made again, or a placement brought
	// the same workload object again.
	sameObject lineage = iota
	// successor: the same users deleted the object and made another one.
	successor
	// stranger: the object of other users, who have the name now.
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
		// Users who fill a lost mailbox again take over the copies.
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

// mustReplace reports whether a copy must go before its source's successor can have one: nothing of a stranger's object is passed on, and
// some kinds have an identity. A copy whose deletion would delete others is taken over.
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

// downSuperseded decides about a copy that must be replaced, as if its source were seen to be gone. The new object's copy is created
// once the name is free.
func downSuperseded(source SourceState, observed *TargetObject) Decision {
	if observed.FormerMailbox || observed.Restored || source.Rebound {
		// It is unknown whether the former object is still wanted.
		return Decision{Action: Conflict, Cause: NameTaken}
	}
	return downAbsent(Superseded, source.AbsenceVerified, observed)
}

// isSuccessorOf reports whether the source of an object in the mailbox was deleted and made again.
func isSuccessorOf(desired, observed ownership.Mark) bool {
	return SameSource(desired, observed) && desired.Source.UID != observed.Source.UID
}
