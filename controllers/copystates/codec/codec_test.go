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
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/health"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/provider/redact"
)

const (
	syncTarget = types.UID("5f1c")
	mailbox    = "2x7fz9k1"
)

var (
	sealer      = ownership.NewSealer(bytes.Repeat([]byte{1}, 32))
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

func newCopy(resource schema.GroupVersionResource, i int, state objectsync.ObjectState) objectsync.PlacementCopy {
	c := objectsync.PlacementCopy{Resource: resource, Key: types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("copy-", i)}, State: state}
	if state.Synced {
		c.Version = objectsync.PlacementCopyVersion{UID: types.UID(fmt.Sprint("uid-", i)), Mark: fmt.Sprint("mark-", i)}
	}
	return c
}

func failed(reason, message string) objectsync.ObjectState {
	return objectsync.ObjectState{Failure: &objectsync.Failure{Reason: reason, Message: message}}
}

func synced(status health.Status, message string) objectsync.ObjectState {
	return objectsync.ObjectState{Synced: true, Health: health.Health{Status: status, Message: message}}
}

// roundTrip returns the states as they are decoded.
func roundTrip(t testing.TB, copies []objectsync.PlacementCopy) *Set {
	t.Helper()
	content := Encode(sealer, syncTarget, mailbox, copies)
	set, err := Decode(sealer, syncTarget, mailbox, content, Seal(sealer, content))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// want is what placement makes of a state: a failure before all else, and no health of a copy that is not synced.
func want(state objectsync.ObjectState) objectsync.ObjectState {
	switch {
	case state.Excluded:
		return objectsync.ObjectState{Excluded: true, Health: health.Health{Status: health.InProgress}}
	case state.Failure != nil:
		message := redact.Truncate(state.Failure.Message, maxMessage)
		if state.Failure.Reason == plan.ReasonConflict {
			message = ""
		}
		return objectsync.ObjectState{Failure: &objectsync.Failure{Reason: state.Failure.Reason, Message: message}, Health: health.Health{Status: health.InProgress}}
	case state.Synced:
		return objectsync.ObjectState{Synced: true, Health: state.Health}
	default:
		return objectsync.ObjectState{Health: health.Health{Status: health.InProgress}}
	}
}

// Whatever the states are, the reader finds each again, for the version that was synced and for no other.
func TestStatesArriveAsTheyWereSent(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
	reasons := []string{plan.ReasonConflict, plan.ReasonForbidden, "Invalid", "QuotaExceeded"}
	for range 200 {
		var copies []objectsync.PlacementCopy
		messages := 0
		for i := range random.IntN(60) {
			state := objectsync.ObjectState{Synced: random.IntN(2) == 0, Excluded: random.IntN(10) == 0, Health: health.Health{Status: health.Status(random.IntN(5))}} //nolint:gosec // less than 5
			if random.IntN(4) == 0 && messages < maxDetails {
				state.Failure = &objectsync.Failure{Reason: reasons[random.IntN(len(reasons))], Message: strings.Repeat("é", random.IntN(300))}
				messages++
			}
			if state.Health.Status == health.Failed || state.Health.Status == health.Unknown {
				if messages++; messages > maxDetails {
					state.Health.Status = health.Current
				} else {
					state.Health.Message = fmt.Sprint("crashed ", i)
				}
			}
			copies = append(copies, newCopy([]schema.GroupVersionResource{deployments, configMaps}[random.IntN(2)], i, state))
		}
		set := roundTrip(t, copies)
		for _, c := range copies {
			resource := c.Resource.GroupResource()
			if got, known := set.State(resource, c.Key, c.Version); !known || !got.Equal(want(c.State)) {
				t.Fatalf("seed %d: sent %+v %+v, got %+v", seed, c.State, c.State.Failure, got)
			}
			for name, other := range map[string]objectsync.PlacementCopyVersion{
				"no copy": {}, "an edited copy": {UID: c.Version.UID, Mark: "other"}, "a copy that was made again": {UID: "other", Mark: c.Version.Mark},
			} {
				notSynced := c.State
				notSynced.Synced = false
				if got, _ := set.State(resource, c.Key, other); !got.Equal(want(notSynced)) {
					t.Fatalf("seed %d: %s: sent %+v, got %+v", seed, name, c.State, got)
				}
			}
		}
		shuffled := slices.Clone(copies)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if !bytes.Equal(Encode(sealer, syncTarget, mailbox, copies), Encode(sealer, syncTarget, mailbox, shuffled)) {
			t.Fatalf("seed %d: the order of the copies changes the content, so that each pass would write it", seed)
		}
	}
}

func TestNobodyHasToldOfAnyCopy(t *testing.T) {
	var set *Set
	if _, known := set.State(deployments.GroupResource(), types.NamespacedName{}, objectsync.PlacementCopyVersion{}); known || set.Sequence() != 0 || set.Mailbox() != "" {
		t.Error("a state is known")
	}
}

// Only the first failures have their messages. A message never grows the content, and never has a credential.
func TestFirstMessagesOnly(t *testing.T) {
	var copies []objectsync.PlacementCopy
	for i := range 1000 {
		copies = append(copies, newCopy(deployments, i, failed(plan.ReasonForbidden, strings.Repeat("<\x01>", 400))))
		copies = append(copies, newCopy(configMaps, i, synced(health.Failed, "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U")))
	}
	content := Encode(sealer, syncTarget, mailbox, copies)
	if len(content) > 2000*fingerprintBytes+maxHeader || bytes.Contains(content, []byte("dozjgNryP4J3jVmNHl0w5N")) {
		t.Errorf("got %d bytes", len(content))
	}
	set, general := roundTrip(t, copies), 0
	for _, c := range copies {
		got, _ := set.State(c.Resource.GroupResource(), c.Key, c.Version)
		if got.Failure == nil && !got.Synced {
			t.Fatalf("got %+v", got)
		}
		if got.Failure != nil && got.Failure.Message == generalMessage || got.Health.Message == generalMessage {
			general++
		}
	}
	if general != len(copies)-maxDetails {
		t.Errorf("%d of %d have the general message", general, len(copies))
	}
}

func TestSize(t *testing.T) {
	copies := make([]objectsync.PlacementCopy, 0, MaxCopies+1)
	for i := range MaxCopies {
		copies = append(copies, newCopy(deployments, i, synced(health.Current, "")))
	}
	if size := len(Encode(sealer, syncTarget, mailbox, copies[:10_000])); size > 81_000 {
		t.Errorf("10,000 copies take %d bytes", size)
	}
	refused := newCopy(configMaps, 0, failed(plan.ReasonForbidden, "no"))
	set := roundTrip(t, append(copies, refused))
	if got, _ := set.State(configMaps.GroupResource(), refused.Key, objectsync.PlacementCopyVersion{}); got.Failure == nil {
		t.Error("beyond the limit, failures must not be left out")
	}
	left := 0
	for _, c := range copies {
		if got, _ := set.State(c.Resource.GroupResource(), c.Key, c.Version); !got.Synced {
			left++
		}
	}
	if left != 1 {
		t.Errorf("%d copies are left out", left)
	}
}

// A copy may fail for a reason that a status would not accept, and copies for more reasons than are told apart.
func TestManyReasons(t *testing.T) {
	var copies []objectsync.PlacementCopy
	for i := range 3 * maxGroups {
		copies = append(copies, newCopy(deployments, i, failed(fmt.Sprint("Reason", i), "no")))
	}
	set := roundTrip(t, append(copies, newCopy(configMaps, 1, synced(health.Current, ""))))
	for _, c := range copies {
		if got, _ := set.State(c.Resource.GroupResource(), c.Key, c.Version); got.Failure == nil || got.Failure.Reason != c.State.Failure.Reason && got.Failure.Reason != plan.ReasonFailed {
			t.Errorf("%s: got %+v", c.State.Failure.Reason, got.Failure)
		}
	}
	invalid := newCopy(configMaps, 0, failed("not a reason", "no"))
	if got, _ := roundTrip(t, []objectsync.PlacementCopy{invalid}).State(configMaps.GroupResource(), invalid.Key, objectsync.PlacementCopyVersion{}); got.Failure == nil || got.Failure.Reason != plan.ReasonFailed {
		t.Errorf("got %+v", got.Failure)
	}
}

func TestSequenceIsNoPartOfTheDigest(t *testing.T) {
	content := Encode(sealer, syncTarget, mailbox, []objectsync.PlacementCopy{newCopy(deployments, 1, synced(health.Current, ""))})
	digest := Digest(content)
	SetSequence(content, 1_700_000_000_000)
	set, err := Decode(sealer, syncTarget, mailbox, content, Seal(sealer, content))
	if err != nil || set.Sequence() != 1_700_000_000_000 || Digest(content) != digest {
		t.Errorf("got %v, %v", set.Sequence(), err)
	}
}

func TestForgedStatesAreRefused(t *testing.T) {
	content := Encode(sealer, syncTarget, mailbox, []objectsync.PlacementCopy{newCopy(deployments, 1, synced(health.Current, ""))})
	seal := Seal(sealer, content)
	changed := bytes.Clone(content)
	changed[len(changed)-1]++
	another := ownership.NewSealer(bytes.Repeat([]byte{2}, 32))
	for name, decode := range map[string]func() (*Set, error){
		"changed content":    func() (*Set, error) { return Decode(sealer, syncTarget, mailbox, changed, seal) },
		"another key":        func() (*Set, error) { return Decode(another, syncTarget, mailbox, content, seal) },
		"no seal":            func() (*Set, error) { return Decode(sealer, syncTarget, mailbox, content, "") },
		"another SyncTarget": func() (*Set, error) { return Decode(sealer, "other", mailbox, content, seal) },
		"another mailbox":    func() (*Set, error) { return Decode(sealer, syncTarget, "other", content, seal) },
		"a seal for another text": func() (*Set, error) {
			return Decode(sealer, syncTarget, mailbox, content, sealer.SealText("another", string(content)))
		},
	} {
		if _, err := decode(); !errors.Is(err, ErrNotSealed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// encoded returns a header and fingerprints as they are stored.
func encoded(header string, fingerprints ...uint64) []byte {
	content := make([]byte, headerOffset)
	content[0] = formatVersion
	binary.BigEndian.PutUint32(content[headerOffset-4:], uint32(len(header))) //nolint:gosec // a few bytes
	content = slices.Concat(content, []byte(header))
	for _, fingerprint := range fingerprints {
		content = binary.BigEndian.AppendUint64(content, fingerprint)
	}
	return content
}

func TestMalformedStatesAreRefused(t *testing.T) {
	if _, _, err := decode(encoded(`{"groups": [{"count": 2, "health": 1}]}`, 1, 2)); err != nil {
		t.Fatal(err)
	}
	longHeader := encoded("{}")
	binary.BigEndian.PutUint32(longHeader[headerOffset-4:], 3)
	for name, content := range map[string][]byte{
		"nothing":                nil,
		"another format":         append([]byte{formatVersion + 1}, encoded("{}")[1:]...),
		"a header past the end":  longHeader,
		"a header without JSON":  encoded("{"),
		"too many copies":        encoded(`{"groups": [{"count": 1000000000000}]}`, 1, 2),
		"a negative count":       encoded(`{"groups": [{"count": -1}]}`, 1),
		"too few copies":         encoded(`{"groups": [{"count": 1}]}`, 1, 2),
		"copies without a group": encoded(`{}`, 1),
		"half a copy":            append(encoded(`{"groups": [{"count": 1}]}`, 1), 1),
		"unsorted copies":        encoded(`{"groups": [{"count": 2}]}`, 2, 1),
		"an unknown health":      encoded(`{"groups": [{"count": 1, "health": 9}]}`, 1),
		"no reason":              encoded(`{"groups": [{"count": 1, "reason": "a b"}]}`, 1),
		"too many groups":        encoded(`{"groups": [`+strings.Repeat(`{"count": 1},`, maxGroups)+`{"count": 1}]}`, make([]uint64, maxGroups+1)...),
		"too many messages":      encoded(`{"details": [` + strings.Repeat(`{},`, maxDetails) + `{}]}`),
		"a long header":          encoded(strings.Repeat(" ", maxHeader) + "{}"),
	} {
		if _, _, err := decode(content); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	large := make([]byte, maxContent+1)
	if _, err := Decode(sealer, syncTarget, mailbox, large, Seal(sealer, large)); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %v", err)
	}
}

// Decoding ends for any sealed content, and holds no more than the content has.
func FuzzDecode(f *testing.F) {
	f.Add(encoded(`{"syncTarget": "5f1c", "mailbox": "2x7fz9k1", "groups": [{"count": 2, "health": 1}, {"count": 1, "reason": "Forbidden"}], "details": [{"fingerprint": 3, "message": "no"}]}`, 1, 2, 3))
	f.Add(Encode(sealer, syncTarget, mailbox, []objectsync.PlacementCopy{newCopy(deployments, 1, synced(health.Failed, "crashed")), newCopy(deployments, 2, objectsync.ObjectState{Excluded: true})}))
	f.Add(encoded(`{"groups": [{"count": 9223372036854775807}]}`, 1))
	f.Fuzz(func(t *testing.T, content []byte) {
		_, set, err := decode(content)
		if err != nil {
			return
		}
		held := 0
		for _, group := range set.groups {
			held += len(group.copies)
		}
		if held*fingerprintBytes > len(content) || len(set.details) > maxDetails {
			t.Errorf("%d copies and %d messages in %d bytes", held, len(set.details), len(content))
		}
		for _, message := range set.details {
			if len(message) > maxMessage+len("…") {
				t.Errorf("a message of %d bytes", len(message))
			}
		}
		set.fingerprints.New = func() any { return newFingerprinter("key") }
		if state, known := set.State(deployments.GroupResource(), types.NamespacedName{Name: "a"}, objectsync.PlacementCopyVersion{}); !known || state.Synced {
			t.Errorf("got %+v", state)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	copies := make([]objectsync.PlacementCopy, 0, 10_000)
	for i := range cap(copies) {
		copies = append(copies, newCopy(deployments, i, synced(health.Current, "")))
	}
	for b.Loop() {
		Encode(sealer, syncTarget, mailbox, copies)
	}
}

func BenchmarkState(b *testing.B) {
	copies := make([]objectsync.PlacementCopy, 0, 10_000)
	for i := range cap(copies) {
		copies = append(copies, newCopy(deployments, i, synced(health.Current, "")))
	}
	set := roundTrip(b, copies)
	for b.Loop() {
		set.State(copies[7].Resource.GroupResource(), copies[7].Key, copies[7].Version)
	}
}
