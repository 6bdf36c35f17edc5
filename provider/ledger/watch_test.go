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
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	testclock "k8s.io/utils/clock/testing"
)

func configMapOf(entry, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "florin", ResourceVersion: version}, Data: map[string]string{entryKey: entry}}
}

// An event replaces older entries, and removes entries that were deleted later.
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
		"a deletion by another client":     {[]events{stored("a", "9"), deleted("10")}, "a", 2},
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
			l, changes := newFakeStore().unloaded(), 0
			l.Changes().Subscribe(t.Context(), func(syncTarget types.UID) {
				if syncTarget == "florin" {
					changes++
				}
			})
			store := reflectorStore{l}
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
		// during is called between the request and its answer. version is the version that the write stores.
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
			l := s.unloaded()
			store := reflectorStore{l}
			s.update(t, l, func(entry *Entry) { entry.Mailbox = "l" })
			s.After = func(written *corev1.ConfigMap) {
				if err := test.during(store, written.ResourceVersion); err != nil {
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

// The new owner of a SyncTarget lists the entries again, so that it has all writes of the former one.
func TestEnsureFreshOnTheNextOwner(t *testing.T) {
	s := newFakeStore()
	former, next := s.unloaded(), s.unloaded()
	var changed []types.UID
	next.Changes().Subscribe(t.Context(), func(syncTarget types.UID) { changed = append(changed, syncTarget) })
	close(next.led)
	s.update(t, former, func(entry *Entry) { entry.Mailbox = "m" })
	expectFresh(t, next, Entry{Mailbox: "m"})
	if all, loaded := next.SyncTargets(); !loaded || !slices.Equal(all, []types.UID{"florin"}) {
		t.Errorf("got %v", all)
	}
	s.update(t, next, func(entry *Entry) { entry.VerifiedGeneration = 3 })
	s.update(t, former, func(entry *Entry) { entry.Mailbox = "n" })
	expectFresh(t, next, Entry{Mailbox: "n", VerifiedGeneration: 3})
	// An event is quicker than the list.
	s.Before = func(string, string) error {
		next.record("florin", Entry{Mailbox: "o", CleanedUp: true}, "2000")
		return nil
	}
	expectFresh(t, next, Entry{Mailbox: "o"})
	s.Before = nil
	s.SetVersion(3000)
	if err := former.Delete(t.Context(), "florin"); err != nil {
		t.Fatal(err)
	}
	expectFresh(t, next, Entry{})
	if len(next.records) != 0 {
		t.Errorf("of a SyncTarget that is gone: %+v", next.records)
	}
	if want := []types.UID{"florin", "florin", "florin", "florin"}; !slices.Equal(changed, want) {
		t.Errorf("published %v", changed)
	}
}

// expectFresh lists the entries, and expects the given entry of florin.
func expectFresh(t *testing.T, s *Store, want Entry) {
	t.Helper()
	clock := s.options.Clock.(*testclock.FakeClock)
	clock.Step(time.Second)
	err := s.EnsureFresh(t.Context(), clock.Now())
	if entry := s.Get("florin"); err != nil || entry.Mailbox != want.Mailbox || entry.VerifiedGeneration != want.VerifiedGeneration {
		t.Errorf("got %+v, %v", entry, err)
	}
}

// Many callers share one list in pages, and a list that began since then needs no other one.
func TestEnsureFreshSharesLists(t *testing.T) {
	const entries = 2*pageSize + 1
	var stored []*corev1.ConfigMap
	for i := range entries {
		stored = append(stored, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: fmt.Sprint("target-", i), Labels: map[string]string{ledgerLabel: labelSyncTarget}},
			Data:       map[string]string{entryKey: `{"mailbox":"m"}`},
		})
	}
	s := newFakeStore(stored...)
	l := s.unloaded()
	clock := l.options.Clock.(*testclock.FakeClock)
	ensure := func(since time.Time) {
		t.Helper()
		var all sync.WaitGroup
		for range 300 {
			all.Go(func() {
				if err := l.EnsureFresh(t.Context(), since); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	ensure(noon)
	if lists := s.lists.Load(); lists != 3 || len(l.records) != entries {
		t.Errorf("%d pages, %d entries", lists, len(l.records))
	}
	ensure(time.Time{})
	ensure(noon.Add(-time.Hour))
	if lists := s.lists.Load(); lists != 3 {
		t.Errorf("%d pages with those that were not needed", lists)
	}
	clock.Step(time.Second)
	ensure(clock.Now())
	if lists := s.lists.Load(); lists != 6 {
		t.Errorf("%d pages after another takeover", lists)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	clock.Step(time.Second)
	if err := l.EnsureFresh(canceled, clock.Now()); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A list that began before an entry was deleted does not bring it back.
func TestDeletionDuringAList(t *testing.T) {
	s := newFakeStore()
	l := s.loaded(t)
	s.update(t, l, func(entry *Entry) { entry.Mailbox, entry.CleanedUp = "m", true })
	l.beginList()
	page, err := l.configMaps.list(t.Context(), entries)
	if err != nil {
		t.Fatal(err)
	}
	if err := (reflectorStore{l}).Delete(configMapOf("", "2000")); err != nil {
		t.Fatal(err)
	}
	if err := l.onStored(&page.Items[0]); err != nil {
		t.Fatal(err)
	}
	if l.Has("florin") {
		t.Error("it is back")
	}
	l.endList(time.Time{})
	if len(l.records) != 0 {
		t.Errorf("%d records", len(l.records))
	}
}

// After kcp was restored from a backup, its entries have older resourceVersions than those in memory.
func TestAfterARestore(t *testing.T) {
	s := newFakeStore()
	s.SetVersion(900)
	l, standby := s.loaded(t), s.loaded(t)
	s.update(t, l, func(entry *Entry) { entry.Mailbox, entry.VerifiedGeneration = "m", 3 })
	if err := l.Update(t.Context(), "later", func(entry *Entry) { entry.Mailbox = "l" }); err != nil {
		t.Fatal(err)
	}
	expectFresh(t, standby, Entry{Mailbox: "m", VerifiedGeneration: 3})
	s.remove(t, "later")
	s.remove(t, "florin")
	s.SetVersion(500)
	restored := configMapOf(`{"mailbox":"m"}`, "")
	restored.Labels = map[string]string{ledgerLabel: labelSyncTarget}
	restored, err := s.Create(t.Context(), restored, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The entries in memory stay until the next write detects the restore.
	if err := (reflectorStore{l}).Replace([]any{restored}, "501"); err != nil || l.Get("florin").VerifiedGeneration != 3 {
		t.Errorf("got %+v, %v", l.Get("florin"), err)
	}
	s.update(t, l, func(entry *Entry) { entry.ClusterConflict = true })
	if got := l.Get("florin"); !got.ClusterConflict || got.VerifiedGeneration != 0 {
		t.Errorf("got %+v", got)
	}
	expectFresh(t, standby, Entry{Mailbox: "m"})
	if standby.Has("later") || standby.Get("later").Mailbox != "l" {
		t.Errorf("of one that was made after the backup: %+v", standby.Get("later"))
	}
}

// An owner that writes an entry late does not restore the entry of a deleted SyncTarget.
func TestLateWritesAfterTheDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		write func(*Store, context.Context, types.UID, func(*Entry)) error
		entry Entry
		want  bool
	}{
		"an answer":                {(*Store).UpdateExisting, Entry{Mailbox: "m", CleanedUp: true}, false},
		"a fact after the cleanup": {(*Store).Update, Entry{Mailbox: "m", CleanedUp: true}, false},
		"a fact of a lost entry":   {(*Store).Update, Entry{Mailbox: "m"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeStore()
			holder, leader := s.unloaded(), s.unloaded()
			s.update(t, holder, func(entry *Entry) { *entry = test.entry })
			if err := leader.Delete(t.Context(), "florin"); err != nil {
				t.Fatal(err)
			}
			if err := test.write(holder, t.Context(), "florin", func(entry *Entry) { entry.VerifiedGeneration = 1 }); err != nil {
				t.Fatal(err)
			}
			err := leader.EnsureFresh(t.Context(), noon)
			entry := leader.Get("florin")
			if exists := entry.Mailbox != ""; err != nil || exists != test.want || len(holder.records) != len(leader.records) {
				t.Errorf("got %+v, %v", entry, err)
			}
		})
	}
}

// A replica works once a leader of its own hub does, and ends when another hub takes over.
func TestReplicasFollowTheirOwnLeader(t *testing.T) {
	s, clock := newFakeStore(), testclock.NewFakeClock(noon)
	hub := func(lease string, elected <-chan struct{}) *Store {
		return New(Options{ConfigMaps: s, Elected: elected, Clock: clock, Log: logr.Discard(), Identity: func(context.Context) (HubIdentity, error) { return HubIdentity{Lease: lease}, nil }})
	}
	lead := func(l *Store) {
		t.Helper()
		if err := errors.Join(l.load(t.Context(), l.EnsureFresh), l.renewLeader(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	lead(hub("other", nil))
	leader, replica := hub("one", nil), hub("one", make(chan struct{}))
	ended := make(chan error, 1)
	go func() { ended <- replica.Start(t.Context()) }()
	await(t, "the list", func() bool {
		replica.Leadership.lock.Lock()
		defer replica.Leadership.lock.Unlock()
		return replica.watchedLeader.version != ""
	})
	if replica.IsLoaded() {
		t.Error("it works beside another hub")
	}
	leader.self = HubIdentity{Lease: "one"}
	leader.leaderVersion = mustLeader(t, leader).version
	clock.Step(3 * time.Minute)
	if err := leader.renewLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := replica.WaitForLoad(t.Context()); err != nil || !replica.PreviousRenewTime().Equal(clock.Now().Truncate(time.Second)) {
		t.Errorf("got %v, %v", err, replica.PreviousRenewTime())
	}
	s.remove(t, leaderConfigMap)
	lead(hub("other", nil))
	if err := <-ended; !errors.Is(err, ErrOtherHubActive) {
		t.Errorf("got %v", err)
	}
}

// A replica that has become the leader is not loaded before it has listed all entries again.
func TestElection(t *testing.T) {
	s, clock, elected := newFakeStore(), testclock.NewFakeClock(noon), make(chan struct{})
	s.update(t, s.loaded(t), func(entry *Entry) { entry.Mailbox = "m" })
	former := s.loaded(t)
	if err := former.renewLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	close(hold)
	var held atomic.Pointer[chan struct{}]
	held.Store(&hold)
	s.Before = func(verb, _ string) error {
		if verb == "list" {
			<-*held.Load()
		}
		return nil
	}
	l := New(Options{ConfigMaps: s, Elected: elected, Clock: clock, Log: logr.Discard()})
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- l.Start(ctx) }()
	if err := l.WaitForLoad(t.Context()); err != nil || l.Get("florin").Mailbox != "m" {
		t.Errorf("got %v, %+v", err, l.Get("florin"))
	}
	untilWritten := make(chan struct{})
	held.Store(&untilWritten)
	close(elected)
	if l.IsLoaded() {
		t.Error("it has not listed the entries since")
	}
	if _, loaded := l.SyncTargets(); loaded {
		t.Error("the watch is taken for a list")
	}
	s.update(t, former, func(entry *Entry) { entry.Mailbox = "n" })
	close(untilWritten)
	if err := l.WaitForLoad(t.Context()); err != nil || l.Get("florin").Mailbox != "n" {
		t.Errorf("got %v, %+v", err, l.Get("florin"))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A replica ends if it may not read the ledger when it starts.
func TestStartWithoutRights(t *testing.T) {
	for name, elected := range map[string]chan struct{}{"the leader": nil, "another replica": make(chan struct{})} {
		s := newFakeStore()
		forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no"))
		s.Before = func(verb, _ string) error {
			if verb == "list" {
				return forbidden
			}
			return nil
		}
		l := New(Options{ConfigMaps: s, Elected: elected, Clock: testclock.NewFakeClock(noon), Log: logr.Discard()})
		if err := l.Start(t.Context()); !errors.Is(err, forbidden) || !strings.Contains(err.Error(), "synchub init") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// await waits until a condition is true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func mustLeader(t *testing.T, l *Store) leaderRecord {
	t.Helper()
	found, err := l.readLeader(t.Context())
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
