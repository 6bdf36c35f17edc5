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
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/ledger"
)

var (
	epoch              = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	configMapsResource = schema.GroupResource{Resource: "configmaps"}
)

// fakeFixture is a Writer and a Watcher whose ConfigMaps are in a fake clientset, which stands for a provider
// workspace.
type fakeFixture struct {
	*Writer
	watcher *Watcher
	client  *clientfake.Clientset
	clock   *clocktesting.FakeClock
	sync    *fakeSync
	store   *Store
	known   []types.UID
	loaded  bool
}

func newFakeFixture(t *testing.T, objects ...runtime.Object) *fakeFixture {
	t.Helper()
	f := &fakeFixture{client: clientfake.NewClientset(objects...), clock: clocktesting.NewFakeClock(epoch), sync: &fakeSync{mailbox: mailbox}, loaded: true}
	// A server gives each version of an object another resourceVersion.
	versions := 100
	f.client.PrependReactor("*", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		written, ok := action.(clienttesting.CreateAction)
		if !ok {
			return false, nil, nil
		}
		versions++
		stored := written.GetObject().(*corev1.ConfigMap)
		stored.ResourceVersion = strconv.Itoa(versions)
		store := f.client.Tracker().Update
		if action.GetVerb() == "create" {
			store = func(resource schema.GroupVersionResource, object runtime.Object, namespace string, _ ...metav1.UpdateOptions) error {
				return f.client.Tracker().Create(resource, object, namespace)
			}
		}
		return true, stored, store(action.GetResource(), stored, action.GetNamespace())
	})
	f.store, _ = newTestStore(t, "one")
	f.Writer = NewWriter(WriterOptions{ConfigMaps: f.client.CoreV1().ConfigMaps(ledger.Namespace), Sync: f.sync, Sealer: sealer, Owner: owner(true), Clock: f.clock, Log: logr.Discard()})
	var err error
	f.watcher, err = NewWatcher(WatcherOptions{
		ConfigMaps: f.ConfigMaps, Store: f.store, Sealer: sealer, KnownSyncTargets: func() ([]types.UID, bool) { return f.known, f.loaded }, Clock: f.clock, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// storedFor returns the ConfigMap with the states of a SyncTarget, created at a time.
func storedFor(t *testing.T, of types.UID, made time.Time, copies ...objectsync.PlacedCopy) *corev1.ConfigMap {
	t.Helper()
	content := encode(sealer, of, mailbox.String(), copies)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ledger.Namespace, Name: string(of) + nameSuffix, UID: "cm-" + of, ResourceVersion: "5", CreationTimestamp: metav1.NewTime(made), Labels: map[string]string{copiesLabel: "true"}},
		Data:       map[string]string{statesKey: content, sealKey: sealer.SealText(purpose, content)},
	}
}

// observe adds a ConfigMap to the cache of the watcher.
func (f *fakeFixture) observe(t *testing.T, stored *corev1.ConfigMap) {
	t.Helper()
	decoded, err := f.watcher.decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.watcher.informer.GetStore().Add(decoded); err != nil {
		t.Fatal(err)
	}
	f.watcher.publish(decoded)
}

// requests returns the verbs of all requests since the last call.
func (f *fakeFixture) requests() (verbs []string) {
	for _, action := range f.client.Actions() {
		verbs = append(verbs, action.GetVerb())
	}
	f.client.ClearActions()
	return verbs
}

// The leader deletes only states of SyncTargets that are not in the ledger, after it has read the ledger and if
// they are old enough. It never deletes a ConfigMap that was created again in between.
func TestSweep(t *testing.T) {
	old := epoch.Add(-sweepInterval)
	for name, test := range map[string]struct {
		known  []types.UID
		loaded bool
		made   time.Time
		answer error
		want   []string
		failed bool
	}{
		"its SyncTarget is gone":            {loaded: true, made: old, want: []string{"delete"}},
		"its SyncTarget is known":           {loaded: true, known: []types.UID{"other", syncTarget}, made: old},
		"another SyncTarget is known":       {loaded: true, known: []types.UID{"other"}, made: old, want: []string{"delete"}},
		"the ledger is not loaded":          {made: old},
		"the leader may not know it yet":    {loaded: true, made: old.Add(time.Second)},
		"it is gone already":                {loaded: true, made: old, answer: apierrors.NewNotFound(configMapsResource, "x"), want: []string{"delete"}},
		"it was made again meanwhile":       {loaded: true, made: old, answer: apierrors.NewConflict(configMapsResource, "x", nil), want: []string{"delete"}},
		"the provider workspace is refused": {loaded: true, made: old, answer: apierrors.NewForbidden(configMapsResource, "x", nil), want: []string{"delete"}, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			stored := storedFor(t, syncTarget, test.made)
			f := newFakeFixture(t, stored)
			f.known, f.loaded = test.known, test.loaded
			f.observe(t, stored)
			f.client.PrependReactor("delete", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
				used := action.(clienttesting.DeleteActionImpl).DeleteOptions
				g.Expect(used.Preconditions).NotTo(BeNil())
				g.Expect(used.Preconditions.UID).To(HaveValue(BeEquivalentTo("cm-" + syncTarget)))
				return test.answer != nil, nil, test.answer
			})
			g.Expect(f.watcher.sweep(t.Context()) != nil).To(Equal(test.failed))
			g.Expect(f.requests()).To(Equal(test.want))
		})
	}
}

// States that cannot be read do not replace earlier ones. The states of a deleted ConfigMap are dropped.
func TestWatcherKeepsTheLastStatesItCouldRead(t *testing.T) {
	isSyncedNow := func(f *fakeFixture) bool {
		state, _ := f.store.SyncStatus(syncTarget, configMaps.GroupResource(), key, objectsync.CopyVersion{UID: "uid", Mark: "one"})
		return state.Synced
	}
	g := NewWithT(t)
	f := newFakeFixture(t)
	f.observe(t, storedFor(t, syncTarget, epoch, newCopy("one", healthy)))
	g.Expect(isSyncedNow(f)).To(BeTrue())
	forged := storedFor(t, syncTarget, epoch)
	forged.Data[sealKey] = "forged"
	f.observe(t, forged)
	g.Expect(isSyncedNow(f)).To(BeTrue())
	ofAnother := storedFor(t, "other", epoch, newCopy("one", healthy))
	ofAnother.Name = string(syncTarget) + nameSuffix
	f.observe(t, ofAnother)
	g.Expect(isSyncedNow(f)).To(BeTrue())
	f.observe(t, storedFor(t, syncTarget, epoch))
	g.Expect(isSyncedNow(f)).To(BeFalse())

	for name, deleted := range map[string]func(any) any{
		"a deletion":                 func(object any) any { return object },
		"one that the watch omitted": func(object any) any { return cache.DeletedFinalStateUnknown{Obj: object} },
	} {
		f.observe(t, storedFor(t, syncTarget, epoch, newCopy("one", healthy)))
		decoded, _ := f.watcher.decode(storedFor(t, syncTarget, epoch))
		f.watcher.forget(deleted(decoded))
		g.Expect(isSyncedNow(f)).To(BeFalse(), name)
	}
}

// The writer replaces outdated states, states that somebody else wrote, and states of another SyncTarget.
func TestWriterReplacesOtherStates(t *testing.T) {
	one := newCopy("one", healthy)
	forged := storedFor(t, syncTarget, epoch, one)
	forged.Data[sealKey] = ownership.NewSealer(make([]byte, 32)).SealText(purpose, forged.Data[statesKey])
	ofAnother := storedFor(t, "other", epoch, one)
	ofAnother.Name = nameOf(syncTarget)
	for name, test := range map[string]struct {
		found *corev1.ConfigMap
		want  []string
	}{
		"the same":             {storedFor(t, syncTarget, epoch, one), []string{"get"}},
		"former ones":          {storedFor(t, syncTarget, epoch, newCopy("two", healthy)), []string{"get", "update"}},
		"another SyncTarget's": {ofAnother, []string{"get", "update"}},
		"forged ones":          {forged, []string{"get", "update"}},
	} {
		f := newFakeFixture(t, test.found)
		f.sync.copies = []objectsync.PlacedCopy{one}
		if _, err := f.Reconcile(t.Context(), syncTarget); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := f.requests(); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// A part of the states would show the other copies as not synced. A SyncTarget without copies causes no
// request.
func TestWriterWritesOnlyWhenItKnowsAll(t *testing.T) {
	g := NewWithT(t)
	f := newFakeFixture(t)
	reconcile := func() []string {
		t.Helper()
		_, err := f.Reconcile(t.Context(), syncTarget)
		g.Expect(err).NotTo(HaveOccurred())
		return f.requests()
	}
	g.Expect(reconcile()).To(BeEmpty(), "it has no copies")
	f.sync.copies, f.sync.incomplete = []objectsync.PlacedCopy{newCopy("one", healthy)}, true
	g.Expect(reconcile()).To(BeEmpty(), "some are not known yet")
	f.sync.incomplete = false
	g.Expect(reconcile()).To(Equal([]string{"get", "create"}))
	f.sync.copies = []objectsync.PlacedCopy{newCopy("two", healthy)}
	f.clock.Step(minWriteInterval - 1)
	g.Expect(reconcile()).To(BeEmpty(), "the last write was a moment ago")
	f.clock.Step(1)
	g.Expect(reconcile()).To(Equal([]string{"update"}))
	f.clock.Step(minWriteInterval)
	g.Expect(reconcile()).To(BeEmpty(), "nothing changed")

	f.sync.mailbox, f.sync.copies = "", nil
	f.Owner = owner(false)
	g.Expect(reconcile()).To(BeEmpty(), "another replica writes them now")
}

// The writer retries a failed write after it has read the ConfigMap again, at most every five seconds.
func TestWriterAfterAFailedWrite(t *testing.T) {
	g := NewWithT(t)
	f := newFakeFixture(t)
	f.sync.copies = []objectsync.PlacedCopy{newCopy("one", healthy)}
	failing := true
	f.client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return failing, nil, apierrors.NewAlreadyExists(configMapsResource, "x")
	})
	_, err := f.Reconcile(t.Context(), syncTarget)
	g.Expect(err).To(MatchError(ContainSubstring("cannot store the states of copies")))
	g.Expect(f.requests()).To(Equal([]string{"get", "create"}))
	failing = false
	result, err := f.Reconcile(t.Context(), syncTarget)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(Equal(minWriteInterval))
	f.clock.Step(minWriteInterval)
	_, err = f.Reconcile(t.Context(), syncTarget)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.requests()).To(Equal([]string{"get", "create"}), "it reads again")
}

// When no replica syncs a SyncTarget any more, its copies must not count as synced. If the ConfigMap is gone,
// the writer drops its state; after another failure it tries again.
func TestWriterClears(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		failed bool
	}{
		"it is cleared":           {},
		"it is gone":              {answer: apierrors.NewNotFound(configMapsResource, "x")},
		"it is refused":           {answer: apierrors.NewForbidden(configMapsResource, "x", nil)},
		"the identity is gone":    {answer: apierrors.NewUnauthorized("no")},
		"the server has failed":   {answer: apierrors.NewInternalError(errors.New("no")), failed: true},
		"somebody else wrote too": {answer: apierrors.NewConflict(configMapsResource, "x", nil), failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFakeFixture(t)
			f.sync.copies = []objectsync.PlacedCopy{newCopy("one", healthy)}
			_, err := f.Reconcile(t.Context(), syncTarget)
			g.Expect(err).NotTo(HaveOccurred())
			f.requests()
			f.clock.Step(minWriteInterval)
			f.sync.copies, f.sync.mailbox = nil, ""
			f.client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return test.answer != nil, nil, test.answer })
			_, err = f.Reconcile(t.Context(), syncTarget)
			g.Expect(err != nil).To(Equal(test.failed))
			g.Expect(f.requests()).To(Equal([]string{"update"}))
			if test.answer == nil {
				found, err := f.client.CoreV1().ConfigMaps(ledger.Namespace).Get(t.Context(), nameOf(syncTarget), metav1.GetOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				set, err := decode(sealer, syncTarget, found.Data[statesKey], found.Data[sealKey])
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(isSynced(set, "one")).To(BeFalse())
			}
			f.requests()
			f.clock.Step(minWriteInterval)
			_, err = f.Reconcile(t.Context(), syncTarget)
			g.Expect(err != nil).To(Equal(test.failed))
			g.Expect(slices.Contains(f.requests(), "update")).To(Equal(test.failed), "it is tried again")
		})
	}
}
