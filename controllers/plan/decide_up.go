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
	// Retain is true for objects whose deletion deletes others, unless the PublishedResource allows it.
	Retain bool
	// Missing are the paths of the desired object that the mailbox object lacks.
	Missing []string
}

// DecideUp decides about one mailbox object. inMailbox is nil if there is none. droppedPaths are the fields that the mailbox is
// known to drop.
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

// isReplacedBy reports whether the source was deleted and made again, so that the mailbox object may be replaced.
func (o *MailboxObject) isReplacedBy(desired *transform.Desired) bool {
	return o.Owned && isSuccessorOf(desired.Mark, o.Mark) && o.Mark.Policy == ownership.PolicyDelete && !o.Retain
}

// SupersedesInMailbox reports whether the source of a mailbox object was deleted and made again, so that the mailbox object may be
// replaced if kcp refuses to change it.
func (p Planner) SupersedesInMailbox(s *Snapshot, desired *transform.Desired) bool {
	observed := p.Resource.NewMailboxObject(s.InMailbox, s.Up.Mark, nil)
	return observed != nil && observed.isReplacedBy(desired)
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
