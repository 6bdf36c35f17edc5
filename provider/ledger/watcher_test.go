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

package ledger

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (s *fakeStore) shared() *Store {
	return New(Options{Client: s, Reader: s, WatchClient: s, Clock: testclock.NewFakeClock(noon), Log: logr.Discard()})
}

func configMapOf(entry, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "florin", ResourceVersion: version}, Data: map[string]string{entryKey: entry}}
}

// An event replaces what is older, and forgets what was deleted later.
func TestEventsInAnyOrder(t *testing.T) {
	type events = func(reflectorStore) error
	stored := func(mailbox, version string) events {
		return func(s reflectorStore) error {
			return s.Add(configMapOf(`{"mailbox":"`+mailbox+`"}`, version))
		}
	}
	cleanedUp := func(version string) events {
		return func(s reflectorStore) error { return s.Add(configMapOf(`{"cleanedUp":true}`, version)) }
	}
	deleted := func(version string) events {
		return func(s reflectorStore) error { return s.Delete(configMapOf("{}", version)) }
	}
	listed := func(version string, all ...any) events {
		return func(s reflectorStore) error { return s.Replace(all, version) }
	}
	for name, test := range map[string]struct {
		events []events
		want   string
		// changes is how often the change of the entry is published.
		changes int
	}{
		"nothing":                          {},
		"one":                              {[]events{stored("a", "9")}, "a", 1},
		"a newer one":                      {[]events{stored("a", "9"), stored("b", "10")}, "b", 2},
		"an older one":                     {[]events{stored("b", "10"), stored("a", "9")}, "b", 1},
		"the same again":                   {[]events{stored("a", "9"), stored("a", "9")}, "a", 1},
		"a deletion by somebody else":      {[]events{stored("a", "9"), deleted("10")}, "a", 2},
		"a deletion by the leader":         {[]events{stored("a", "9"), cleanedUp("10"), deleted("11")}, "", 3},
		"an old deletion":                  {[]events{stored("b", "11"), deleted("10")}, "b", 1},
		"a deletion of nothing":            {[]events{deleted("10")}, "", 0},
		"created again":                    {[]events{stored("a", "9"), deleted("10"), stored("b", "11")}, "b", 3},
		"a list without it":                {[]events{stored("a", "9"), listed("10")}, "a", 2},
		"a list after the cleanup":         {[]events{cleanedUp("9"), listed("10")}, "", 2},
		"a list from before it was stored": {[]events{stored("b", "11"), listed("10")}, "b", 1},
		"a list with it":                   {[]events{listed("10", configMapOf(`{"mailbox":"a"}`, "9"))}, "a", 1},
		"a list with an older one":         {[]events{stored("b", "11"), listed("10", configMapOf(`{"mailbox":"a"}`, "9"))}, "b", 1},
	} {
		t.Run(name, func(t *testing.T) {
			l, changes := newFakeStore().shared(), 0
			l.Subscribe(t.Context(), func(syncTarget types.UID) {
				if syncTarget == "florin" {
					changes++
				}
			})
			store := reflectorStore{l.Watcher()}
			for _, event := range test.events {
				if err := event(store); err != nil {
					t.Fatal(err)
				}
			}
			if got := l.Get("florin").Mailbox; got != test.want || changes != test.changes {
				t.Errorf("got %q, and %d changes", got, changes)
			}
			if count := len(l.records); count != min(len(test.want), 1) {
				t.Errorf("%d records", count)
			}
		})
	}
}

// An event that comes during a write of the same entry does not lose the write, and the write does not lose the event.
func TestEventsDuringAWrite(t *testing.T) {
	for name, test := range map[string]struct {
		// during is called between the request and its answer. version is that which the write stores.
		during func(s reflectorStore, version string) error
		want   string
	}{
		"nothing": {func(reflectorStore, string) error { return nil }, "m"},
		"the event of it": {func(s reflectorStore, version string) error {
			return s.Update(configMapOf(`{"mailbox":"m"}`, version))
		}, "m"},
		"an older event": {func(s reflectorStore, _ string) error { return s.Update(configMapOf(`{"mailbox":"o"}`, "1")) }, "m"},
		"a newer event": {func(s reflectorStore, _ string) error {
			return s.Update(configMapOf(`{"mailbox":"n"}`, "2000"))
		}, "n"},
		"a deletion before": {func(s reflectorStore, _ string) error { return s.Delete(configMapOf("", "1")) }, "m"},
		"a deletion after":  {func(s reflectorStore, _ string) error { return s.Delete(configMapOf("", "2000")) }, "m"},
		"a list without it": {func(s reflectorStore, _ string) error { return s.Replace(nil, "2000") }, "m"},
		"a deletion after the cleanup": {func(s reflectorStore, _ string) error {
			return errors.Join(s.Update(configMapOf(`{"mailbox":"n","cleanedUp":true}`, "2000")), s.Delete(configMapOf("", "2001")))
		}, ""},
		"deleted and stored": {func(s reflectorStore, _ string) error {
			return errors.Join(s.Delete(configMapOf("", "2000")), s.Update(configMapOf(`{"mailbox":"p"}`, "2001")))
		}, "p"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeStore()
			l := s.shared()
			store := reflectorStore{l.Watcher()}
			s.update(t, l, func(entry *Entry) { entry.Mailbox = "l" })
			s.after = func(written client.Object) {
				if err := test.during(store, written.GetResourceVersion()); err != nil {
					t.Error(err)
				}
			}
			s.update(t, l, func(entry *Entry) { entry.Mailbox = "m" })
			if got := l.Get("florin").Mailbox; got != test.want {
				t.Errorf("got %q", got)
			}
			if all := len(l.records); all != min(len(test.want), 1) {
				t.Errorf("%d records", all)
			}
		})
	}
}

// The new owner of a SyncTarget reads the entry again, so that it has all writes of the former one.
func TestReadOfTheNextHolder(t *testing.T) {
	s := newFakeStore()
	former, next := s.shared(), s.shared()
	var changed []types.UID
	next.Subscribe(t.Context(), func(syncTarget types.UID) { changed = append(changed, syncTarget) })
	close(next.loaded)
	s.update(t, former, func(entry *Entry) { entry.Mailbox = "m" })
	expectRead(t, next, Entry{Mailbox: "m"})
	if entry := next.Get("florin"); entry.Mailbox != "m" {
		t.Errorf("got %+v", entry)
	}
	if all, loaded := next.SyncTargets(); !loaded || !slices.Equal(all, []types.UID{"florin"}) {
		t.Errorf("got %v", all)
	}
	s.update(t, next, func(entry *Entry) { entry.VerifiedGeneration = 3 })
	s.update(t, former, func(entry *Entry) { entry.Mailbox = "n" })
	expectRead(t, next, Entry{Mailbox: "n", VerifiedGeneration: 3})
	if !next.setRecord(next.records["florin"], Entry{Mailbox: "o", CleanedUp: true}, "2000") {
		t.Fatal("a newer entry is refused")
	}
	// An event was quicker than the read.
	expectRead(t, next, Entry{Mailbox: "o"})
	if err := former.Delete(t.Context(), "florin"); err != nil {
		t.Fatal(err)
	}
	expectRead(t, next, Entry{})
	if len(next.records) != 0 {
		t.Errorf("of a SyncTarget that is gone: %+v", next.records)
	}
	if want := []types.UID{"florin", "florin", "florin"}; !slices.Equal(changed, want) {
		t.Errorf("published %v", changed)
	}
}

// expectRead reads the entry of florin.
func expectRead(t *testing.T, s *Store, want Entry) {
	t.Helper()
	if entry, err := s.Read(t.Context(), "florin"); err != nil || entry.Mailbox != want.Mailbox || entry.VerifiedGeneration != want.VerifiedGeneration {
		t.Errorf("got %+v, %v", entry, err)
	}
}

// A owner that writes an entry late does not bring back the entry of a SyncTarget that is gone.
func TestLateWritesAfterTheDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		write func(*Store, context.Context, types.UID, func(*Entry)) error
		entry Entry
		want  bool
	}{
		"an answer":                         {(*Store).UpdateExisting, Entry{Mailbox: "m", CleanedUp: true}, false},
		"a fact after the cleanup":          {(*Store).Update, Entry{Mailbox: "m", CleanedUp: true}, false},
		"a fact of what somebody else lost": {(*Store).Update, Entry{Mailbox: "m"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeStore()
			holder, leader := s.shared(), s.shared()
			s.update(t, holder, func(entry *Entry) { *entry = test.entry })
			if err := leader.Delete(t.Context(), "florin"); err != nil {
				t.Fatal(err)
			}
			if err := test.write(holder, t.Context(), "florin", func(entry *Entry) { entry.VerifiedGeneration = 1 }); err != nil {
				t.Fatal(err)
			}
			entry, err := leader.Read(t.Context(), "florin")
			if exists := entry.Mailbox != ""; err != nil || exists != test.want || len(holder.records) != len(leader.records) {
				t.Errorf("got %+v, %v", entry, err)
			}
		})
	}
}

// A replica works once a leader of its own hub does, and ends when another hub takes over.
func TestReplicasFollowTheirOwnLeader(t *testing.T) {
	s, clock := newFakeStore(), testclock.NewFakeClock(noon)
	hub := func(lease string) *Store {
		return New(Options{Client: s, Reader: s, WatchClient: s, Clock: clock, Log: logr.Discard(), Identity: func(context.Context) (HubIdentity, error) { return HubIdentity{Lease: lease}, nil }})
	}
	lead := func(l *Store) {
		t.Helper()
		if err := errors.Join(l.load(t.Context()), l.renewLeader(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	lead(hub("other"))
	leader, replica := hub("one"), hub("one")
	watcher := replica.Watcher()
	awaited := make(chan error)
	go func() {
		_, err := watcher.awaitLeader(t.Context())
		awaited <- err
	}()
	awaitWaiter(clock)
	clock.Step(3 * time.Minute)
	select {
	case err := <-awaited:
		t.Fatalf("beside another hub: %v", err)
	default:
	}
	leader.self = HubIdentity{Lease: "one"}
	leader.leaderVersion = mustLeader(t, leader).version
	if err := leader.renewLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	renewTime := clock.Now()
	if err := stepUntil(clock, leaderPollInterval, awaited); err != nil || !replica.PreviousRenewTime().Equal(renewTime) {
		t.Errorf("got %v, %v", err, replica.PreviousRenewTime())
	}
	if err := s.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: leaderConfigMap}}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- watcher.watchLeader(t.Context(), HubIdentity{Lease: "one"}) }()
	awaitWaiter(clock)
	clock.Step(renewInterval)
	lead(hub("other"))
	if err := stepUntil(clock, renewInterval, ended); !errors.Is(err, ErrOtherHubActive) {
		t.Errorf("got %v", err)
	}
}

// stepUntil lets time pass until a result is there, which it returns.
func stepUntil(clock *testclock.FakeClock, step time.Duration, result <-chan error) error {
	for {
		select {
		case err := <-result:
			return err
		default:
			clock.Step(step)
			runtime.Gosched()
		}
	}
}

func mustLeader(t *testing.T, l *Store) leaderRecord {
	t.Helper()
	found, err := l.getLeader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestIsNewer(t *testing.T) {
	for _, test := range []struct {
		one, other string
		want       bool
	}{
		{"10", "9", true}, {"9", "10", false}, {"9", "9", false}, {"9", "", true}, {"", "", false}, {"x", "9", true}, {"x", "x", false},
	} {
		if got := isNewer(test.one, test.other); got != test.want {
			t.Errorf("%q after %q: %v", test.one, test.other, got)
		}
	}
}

func TestEqual(t *testing.T) {
	full := func() *SyncSummary {
		return &SyncSummary{Synced: true, Objects: map[string]int64{"a": 1}, NotServed: []string{"b"}, Missing: []string{"c"}, Unpublished: []types.UID{"d"}}
	}
	for name, test := range map[string]struct {
		change              func(*SyncSummary)
		equal, exceptCounts bool
	}{
		"the same":    {func(*SyncSummary) {}, true, true},
		"a count":     {func(a *SyncSummary) { a.Objects["a"] = 2 }, false, true},
		"a resource":  {func(a *SyncSummary) { a.Objects["b"] = 0 }, false, true},
		"not synced":  {func(a *SyncSummary) { a.Synced = false }, false, false},
		"served":      {func(a *SyncSummary) { a.NotServed = nil }, false, false},
		"not missing": {func(a *SyncSummary) { a.Missing = nil }, false, false},
		"published":   {func(a *SyncSummary) { a.Unpublished = nil }, false, false},
		"all":         {func(a *SyncSummary) { *a = SyncSummary{} }, false, false},
	} {
		one, other := full(), full()
		test.change(other)
		if got, except := one.Equal(other), one.EqualExceptObjects(other); got != test.equal || except != test.exceptCounts {
			t.Errorf("%s: %v, %v", name, got, except)
		}
	}
	var none *SyncSummary
	if !none.Equal(nil) || none.Equal(full()) || full().Equal(none) || none.EqualExceptObjects(full()) {
		t.Error("no answer")
	}
}
