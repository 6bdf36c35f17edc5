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
	"fmt"
	"strings"
	"testing"
	"time"

	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/tier"
)

// The double of the endpoint slice of a kcp with two shards goes through all its states. The shards are real.
func TestSeveralEndpoints(t *testing.T) {
	tier.Thorough(t)
	f := newTestHub(t)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"none at first", f.expectNoEndpointsAtFirst},
		{"one", f.addFirstEndpoint},
		{"both", f.addSecondEndpoint},
		{"proofs on the second", f.expectVerifiedAbsences},
		{"the second is removed", f.removeSecondEndpoint},
		{"both in another order", f.restoreSecondEndpoint},
		{"a dead and malformed ones among them", f.addDeadEndpoints},
		{"the second hangs", f.hangSecondEndpoint},
		{"a mailbox moves", f.moveMailbox},
		{"none again", f.removeAllEndpoints},
	} {
		begun := time.Now()
		step.do()
		t.Log(step.name, "took", time.Since(begun).Round(time.Millisecond))
		if t.Failed() {
			return
		}
	}
}

func (f *testHub) expectNoEndpointsAtFirst() {
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	f.expectUnknown(f.first.own, f.second.own, twin)
	f.eventually(f.watchers).Should(Equal(1), "the watch of the slice")
	f.atRest = f.watchRoutines()
	for _, shard := range []*kcpShard{f.first, f.second} {
		f.create(shard, shard.own, "kept", shard.url)
		f.create(shard, twin, "kept", shard.url)
	}
	f.create(f.first, twin, "left", f.first.url)
	f.create(f.second, f.second.own, "doomed", f.second.url)
	f.create(f.second, f.second.own, "suspect", f.second.url)
}

func (f *testHub) addFirstEndpoint() {
	f.slice.set(f.first.url)
	f.eventually(f.value(f.first.own, "kept")).Should(Equal(f.first.url))
	f.eventually(f.value(twin, "kept")).Should(Equal(f.first.url))
	f.eventually(f.subscribers[twin].wasReset).Should(BeTrue())
	f.expectUnknown(f.second.own)
	f.Expect(f.hub.HasSynced()).To(BeTrue())
	f.expectEvents(f.first, f.first.own, "on-one")
}

// addSecondEndpoint checks that lists, events and writes use the right shard. The state of a mailbox whose name both shards
// have is Unknown.
func (f *testHub) addSecondEndpoint() {
	f.slice.set(f.first.url, f.second.url)
	f.eventually(f.value(f.second.own, "kept")).Should(Equal(f.second.url))
	f.Expect(f.value(f.first.own, "kept")()).To(Equal(f.first.url))
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	f.expectUnknown(twin)
	f.expectEvents(f.first, f.first.own, "on-both-first")
	f.expectEvents(f.second, f.second.own, "on-both-second")
	f.expectWrites("written")
}

// expectWrites writes to both mailboxes through the hub, and reads the objects from their servers.
func (f *testHub) expectWrites(name string) {
	f.t.Helper()
	for _, shard := range []*kcpShard{f.first, f.second} {
		through, ok := f.hub.Client(shard.own)
		f.Expect(ok).To(BeTrue())
		written := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"value": shard.url}}}
		_, err := through.Resource(configMaps).Namespace("default").Create(f.t.Context(), written, metav1.CreateOptions{})
		f.Expect(err).NotTo(HaveOccurred())
		direct, err := shard.client(shard.own.String())
		f.Expect(err).NotTo(HaveOccurred())
		var found corev1.ConfigMap
		f.Expect(direct.Get(f.t.Context(), key(name), &found)).To(Succeed())
		f.Expect(found.Data).To(Equal(map[string]string{"value": shard.url}))
	}
}

// expectVerifiedAbsences verifies the absence of objects that were deleted on the second shard. It takes one verification.
func (f *testHub) expectVerifiedAbsences() {
	for _, name := range []string{"doomed", "suspect"} {
		f.delete(f.second, f.second.own, name)
		f.eventually(f.state(f.second.own, name)).Should(Equal(mailboxes.Absent))
		f.eventually(f.subscribers[f.second.own].recorded(deletedKeys)).Should(ContainElement(name))
		f.Expect(f.hub.TakeVerifiedAbsence(f.second.own, missingObject(name))).To(BeFalse())
		f.hub.VerifyAbsence(f.second.own, missingObject(name))
	}
	f.eventually(f.subscribers[f.second.own].recorded(decidedKeys)).Should(ConsistOf("doomed", "suspect"))
	f.Expect(f.hub.TakeVerifiedAbsence(f.second.own, missingObject("doomed"))).To(BeTrue())
}

// removeSecondEndpoint checks that the state of its mailboxes becomes Unknown and no deletion is reported. The first endpoint
// keeps working.
func (f *testHub) removeSecondEndpoint() {
	toldBefore := f.subscribers[f.second.own].recorded(deletedKeys)()
	f.slice.set(f.first.url)
	f.expectUnknown(f.second.own)
	f.eventually(f.value(twin, "kept")).Should(Equal(f.first.url))
	f.eventually(f.subscribers[twin].wasReset).Should(BeTrue())
	f.expectEvents(f.first, f.first.own, "on-first")
	f.Expect(f.subscribers[f.second.own].recorded(deletedKeys)()).To(Equal(toldBefore))
	for _, name := range []string{"suspect", "kept"} {
		f.Expect(f.hub.TakeVerifiedAbsence(f.second.own, missingObject(name))).To(BeFalse())
	}
}

func (f *testHub) restoreSecondEndpoint() {
	f.subscribers[f.second.own].wasReset()
	f.create(f.second, f.second.own, "unwatched", f.second.url)
	f.slice.set(f.second.url, f.first.url)
	f.eventually(f.value(f.second.own, "unwatched")).Should(Equal(f.second.url))
	f.eventually(f.subscribers[f.second.own].wasReset).Should(BeTrue())
	f.Expect(f.state(f.second.own, "suspect")()).To(Equal(mailboxes.Absent))
	f.Expect(f.hub.TakeVerifiedAbsence(f.second.own, missingObject("suspect"))).To(BeFalse())
	f.expectEvents(f.second, f.second.own, "on-again-second")
	f.expectEvents(f.first, f.first.own, "on-again-first")
	f.expectWrites("written-again")
	// Its absence is verified again later.
	f.hub.VerifyAbsence(f.second.own, missingObject("suspect"))
}

func (f *testHub) addDeadEndpoints() {
	port, err := servers.FreePort()
	f.Expect(err).NotTo(HaveOccurred())
	dead := fmt.Sprintf("https://127.0.0.1:%d/services/apiexport/%s/%s", port, providerWorkspace, exportName)
	f.slice.set(dead, "http://"+strings.TrimPrefix(f.first.url, "https://"), "://", "", f.second.url, f.first.url)
	f.expectEvents(f.second, f.second.own, "beside-dead-second")
	f.expectEvents(f.first, f.first.own, "beside-dead-first")
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	found, err := f.hub.Discover(f.t.Context(), schema.GroupVersion{}, configMaps.Resource, "")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(found.Kind).To(Equal("ConfigMap"))
	f.eventually(f.subscribers[f.second.own].recorded(decidedKeys)).Should(ContainElements("doomed", "suspect", "suspect"))
	f.Expect(f.hub.TakeVerifiedAbsence(f.second.own, missingObject("suspect"))).To(BeTrue())
}

// hangSecondEndpoint: the mailboxes of a shard that does not answer keep their last known state, and the endpoint can stop.
func (f *testHub) hangSecondEndpoint() {
	f.Expect(f.second.Pause()).To(Succeed())
	f.expectEvents(f.first, f.first.own, "beside-hanging")
	f.Expect(f.value(f.second.own, "kept")()).To(Equal(f.second.url))
	f.Expect(f.hub.HasSynced()).To(BeTrue())
	f.slice.set(f.first.url)
	f.expectUnknown(f.second.own)
	// An endpoint that is there from the start has no advantage.
	f.slice.set(f.second.url, f.first.url)
	f.expectEvents(f.first, f.first.own, "beside-hanging-again")
	f.expectUnknown(f.second.own)
	f.Expect(f.second.Resume()).To(Succeed())
	f.eventually(f.value(f.second.own, "kept")).Should(Equal(f.second.url))
	f.expectEvents(f.second, f.second.own, "after-hanging")
}

// moveMailbox: the twin on the first shard is removed, so only the second shard shows the mailbox.
func (f *testHub) moveMailbox() {
	f.expectUnknown(twin)
	f.subscribers[twin].wasReset()
	provider, err := f.first.client(providerWorkspace)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(provider.Delete(f.t.Context(), &tenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "twin"}})).To(Succeed())
	f.eventually(f.value(twin, "kept")).Should(Equal(f.second.url))
	f.eventually(f.subscribers[twin].wasReset).Should(BeTrue())
	f.Expect(f.state(twin, "left")()).To(Equal(mailboxes.Absent))
	f.Expect(f.hub.TakeVerifiedAbsence(twin, missingObject("left"))).To(BeFalse())
	f.expectEvents(f.second, twin, "moved")
}

func (f *testHub) removeAllEndpoints() {
	for range 5 {
		f.slice.set()
		f.expectUnknown(f.first.own, f.second.own, twin)
		f.slice.set(f.first.url, f.second.url)
		f.eventually(f.value(f.first.own, "kept")).Should(Equal(f.first.url))
		f.eventually(f.value(f.second.own, "kept")).Should(Equal(f.second.url))
	}
	f.slice.set()
	f.expectUnknown(f.first.own, f.second.own, twin)
	f.eventually(f.watchers).Should(Equal(1), "the watch of the slice")
	f.eventually(f.watchRoutines).Should(BeNumerically("<=", f.atRest))
	f.eventually(f.hub.HasSynced).Should(BeTrue())
}
