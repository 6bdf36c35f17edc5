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

package synctarget

import (
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/configmaps"
)

// ownedShard is the shard of a replica.
type ownedShard int

func (p ownedShard) Owns(syncTarget types.UID) bool { return shards.Of(syncTarget) == int(p) }
func (ownedShard) Fence(types.UID) *fence.Fence     { return nil }

// A replica that gets a shard reconciles its SyncTargets as if it had never seen them, and nobody else's.
func TestShardsChange(t *testing.T) {
	g := NewWithT(t)
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	own := shards.Of("a")
	scope := leadership.Role{Elected: make(chan struct{}), Shards: ownedShard(own)}
	controller := NewController(Options{
		Role: scope, Clock: clock, Sync: syncmanager.New(syncmanager.Options{Role: scope, Clock: clock}),
		Registry: targets.NewRegistry(targets.Options{Clock: clock, Log: logr.Discard()}),
	})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[mcreconcile.Request]())
	t.Cleanup(queue.ShutDown)
	controller.queue = queue
	var wanted []string
	for _, uid := range []types.UID{"a", "b", "c", "d", "e", "f"} {
		request := mcreconcile.Request{ClusterName: "i"}
		request.Name = string(uid)
		controller.track(request, uid)
		controller.stateOf(uid).conflictSeen = true
		if shards.Of(uid) == own {
			wanted = append(wanted, string(uid))
		}
	}
	clock.Step(time.Minute)
	controller.onShardChanged(queue, own)
	var got []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		got = append(got, request.Name)
		queue.Done(request)
	}
	slices.Sort(got)
	g.Expect(got).To(Equal(wanted))
	g.Expect(controller.stateOf("a").conflictSeen).To(BeFalse())
	g.Expect(controller.ownedSince[own]).To(Equal(clock.Now()))
	g.Expect(controller.stateOf("a").since).To(Equal(clock.Now()))
	for _, uid := range []types.UID{"b", "c", "d", "e", "f"} {
		if shards.Of(uid) != own {
			g.Expect(controller.stateOf(uid).conflictSeen).To(BeTrue(), string(uid))
		}
	}
	controller.StopShard(own)
}

// A SyncTarget that was served keeps its place while its mailbox is made again: objects are on its target.
func TestWhoIsServedKeepsItsPlace(t *testing.T) {
	g := NewWithT(t)
	entries := ledger.New(ledger.Options{ConfigMaps: configmaps.New(), Clock: testclock.NewFakeClock(time.Unix(1000, 0)), Log: logr.Discard()})
	controller := NewController(Options{Ledger: entries, Mailboxes: mailbox.Locator{Quota: mailbox.NewQuota(nil, 1, logr.Discard())}})
	state := func(syncTarget types.UID) mailbox.QuotaState {
		return controller.quotaState(mcreconcile.Request{}, syncTarget)
	}
	for name, change := range map[types.UID]func(*ledger.Entry){
		"mailbox":   func(entry *ledger.Entry) { entry.Mailbox = "m" },
		"cluster":   func(entry *ledger.Entry) { entry.Cluster.ID = "c" },
		"resources": func(entry *ledger.Entry) { entry.Resources = []ledger.Resource{{}} },
	} {
		g.Expect(state(name)).To(Equal(mailbox.QuotaUndecided), string(name))
		g.Expect(entries.Update(t.Context(), name, change)).To(Succeed())
		g.Expect(state(name)).To(Equal(mailbox.QuotaGranted), string(name))
	}
}

// The leader deletes the entry of a SyncTarget that is cleaned up from the ledger, and then removes the finalizer. If it ends in between, the next
// leader must learn again that the target is cleaned up.
func TestRepeatCleanedUp(t *testing.T) {
	g := NewWithT(t)
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	scope := leadership.Role{Elected: make(chan struct{}), Shards: ownedShard(shards.Of("a"))}
	entries := ledger.New(ledger.Options{ConfigMaps: configmaps.New(), Clock: clock, Log: logr.Discard()})
	controller := NewController(Options{Role: scope, Clock: clock, Ledger: entries})
	syncTarget := &edgev2alpha1.SyncTarget{}
	syncTarget.UID, syncTarget.Name = "a", "florin"
	controller.track(mcreconcile.Request{ClusterName: "i"}, "a")
	repeat := func() time.Duration {
		result, err := controller.repeatCleanedUp(t.Context(), syncTarget)
		g.Expect(err).NotTo(HaveOccurred())
		return result.RequeueAfter
	}
	g.Expect(controller.recordCleanedUp(t.Context(), syncTarget)).To(Succeed())
	g.Expect(repeat()).To(BeZero(), "the leader can see it")

	g.Expect(controller.Ledger.Delete(t.Context(), "a")).To(Succeed())
	g.Expect(controller.IsCleanedUp("a")).To(BeTrue())
	g.Expect(repeat()).To(Equal(repeatCleanedUpAfter), "the leader has the time to remove the finalizer")
	clock.Step(repeatCleanedUpAfter - time.Second)
	g.Expect(repeat()).To(Equal(time.Second))
	g.Expect(controller.Ledger.Get("a").CleanedUp).To(BeFalse())
	clock.Step(time.Second)
	g.Expect(repeat()).To(BeZero())
	g.Expect(controller.Ledger.Get("a")).To(And(HaveField("CleanedUp", BeTrue()), HaveField("Name", "florin")))

	g.Expect(controller.Ledger.Delete(t.Context(), "a")).To(Succeed())
	g.Expect(repeat()).To(Equal(repeatCleanedUpAfter), "the time begins anew")
}
