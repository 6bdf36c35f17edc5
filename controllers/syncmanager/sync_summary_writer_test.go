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

package syncmanager

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/test/framework/configmaps"
)

// answering is a SyncSummaryWriter with a ledger in memory that counts writes.
type answering struct {
	*fixture
	*WithT
	writer    *SyncSummaryWriter
	ledger    *ledger.Store
	readiness *findings.Readiness
	clock     *testclock.FakeClock
	writes    int
}

func newAnswering(t *testing.T) *answering {
	t.Helper()
	a := &answering{fixture: newFixture(t), WithT: NewWithT(t), readiness: &findings.Readiness{}}
	a.clock = a.manager.Clock.(*testclock.FakeClock)
	a.manager.Role.Shards = ownedTargets{florin: true}
	workspace := configmaps.New()
	workspace.Before = func(verb, name string) error {
		if verb == "update" && name == string(florin) {
			a.writes++
		}
		return nil
	}
	a.ledger = ledger.New(ledger.Options{ConfigMaps: workspace, Clock: a.clock, Log: logr.Discard()})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.ledger.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	a.Expect(a.ledger.WaitForLoad(t.Context())).To(Succeed())
	a.writer = NewSyncSummaryWriter(a.manager, a.ledger, a.readiness, logr.Discard())
	return a
}

// expect reconciles the SyncTarget, and fails the test unless so many writes of its entry were made.
func (a *answering) expect(what string, writes int) (requeueAfter time.Duration) {
	a.t.Helper()
	a.writes = 0
	result, err := a.writer.Reconcile(a.t.Context(), florin)
	a.Expect(err).NotTo(HaveOccurred(), what)
	a.Expect(a.writes).To(Equal(writes), what)
	return result.RequeueAfter
}

func (a *answering) entry() ledger.Entry { return a.ledger.Get(florin) }

// Numbers of objects are written at most once a minute, all other values at once, and nothing twice.
func TestAnswersAreWrittenWhenTheyChange(t *testing.T) {
	a := newAnswering(t)
	a.expect("the ledger has no entry", 0)
	a.Expect(a.entry()).To(Equal(ledger.Entry{}))
	a.Expect(a.ledger.Update(t.Context(), florin, func(entry *ledger.Entry) { entry.Name, entry.Mailbox = "florin", "m" })).To(Succeed())
	a.expect("nothing is known", 0)
	a.readiness.Set(florin, false, a.clock.Now(), time.Time{})
	a.expect("it is not Ready", 1)
	a.Expect(a.entry().Ready).To(HaveValue(BeFalse()))
	a.expect("nothing has changed", 0)
	a.readiness.Set(florin, true, a.clock.Now(), time.Time{})
	a.expect("it is Ready", 1)
	a.Expect(a.entry().Ready).To(HaveValue(BeTrue()))
	setMatcher(a.manager, selecting("configmaps"))
	if _, err := a.manager.Reconcile(t.Context(), florin); err != nil {
		t.Fatal(err)
	}
	a.endWait()
	a.expect("the first answer", 1)
	a.Expect(a.entry().SyncSummary).To(Equal(&ledger.SyncSummary{Synced: true, Objects: map[string]int64{"configmaps": 0, "secrets": 0}}))
	a.expect("nothing has changed", 0)

	// Another resource is synced, which changes the counts only.
	setMatcher(a.manager, selecting("configmaps", "deployments.apps"))
	if _, err := a.manager.Reconcile(t.Context(), florin); err != nil {
		t.Fatal(err)
	}
	a.endWait()
	a.Expect(a.expect("within the minute", 0)).To(Equal(summaryInterval))
	a.clock.Step(summaryInterval)
	a.expect("after the minute", 1)
	a.Expect(a.entry().SyncSummary.Objects).To(HaveKey("deployments.apps"))

	// The leader waits for the withdrawal of an API.
	withdrawn := slices.Clone(a.manager.Published())
	withdrawn[0].Unpublishing, withdrawn[0].UID = true, "u"
	a.manager.Publish(withdrawn)
	if _, err := a.manager.Reconcile(t.Context(), florin); err != nil {
		t.Fatal(err)
	}
	a.Expect(a.expect("an API is withdrawn", 1)).To(Equal(unpublishInterval))
	a.Expect(a.entry().SyncSummary.Unpublished).To(ConsistOf(types.UID("u")))

	// The SyncTarget moves to another replica and back.
	a.manager.Role.Shards = ownedTargets{}
	a.manager.StopSync(florin)
	a.expect("another replica holds it", 0)
	a.clock.Step(countTimeout)
	a.Expect(a.entry().SyncSummary.Unpublished).NotTo(BeEmpty())
	a.manager.Role.Shards = ownedTargets{florin: true}
	a.expect("what the former owner has found out does not count", 1)
	a.Expect(a.entry().SyncSummary.Unpublished).To(BeEmpty())
	a.Expect(a.entry().SyncSummary.Objects).NotTo(BeEmpty())
	a.clock.Step(countTimeout)
	a.expect("it is not synced", 1)
	a.Expect(a.entry().SyncSummary).To(Equal(&ledger.SyncSummary{}))
	a.expect("nothing has changed", 0)
}

// If a shard is released and acquired again before its SyncTargets were reconciled, this replica counts as its
// owner only since then.
func TestAShardThatComesBack(t *testing.T) {
	a := newAnswering(t)
	known := &ledger.SyncSummary{Synced: true, Objects: map[string]int64{"configmaps": 3}}
	a.Expect(a.ledger.Update(t.Context(), florin, func(entry *ledger.Entry) { entry.Name, entry.SyncSummary = "florin", known })).To(Succeed())
	a.manager.StopSync(florin)
	a.expect("it is held", 0)
	a.clock.Step(2 * countTimeout)
	a.writer.forgetShards(shards.SetOf(shards.Of(florin)))
	a.expect("it came back", 0)
	a.Expect(a.entry().SyncSummary).To(Equal(known))
	a.clock.Step(countTimeout)
	a.expect("it is not synced", 1)
}

// endWait makes the counts known, as the end of countTimeout does.
func (a *answering) endWait() {
	found, _ := a.manager.get(florin)
	found.lock.Lock()
	defer found.lock.Unlock()
	found.syncStartedAt = a.clock.Now().Add(-countTimeout)
	for _, running := range found.syncControllers {
		running.startedAt = found.syncStartedAt
	}
}
