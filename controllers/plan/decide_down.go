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
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// newerThanSourceRetry is the delay until an object with a newer copy is planned again if no event comes.
const newerThanSourceRetry = 5 * time.Second

// targetObjectSize is the heap size of a [TargetObject] on 64-bit platforms, in bytes, without the values that its fields point
// to.
const targetObjectSize = 408

// TargetObject holds the facts about a copy on the target.
type TargetObject struct {
	// UID and Mark are the object's.
	UID  types.UID
	Mark ownership.Mark
	// Identity is the content of the identity annotation; zero if the object has none.
	Identity ownership.Identity
	// Restored is true if the object is not the one that the hub wrote, but was restored from a copy of it.
	Restored bool
	// Finished is true if the object has run to completion.
	Finished bool
	// HasOwnerLabel is false if somebody removed the owner label.
	HasOwnerLabel bool
	// Terminating is true if the object has a deletionTimestamp.
	Terminating bool
	// AppliedFields are the fields that the hub applied and still owns (see [ownership.AppliedFields]).
	AppliedFields []byte
	// FormerMailbox is true if the object came from an earlier mailbox of the SyncTarget. The source is gone with that mailbox,
	// so its absence does not mean that a user deleted it.
	FormerMailbox bool
	// Retain is true for objects whose deletion deletes other objects (namespaces, CRDs), unless the PublishedResource allows it.
	// The hub releases them instead.
	Retain bool
	// Health is the object's health on the target.
	Health health.Health
}

// Size estimates the heap size of the facts in bytes.
func (o *TargetObject) Size() int64 {
	mark := &o.Mark
	identity := len(o.Identity.Workspace) + len(o.Identity.Object) + len(o.Identity.Copy)
	return targetObjectSize + int64(identity+len(o.AppliedFields)+len(mark.Mailbox)+len(mark.Source.Namespace)+len(mark.Source.Name)+len(mark.Source.UID)+
		len(mark.Hash)+len(mark.Ignored)+len(mark.Relation)+len(o.Health.Message))
}

// DecideDown decides about one copy on the target. observed is nil if there is none. droppedPaths are the fields that the target
// drops: applying them again would change nothing.
func DecideDown(source SourceState, observed *TargetObject, droppedPaths []string) (Decision, error) {
	switch source.State {
	case Selected:
		return downPresent(source, observed, droppedPaths)
	case Unknown, Suspended:
		return Decision{Action: None, Cause: Cause(source.State)}, nil
	case SourceNotFound, Terminating, Deselected:
		return downAbsent(Cause(source.State), source.AbsenceVerified, observed), nil
	default:
		return Decision{}, fmt.Errorf("%q is not a state of a source", source.State)
	}
}

// DecideFormerName decides about a copy under an old name or kind. The old copy is removed once the new copy exists.
func DecideFormerName(observed *TargetObject) Decision {
	return downAbsent(Cause(Deselected), true, observed)
}

func downPresent(source SourceState, observed *TargetObject, droppedPaths []string) (Decision, error) {
	desired := source.Desired
	switch {
	case observed == nil:
		return Decision{Action: Create, Cause: Missing}, nil
	case !SameSource(desired.Mark, observed.Mark):
		return Decision{Action: Conflict, Cause: NameTaken}, nil
	case mustReplace(source, observed):
		return downSuperseded(source, observed), nil
	case observed.Terminating:
		return Decision{Action: None, Cause: BeingDeleted}, nil
	case desired.Mark.Policy == ownership.PolicyCreateOnly:
		return downCreateOnly(desired, observed), nil
	case !sameMark(desired.Mark, observed.Mark):
		return Decision{Action: Apply, Cause: Changed}, nil
	case observed.Restored && observed.Mark.Policy == ownership.PolicyDelete && !desired.ReportsDrift:
		return Decision{Action: Apply, Cause: Restored}, nil
	case !observed.HasOwnerLabel:
		return Decision{Action: Apply, Cause: Drifted, Fields: []string{".metadata.labels." + ownership.OwnerLabel}}, nil
	}
	return downDrift(desired, observed, droppedPaths)
}

// downDrift decides about a copy whose source has not changed since the last apply.
func downDrift(desired *transform.Desired, observed *TargetObject, droppedPaths []string) (Decision, error) {
	drifted, err := ownership.UnownedPaths(desired.Object.Object, observed.AppliedFields)
	if err != nil {
		return Decision{}, err
	}
	switch fields := withoutMarks(drifted, droppedPaths); {
	case desired.ReportsDrift && len(fields) > 0:
		return Decision{Action: Report, Cause: Drifted, Fields: fields}, nil
	case !desired.ReportsDrift && !containsAll(droppedPaths, drifted):
		return Decision{Action: Apply, Cause: Drifted, Fields: drifted}, nil
	}
	return Decision{Action: None, Cause: InSync}, nil
}

// withoutMarks returns the drifted paths without the paths that the target drops, and without the hub's marks, which are no content of
// the source.
func withoutMarks(drifted, droppedPaths []string) (fields []string) {
	for _, path := range drifted {
		if !slices.Contains(droppedPaths, path) && !isMark(path) {
			fields = append(fields, path)
		}
	}
	return fields
}

// isMark reports whether a path leads to one of the hub's labels or annotations.
func isMark(path string) bool {
	rest, isAnnotation := strings.CutPrefix(path, ".metadata.annotations.")
	if !isAnnotation {
		rest, _ = strings.CutPrefix(path, ".metadata.labels.")
	}
	return strings.HasPrefix(rest, synchubv1alpha1.GroupName+"/")
}

// downCreateOnly decides about a copy that the hub does not overwrite. The hub only corrects the marks, which keep the hash of
// the last apply.
func downCreateOnly(desired *transform.Desired, observed *TargetObject) Decision {
	wanted := desired.Mark
	wanted.Hash = observed.Mark.Hash
	if observed.HasOwnerLabel && sameMark(wanted, observed.Mark) {
		return Decision{Action: None, Cause: InSync}
	}
	return Decision{Action: UpdateMark, Cause: Changed}
}

func downAbsent(cause Cause, isVerified bool, observed *TargetObject) Decision {
	switch {
	case observed == nil:
		return Decision{Action: None, Cause: cause}
	case observed.Terminating:
		return Decision{Action: None, Cause: BeingDeleted}
	case observed.FormerMailbox:
		return Decision{Action: None, Cause: FormerMailbox}
	case observed.Restored && observed.Mark.Policy == ownership.PolicyDelete && !observed.Retain:
		return Decision{Action: None, Cause: Restored}
	case !isVerified:
		return Decision{Action: VerifyAbsence, Cause: cause}
	case observed.Mark.Policy == ownership.PolicyDelete && !observed.Retain:
		return Decision{Action: Delete, Cause: cause}
	default:
		return Decision{Action: Release, Cause: cause}
	}
}

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
