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
	"context"
	"net/http"
	"slices"
	"strings"
	gosync "sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/topic"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

const (
	syncTarget = types.UID("5f1c")
	mailbox    = logicalcluster.Name("2x7fz9k1")
)

var (
	sealer     = ownership.NewSealer(bytes.Repeat([]byte{1}, 32))
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	healthy    = objectsync.SyncStatus{Synced: true, Health: health.Health{Status: health.Current}}
	key        = types.NamespacedName{Namespace: "shop", Name: "till"}
)

// newCopy returns the copy with a mark, in a state.
func newCopy(mark string, state objectsync.SyncStatus) objectsync.PlacedCopy {
	return objectsync.PlacedCopy{Resource: configMaps, Key: key, Version: objectsync.CopyVersion{UID: "uid", Mark: mark}, State: state}
}

// fakeSync is a sync manager with one SyncTarget.
type fakeSync struct {
	copies     []objectsync.PlacedCopy
	mailbox    logicalcluster.Name
	incomplete bool
}

func (f *fakeSync) Copies(types.UID) ([]objectsync.PlacedCopy, logicalcluster.Name, bool) {
	return f.copies, f.mailbox, !f.incomplete
}

func (f *fakeSync) StuckCopies() []objectsync.ObjectRef { return nil }

func (f *fakeSync) SyncTargets() []types.UID { return []types.UID{syncTarget} }

func (f *fakeSync) SyncStatus(_ types.UID, _ schema.GroupResource, _ types.NamespacedName, version objectsync.CopyVersion) (objectsync.SyncStatus, bool) {
	for _, c := range f.copies {
		if c.Version == version {
			return c.State, true
		}
	}
	return objectsync.SyncStatus{}, false
}

func TestMain(m *testing.M) { suite.Main(m) }

// fixture is a Writer with a clock, and a namespace of a server.
type fixture struct {
	*Writer
	sync      *fakeSync
	clock     *clocktesting.FakeClock
	namespace string
	client    coreclient.CoreV1Interface
	lock      gosync.Mutex
	methods   []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{sync: &fakeSync{mailbox: mailbox}, clock: clocktesting.NewFakeClock(time.Now()), namespace: strings.ToLower(t.Name())}
	config := suite.Target(t).Config
	suite.Apply(t, config, "{apiVersion: v1, kind: Namespace, metadata: {name: "+f.namespace+"}}")
	f.client = newClient(t, config)
	f.Writer = f.restarted(t)
	return f
}

func newClient(t *testing.T, config *rest.Config) coreclient.CoreV1Interface {
	t.Helper()
	client, err := coreclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// restarted returns a Writer in the state of a process that has just started.
func (f *fixture) restarted(t *testing.T) *Writer {
	t.Helper()
	client := newClient(t, suite.Observe(suite.Target(t).Config, func(request *http.Request) {
		f.lock.Lock()
		defer f.lock.Unlock()
		f.methods = append(f.methods, request.Method)
	}))
	return NewWriter(WriterOptions{ConfigMaps: client.ConfigMaps(f.namespace), Sync: f.sync, Sealer: sealer, Owner: owner(true), Clock: f.clock, Log: logr.Discard()})
}

// get returns the stored ConfigMap.
func (f *fixture) get(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	found, err := f.client.ConfigMaps(f.namespace).Get(t.Context(), nameOf(syncTarget), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// reconcile returns the methods of the requests of one reconcile.
func (f *fixture) reconcile(t *testing.T) (methods []string, result reconcile.Result, err error) {
	t.Helper()
	f.lock.Lock()
	f.methods = nil
	f.lock.Unlock()
	result, err = f.Reconcile(t.Context(), syncTarget)
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.methods, result, err
}

func (f *fixture) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	if got, _, err := f.reconcile(t); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
	}
}

// stored returns the stored states.
func (f *fixture) stored(t *testing.T) *States {
	t.Helper()
	found := f.get(t)
	set, err := decode(sealer, syncTarget, found.Data[statesKey], found.Data[sealKey])
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func isSynced(set *States, mark string) bool {
	state, _ := set.State(configMaps.GroupResource(), key, objectsync.CopyVersion{UID: "uid", Mark: mark})
	return state.Synced
}

// States are written when they change, at most every five seconds, and not before all are known.
func TestStatesAreWrittenWhenTheyChange(t *testing.T) {
	f := newFixture(t)
	f.expect(t, "no copies")
	f.sync.copies, f.sync.incomplete = []objectsync.PlacedCopy{newCopy("one", healthy)}, true
	f.expect(t, "not all copies are known")
	f.sync.incomplete = false
	f.expect(t, "the first copy", "GET", "POST")
	if stored := f.stored(t); !isSynced(stored, "one") || stored.Mailbox != mailbox.String() {
		t.Errorf("got %+v", stored.Groups)
	}
	if f.get(t).Labels[copiesLabel] != "true" {
		t.Error("the leader cannot decode the states")
	}
	f.sync.copies = []objectsync.PlacedCopy{newCopy("two", healthy)}
	if methods, result, _ := f.reconcile(t); len(methods) != 0 || result.RequeueAfter != minWriteInterval {
		t.Errorf("too soon: %v, %+v", methods, result)
	}
	f.clock.Step(minWriteInterval)
	f.expect(t, "a change", "PUT")
	if set := f.stored(t); isSynced(set, "one") || !isSynced(set, "two") {
		t.Error("the change is not stored")
	}
	f.clock.Step(10 * minWriteInterval)
	f.expect(t, "no change")

	f.Writer = f.restarted(t)
	f.expect(t, "no change since the restart", "GET")
	f.sync.copies = nil
	f.expect(t, "the last copy is gone", "PUT")

	f.clock.Step(minWriteInterval)
	f.sync.copies = []objectsync.PlacedCopy{newCopy("one", healthy)}
	f.expect(t, "a copy again", "PUT")

	f.clock.Step(minWriteInterval)
	f.sync.mailbox, f.Owner = "", owner(false)
	f.expect(t, "another replica syncs it")
	f.sync.mailbox, f.Owner = mailbox, owner(true)
	f.expect(t, "it is back", "GET")
	f.sync.mailbox = ""
	f.expect(t, "nobody syncs it", "PUT")
	if set := f.stored(t); isSynced(set, "one") {
		t.Error("copies of a SyncTarget that no replica syncs count as synced")
	}
	f.expect(t, "still nobody syncs it")
	f.sync.mailbox = mailbox
	f.expect(t, "it is synced again", "GET", "PUT")
}

// Another replica may have written the ConfigMap in between.
func TestWriterReadsAgainAfterAFailure(t *testing.T) {
	f := newFixture(t)
	f.sync.copies = []objectsync.PlacedCopy{newCopy("one", healthy)}
	f.expect(t, "the first copy", "GET", "POST")
	if err := f.ConfigMaps.Delete(t.Context(), nameOf(syncTarget), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.sync.copies = []objectsync.PlacedCopy{newCopy("two", healthy)}
	f.clock.Step(minWriteInterval)
	if _, err := f.Reconcile(t.Context(), syncTarget); err == nil {
		t.Error("a ConfigMap that is gone was updated")
	}
	f.clock.Step(minWriteInterval)
	f.expect(t, "it is made again", "GET", "POST")
	if !isSynced(f.stored(t), "two") {
		t.Error("the change is not stored")
	}
}

// fakeMailbox has one copy, with a mark, and an object of a user.
type fakeMailbox struct{ mark string }

func (f *fakeMailbox) List(resource schema.GroupVersionResource, of logicalcluster.Name) ([]*unstructured.Unstructured, bool) {
	if resource != configMaps || of != mailbox {
		return nil, true
	}
	copied, other := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
	copied.SetNamespace(key.Namespace)
	copied.SetName(key.Name)
	copied.SetUID("uid")
	copied.SetAnnotations(map[string]string{ownership.MarkAnnotation: f.mark})
	other.SetName("other")
	return []*unstructured.Unstructured{copied, other}, true
}

func newSet(t *testing.T, copies ...objectsync.PlacedCopy) *States {
	t.Helper()
	return roundTrip(t, copies)
}

// newTestStore returns a store, and a function that returns how many copies were published since the last call.
func newTestStore(t *testing.T, mark string) (store *Store, published func() int) {
	t.Helper()
	states, count := &topic.Topic[objectsync.ObjectRef]{}, 0
	store = NewStore(StoreOptions{
		Mailboxes: &fakeMailbox{mark}, SyncStatusChanged: states,
		Published: func() []plan.Resource {
			return []plan.Resource{{GroupVersionResource: configMaps}, {GroupVersionResource: schema.GroupVersionResource{Resource: "secrets"}}}
		},
	})
	states.Subscribe(t.Context(), func(ref objectsync.ObjectRef) {
		if (ref != objectsync.ObjectRef{SyncTarget: syncTarget, Mailbox: mailbox, Resource: configMaps, Key: key}) {
			t.Errorf("published %+v", ref)
		}
		count++
	})
	return store, func() int {
		defer func() { count = 0 }()
		return count
	}
}

// Only copies whose state differs for their present content are published.
func TestStorePublishesChanges(t *testing.T) {
	store, published := newTestStore(t, "two")
	refused := newCopy("", objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: plan.ReasonForbidden, Message: "no"}})
	for _, step := range []struct {
		name      string
		set       *States
		published int
	}{
		{"the first states", newSet(t, newCopy("one", healthy)), 1},
		{"another version is healthy", newSet(t, newCopy("one", objectsync.SyncStatus{Synced: true})), 0},
		{"it is synced", newSet(t, newCopy("two", healthy)), 1},
		{"the same again", newSet(t, newCopy("two", healthy)), 0},
		{"its health changes", newSet(t, newCopy("two", objectsync.SyncStatus{Synced: true, Health: health.Health{Status: health.Failed, Message: "crashed"}})), 1},
		{"it fails", newSet(t, refused), 1},
		{"the SyncTarget is gone", nil, 0},
	} {
		store.Set(syncTarget, step.set)
		if got := published(); got != step.published {
			t.Errorf("%s: %d published", step.name, got)
		}
	}
	if _, known := store.SyncStatus(syncTarget, configMaps.GroupResource(), key, objectsync.CopyVersion{}); known {
		t.Error("a SyncTarget that is gone is still known")
	}
}

type owner bool

func (h owner) Owns(types.UID) bool { return bool(h) }

func (owner) Context(ctx context.Context, _ types.UID) context.Context { return ctx }

func TestStates(t *testing.T) {
	store, _ := newTestStore(t, "one")
	store.Set(syncTarget, newSet(t, newCopy("one", healthy), newCopy("two", healthy)))
	refused := objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: plan.ReasonForbidden}}
	local := &fakeSync{copies: []objectsync.PlacedCopy{newCopy("one", refused)}}
	for name, test := range map[string]struct {
		owner  Owner
		mark   string
		failed bool
	}{
		"this replica syncs it":             {owner(true), "one", true},
		"this replica has just taken over":  {owner(true), "two", false},
		"another replica has taken it over": {owner(false), "one", false},
	} {
		states := Reader{Sync: local, Store: store, Owner: test.owner}
		state, known := states.SyncStatus(syncTarget, configMaps.GroupResource(), key, objectsync.CopyVersion{UID: "uid", Mark: test.mark})
		if !known || state.Synced == test.failed {
			t.Errorf("%s: got %+v, %v", name, state, known)
		}
	}
}

// The leader receives the states that other replicas store, and deletes the states of SyncTargets that are
// gone.
func TestWatcher(t *testing.T) {
	f := newFixture(t)
	f.sync.copies = []objectsync.PlacedCopy{newCopy("one", healthy)}
	f.expect(t, "the first copy", "GET", "POST")
	store, _ := newTestStore(t, "one")
	var known atomic.Pointer[[]types.UID]
	known.Store(&[]types.UID{syncTarget})
	watcher, err := NewWatcher(WatcherOptions{
		ConfigMaps: f.ConfigMaps, Store: store, Sealer: sealer, KnownSyncTargets: func() ([]types.UID, bool) { return *known.Load(), true }, Clock: f.clock, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	framework.RunInTest(t, watcher.Start)
	isHealthy := func(mark string) func() bool {
		return func() bool {
			state, _ := store.SyncStatus(syncTarget, configMaps.GroupResource(), key, objectsync.CopyVersion{UID: "uid", Mark: mark})
			return state.Synced
		}
	}
	suite.WaitUntil(t, "the states that were there", isHealthy("one"))
	f.clock.Step(minWriteInterval)
	f.sync.copies = []objectsync.PlacedCopy{newCopy("two", healthy)}
	f.expect(t, "a change", "PUT")
	suite.WaitUntil(t, "the change", isHealthy("two"))

	forged := f.get(t)
	forged.Data[sealKey] = "forged"
	if _, err := watcher.decode(forged); err != nil {
		t.Error("states that cannot be read stop the watch:", err)
	}

	exists := func() bool {
		_, err := f.client.ConfigMaps(f.namespace).Get(t.Context(), nameOf(syncTarget), metav1.GetOptions{})
		return err == nil
	}
	f.clock.Step(2 * sweepInterval)
	if err := watcher.sweep(t.Context()); err != nil || !exists() {
		t.Error("the states of a SyncTarget in the ledger were deleted", err)
	}
	known.Store(&[]types.UID{})
	if err := watcher.sweep(t.Context()); err != nil || exists() {
		t.Error("the states of a SyncTarget that is gone are still there", err)
	}
	suite.WaitUntil(t, "they are forgotten", func() bool { return !isHealthy("two")() })
}
