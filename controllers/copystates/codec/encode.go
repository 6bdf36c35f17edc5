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
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/health"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/provider/redact"
)

// Encoded states are: one byte with the version of the format, eight bytes with the sequence, four bytes with the length of the header,
// the header as JSON, and the fingerprints of all groups, one group after the other. Numbers are big-endian.
const (
	formatVersion    = 1
	sequenceOffset   = 1
	headerOffset     = sequenceOffset + 8 + 4
	fingerprintBytes = 8
)

// Bounds of encoded states. kcp refuses a ConfigMap of more than a MiB.
const (
	// MaxCopies is the number of copies that can be encoded. Others are left out, and so are not synced to those who decode the states.
	MaxCopies = 100_000
	// maxDetails is the number of copies whose message is encoded, and maxMessage the length of each in bytes.
	maxDetails = 20
	maxMessage = 256
	// maxReasons is the number of reasons that are told apart, and maxGroups that of states.
	maxReasons = 48
	maxGroups  = 64
	maxHeader  = 64 << 10
	// maxContent is the length of encoded states.
	maxContent = headerOffset + maxHeader + fingerprintBytes*MaxCopies
)

// purpose is that of the seal of encoded states.
const purpose = "copy-states"

// header is all that is encoded beside the fingerprints.
type header struct {
	// SyncTarget and Mailbox say what the states are about.
	SyncTarget types.UID `json:"syncTarget"`
	Mailbox    string    `json:"mailbox"`
	Groups     []group   `json:"groups,omitempty"`
	Details    []detail  `json:"details,omitempty"`
}

// group is a state that many copies have.
type group struct {
	state
	// Count is the number of copies.
	Count int `json:"count"`
}

// state is the state of a copy without the message. A failure and an exclusion are those of the object, whatever its version is.
type state struct {
	// Reason is the reason of a failure, or empty.
	Reason string `json:"reason,omitempty"`
	// Excluded is true if upsync takes precedence.
	Excluded bool `json:"excluded,omitempty"`
	// Health is that of a copy that is synced.
	Health health.Status `json:"health,omitempty"`
}

// isOfObject reports whether the state is that of the object, and not of one version.
func (s state) isOfObject() bool { return s.Excluded || s.Reason != "" }

// hasMessage reports whether a copy in this state may have a message that somebody is shown.
func (s state) hasMessage() bool {
	if s.isOfObject() {
		// Placement has a message of its own for conflicts, since that of the sync controller may name the objects of others.
		return !s.Excluded && s.Reason != plan.ReasonConflict
	}
	return s.Health == health.Failed || s.Health == health.Unknown
}

// detail is the message of one copy.
type detail struct {
	Fingerprint uint64 `json:"fingerprint"`
	Message     string `json:"message"`
}

// entry is a copy while it is encoded.
type entry struct {
	fingerprint uint64
	state       state
	message     string
}

// Encode encodes the states of all copies in a mailbox. Equal states are encoded to equal bytes, in whatever order they come.
func Encode(sealer *ownership.Sealer, syncTarget types.UID, mailbox string, copies []objectsync.PlacementCopy) []byte {
	fingerprints := newFingerprinter(fingerprintKey(sealer))
	entries := make([]entry, 0, len(copies))
	for i := range copies {
		if e, ok := newEntry(fingerprints, &copies[i]); ok {
			entries = append(entries, e)
		}
	}
	limitReasons(entries)
	slices.SortFunc(entries, func(a, b entry) int {
		if a.state != b.state {
			return compareStates(a.state, b.state)
		}
		return cmp.Compare(a.fingerprint, b.fingerprint)
	})
	if len(entries) > MaxCopies {
		entries = entries[:MaxCopies]
	}
	described := header{SyncTarget: syncTarget, Mailbox: mailbox}
	for _, e := range entries {
		if last := len(described.Groups) - 1; last >= 0 && described.Groups[last].state == e.state {
			described.Groups[last].Count++
		} else {
			described.Groups = append(described.Groups, group{e.state, 1})
		}
		if e.state.hasMessage() && len(described.Details) < maxDetails {
			described.Details = append(described.Details, detail{e.fingerprint, redact.Truncate(e.message, maxMessage)})
		}
	}
	// It consists of texts and numbers.
	text, _ := json.Marshal(described)
	content := make([]byte, headerOffset, headerOffset+len(text)+fingerprintBytes*len(entries))
	content[0] = formatVersion
	binary.BigEndian.PutUint32(content[headerOffset-4:], uint32(len(text))) //nolint:gosec // far less than 4 GiB
	content = append(content, text...)
	for _, e := range entries {
		content = binary.BigEndian.AppendUint64(content, e.fingerprint)
	}
	return content
}

// newEntry returns the entry of a copy; ok is false if there is nothing to tell about it.
func newEntry(fingerprints *fingerprinter, copied *objectsync.PlacementCopy) (e entry, ok bool) {
	resource, key := copied.Resource.GroupResource(), copied.Key
	switch found := &copied.State; {
	case found.Excluded:
		e = entry{state: state{Excluded: true}}
	case found.Failure != nil:
		e = entry{state: state{Reason: reasonOf(found.Failure.Reason)}, message: found.Failure.Message}
	case found.Synced:
		return entry{fingerprints.of(resource, key, copied.Version), state{Health: found.Health.Status}, found.Health.Message}, true
	default:
		return entry{}, false
	}
	e.fingerprint = fingerprints.of(resource, key, objectsync.PlacementCopyVersion{})
	return e, true
}

// limitReasons gives failures beyond maxReasons reasons one common reason.
func limitReasons(entries []entry) {
	known := map[string]struct{}{}
	for i := range entries {
		known[entries[i].state.Reason] = struct{}{}
	}
	if len(known) <= maxReasons {
		return
	}
	kept := slices.Sorted(maps.Keys(known))[:maxReasons]
	for i := range entries {
		if _, found := slices.BinarySearch(kept, entries[i].state.Reason); !found {
			entries[i].state.Reason = plan.ReasonFailed
		}
	}
}

// compareStates orders failures first, since those that cannot be encoded are cut at the end.
func compareStates(a, b state) int {
	rank := func(s state) int {
		switch {
		case s.Reason != "":
			return 0
		case s.Excluded:
			return 1
		default:
			return 2
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Reason, b.Reason), cmp.Compare(healthRank(a.Health), healthRank(b.Health)))
}

// healthRank orders bad health first.
func healthRank(status health.Status) int {
	return slices.Index([]health.Status{health.Failed, health.Unknown, health.Terminating, health.InProgress, health.Current}, status)
}

// Seal returns the seal of encoded states.
func Seal(sealer *ownership.Sealer, content []byte) string {
	return sealer.SealText(purpose, string(content))
}

// SetSequence sets the sequence of encoded states. It grows with each change of the states of one SyncTarget.
func SetSequence(content []byte, sequence int64) {
	binary.BigEndian.PutUint64(content[sequenceOffset:], uint64(sequence)) //nolint:gosec // decoded by the same conversion
}

// Digest returns a hash of encoded states without their sequence.
func Digest(content []byte) [sha256.Size]byte {
	return sha256.Sum256(content[sequenceOffset+8:])
}
