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

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// MailboxObject holds the facts about the mailbox object that has the name of an upsynced object.
type MailboxObject struct {
	// Owned is true if the hub upsynced the object; otherwise Mark and Missing are unset.
	Owned bool
	Mark  ownership.Mark
	// Terminating is true if the object has a deletionTimestamp.
	Terminating bool
	// Retain is true for objects whose deletion deletes other objects, unless the PublishedResource allows it.
	Retain bool
	// Missing are the paths of the desired object that the mailbox object lacks.
	Missing []string
}

// DecideUp decides about one mailbox object. inMailbox is nil if there is none. droppedPaths are the fields that the mailbox
// drops.
func DecideUp(source SourceState, inMailbox *MailboxObject, droppedPaths []string) (Decision, error) {
	switch source.State {
	case Selected:
		return upPresent(source.Desired, inMailbox, droppedPaths), nil
	case Unknown, Suspended:
		return Decision{Action: None, Cause: Cause(source.State)}, nil
	case SourceNotFound, Deselected:
		return upAbsent(source, inMailbox), nil
	default:
		return Decision{}, fmt.Errorf("%q is not a state of a source on the target", source.State)
	}
}

// MissingSource holds the facts about the source of a mailbox object if the source is no longer upsynced.
type MissingSource struct {
	// Ref names the source.
	Ref Ref
	// IsRelated is true if the object was upsynced by a relation, and IsUnpublished if the PublishedResource of that relation is
	// no longer active. IsClaimsComplete is true if the claims of all primaries are known, and IsUnclaimed if none of them claims
	// the source.
	IsRelated, IsUnpublished, IsClaimsComplete, IsUnclaimed bool
	// IsClaimed reports whether a primary claims the source now, or may claim it.
	IsClaimed func() bool
	// MayBeClaimed is true if no config selects the source any more, and a primary claims it now, or may claim it.
	MayBeClaimed bool
	// IsSelected is true if a config selects the source, by its name and the labels in the mailbox, and IsSuspended if all these
	// configs are suspended. IsUnresolved is true if an invalid or unknown config may select the source.
	IsSelected, IsSuspended, IsUnresolved bool
	// Denied is why the source may not be upsynced.
	Denied error
	// IsCacheComplete is true if the cache has all objects of the target that may be upsynced. IsCached is true if it has the source, and
	// IsIndexed if the source is upsynced under this key.
	IsCacheComplete, IsCached, IsIndexed bool
	// RenameTo is the free name under which the source is to be upsynced now; nil if there is none.
	RenameTo *types.NamespacedName
	// IsDeleted is true if the deletion of the source was observed.
	IsDeleted bool
	// AbsenceVerified is true if kcp has confirmed that no config selects the source.
	AbsenceVerified bool
	// Answer is the target's response; nil before the request.
	Answer *MissingAnswer
}

// MissingAnswer is the target's response about a source.
type MissingAnswer struct {
	// State is SourceNotFound, Deselected, or Unknown if the source exists or the request failed.
	State State
	Err   error
}

// decideMissing decides why a source is no longer upsynced. It returns the state of the source, and the other parts of the plan.
// The state is Unknown while a cache has not synced.
func decideMissing(m *MissingSource) (SourceState, UpPlan) {
	unknown := SourceState{State: Unknown}
	switch {
	case m.IsRelated:
		return decideMissingRelated(m)
	case m.IsUnresolved:
		return unknown, UpPlan{}
	case m.MayBeClaimed:
		// The relation takes the object over when the cache has the source.
		return unknown, UpPlan{}
	case !m.IsSelected:
		return decideDeselected(m)
	case m.IsSuspended:
		return SourceState{State: Suspended}, UpPlan{}
	case m.Denied != nil:
		// A denied upsync does not remove an object that was upsynced before.
		return unknown, UpPlan{Plan: Plan{Err: m.Denied}}
	case !m.IsCacheComplete, m.IsCached && m.IsIndexed:
		// The source may have appeared after the index was read. Its event enqueues the key again.
		return unknown, UpPlan{}
	case m.IsCached && m.RenameTo != nil:
		return unknown, UpPlan{RenameTo: m.RenameTo}
	case m.IsCached:
		// A conversion gives the source another name.
		return SourceState{State: Deselected, AbsenceVerified: true}, UpPlan{}
	default:
		return decideVanished(m)
	}
}

// decideMissingRelated decides about a source that was upsynced by a relation. As long as a primary may still claim it, the state is Unknown.
func decideMissingRelated(m *MissingSource) (SourceState, UpPlan) {
	unknown := SourceState{State: Unknown}
	switch {
	case m.IsUnpublished, !m.IsCacheComplete:
		return unknown, UpPlan{}
	case m.Denied != nil:
		return unknown, UpPlan{Plan: Plan{Err: m.Denied}}
	case !m.IsClaimsComplete:
		return unknown, UpPlan{Plan: Plan{Wants: Wants{Claims: m.IsClaimed}}}
	case m.IsDeleted, !m.IsCached:
		return decideVanished(m)
	case m.IsUnclaimed:
		return decideDeselected(m)
	default:
		return unknown, UpPlan{}
	}
}

// decideDeselected decides about a source that is no longer selected.
func decideDeselected(m *MissingSource) (source SourceState, p UpPlan) {
	if m.AbsenceVerified {
		p.Wants.TakeAbsence = Deselected
	}
	return SourceState{State: Deselected, AbsenceVerified: m.AbsenceVerified}, p
}

// decideVanished decides about a selected source that the cache does not contain.
func decideVanished(m *MissingSource) (SourceState, UpPlan) {
	switch {
	case m.IsDeleted:
		return SourceState{State: SourceNotFound, AbsenceVerified: true}, UpPlan{}
	case m.Answer == nil:
		return SourceState{State: Unknown}, UpPlan{Confirm: true}
	default:
		return SourceState{State: m.Answer.State, AbsenceVerified: m.Answer.State != Unknown}, UpPlan{Plan: Plan{Err: m.Answer.Err}}
	}
}

func upPresent(desired *transform.Desired, inMailbox *MailboxObject, droppedPaths []string) Decision {
	switch {
	case inMailbox == nil:
		return Decision{Action: Create, Cause: Missing}
	case !inMailbox.Owned, !SameSource(desired.Mark, inMailbox.Mark):
		return Decision{Action: Conflict, Cause: NameTaken}
	case inMailbox.Terminating:
		return Decision{Action: None, Cause: BeingDeleted}
	case inMailbox.isReplacedBy(desired) && transform.HasIdentity(desired.Object.GroupVersionKind().GroupKind()):
		return Decision{Action: Delete, Cause: Superseded}
	case !sameMark(desired.Mark, inMailbox.Mark):
		return Decision{Action: Update, Cause: Changed}
	case !containsAll(droppedPaths, inMailbox.Missing):
		return Decision{Action: Update, Cause: Drifted, Fields: inMailbox.Missing}
	default:
		return Decision{Action: None, Cause: InSync}
	}
}

// isReplacedBy reports whether the source was deleted and created again, so that the mailbox object may be replaced.
func (o *MailboxObject) isReplacedBy(desired *transform.Desired) bool {
	return o.Owned && isSuccessorOf(desired.Mark, o.Mark) && o.Mark.Policy == ownership.PolicyDelete && !o.Retain
}

func upAbsent(source SourceState, inMailbox *MailboxObject) Decision {
	switch {
	case inMailbox == nil, !inMailbox.Owned:
		return Decision{Action: None, Cause: Cause(source.State)}
	case inMailbox.Terminating:
		return Decision{Action: None, Cause: BeingDeleted}
	case !source.AbsenceVerified:
		return Decision{Action: VerifyAbsence, Cause: Cause(source.State)}
	case inMailbox.Mark.Policy == ownership.PolicyDelete && !inMailbox.Retain:
		return Decision{Action: Delete, Cause: Cause(source.State)}
	default:
		return Decision{Action: Release, Cause: Cause(source.State)}
	}
}
