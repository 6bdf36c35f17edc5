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
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/tier"
)

// The tests of this file play the endpoint slice of a kcp with two shards. The shards are real.

// newHubWithoutEndpoints returns a hub before kcp lists an endpoint. Each mailbox has an object "kept" with the URL of its shard.
func newHubWithoutEndpoints(t *testing.T) *testHub {
	tier.Thorough(t)
	f := newTestHub(t)
	for _, shard := range f.shards() {
		f.create(shard, shard.own, "kept", shard.url)
		f.create(shard, twin, "kept", shard.url)
	}
	return f
}

// newHubOfBothShards returns such a hub once it shows both shards.
func newHubOfBothShards(t *testing.T) *testHub {
	f := newHubWithoutEndpoints(t)
	f.serveBoth()
	return f
}

func (f *testHub) shards() []*kcpShard { return []*kcpShard{f.first, f.second} }

// serveBoth makes kcp list both shards, and waits until the hub shows their mailboxes.
func (f *testHub) serveBoth() {
	f.slice.set(f.first.url, f.second.url)
	f.expectShown()
}

// expectShown waits until the hub shows the mailboxes of both shards: until then an event may precede the state that it is about.
func (f *testHub) expectShown() {
	f.t.Helper()
	for _, shard := range f.shards() {
		f.eventually(f.value(shard.own, "kept")).Should(Equal(shard.url))
	}
}

// expectWrites writes to both mailboxes through the hub, and reads the objects from their servers.
func (f *testHub) expectWrites() {
	f.t.Helper()
	for _, shard := range f.shards() {
		through, ok := f.hub.Client(shard.own)
		f.Expect(ok).To(BeTrue())
		written := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "written"}, "data": map[string]any{"value": shard.url}}}
		_, err := through.Resource(configMaps).Namespace("default").Create(f.t.Context(), written, metav1.CreateOptions{})
		f.Expect(err).NotTo(HaveOccurred())
		direct, err := shard.client(shard.own.String())
		f.Expect(err).NotTo(HaveOccurred())
		var found corev1.ConfigMap
		f.Expect(direct.Get(f.t.Context(), key("written"), &found)).To(Succeed())
		f.Expect(found.Data).To(Equal(map[string]string{"value": shard.url}))
		f.Expect(direct.Delete(f.t.Context(), &found)).To(Succeed())
	}
}

// deleteOnSecond creates and deletes objects on the second shard, whose absence the hub does not believe yet.
func (f *testHub) deleteOnSecond(names ...string) {
	f.t.Helper()
	own := f.second.own
	for _, name := range names {
		f.create(f.second, own, name, f.second.url)
		f.eventually(f.value(own, name)).Should(Equal(f.second.url))
		f.delete(f.second, own, name)
		f.eventually(f.state(own, name)).Should(Equal(mailboxes.Absent))
		f.eventually(f.subscribers[own].recorded(deletedKeys)).Should(ContainElement(name))
		f.Expect(f.hub.Absences.TakeVerifiedAbsence(own, missingObject(name))).To(BeFalse())
	}
}

// verifyOnSecond waits until the hub has verified the absence of objects on the second shard.
func (f *testHub) verifyOnSecond(names ...string) {
	f.t.Helper()
	for _, name := range names {
		f.hub.Absences.VerifyAbsence(f.second.own, missingObject(name))
	}
	f.eventually(f.subscribers[f.second.own].recorded(decidedKeys)).Should(ConsistOf(names))
}

func TestWithoutEndpointsMailboxesAreUnknown(t *testing.T) {
	f := newHubWithoutEndpoints(t)
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	f.expectUnknown(f.first.own, f.second.own, twin)
	f.eventually(f.watchers).Should(Equal(1), "the watch of the slice")
}

func TestFirstEndpointShowsItsMailboxes(t *testing.T) {
	f := newHubWithoutEndpoints(t)
	f.slice.set(f.first.url)
	f.eventually(f.value(f.first.own, "kept")).Should(Equal(f.first.url))
	f.eventually(f.value(twin, "kept")).Should(Equal(f.first.url))
	f.eventually(f.subscribers[twin].wasReset).Should(BeTrue())
	f.expectUnknown(f.second.own)
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	f.expectEvents(f.first, f.first.own, "with-one-endpoint")
}

// Lists, events and writes use the shard of the mailbox. A mailbox whose name both shards have is Unknown.
func TestSecondEndpointJoinsTheFirst(t *testing.T) {
	f := newHubWithoutEndpoints(t)
	f.slice.set(f.first.url)
	f.eventually(f.value(twin, "kept")).Should(Equal(f.first.url))
	f.serveBoth()
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	f.expectUnknown(twin)
	f.expectEvents(f.first, f.first.own, "on-the-first")
	f.expectEvents(f.second, f.second.own, "on-the-second")
	f.expectWrites()
}

// One verification finds the absence of all objects that were deleted, and each result is used once.
func TestAbsenceIsVerifiedAtTheEndpointOfTheMailbox(t *testing.T) {
	f := newHubOfBothShards(t)
	f.deleteOnSecond("deleted", "deleted-too")
	f.verifyOnSecond("deleted", "deleted-too")
	f.Expect(f.hub.Absences.TakeVerifiedAbsence(f.second.own, missingObject("deleted"))).To(BeTrue())
}

// The mailboxes of a removed endpoint are Unknown: no deletion is reported, and no absence is verified any longer. The other
// endpoint keeps working.
func TestRemovedEndpointHasNoAbsences(t *testing.T) {
	f := newHubOfBothShards(t)
	f.deleteOnSecond("deleted")
	f.verifyOnSecond("deleted")
	f.subscribers[twin].wasReset()
	f.slice.set(f.first.url)
	f.expectUnknown(f.second.own)
	f.eventually(f.value(twin, "kept")).Should(Equal(f.first.url))
	f.eventually(f.subscribers[twin].wasReset).Should(BeTrue())
	f.expectEvents(f.first, f.first.own, "on-the-first")
	f.Expect(f.subscribers[f.second.own].recorded(deletedKeys)()).To(ConsistOf("deleted"))
	for _, name := range []string{"deleted", "kept"} {
		f.Expect(f.hub.Absences.TakeVerifiedAbsence(f.second.own, missingObject(name))).To(BeFalse())
	}
}

// An endpoint that returns, in another order, is listed again, and absences are verified again.
func TestReturnedEndpointIsListedAgain(t *testing.T) {
	f := newHubOfBothShards(t)
	f.deleteOnSecond("deleted")
	f.verifyOnSecond("deleted")
	f.slice.set(f.first.url)
	f.expectUnknown(f.second.own)
	f.subscribers[f.second.own].wasReset()
	f.create(f.second, f.second.own, "unwatched", f.second.url)
	f.slice.set(f.second.url, f.first.url)
	f.eventually(f.value(f.second.own, "unwatched")).Should(Equal(f.second.url))
	f.eventually(f.subscribers[f.second.own].wasReset).Should(BeTrue())
	f.expectEvents(f.second, f.second.own, "on-the-second")
	f.expectEvents(f.first, f.first.own, "on-the-first")
	f.expectWrites()
	f.Expect(f.state(f.second.own, "deleted")()).To(Equal(mailboxes.Absent))
	f.Expect(f.hub.Absences.TakeVerifiedAbsence(f.second.own, missingObject("deleted"))).To(BeFalse())
	f.hub.Absences.VerifyAbsence(f.second.own, missingObject("deleted"))
	f.eventually(f.subscribers[f.second.own].recorded(decidedKeys)).Should(ConsistOf("deleted", "deleted"))
	f.Expect(f.hub.Absences.TakeVerifiedAbsence(f.second.own, missingObject("deleted"))).To(BeTrue())
}

func TestDeadAndMalformedEndpointsAreIgnored(t *testing.T) {
	f := newHubWithoutEndpoints(t)
	port, err := servers.FreePort()
	f.Expect(err).NotTo(HaveOccurred())
	dead := fmt.Sprintf("https://127.0.0.1:%d/services/apiexport/%s/%s", port, providerWorkspace, exportName)
	f.slice.set(dead, "http://"+strings.TrimPrefix(f.first.url, "https://"), "://", "", f.second.url, f.first.url)
	f.expectShown()
	f.expectEvents(f.second, f.second.own, "on-the-second")
	f.expectEvents(f.first, f.first.own, "on-the-first")
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	found, err := f.hub.Discover(f.t.Context(), schema.GroupVersion{}, configMaps.Resource, "")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(found.Kind).To(Equal("ConfigMap"))
	f.deleteOnSecond("deleted")
	f.verifyOnSecond("deleted")
	f.Expect(f.hub.Absences.TakeVerifiedAbsence(f.second.own, missingObject("deleted"))).To(BeTrue())
}

// The mailboxes of a shard that does not respond keep their last known state. Its endpoint can be removed and added.
func TestHangingEndpoint(t *testing.T) {
	f := newHubOfBothShards(t)
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	t.Cleanup(func() { f.Expect(f.second.Resume()).To(Succeed()) })
	f.Expect(f.second.Pause()).To(Succeed())
	f.expectEvents(f.first, f.first.own, "beside-the-hanging")
	f.Expect(f.value(f.second.own, "kept")()).To(Equal(f.second.url))
	f.Expect(f.hub.HasSynced()).To(BeTrue())
	f.slice.set(f.first.url)
	f.expectUnknown(f.second.own)
	f.slice.set(f.second.url, f.first.url)
	f.expectEvents(f.first, f.first.own, "beside-the-hanging-again")
	f.expectUnknown(f.second.own)
	f.Expect(f.second.Resume()).To(Succeed())
	f.eventually(f.value(f.second.own, "kept")).Should(Equal(f.second.url))
	f.expectEvents(f.second, f.second.own, "after-the-hanging")
}

// A mailbox that both shards have is Unknown until one of them has lost it.
func TestMovedMailbox(t *testing.T) {
	f := newHubOfBothShards(t)
	name := "moved" + strconv.FormatInt(time.Now().UnixNano(), 36)
	moved := logicalcluster.Name(name)
	for _, shard := range f.shards() {
		t.Cleanup(func() { f.Expect(shard.deleteMailbox(context.WithoutCancel(t.Context()), name)).To(Succeed()) })
		f.Expect(shard.createMailbox(t.Context(), name, moved)).To(Succeed())
		f.create(shard, moved, "kept", shard.url)
	}
	f.create(f.first, moved, "left", f.first.url)
	f.subscribe(moved)
	f.expectUnknown(moved)
	f.subscribers[moved].wasReset()
	f.Expect(f.first.deleteMailbox(t.Context(), name)).To(Succeed())
	f.eventually(f.value(moved, "kept")).Should(Equal(f.second.url))
	f.eventually(f.subscribers[moved].wasReset).Should(BeTrue())
	f.Expect(f.state(moved, "left")()).To(Equal(mailboxes.Absent))
	f.Expect(f.hub.Absences.TakeVerifiedAbsence(moved, missingObject("left"))).To(BeFalse())
	f.expectEvents(f.second, moved, "after-the-move")
}

// Endpoints that are removed leave no watch and no goroutine.
func TestEndpointsComeAndGo(t *testing.T) {
	f := newHubWithoutEndpoints(t)
	f.eventually(f.watchers).Should(Equal(1), "the watch of the slice")
	atRest := f.watchRoutines()
	for range 5 {
		f.serveBoth()
		f.slice.set()
		f.expectUnknown(f.first.own, f.second.own, twin)
	}
	f.eventually(f.watchers).Should(Equal(1), "the watch of the slice")
	f.eventually(f.watchRoutines).Should(BeNumerically("<=", atRest))
	f.eventually(f.hub.HasSynced).Should(BeTrue())
}
