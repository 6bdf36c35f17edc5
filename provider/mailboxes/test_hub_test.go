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

package mailboxes_test

import (
	"context"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// recordingSubscriber is a subscriber that records its calls.
type recordingSubscriber struct {
	lock    sync.Mutex
	changed []string
	deleted []string
	decided []string
	resets  int
}

func (l *recordingSubscriber) OnEvent(event mailboxes.Event) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if event.New == nil {
		l.deleted = append(l.deleted, event.Key.Name)
	} else {
		l.changed = append(l.changed, event.Key.Name)
	}
}

func (l *recordingSubscriber) OnAbsenceDecided(key types.NamespacedName) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.decided = append(l.decided, key.Name)
}

func (l *recordingSubscriber) OnReset() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.resets++
}

// wasReset reports whether OnReset was called since the last call of wasReset.
func (l *recordingSubscriber) wasReset() bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	resets := l.resets
	l.resets = 0
	return resets > 0
}

func (l *recordingSubscriber) recorded(of func(*recordingSubscriber) []string) func() []string {
	return func() []string {
		l.lock.Lock()
		defer l.lock.Unlock()
		return append([]string{}, of(l)...)
	}
}

func changedKeys(l *recordingSubscriber) []string { return l.changed }
func deletedKeys(l *recordingSubscriber) []string { return l.deleted }
func decidedKeys(l *recordingSubscriber) []string { return l.decided }

// testHub is the hub's view of two shards.
type testHub struct {
	*WithT
	t             *testing.T
	hub           *mailboxes.Mailboxes
	slice         *sliceDouble
	first, second *kcpShard
	// subscribers has the subscriber to the config maps of each mailbox.
	subscribers map[logicalcluster.Name]*recordingSubscriber
}

func newTestHub(t *testing.T) *testHub {
	return newTestHubWithConfigs(t, nil, []schema.GroupVersionResource{configMaps})
}

// newTestHubWithPolicy returns a hub that caches config maps by a policy.
func newTestHubWithPolicy(t *testing.T, policy mailboxes.CachePolicy) *testHub {
	f := newTestHubWithConfigs(t, policy, nil)
	f.hub.SetResources([]schema.GroupVersionResource{configMaps})
	return f
}

// newTestHubWithConfigs returns a hub that treats the objects of the given resources as configs.
func newTestHubWithConfigs(t *testing.T, policy mailboxes.CachePolicy, configs []schema.GroupVersionResource) *testHub {
	shards := startedShards(t)
	slice := newSliceDouble(t)
	f := &testHub{WithT: NewWithT(t), t: t, slice: slice, first: shards[0], second: shards[1], subscribers: map[logicalcluster.Name]*recordingSubscriber{}}
	f.hub = startMailboxes(t, slice, policy, configs, shards[:]...)
	f.subscribe(f.first.own, f.second.own, twin)
	return f
}

func (f *testHub) subscribe(all ...logicalcluster.Name) {
	for _, mailbox := range all {
		f.subscribers[mailbox] = &recordingSubscriber{}
		f.hub.Subscribe(configMaps, mailbox, f.subscribers[mailbox])
	}
}

func (f *testHub) eventually(actual any) AsyncAssertion {
	return f.Eventually(actual).WithContext(f.t.Context())
}

// create creates a config map in a mailbox, directly in kcp. The end of the test deletes it, because later tests read the
// mailbox too.
func (f *testHub) create(shard *kcpShard, mailbox logicalcluster.Name, name, value string) {
	f.t.Helper()
	direct, err := shard.client(mailbox.String())
	f.Expect(err).NotTo(HaveOccurred())
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"value": value}}
	f.Expect(direct.Create(f.t.Context(), made)).To(Succeed())
	f.t.Cleanup(func() {
		f.Expect(client.IgnoreNotFound(direct.Delete(context.WithoutCancel(f.t.Context()), made))).To(Succeed())
	})
}

func (f *testHub) delete(shard *kcpShard, mailbox logicalcluster.Name, name string) {
	f.t.Helper()
	direct, err := shard.client(mailbox.String())
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(direct.Delete(f.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})).To(Succeed())
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// state returns the state of a config map in the hub's cache.
func (f *testHub) state(mailbox logicalcluster.Name, name string) func() mailboxes.State {
	return func() mailboxes.State {
		_, state := f.hub.Get(configMaps, mailbox, key(name))
		return state
	}
}

// value returns the value of a config map in the hub's cache.
func (f *testHub) value(mailbox logicalcluster.Name, name string) func() string {
	return func() string {
		object, state := f.hub.Get(configMaps, mailbox, key(name))
		if state != mailboxes.Present {
			return ""
		}
		value, _, _ := unstructured.NestedString(object.Object, "data", "value")
		return value
	}
}

func (f *testHub) expectUnknown(all ...logicalcluster.Name) {
	f.t.Helper()
	for _, mailbox := range all {
		f.eventually(f.state(mailbox, "kept")).Should(Equal(mailboxes.Unknown))
		_, known := f.hub.List(configMaps, mailbox)
		f.Expect(known).To(BeFalse())
		_, ok := f.hub.Client(mailbox)
		f.Expect(ok).To(BeFalse())
	}
}

// expectEvents proves that events of a mailbox arrive at its subscriber, and at no other.
func (f *testHub) expectEvents(shard *kcpShard, mailbox logicalcluster.Name, name string) {
	f.t.Helper()
	f.create(shard, mailbox, name, "routed")
	f.eventually(f.subscribers[mailbox].recorded(changedKeys)).Should(ContainElement(name))
	f.Expect(f.value(mailbox, name)()).To(Equal("routed"))
	for other, listener := range f.subscribers {
		if other != mailbox {
			f.Expect(listener.recorded(changedKeys)()).NotTo(ContainElement(name))
		}
	}
}

// remindUntilAccepted waits until kcp has accepted the claims of the first shard's export in the mailboxes there. Each change
// of the export triggers kcp again, which does not retry after a conflict. Package controllers/apiexport does the same.
func (f *testHub) remindUntilAccepted() {
	f.t.Helper()
	f.eventually(func() (unclaimed int, err error) {
		err = f.first.changeExport(f.t.Context(), func(export *apisv1alpha2.APIExport) {
			if unclaimed = f.hub.CountPendingClaims(export.Spec.PermissionClaims); unclaimed > 0 {
				metav1.SetMetaDataAnnotation(&export.ObjectMeta, "example.org/reminded-at", time.Now().Format(time.RFC3339Nano))
			}
		})
		return unclaimed, err
	}).WithPolling(time.Second).Should(BeZero())
}

func missingObject(name string) absence.Candidate {
	return absence.Candidate{Resource: configMaps, Key: key(name), Missing: true}
}

// watchRoutines returns how many goroutines of this process belong to watches.
func (f *testHub) watchRoutines() int {
	return f.routines("mailboxes.startWildcardInformer", "third_party/informers", "watch.(*StreamWatcher)")
}

// watchers returns how many watches of this process a server answers now.
func (f *testHub) watchers() int { return f.routines("watch.(*StreamWatcher)") }

// routines returns how many goroutines are in one of these places.
func (f *testHub) routines(functions ...string) (count int) {
	var text strings.Builder
	f.Expect(pprof.Lookup("goroutine").WriteTo(&text, 2)).To(Succeed())
	for stack := range strings.SplitSeq(text.String(), "\n\n") {
		if slices.ContainsFunc(functions, func(place string) bool { return strings.Contains(stack, place) }) {
			count++
		}
	}
	return count
}
