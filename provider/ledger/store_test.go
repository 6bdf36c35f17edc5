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
	"reflect"
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
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/test/framework/configmaps"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fakeStore is a fake provider workspace that counts requests. End-to-end tests cover permissions and the real server.
type fakeStore struct {
	*configmaps.Fake
	writes, lists atomic.Int32
	// fail is the answer to writes.
	fail error
}

func newFakeStore(stored ...*corev1.ConfigMap) *fakeStore {
	s := &fakeStore{Fake: configmaps.New(stored...)}
	s.Before = func(verb, _ string) error {
		switch verb {
		case "create", "update":
			s.writes.Add(1)
			return s.fail
		case "list":
			s.lists.Add(1)
		}
		return nil
	}
	return s
}

// remove deletes a ConfigMap as another client does.
func (s *fakeStore) remove(t *testing.T, name string) {
	t.Helper()
	if err := s.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// unloaded returns a ledger of the fake that has read no entries.
func (s *fakeStore) unloaded() *Store {
	return New(Options{ConfigMaps: s, Clock: testclock.NewFakeClock(noon), Log: logr.Discard()})
}

// loaded returns a ledger that has read all entries of the fake.
func (s *fakeStore) loaded(t *testing.T) *Store {
	t.Helper()
	l := s.unloaded()
	if err := l.load(t.Context(), l.EnsureFresh); err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *fakeStore) update(t *testing.T, l *Store, change func(*Entry)) {
	t.Helper()
	if err := l.Update(t.Context(), "florin", change); err != nil {
		t.Fatal(err)
	}
}

var fullEntry = Entry{
	Name: "florin", Inventory: "i", Mailbox: "m", MailboxBindings: true, Cluster: Cluster{ID: "c", Server: "s"}, ClusterConflict: true, VerifiedGeneration: 7,
	FormerClusters: []FormerCluster{{Cluster: Cluster{ID: "b"}, Until: noon, Resources: []metav1.GroupResource{{Resource: "secrets"}}}},
	Resources: []Resource{
		{GroupResource: metav1.GroupResource{Group: "apps", Resource: "deployments"}, Version: "v1", Direct: true, State: "Accepted", Reason: "R", Message: "M"},
		{GroupResource: metav1.GroupResource{Resource: "pods"}, ConvertedFrom: []metav1.GroupResource{{Group: "x", Resource: "y"}}},
	},
	TenantResources: []string{"rolebindings"}, CleanedUp: true, Ready: new(false),
	SyncSummary: &SyncSummary{Synced: true, Objects: map[string]int64{"pods": 2}, NotServed: []string{"x"}, Missing: []string{"y"}, Unpublished: []types.UID{"u"}},
}

// The next hub reads the entries of the previous one. An unchanged entry is not written.
func TestTheNextHubReadsTheEntries(t *testing.T) {
	s := newFakeStore()
	l := s.loaded(t)
	if got := l.Get("florin"); !reflect.DeepEqual(got, Entry{}) {
		t.Errorf("of an empty ledger: %+v", got)
	}
	s.update(t, l, func(*Entry) {})
	if s.writes.Load() != 0 {
		t.Errorf("no change took %d writes", s.writes.Load())
	}
	for range 3 {
		s.update(t, l, func(entry *Entry) { *entry = fullEntry })
	}
	if s.writes.Load() != 1 {
		t.Errorf("one change took %d writes", s.writes.Load())
	}
	if got := s.loaded(t).Get("florin"); !reflect.DeepEqual(got, fullEntry) {
		t.Errorf("want %+v\ngot  %+v", fullEntry, got)
	}
	if err := l.Delete(t.Context(), "florin"); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*Store{l, s.loaded(t)} {
		if got := l.Get("florin"); !reflect.DeepEqual(got, Entry{}) {
			t.Errorf("a deleted entry is returned: %+v", got)
		}
	}
}

// A change that could not be stored has no effect, and a change does not modify entries that callers have.
func TestOnlyStoredEntriesCount(t *testing.T) {
	s := newFakeStore()
	l := s.loaded(t)
	s.update(t, l, func(entry *Entry) { *entry = fullEntry })
	want, err := fullEntry.encode()
	if err != nil {
		t.Fatal(err)
	}
	s.fail = errors.New("no")
	if err := l.Update(t.Context(), "florin", func(entry *Entry) {
		entry.Resources[1].ConvertedFrom[0].Group = "z"
		*entry.Ready, entry.SyncSummary.Synced, entry.SyncSummary.Objects["pods"] = true, false, 3
		entry.SyncSummary.NotServed[0], entry.SyncSummary.Missing[0], entry.SyncSummary.Unpublished[0] = "z", "z", "z"
	}); !errors.Is(err, s.fail) {
		t.Errorf("got %v", err)
	}
	stored := l.Get("florin")
	if got, err := stored.encode(); err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
}

// A hub that no longer leads, and still writes, does not overwrite changes of the next one.
func TestTwoHubsLoseNoEntry(t *testing.T) {
	s := newFakeStore()
	one, other := s.loaded(t), s.loaded(t)
	s.update(t, one, func(entry *Entry) { entry.Mailbox = "m" })
	s.update(t, other, func(entry *Entry) { entry.VerifiedGeneration = 3 })
	s.update(t, one, func(entry *Entry) { entry.ClusterConflict = true })
	want := Entry{Mailbox: "m", VerifiedGeneration: 3, ClusterConflict: true}
	for _, l := range []*Store{one, s.loaded(t)} {
		if got := l.Get("florin"); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v", got)
		}
	}
}

// If a user deletes an entry in the provider workspace, or its namespace, the hub keeps the entry and writes it again
// with the next change.
func TestDeletedEntriesAreWrittenAgain(t *testing.T) {
	s := newFakeStore()
	l := s.loaded(t)
	want := fullEntry
	want.CleanedUp = false
	s.update(t, l, func(entry *Entry) { *entry = want })
	remove := func() { t.Helper(); s.remove(t, "florin") }
	for want.VerifiedGeneration = 8; want.VerifiedGeneration < 10; want.VerifiedGeneration++ {
		remove()
		s.update(t, l, func(entry *Entry) { entry.VerifiedGeneration = want.VerifiedGeneration })
		for _, l := range []*Store{l, s.loaded(t)} {
			if got := l.Get("florin"); !reflect.DeepEqual(got, want) {
				t.Errorf("want %+v\ngot  %+v", want, got)
			}
		}
	}
	remove()
	s.fail = apierrors.NewNotFound(corev1.Resource("namespaces"), Namespace)
	for range 2 {
		if err := l.Update(t.Context(), "florin", func(entry *Entry) { entry.VerifiedGeneration = 0 }); err == nil {
			t.Error("it is stored nowhere")
		}
	}
	s.fail = nil
	want.VerifiedGeneration = 9
	s.update(t, l, func(*Entry) {})
	if got := s.loaded(t).Get("florin"); !reflect.DeepEqual(got, want) {
		t.Errorf("want %+v\ngot  %+v", want, got)
	}
}

// Several controllers change one entry concurrently.
func TestChangesAtATime(t *testing.T) {
	s := newFakeStore()
	l := s.loaded(t)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			err := l.Update(t.Context(), types.UID(fmt.Sprint("target-", i%5)), func(entry *Entry) { entry.VerifiedGeneration++ })
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range 5 {
		if got := s.loaded(t).Get(types.UID(fmt.Sprint("target-", i))).VerifiedGeneration; got != 10 {
			t.Errorf("of ten changes %d are there", got)
		}
	}
}

func TestLoad(t *testing.T) {
	entry := func(name, text string, labels map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: labels}, Data: map[string]string{entryKey: text}}
	}
	ours := map[string]string{ledgerLabel: labelSyncTarget}
	renewTime := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: leaderConfigMap}, Data: map[string]string{renewTimeKey: noon.Format(time.RFC3339)}}
	l := newFakeStore(entry("florin", `{"mailbox": "m", "later": "field"}`, ours), entry("guilder", `{"mailbox": "n"}`, nil), renewTime).loaded(t)
	if l.Get("florin").Mailbox != "m" || l.Get("guilder").Mailbox != "" || !l.PreviousRenewTime().Equal(noon) {
		t.Errorf("got %+v, %+v, %v", l.Get("florin"), l.Get("guilder"), l.PreviousRenewTime())
	}
	// A hub that cannot read its ledger must not start with an empty one.
	torn := newFakeStore(entry("florin", `{"mailbox": `, ours))
	l = torn.unloaded()
	if err := l.load(t.Context(), l.EnsureFresh); err == nil {
		t.Error("a torn entry is taken for an empty one")
	}
}

// The leader writes its renew time once a minute, independent of the number of SyncTargets, until its context ends.
func TestStart(t *testing.T) {
	s, clock := newFakeStore(), testclock.NewFakeClock(noon)
	l := New(Options{ConfigMaps: s, Clock: clock, Log: logr.Discard()})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.Start(ctx) }()
	if err := l.WaitForLoad(t.Context()); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := New(Options{}).WaitForLoad(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestConfirm(t *testing.T) {
	a, b := Cluster{ID: "a", Server: "x"}, Cluster{ID: "b", Server: "y"}
	entry := Entry{Cluster: a, VerifiedGeneration: 3, Resources: []Resource{{GroupResource: metav1.GroupResource{Resource: "secrets"}}}}
	entry.ConfirmCluster(b, noon)
	want := []FormerCluster{{Cluster: a, Until: noon, Resources: []metav1.GroupResource{{Resource: "secrets"}}}}
	if entry.Cluster != b || entry.VerifiedGeneration != 0 || !reflect.DeepEqual(entry.FormerClusters, want) {
		t.Errorf("got %+v", entry)
	}
	entry.ConfirmCluster(a, noon)
	if entry.Cluster != a || len(entry.FormerClusters) != 1 || entry.FormerClusters[0].ID != "b" {
		t.Errorf("back again: %+v", entry)
	}
	for i := range 2 * maxFormerClusters {
		entry.ConfirmCluster(Cluster{ID: fmt.Sprint(i)}, noon)
	}
	if last := entry.FormerClusters[len(entry.FormerClusters)-1].ID; len(entry.FormerClusters) != maxFormerClusters || last != fmt.Sprint(2*maxFormerClusters-2) {
		t.Errorf("%d are remembered, the last %s", len(entry.FormerClusters), last)
	}
	empty := Entry{Cluster: a}
	if empty.ConfirmCluster(b, noon); len(empty.FormerClusters) != 0 {
		t.Errorf("nothing was placed there: %+v", empty)
	}
}

func TestUnreadable(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no"))
	err := readError(forbidden)
	if !errors.Is(err, forbidden) || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "synchub init") {
		t.Errorf("got %v", err)
	}
}

// Any text is refused, or decodes to the same entry after it is encoded again.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		"", "null", `{"name":"florin","mailbox":"1abc","cluster":{"id":"u"},"verified":3,"resources":[{"group":"apps","resource":"deployments","own":true}]}`,
		`{"formerClusters":[{"id":"u","until":"2026-01-01T00:00:00+01:00","resources":[{"resource":"pods"}]}]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entry, err := decode(&corev1.ConfigMap{Data: map[string]string{entryKey: text}})
		if err != nil {
			return
		}
		copied := entry.clone()
		written, err := copied.encode()
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", text, err)
		}
		again, err := decode(&corev1.ConfigMap{Data: map[string]string{entryKey: written}})
		if err != nil {
			t.Fatalf("%q was written as %q, which cannot be read: %v", text, written, err)
		}
		if rewritten, err := again.encode(); err != nil || rewritten != written {
			t.Errorf("%q became %q at first and %q then: %v", text, written, rewritten, err)
		}
	})
}
