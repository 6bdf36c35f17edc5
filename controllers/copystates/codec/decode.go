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

package codec

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/health"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/provider/redact"
)

var (
	// ErrNotSealed means that states were not sealed with the key, or are about another SyncTarget.
	ErrNotSealed = errors.New("the seal of the states does not verify: somebody else wrote them, or with another key")
	// ErrMalformed means that states are not encoded as this release encodes them.
	ErrMalformed = errors.New("the states are malformed, or of another release")
)

// validReason matches the reasons that the status of a placement accepts.
var validReason = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,62}$`)

// reasonOf returns a reason that can be decoded.
func reasonOf(reason string) string {
	if !validReason.MatchString(reason) {
		return plan.ReasonFailed
	}
	return reason
}

// generalMessage is the message of a failure that has no detail.
const generalMessage = "the message is not among the first ones, which alone are reported: look at the SyncerConfigs of the mailbox"

// Set is the decoded states of all copies in a mailbox. It is immutable, and safe for concurrent use.
type Set struct {
	sequence     int64
	mailbox      string
	groups       []decodedGroup
	details      map[uint64]string
	fingerprints sync.Pool
}

// decodedGroup is a state, and the copies that have it.
type decodedGroup struct {
	state
	// copies are sorted.
	copies []uint64
}

// Decode returns the states of a SyncTarget in its mailbox. The error is [ErrNotSealed] or wraps [ErrMalformed]. The seal is verified
// before anything is decoded.
func Decode(sealer *ownership.Sealer, syncTarget types.UID, mailbox string, content []byte, seal string) (*Set, error) {
	set, err := DecodeAny(sealer, syncTarget, content, seal)
	if err == nil && set.mailbox != mailbox {
		return nil, ErrNotSealed
	}
	return set, err
}

// DecodeAny returns the states of a SyncTarget, whatever its mailbox is. The errors are those of [Decode].
func DecodeAny(sealer *ownership.Sealer, syncTarget types.UID, content []byte, seal string) (*Set, error) {
	if len(content) > maxContent {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, len(content))
	}
	if !sealer.VerifyText(seal, purpose, string(content)) {
		return nil, ErrNotSealed
	}
	described, set, err := decode(content)
	if err != nil {
		return nil, err
	}
	if described.SyncTarget != syncTarget {
		return nil, ErrNotSealed
	}
	key := fingerprintKey(sealer)
	set.fingerprints.New = func() any { return newFingerprinter(key) }
	return set, nil
}

// decode decodes states. It trusts no length and no count of the content.
func decode(content []byte) (described header, set *Set, err error) {
	if len(content) < headerOffset || content[0] != formatVersion {
		return described, nil, ErrMalformed
	}
	length := binary.BigEndian.Uint32(content[headerOffset-4:])
	rest := content[headerOffset:]
	if length > maxHeader || uint64(length) > uint64(len(rest)) {
		return described, nil, fmt.Errorf("%w: the header has %d bytes", ErrMalformed, length)
	}
	if err := json.Unmarshal(rest[:length], &described); err != nil {
		return described, nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	rest = rest[length:]
	if len(described.Groups) > maxGroups || len(described.Details) > maxDetails {
		return described, nil, fmt.Errorf("%w: %d groups and %d messages", ErrMalformed, len(described.Groups), len(described.Details))
	}
	set = &Set{sequence: int64(binary.BigEndian.Uint64(content[sequenceOffset:])), mailbox: described.Mailbox, details: make(map[uint64]string, len(described.Details))} //nolint:gosec // encoded by the same conversion
	for _, detail := range described.Details {
		set.details[detail.Fingerprint] = redact.Truncate(detail.Message, maxMessage)
	}
	if set.groups, err = decodeGroups(described.Groups, rest); err != nil {
		return described, nil, err
	}
	return described, set, nil
}

// decodeGroups decodes the copies of the groups that the header describes.
func decodeGroups(described []group, rest []byte) (groups []decodedGroup, err error) {
	for _, group := range described {
		if group.Count < 1 || group.Count > len(rest)/fingerprintBytes {
			return nil, fmt.Errorf("%w: a group of %d copies in %d bytes", ErrMalformed, group.Count, len(rest))
		}
		if group.Reason != "" && !validReason.MatchString(group.Reason) || group.Health > health.Terminating {
			return nil, fmt.Errorf("%w: a group of an unknown kind", ErrMalformed)
		}
		copies := make([]uint64, group.Count)
		for i := range copies {
			copies[i] = binary.BigEndian.Uint64(rest[i*fingerprintBytes:])
		}
		if !slices.IsSorted(copies) {
			return nil, fmt.Errorf("%w: a group is not sorted", ErrMalformed)
		}
		rest = rest[group.Count*fingerprintBytes:]
		groups = append(groups, decodedGroup{group.state, copies})
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%w: %d bytes follow", ErrMalformed, len(rest))
	}
	return groups, nil
}

// Sequence returns the sequence that the states were stored with; zero for nil.
func (s *Set) Sequence() int64 {
	if s == nil {
		return 0
	}
	return s.sequence
}

// Mailbox returns the mailbox that the states are about; empty for nil.
func (s *Set) Mailbox() string {
	if s == nil {
		return ""
	}
	return s.mailbox
}

// State returns the state of a version of a copy. known is false for nil: nobody has told of any copy.
func (s *Set) State(resource schema.GroupResource, key types.NamespacedName, version objectsync.PlacementCopyVersion) (found objectsync.ObjectState, known bool) {
	if s == nil {
		return objectsync.ObjectState{}, false
	}
	fingerprints := s.fingerprints.Get().(*fingerprinter)
	defer s.fingerprints.Put(fingerprints)
	ofObject := fingerprints.of(resource, key, objectsync.PlacementCopyVersion{})
	ofVersion := fingerprints.of(resource, key, version)
	found = objectsync.ObjectState{Health: health.Health{Status: health.InProgress}}
	for i := range s.groups {
		group := &s.groups[i]
		switch {
		case group.isOfObject() && group.has(ofObject):
			found.Excluded = group.Excluded
			if !group.Excluded {
				found.Failure = &objectsync.Failure{Reason: group.Reason, Message: s.messageOf(ofObject, group.state)}
			}
			return found, true
		case !group.isOfObject() && ofVersion != ofObject && group.has(ofVersion):
			found.Synced = true
			found.Health = health.Health{Status: group.Health, Message: s.messageOf(ofVersion, group.state)}
			return found, true
		}
	}
	return found, true
}

func (g *decodedGroup) has(fingerprint uint64) bool {
	_, found := slices.BinarySearch(g.copies, fingerprint)
	return found
}

// messageOf returns the message of a copy in a state; empty if there is none to show.
func (s *Set) messageOf(fingerprint uint64, of state) string {
	message, ok := s.details[fingerprint]
	if !ok && of.hasMessage() {
		return generalMessage
	}
	return message
}
