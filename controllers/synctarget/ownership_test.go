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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/configmaps"
)

func TestMayPrepare(t *testing.T) {
	synced := func() (*edgev2alpha1.SyncTarget, *ledger.Entry) {
		return &edgev2alpha1.SyncTarget{}, &ledger.Entry{Mailbox: "m", Cluster: ledger.Cluster{ID: "c"}}
	}
	for name, test := range map[string]struct {
		change func(*edgev2alpha1.SyncTarget, *ledger.Entry)
		want   bool
	}{
		"synced":                 {func(*edgev2alpha1.SyncTarget, *ledger.Entry) {}, true},
		"a cluster without ID":   {func(_ *edgev2alpha1.SyncTarget, known *ledger.Entry) { known.Cluster = ledger.Cluster{Server: "s"} }, true},
		"no mailbox":             {func(_ *edgev2alpha1.SyncTarget, known *ledger.Entry) { known.Mailbox = "" }, false},
		"not identified":         {func(_ *edgev2alpha1.SyncTarget, known *ledger.Entry) { known.Cluster = ledger.Cluster{} }, false},
		"the cluster of another": {func(_ *edgev2alpha1.SyncTarget, known *ledger.Entry) { known.ClusterConflict = true }, false},
		"suspended":              {func(syncTarget *edgev2alpha1.SyncTarget, _ *ledger.Entry) { syncTarget.Spec.Suspend = true }, false},
		"drained":                {func(syncTarget *edgev2alpha1.SyncTarget, _ *ledger.Entry) { syncTarget.Spec.Drain = true }, false},
		"deleted": {func(syncTarget *edgev2alpha1.SyncTarget, _ *ledger.Entry) {
			syncTarget.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, false},
	} {
		syncTarget, known := synced()
		test.change(syncTarget, known)
		if got := mayPrepare(syncTarget, *known); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// ownedShard is the shard of a replica.
type ownedShard int

func (p ownedShard) Owns(syncTarget types.UID) bool { return shards.Of(syncTarget) == int(p) }
func (ownedShard) Fence(types.UID) *fence.Fence     { return nil }

// A replica that gets a shard reconciles its SyncTargets and no other ones. It begins as if it had never observed them, but keeps the Secrets.
func TestShardsChange(t *testing.T) {
	g := NewWithT(t)
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	own := shards.Of("a")
	role := leadership.Role{Elected: make(chan struct{}), Shards: ownedShard(own)}
	controller := New(Options{
		Role: role, Clock: clock, Sync: syncmanager.New(syncmanager.Dependencies{Role: role, Clock: clock}, &configv1alpha1.HubConfiguration{}),
		Registry: targets.NewRegistry(targets.Options{Clock: clock, Log: logr.Discard()}),
	})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[mcreconcile.Request]())
	t.Cleanup(queue.ShutDown)
	controller.store.queue = queue
	secret := &corev1.Secret{}
	all := []types.UID{"a", "b", "c", "d", "e", "f"}
	// expect expects that the SyncTargets of a shard are enqueued.
	expect := func(shard int) {
		t.Helper()
		var wanted, got []string
		for _, uid := range all {
			if shards.Of(uid) == shard {
				wanted = append(wanted, string(uid))
			}
		}
		for queue.Len() > 0 {
			request, _ := queue.Get()
			got = append(got, request.Name)
			queue.Done(request)
		}
		slices.Sort(got)
		g.Expect(got).To(Equal(wanted))
	}
	for _, uid := range all {
		request := mcreconcile.Request{ClusterName: "i"}
		request.Name = string(uid)
		controller.track(request, uid)
		state := controller.store.ownedState(uid)
		state.formerHub, state.secret, state.supersededVersion = new("hub"), secret, "7"
	}
	clock.Step(time.Minute)
	controller.store.resetShards(shards.SetOf(own), role.Owns)
	expect(own)
	g.Expect(controller.store.owned[own]).To(Equal(clock.Now()))
	g.Expect(controller.store.ownedState("a")).To(Equal(&syncTargetState{since: clock.Now(), owned: true, secret: secret, supersededVersion: "7"}))
	for _, uid := range all[1:] {
		if shards.Of(uid) != own {
			g.Expect(controller.store.ownedState(uid).formerHub).NotTo(BeNil(), string(uid))
		}
	}
	lost := (own + 1) % shards.Count
	for _, uid := range all {
		if shards.Of(uid) != own {
			lost = shards.Of(uid)
		}
	}
	controller.store.resetShards(shards.SetOf(lost), role.Owns)
	expect(lost)
	g.Expect(controller.store.owned[lost]).To(BeZero())
	for _, uid := range all {
		if shards.Of(uid) == lost {
			g.Expect(controller.store.stateOf(uid)).To(Equal(&syncTargetState{since: clock.Now()}), string(uid))
		}
	}
	controller.StopShard(own)
}

// A replica that becomes the leader reconciles all SyncTargets. It keeps only the Secrets of its earlier
// observations.
func TestAllIsReconciledWhenTheReplicaLeads(t *testing.T) {
	g := NewWithT(t)
	elected := make(chan struct{})
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	controller := New(Options{Role: leadership.OfLeader(elected, nil), Clock: clock})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[mcreconcile.Request]())
	t.Cleanup(queue.ShutDown)
	controller.store.queue = queue
	secret := &corev1.Secret{}
	for _, uid := range []types.UID{"f1", "g1"} {
		controller.track(mcreconcile.Request{ClusterName: "i", Request: reconcile.Request{NamespacedName: types.NamespacedName{Name: string(uid)}}}, uid)
	}
	*controller.store.stateOf("f1") = syncTargetState{since: time.Unix(1, 0), secret: secret, supersededVersion: "7", conflictSeen: true, startupGrace: &startupGrace{}}
	clock.Step(time.Minute)
	close(elected)
	controller.store.resetShards(shards.All, controller.Role.Owns)
	g.Expect(queue.Len()).To(Equal(2))
	g.Expect(controller.store.ownedState("f1")).To(Equal(&syncTargetState{since: clock.Now(), owned: true, secret: secret, supersededVersion: "7"}))
}

// The leader reads in the ledger whether SyncTargets of other owners are Ready. Other replicas do not need
// that.
func TestReadinessOfOtherOwners(t *testing.T) {
	g := NewWithT(t)
	elected := make(chan struct{})
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	syncTarget := &edgev2alpha1.SyncTarget{}
	syncTarget.UID, syncTarget.Name = "a", "florin"
	controller := New(Options{
		Role: leadership.Role{Elected: elected, Shards: ownedShard(shards.Of("a") + 1)}, OtherOwners: true, Readiness: &findings.Readiness{},
		Registry: startRegistry(t), Sync: newSyncManager(), Clock: clock,
		Ledger: ledger.New(ledger.Options{ConfigMaps: configmaps.New(), Clock: clock, Log: logr.Discard()}),
	})
	expect := func(when string, ready *bool, wantReady, wantKnown bool) {
		t.Helper()
		g.Expect(controller.Ledger.Update(t.Context(), "a", func(entry *ledger.Entry) { entry.Mailbox, entry.Ready = "m", ready })).To(Succeed())
		_, err := controller.recordUnowned(t.Context(), mcreconcile.Request{}, nil, syncTarget)
		g.Expect(err).NotTo(HaveOccurred())
		isReady, _, known := controller.Readiness.Of("a")
		g.Expect(known).To(Equal(wantKnown), when)
		g.Expect(isReady).To(Equal(wantReady), when)
	}
	controller.Readiness.Set("a", true, clock.Now(), time.Time{})
	expect("this replica does not lead", new(true), false, false)
	close(elected)
	expect("it leads", new(true), true, true)
	expect("the cluster is away", new(false), false, true)
	expect("the owner has written nothing", nil, false, false)
}

// A SyncTarget that was synced stays accepted while its mailbox is created again: its target has objects.
func TestWhoIsServedKeepsItsPlace(t *testing.T) {
	g := NewWithT(t)
	entries := ledger.New(ledger.Options{ConfigMaps: configmaps.New(), Clock: testclock.NewFakeClock(time.Unix(1000, 0)), Log: logr.Discard()})
	controller := New(Options{Ledger: entries, Mailboxes: mailbox.Locator{Quota: mailbox.NewQuota(nil, logr.Discard(), configv1alpha1.MailboxesConfiguration{MaxPerInventory: 1})}})
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

// The leader deletes the entry of a SyncTarget that is cleaned up from the ledger, and then removes the
// finalizer. If it ends in between, the next leader must record again that the target is cleaned up.
func TestRepeatCleanedUp(t *testing.T) {
	g := NewWithT(t)
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	scope := leadership.Role{Elected: make(chan struct{}), Shards: ownedShard(shards.Of("a"))}
	entries := ledger.New(ledger.Options{ConfigMaps: configmaps.New(), Clock: clock, Log: logr.Discard()})
	controller := New(Options{Role: scope, OtherOwners: true, Clock: clock, Ledger: entries})
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
	g.Expect(repeat()).To(Equal(repeatCleanedUpAfter), "the time starts again")
}
