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

	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

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
