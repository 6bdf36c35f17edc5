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
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/ledger"
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

// A replica that begins to lead reconciles all that it has only prepared. Of a SyncTarget it keeps no more than the Secret that it read.
func TestAllIsReconciledWhenTheReplicaLeads(t *testing.T) {
	g := NewWithT(t)
	elected := make(chan struct{})
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	controller := NewController(Options{Role: leadership.Role{Elected: elected}, Sync: syncmanager.New(syncmanager.Options{}), Clock: clock})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[mcreconcile.Request]())
	t.Cleanup(queue.ShutDown)
	controller.queue = queue
	request := func(name string) mcreconcile.Request {
		request := mcreconcile.Request{ClusterName: "i"}
		request.Name = name
		return request
	}
	next := func() string {
		found, _ := queue.Get()
		queue.Done(found)
		return found.Name
	}
	secret := &corev1.Secret{}
	controller.track(request("florin"), "f1")
	controller.states["f1"] = &syncTargetState{since: time.Unix(1, 0), secret: secret, supersededVersion: "7", conflictSeen: true, restartTrust: &restartTrust{}}
	for _, name := range []string{"florin", "florin", "gone"} {
		controller.markPrepared(request(name))
	}
	controller.forgetPrepared(request("gone"))
	g.Expect(queue.Len()).To(BeZero())

	clock.Step(time.Minute)
	close(elected)
	controller.onElected(queue)
	g.Expect(queue.Len()).To(Equal(1))
	g.Expect(next()).To(Equal("florin"))
	g.Expect(controller.states["f1"]).To(Equal(&syncTargetState{since: clock.Now(), secret: secret, supersededVersion: "7"}))

	// One whose preparation began before, and ends after.
	controller.markPrepared(request("guilder"))
	g.Expect(next()).To(Equal("guilder"))
}
