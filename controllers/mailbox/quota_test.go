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

package mailbox

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func newQuotaWithQueue(t *testing.T, limit int) (*Quota, workqueue.TypedInterface[mcreconcile.Request]) {
	queue := workqueue.NewTyped[mcreconcile.Request]()
	t.Cleanup(queue.ShutDown)
	quota := NewQuota(nil, logr.Discard(), configv1alpha1.MailboxesConfiguration{MaxPerInventory: limit})
	quota.setQueue(queue)
	return quota, queue
}

// uidOf returns the UID of a SyncTarget.
func uidOf(request mcreconcile.Request) types.UID { return types.UID("uid-" + request.Name) }

func mailboxName(request mcreconcile.Request) string {
	return Name(logicalcluster.Name(request.ClusterName), uidOf(request))
}

func mailboxOf(request mcreconcile.Request) *tenancyv1alpha1.Workspace {
	workspace := &tenancyv1alpha1.Workspace{}
	workspace.Name, workspace.Annotations = mailboxName(request), map[string]string{edgev2alpha1.AnnotationSyncTargetName: request.Name}
	return workspace
}

func TestQuota(t *testing.T) {
	quota, _ := newQuotaWithQueue(t, 3)
	take := func(number int) bool {
		request := syncTargetRequest(number)
		return quota.reserve(request, mailboxName(request), false)
	}
	expect := func(number int, want QuotaState) {
		t.Helper()
		if got := quota.State(syncTargetRequest(number), uidOf(syncTargetRequest(number))); got != want {
			t.Errorf("the state of %d is %d, want %d", number, got, want)
		}
	}
	other := syncTargetRequest(0)
	other.ClusterName = "xyz"

	expect(0, QuotaUndecided)
	// The previous leader has created two, one of them for a SyncTarget that is not in the cache any more.
	quota.onWorkspaceAdded(mailboxOf(syncTargetRequest(0)))
	quota.onWorkspaceAdded(mailboxOf(syncTargetRequest(1)))
	expect(0, QuotaGranted)
	if !take(0) || !take(2) || !take(2) {
		t.Error("a mailbox within the quota is refused")
	}
	expect(2, QuotaGranted)
	if take(3) || take(4) {
		t.Error("a mailbox above the quota is granted")
	}
	expect(3, QuotaExceeded)
	expect(5, QuotaUndecided)
	if !quota.reserve(other, mailboxName(other), false) {
		t.Error("a mailbox of another inventory is refused")
	}
	if !strings.Contains(quota.ExceededMessage(), "3 mailboxes") {
		t.Error(quota.ExceededMessage())
	}
	// A reserved mailbox that now exists counts once.
	quota.onWorkspaceAdded(mailboxOf(syncTargetRequest(2)))
	if take(3) {
		t.Error("the creation of a reserved mailbox allows another one")
	}
}

func TestQuotaIsReleased(t *testing.T) {
	quota, queue := newQuotaWithQueue(t, 3)
	for number := range 5 {
		request := syncTargetRequest(number)
		quota.reserve(request, mailboxName(request), false)
		if number < 3 {
			quota.onWorkspaceAdded(mailboxOf(request))
		}
	}
	// A SyncTarget that lost its mailbox gets another, which counts.
	if lost := syncTargetRequest(5); !quota.reserve(lost, mailboxName(lost), true) {
		t.Error("a lost mailbox is not created again")
	}
	quota.onWorkspaceDeleted(mailboxName(syncTargetRequest(0)))
	if len(queuedRequests(queue)) > 0 {
		t.Error("a SyncTarget is enqueued although there are three")
	}
	// A reservation that is released makes room.
	quota.cancelReservation(syncTargetRequest(5))
	if next := queuedRequests(queue); len(next) != 1 {
		t.Errorf("%v are enqueued", next)
	} else {
		// A SyncTarget that needs no mailbox makes room for the next.
		quota.cancelReservation(next[0])
		if again := queuedRequests(queue); len(again) != 1 || again[0] == next[0] {
			t.Errorf("%v are enqueued after %v", again, next)
		}
	}
	if quota.countRefused() != 0 {
		t.Errorf("%d are refused", quota.countRefused())
	}
	quota.onWorkspaceDeleted("something else")
	quota.cancelReservation(mcreconcile.Request{})
}

// A SyncTarget that is created again under its name has another mailbox.
func TestQuotaOfARecreatedMailbox(t *testing.T) {
	quota, _ := newQuotaWithQueue(t, 1)
	request := syncTargetRequest(0)
	if !quota.reserve(request, Name("abc", "first"), false) || quota.State(request, "second") == QuotaGranted {
		t.Error("the second has the first's reservation")
	}
	if !quota.reserve(request, Name("abc", "second"), false) || quota.State(request, "first") == QuotaGranted {
		t.Error("the second has no reservation")
	}
}

// In any order of events, no more new mailboxes than the limit are granted, and no SyncTarget stays refused
// below the limit.
func TestQuotaProperty(t *testing.T) {
	for seed := range 200 {
		random := rand.New(rand.NewPCG(uint64(seed), 1)) //nolint:gosec // reproducible, and no secret
		limit := 1 + random.IntN(4)
		quota, queue := newQuotaWithQueue(t, limit)
		wanted, there := map[mcreconcile.Request]bool{}, map[mcreconcile.Request]bool{}
		reconcile := func(request mcreconcile.Request) {
			switch {
			case there[request] && wanted[request]:
			case !wanted[request]:
				quota.cancelReservation(request)
				if there[request] {
					delete(there, request)
					quota.onWorkspaceDeleted(mailboxName(request))
				}
			case quota.reserve(request, mailboxName(request), false):
				there[request] = true
				if len(there) > limit {
					t.Fatalf("seed %d: %d mailboxes, the limit is %d", seed, len(there), limit)
				}
				quota.onWorkspaceAdded(mailboxOf(request))
			}
		}
		for range 100 {
			request := syncTargetRequest(random.IntN(10))
			wanted[request] = random.IntN(2) == 0
			reconcile(request)
			for _, next := range queuedRequests(queue) {
				reconcile(next)
			}
		}
		for pending := queuedRequests(queue); len(pending) > 0; pending = queuedRequests(queue) {
			for _, next := range pending {
				reconcile(next)
			}
		}
		maps.DeleteFunc(wanted, func(_ mcreconcile.Request, wants bool) bool { return !wants })
		if len(there) != min(len(wanted), limit) {
			t.Fatalf("seed %d: %d of %d have a mailbox, the limit is %d", seed, len(there), len(wanted), limit)
		}
	}
}

// An inventory workspace with many waiting SyncTargets creates no more mailboxes at a time than one with few.
func TestCreationLimiterIsFair(t *testing.T) {
	turns, queue := newCreationLimiterWithQueue(t)
	for number := range 20 * maxConcurrentCreations {
		turns.acquire(syncTargetRequest(number))
	}
	var late []mcreconcile.Request
	for number := range 3 {
		request := syncTargetRequest(number)
		request.ClusterName = "late"
		late = append(late, request)
		turns.acquire(request)
	}
	for number := range 3 {
		turns.done(syncTargetRequest(number))
		next := queuedRequests(queue)
		if len(next) != 1 || !slices.Contains(late, next[0]) || !turns.acquire(next[0]) {
			t.Fatalf("%v are enqueued", next)
		}
	}
	turns.done(syncTargetRequest(3))
	if next := queuedRequests(queue); len(next) != 1 || next[0].ClusterName != "abc" {
		t.Errorf("%v are enqueued, %s", next, fmt.Sprint(turns.waiting["late"]))
	}
}
