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

package syncstatus

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"regexp"
	"slices"
	"sort"
	gosync "sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/redact"
)

// Bounds of encoded states. kcp refuses a ConfigMap of more than a MiB.
const (
	// maxCopies is the number of copies that can be encoded. Further copies are not reported, and so count as
	// not synced.
	maxCopies = 100_000
	// maxDetails is the number of copies whose message is encoded, and maxMessage the length of each in bytes.
	maxDetails = 20
	maxMessage = 256
	// maxDifferences is the number of fields that are encoded of a copy that differs on the cluster.
	maxDifferences = 5
	// maxReasons bounds the different reasons, and maxGroups the different states.
	maxReasons = 48
	maxGroups  = 64
	// maxContent is the length of encoded states: fingerprints are encoded as base64.
	maxContent = maxCopies*fingerprintBytes/3*4 + 64<<10
)

// purpose is the purpose of the seal of encoded states.
const purpose = "copy-states"

// generalMessage is the message of a failure that has no detail.
const generalMessage = "only the first messages are reported: see the SyncerConfigs of the mailbox"

var (
	errNotSealed = errors.New("the seal of the states does not verify: somebody else wrote them, or with another key")
	errMalformed = errors.New("the states are malformed, or of another release")
)

// validReason matches the reasons that the status of a placement accepts.
var validReason = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,62}$`)

// States are the sync statuses of all placed copies in a mailbox. A copy in no group is not synced yet. States are immutable, and safe for
// concurrent use.
type States struct {
	// SyncTarget and Mailbox identify where the copies are.
	SyncTarget types.UID `json:"syncTarget"`
	Mailbox    string    `json:"mailbox"`
	Groups     []group   `json:"groups,omitempty"`
	Details    []detail  `json:"details,omitempty"`
	// Stuck are the stuck copies, see [objectsync.ObjectRef]. At most maxDetails are encoded.
	Stuck []stuckCopy `json:"stuck,omitempty"`

	fingerprinters gosync.Pool
}

// group is a state with the copies that have it.
type group struct {
	state
	// Copies are the sorted fingerprints of the copies, one after the other.
	Copies []byte `json:"copies"`
}

// state is the state of a copy without the message. A failure or an exclusion applies to all versions of the
// copy, except that a copy has drifted from one version.
type state struct {
	// Reason is the reason of a failure, or empty.
	Reason string `json:"reason,omitempty"`
	// Excluded is true if upsync takes precedence.
	Excluded bool `json:"excluded,omitempty"`
	// Health is the health of a copy that is synced.
	Health health.Status `json:"health,omitempty"`
}

// isOfObject reports whether the state applies to all versions of a copy, and not to one version.
func (s state) isOfObject() bool {
	return s.Excluded || s.Reason != "" && s.Reason != plan.ReasonDrifted
}

// hasMessage reports whether a copy in this state may have a message for users.
func (s state) hasMessage() bool {
	if s.isOfObject() {
		// Placement has its own message for conflicts, since the sync controller's may name objects of other users.
		return !s.Excluded && s.Reason != plan.ReasonConflict
	}
	return s.Reason != "" || s.Health == health.Failed || s.Health == health.Unknown
}

// detail is the message of one copy.
type detail struct {
	Fingerprint []byte `json:"fingerprint"`
	Message     string `json:"message"`
	// Differences are the first fields that differ on the cluster, at most maxDifferences.
	Differences []edgev2alpha1.FieldDifference `json:"differences,omitempty"`
}

// stuckCopy names a stuck copy. No mailbox object does.
type stuckCopy struct {
	Workspace string `json:"workspace"`
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// stuckRefs returns the stuck copies; none if s is nil.
func (s *States) stuckRefs() (refs []objectsync.ObjectRef) {
	if s == nil {
		return nil
	}
	for _, one := range s.Stuck {
		refs = append(refs, objectsync.ObjectRef{
			SyncTarget: s.SyncTarget, Mailbox: logicalcluster.Name(s.Mailbox), Workspace: logicalcluster.Name(one.Workspace),
			Resource: schema.GroupVersionResource{Group: one.Group, Version: one.Version, Resource: one.Resource},
			Key:      types.NamespacedName{Namespace: one.Namespace, Name: one.Name},
		})
	}
	return refs
}

// stuckCopiesOf returns the first stuck copies in a stable order.
func stuckCopiesOf(copies []objectsync.PlacedCopy) (stuck []stuckCopy) {
	for i := range copies {
		if one := &copies[i]; one.Workspace != "" {
			stuck = append(stuck, stuckCopy{one.Workspace.String(), one.Resource.Group, one.Resource.Version, one.Resource.Resource, one.Key.Namespace, one.Key.Name})
		}
	}
	slices.SortFunc(stuck, func(a, b stuckCopy) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return stuck[:min(len(stuck), maxDetails)]
}

// entry is a copy while it is encoded.
type entry struct {
	fingerprint fingerprint
	state       state
	message     string
	differences []edgev2alpha1.FieldDifference
}

// encode encodes the states of all copies in a mailbox. Equal states have equal encodings, in any order of the
// copies.
func encode(sealer *ownership.Sealer, syncTarget types.UID, mailbox string, copies []objectsync.PlacedCopy) string {
	fingerprints := newFingerprinter(sealer)
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
		return bytes.Compare(a.fingerprint[:], b.fingerprint[:])
	})
	states := States{SyncTarget: syncTarget, Mailbox: mailbox, Stuck: stuckCopiesOf(copies)}
	for _, e := range entries[:min(len(entries), maxCopies)] {
		last := len(states.Groups) - 1
		if last < 0 || states.Groups[last].state != e.state {
			states.Groups = append(states.Groups, group{state: e.state})
			last++
		}
		states.Groups[last].Copies = append(states.Groups[last].Copies, e.fingerprint[:]...)
		if e.state.hasMessage() && len(states.Details) < maxDetails {
			states.Details = append(states.Details, detail{e.fingerprint[:], redact.Truncate(e.message, maxMessage), e.differences[:min(len(e.differences), maxDifferences)]})
		}
	}
	// It consists of texts and numbers.
	content, _ := json.Marshal(&states)
	return string(content)
}

// newEntry returns the entry of a copy; ok is false if the copy is not synced.
func newEntry(fingerprints *fingerprinter, copied *objectsync.PlacedCopy) (e entry, ok bool) {
	resource, key := copied.Resource.GroupResource(), copied.Key
	switch found := &copied.State; {
	case found.Excluded:
		e = entry{state: state{Excluded: true}}
	case found.Failure != nil && found.Failure.Reason == plan.ReasonDrifted:
		e = entry{state: state{Reason: plan.ReasonDrifted, Health: found.Health.Status}, message: found.Failure.Message, differences: found.Failure.FieldDifferences()}
		e.fingerprint = fingerprints.of(resource, key, copied.Version)
		return e, true
	case found.Failure != nil:
		e = entry{state: state{Reason: found.Failure.Reason}, message: found.Failure.Message, differences: found.Failure.FieldDifferences()}
		if !validReason.MatchString(e.state.Reason) {
			e.state.Reason = plan.ReasonFailed
		}
	case found.Synced:
		return entry{fingerprint: fingerprints.of(resource, key, copied.Version), state: state{Health: found.Health.Status}, message: found.Health.Message}, true
	default:
		return entry{}, false
	}
	e.fingerprint = fingerprints.of(resource, key, objectsync.CopyVersion{})
	return e, true
}

// limitReasons replaces the reasons of failures beyond maxReasons by one common reason.
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

// compareStates orders failures first, then exclusions, then bad health, since copies beyond maxCopies are
// dropped from the end.
func compareStates(a, b state) int {
	rank := func(s state) int {
		switch {
		case s.Reason != "":
			return 0
		case s.Excluded:
			return 1
		default:
			return 2 + slices.Index([]health.Status{health.Failed, health.Unknown, health.Terminating, health.InProgress, health.Current}, s.Health)
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Health, b.Health))
}

// decode returns the states of a SyncTarget. The error is errNotSealed or wraps errMalformed. The length is checked, and the seal is
// verified, before anything is decoded.
func decode(sealer *ownership.Sealer, syncTarget types.UID, content, seal string) (*States, error) {
	if len(content) > maxContent {
		return nil, fmt.Errorf("%w: %d bytes", errMalformed, len(content))
	}
	if !sealer.VerifyText(seal, purpose, content) {
		return nil, errNotSealed
	}
	states, err := unmarshal(content)
	if err != nil {
		return nil, err
	}
	if states.SyncTarget != syncTarget {
		return nil, errNotSealed
	}
	states.fingerprinters.New = func() any { return newFingerprinter(sealer) }
	return states, nil
}

func unmarshal(content string) (*States, error) {
	states := &States{}
	if err := json.Unmarshal([]byte(content), states); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if len(states.Groups) > maxGroups || len(states.Details) > maxDetails || len(states.Stuck) > maxDetails {
		return nil, fmt.Errorf("%w: %d groups, %d messages and %d stuck copies", errMalformed, len(states.Groups), len(states.Details), len(states.Stuck))
	}
	for i := range states.Details {
		found := &states.Details[i]
		if len(found.Differences) > maxDifferences {
			return nil, fmt.Errorf("%w: %d fields of a copy", errMalformed, len(found.Differences))
		}
		found.Message = redact.Truncate(found.Message, maxMessage)
	}
	for i := range states.Groups {
		found := &states.Groups[i]
		if found.Reason != "" && !validReason.MatchString(found.Reason) || found.Health > health.Terminating {
			return nil, fmt.Errorf("%w: a group of an unknown kind", errMalformed)
		}
		if !found.isSorted() {
			return nil, fmt.Errorf("%w: a group is not sorted", errMalformed)
		}
	}
	return states, nil
}

// at returns one fingerprint of the group.
func (g *group) at(i int) []byte { return g.Copies[i*fingerprintBytes : (i+1)*fingerprintBytes] }

func (g *group) isSorted() bool {
	count := len(g.Copies) / fingerprintBytes
	for i := 1; i < count; i++ {
		if bytes.Compare(g.at(i-1), g.at(i)) > 0 {
			return false
		}
	}
	return len(g.Copies) == count*fingerprintBytes
}

func (g *group) has(wanted fingerprint) bool {
	_, found := sort.Find(len(g.Copies)/fingerprintBytes, func(i int) int { return bytes.Compare(wanted[:], g.at(i)) })
	return found
}

// State returns the state of a version of a copy. known is false if s is nil.
func (s *States) State(resource schema.GroupResource, key types.NamespacedName, version objectsync.CopyVersion) (found objectsync.SyncStatus, known bool) {
	if s == nil {
		return objectsync.SyncStatus{}, false
	}
	fingerprints := s.fingerprinters.Get().(*fingerprinter)
	defer s.fingerprinters.Put(fingerprints)
	ofObject := fingerprints.of(resource, key, objectsync.CopyVersion{})
	ofVersion := fingerprints.of(resource, key, version)
	found = objectsync.SyncStatus{Health: health.Health{Status: health.InProgress}}
	for i := range s.Groups {
		group := &s.Groups[i]
		switch {
		case group.isOfObject() && group.has(ofObject):
			found.Excluded = group.Excluded
			if !group.Excluded {
				found.Failure = s.failureOf(ofObject, group.state)
			}
			return found, true
		case !group.isOfObject() && ofVersion != ofObject && group.has(ofVersion):
			found.Synced = true
			if found.Health = (health.Health{Status: group.Health}); group.Reason != "" {
				found.Failure = s.failureOf(ofVersion, group.state)
			} else {
				found.Health.Message = s.messageOf(ofVersion, group.state)
			}
			return found, true
		}
	}
	return found, true
}

// failureOf returns the failure of a copy in a state.
func (s *States) failureOf(wanted fingerprint, of state) *objectsync.Failure {
	failure := &objectsync.Failure{Reason: of.Reason, Message: s.messageOf(wanted, of)}
	if at := slices.IndexFunc(s.Details, func(one detail) bool { return bytes.Equal(one.Fingerprint, wanted[:]) }); at >= 0 && len(s.Details[at].Differences) > 0 {
		failure.Differences = &s.Details[at].Differences
	}
	return failure
}

// messageOf returns the message of a copy in a state; empty if there is none to show.
func (s *States) messageOf(wanted fingerprint, of state) string {
	for _, one := range s.Details {
		if bytes.Equal(one.Fingerprint, wanted[:]) {
			return one.Message
		}
	}
	if of.hasMessage() {
		return generalMessage
	}
	return ""
}

// fingerprintBytes is the length of a fingerprint. Even in a mailbox with 100,000 copies, the chance of two
// equal fingerprints is one in ten million.
const fingerprintBytes = 7

// fingerprint is a keyed hash of the resource, the name and the version of a copy.
type fingerprint [fingerprintBytes]byte

// fingerprinter computes fingerprints. One goroutine at a time may use it.
type fingerprinter struct {
	mac hash.Hash
	buf []byte
}

// newFingerprinter returns a fingerprinter with a key that is derived from the sealer's. Without the key nobody
// can create two copies with equal fingerprints, or guess names from fingerprints.
func newFingerprinter(sealer *ownership.Sealer) *fingerprinter {
	return &fingerprinter{mac: hmac.New(sha256.New, []byte(sealer.SealText("copy-fingerprint", "")))}
}

// of returns the fingerprint of a version of a copy, or, if version is zero, of the copy in any version.
func (f *fingerprinter) of(resource schema.GroupResource, key types.NamespacedName, version objectsync.CopyVersion) fingerprint {
	f.mac.Reset()
	f.buf = f.buf[:0]
	for _, part := range []string{resource.Group, resource.Resource, key.Namespace, key.Name, string(version.UID), version.Mark} {
		// The length separates the parts, so that no part can continue in the next one.
		f.buf = binary.AppendUvarint(f.buf, uint64(len(part)))
		f.buf = append(f.buf, part...)
	}
	_, _ = f.mac.Write(f.buf)
	f.buf = f.mac.Sum(f.buf[:0])
	return fingerprint(f.buf[:fingerprintBytes])
}
