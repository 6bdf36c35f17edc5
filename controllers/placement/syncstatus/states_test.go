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
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/topic"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// newCopyOf returns the copy with a number, in a state.
func newCopyOf(resource schema.GroupVersionResource, i int, state objectsync.SyncStatus) objectsync.PlacedCopy {
	c := objectsync.PlacedCopy{Resource: resource, Key: types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("copy-", i)}, State: state}
	if state.Synced {
		c.Version = objectsync.CopyVersion{UID: types.UID(fmt.Sprint("uid-", i)), Mark: fmt.Sprint("mark-", i)}
	}
	return c
}

func failed(reason, message string) objectsync.SyncStatus {
	return objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: reason, Message: message}}
}

func synced(status health.Status, message string) objectsync.SyncStatus {
	return objectsync.SyncStatus{Synced: true, Health: health.Health{Status: status, Message: message}}
}

// roundTrip encodes and decodes states.
func roundTrip(t testing.TB, copies []objectsync.PlacedCopy) *States {
	t.Helper()
	content := encode(sealer, syncTarget, mailbox.String(), copies)
	states, err := decode(sealer, syncTarget, content, sealer.SealText(purpose, content))
	if err != nil {
		t.Fatal(err)
	}
	return states
}

// want returns the state that placement needs: a failure precedes everything else, and a copy that is not
// synced has no health.
func want(state objectsync.SyncStatus) objectsync.SyncStatus {
	switch {
	case state.Excluded:
		return objectsync.SyncStatus{Excluded: true, Health: health.Health{Status: health.InProgress}}
	case state.Failure != nil:
		message := redact.Truncate(state.Failure.Message, maxMessage)
		if state.Failure.Reason == plan.ReasonConflict {
			message = ""
		}
		return objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: state.Failure.Reason, Message: message}, Health: health.Health{Status: health.InProgress}}
	case state.Synced:
		return objectsync.SyncStatus{Synced: true, Health: state.Health}
	default:
		return objectsync.SyncStatus{Health: health.Health{Status: health.InProgress}}
	}
}

// The reader finds every state of a copy, for the synced version only.
func TestStatesArriveAsTheyWereSent(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
	reasons := []string{plan.ReasonConflict, plan.ReasonForbidden, "Invalid", "QuotaExceeded"}
	for range 200 {
		var copies []objectsync.PlacedCopy
		messages := 0
		for i := range random.IntN(60) {
			state := objectsync.SyncStatus{Synced: random.IntN(2) == 0, Excluded: random.IntN(10) == 0, Health: health.Health{Status: health.Status(random.IntN(5))}} //nolint:gosec // less than 5
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
			copies = append(copies, newCopyOf([]schema.GroupVersionResource{deployments, configMaps}[random.IntN(2)], i, state))
		}
		set := roundTrip(t, copies)
		for _, c := range copies {
			resource := c.Resource.GroupResource()
			if got, known := set.State(resource, c.Key, c.Version); !known || !got.Equal(want(c.State)) {
				t.Fatalf("seed %d: sent %+v %+v, got %+v", seed, c.State, c.State.Failure, got)
			}
			for name, other := range map[string]objectsync.CopyVersion{
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
		if encode(sealer, syncTarget, mailbox.String(), copies) != encode(sealer, syncTarget, mailbox.String(), shuffled) {
			t.Fatalf("seed %d: the order of the copies changes the content, so that each pass would write it", seed)
		}
	}
}

func TestNilStatesKnowNoCopy(t *testing.T) {
	var none *States
	if _, known := none.State(deployments.GroupResource(), types.NamespacedName{}, objectsync.CopyVersion{}); known {
		t.Error("a nil States has a state")
	}
}

// Only the first failures have their messages. The length of the content is bounded for all messages,
// and it never contains a credential.
func TestFirstMessagesOnly(t *testing.T) {
	var copies []objectsync.PlacedCopy
	for i := range 1000 {
		copies = append(copies, newCopyOf(deployments, i, failed(plan.ReasonForbidden, strings.Repeat("<\x01>", 400))))
		copies = append(copies, newCopyOf(configMaps, i, synced(health.Failed, "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U")))
	}
	content := encode(sealer, syncTarget, mailbox.String(), copies)
	if len(content) > maxContent-maxCopies*fingerprintBytes/3*4+2000*fingerprintBytes/3*4 || strings.Contains(content, "dozjgNryP4J3jVmNHl0w5N") {
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
	copies := make([]objectsync.PlacedCopy, 0, maxCopies+1)
	for i := range maxCopies {
		copies = append(copies, newCopyOf(deployments, i, synced(health.Current, "")))
	}
	if size := len(encode(sealer, syncTarget, mailbox.String(), copies[:10_000])); size > 94_000 {
		t.Errorf("10,000 copies take %d bytes", size)
	}
	refused := newCopyOf(configMaps, 0, failed(plan.ReasonForbidden, "no"))
	if size := len(encode(sealer, syncTarget, mailbox.String(), copies)); size > 1<<20-1024 {
		t.Errorf("a ConfigMap cannot have %d bytes", size)
	}
	set := roundTrip(t, append(copies, refused))
	if got, _ := set.State(configMaps.GroupResource(), refused.Key, objectsync.CopyVersion{}); got.Failure == nil {
		t.Error("a failure is dropped at the limit")
	}
	left := 0
	for _, c := range copies {
		if got, _ := set.State(c.Resource.GroupResource(), c.Key, c.Version); !got.Synced {
			left++
		}
	}
	if left != 1 {
		t.Errorf("%d copies are missing", left)
	}
}

// A copy may fail with a reason that a status would not accept, and copies may have more reasons than can be
// encoded.
func TestManyReasons(t *testing.T) {
	var copies []objectsync.PlacedCopy
	for i := range 3 * maxGroups {
		copies = append(copies, newCopyOf(deployments, i, failed(fmt.Sprint("Reason", i), "no")))
	}
	set := roundTrip(t, append(copies, newCopyOf(configMaps, 1, synced(health.Current, ""))))
	for _, c := range copies {
		if got, _ := set.State(c.Resource.GroupResource(), c.Key, c.Version); got.Failure == nil || got.Failure.Reason != c.State.Failure.Reason && got.Failure.Reason != plan.ReasonFailed {
			t.Errorf("%s: got %+v", c.State.Failure.Reason, got.Failure)
		}
	}
	invalid := newCopyOf(configMaps, 0, failed("not a reason", "no"))
	if got, _ := roundTrip(t, []objectsync.PlacedCopy{invalid}).State(configMaps.GroupResource(), invalid.Key, objectsync.CopyVersion{}); got.Failure == nil || got.Failure.Reason != plan.ReasonFailed {
		t.Errorf("got %+v", got.Failure)
	}
}

func TestForgedStatesAreRefused(t *testing.T) {
	content := encode(sealer, syncTarget, mailbox.String(), []objectsync.PlacedCopy{newCopyOf(deployments, 1, synced(health.Current, ""))})
	seal := sealer.SealText(purpose, content)
	another := ownership.NewSealer(bytes.Repeat([]byte{2}, 32))
	for name, decoded := range map[string]func() (*States, error){
		"changed content":    func() (*States, error) { return decode(sealer, syncTarget, content+" ", seal) },
		"another key":        func() (*States, error) { return decode(another, syncTarget, content, seal) },
		"no seal":            func() (*States, error) { return decode(sealer, syncTarget, content, "") },
		"another SyncTarget": func() (*States, error) { return decode(sealer, "other", content, seal) },
		"a seal for another text": func() (*States, error) {
			return decode(sealer, syncTarget, content, sealer.SealText("another", content))
		},
	} {
		if _, err := decoded(); !errors.Is(err, errNotSealed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestMalformedStatesAreRefused(t *testing.T) {
	// The fingerprints of the copies are 1 and 2.
	if _, err := unmarshal(`{"groups": [{"copies": "AAAAAAAAAQAAAAAAAAI=", "health": 1}]}`); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"nothing":           "",
		"another format":    "\x01{}",
		"no JSON":           "{",
		"no base64":         `{"groups": [{"copies": "!"}]}`,
		"half a copy":       `{"groups": [{"copies": "AAAAAAAAAQA="}]}`,
		"unsorted copies":   `{"groups": [{"copies": "AAAAAAAAAgAAAAAAAAE="}]}`,
		"an unknown health": `{"groups": [{"health": 9}]}`,
		"no health":         `{"groups": [{"health": -1}]}`,
		"no reason":         `{"groups": [{"reason": "a b"}]}`,
		"too many groups":   `{"groups": [` + strings.Repeat(`{},`, maxGroups) + `{}]}`,
		"too many messages": `{"details": [` + strings.Repeat(`{},`, maxDetails) + `{}]}`,
	} {
		if _, err := unmarshal(content); !errors.Is(err, errMalformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	large := strings.Repeat(" ", maxContent+1)
	if _, err := decode(sealer, syncTarget, large, sealer.SealText(purpose, large)); !errors.Is(err, errMalformed) {
		t.Errorf("got %v", err)
	}
}

// Decoding ends for any sealed content, and the result is no larger than the content.
func FuzzDecode(f *testing.F) {
	f.Add(`{"syncTarget": "5f1c", "mailbox": "2x7fz9k1", "groups": [{"copies": "AAAAAAAAAQAAAAAAAAI=", "health": 1}, {"copies": "", "reason": "Forbidden"}], "details": [{"fingerprint": "AAAAAAAAAQ==", "message": "no"}]}`)
	f.Add(encode(sealer, syncTarget, mailbox.String(), []objectsync.PlacedCopy{newCopyOf(deployments, 1, synced(health.Failed, "crashed")), newCopyOf(deployments, 2, objectsync.SyncStatus{Excluded: true})}))
	f.Fuzz(func(t *testing.T, content string) {
		states, err := unmarshal(content)
		if err != nil {
			return
		}
		held := 0
		for _, group := range states.Groups {
			held += len(group.Copies)
		}
		if held > len(content) || len(states.Details) > maxDetails {
			t.Errorf("%d bytes of copies and %d messages in %d bytes", held, len(states.Details), len(content))
		}
		for _, one := range states.Details {
			if len(one.Message) > maxMessage+len("…") {
				t.Errorf("a message of %d bytes", len(one.Message))
			}
		}
		states.fingerprinters.New = func() any { return newFingerprinter(sealer) }
		if state, known := states.State(deployments.GroupResource(), types.NamespacedName{Name: "a"}, objectsync.CopyVersion{}); !known || state.Synced {
			t.Errorf("got %+v", state)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	copies := make([]objectsync.PlacedCopy, 0, 10_000)
	for i := range cap(copies) {
		copies = append(copies, newCopyOf(deployments, i, synced(health.Current, "")))
	}
	for b.Loop() {
		encode(sealer, syncTarget, mailbox.String(), copies)
	}
}

func BenchmarkState(b *testing.B) {
	copies := make([]objectsync.PlacedCopy, 0, 10_000)
	for i := range cap(copies) {
		copies = append(copies, newCopyOf(deployments, i, synced(health.Current, "")))
	}
	set := roundTrip(b, copies)
	for b.Loop() {
		set.State(copies[7].Resource.GroupResource(), copies[7].Key, copies[7].Version)
	}
}

// The workspaces of stuck copies arrive, in a stable order, and no more than a report has room for.
func TestStuckCopiesArrive(t *testing.T) {
	var copies []objectsync.PlacedCopy
	for i := range maxDetails + 5 {
		stuck := newCopyOf(configMaps, i, failed(plan.ReasonCannotWithdraw, "no"))
		stuck.Workspace = "team"
		copies = append(copies, newCopyOf(deployments, i, failed(plan.ReasonForbidden, "no")), stuck)
	}
	refs := roundTrip(t, copies).stuckRefs()
	if len(refs) != maxDetails {
		t.Errorf("%d copies are stuck", len(refs))
	}
	slices.Reverse(copies)
	if other := roundTrip(t, copies).stuckRefs(); !slices.Equal(refs, other) {
		t.Errorf("the order of the copies matters: %v, and %v", refs, other)
	}
	want := objectsync.ObjectRef{SyncTarget: syncTarget, Mailbox: mailbox, Resource: configMaps, Key: copies[len(copies)-1].Key, Workspace: "team"}
	if !slices.Contains(refs, want) {
		t.Errorf("%v is missing in %v", want, refs)
	}
}

// A store publishes each stuck copy once, when it becomes stuck and when it is removed.
func TestChangesOfStuckCopiesArePublished(t *testing.T) {
	changes := &topic.Topic[objectsync.ObjectRef]{}
	var published []objectsync.ObjectRef
	changes.Subscribe(t.Context(), func(ref objectsync.ObjectRef) { published = append(published, ref) })
	store := NewStore(StoreOptions{Published: func() []plan.Resource { return nil }, SyncStatusChanged: changes})
	stuck := newCopyOf(configMaps, 1, failed(plan.ReasonCannotWithdraw, "no"))
	stuck.Workspace = "team"
	for _, step := range []struct {
		what   string
		copies []objectsync.PlacedCopy
		events int
	}{{"it becomes stuck", []objectsync.PlacedCopy{stuck}, 1}, {"it stays", []objectsync.PlacedCopy{stuck}, 0}, {"it is removed", nil, 1}} {
		published = nil
		store.Set(syncTarget, roundTrip(t, step.copies))
		if len(published) != step.events {
			t.Errorf("%s: published %v", step.what, published)
		}
	}
	if len(store.StuckCopies()) != 0 {
		t.Error("a copy is still stuck")
	}
}

// A drifted copy has the content of one version, its health, and the first fields that differ.
func TestDrift(t *testing.T) {
	var differences []edgev2alpha1.FieldDifference
	for i := range edgev2alpha1.MaxDifferences {
		differences = append(differences, edgev2alpha1.FieldDifference{Path: fmt.Sprint(".data.", i), Managers: []string{"somebody"}, Desired: "1", Observed: "2"})
	}
	state := synced(health.Current, "")
	state.Failure = &objectsync.Failure{Reason: plan.ReasonDrifted, Message: "it differs", Differences: &differences}
	drifted, reported := newCopyOf(deployments, 1, state), newCopyOf(deployments, 2, failed(plan.ReasonAdoptionReported, "it would change"))
	reported.State.Failure.Differences = &differences
	states := roundTrip(t, []objectsync.PlacedCopy{drifted, reported, newCopyOf(deployments, 3, synced(health.Current, ""))})
	got, _ := states.State(deployments.GroupResource(), drifted.Key, drifted.Version)
	if !got.Synced || got.Health.Status != health.Current || got.Failure == nil || got.Failure.Message != "it differs" || len(got.Failure.FieldDifferences()) != maxDifferences || got.Failure.FieldDifferences()[4].Path != ".data.4" {
		t.Errorf("%+v, %+v", got, got.Failure)
	}
	if got, _ := states.State(deployments.GroupResource(), drifted.Key, objectsync.CopyVersion{UID: "other", Mark: "other"}); got.Failure != nil || got.Synced {
		t.Errorf("another version: %+v", got)
	}
	if got, _ := states.State(deployments.GroupResource(), reported.Key, drifted.Version); got.Synced || got.Failure == nil || got.Failure.Reason != plan.ReasonAdoptionReported || len(got.Failure.FieldDifferences()) != maxDifferences {
		t.Errorf("%+v, %+v", got, got.Failure)
	}
}
