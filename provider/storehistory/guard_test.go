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

package storehistory

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const (
	florin types.UID = "florin"
	penny  types.UID = "penny"
)

// newGuard returns a guard of a workspace, with its clock and the number of its changes.
func newGuard(workspace client.Client, now time.Time) (*Guard, *clocktesting.FakeClock, *int) {
	clock, changes := clocktesting.NewFakeClock(now), 0
	g := New(Options{Client: workspace, Reader: workspace, Namespace: "ledger", Clock: clock, Log: logr.Discard()})
	g.changes.Subscribe(context.Background(), func(struct{}) { changes++ })
	return g, clock, &changes
}

var began = time.Unix(1_000_000, 0).UTC()

func TestHolds(t *testing.T) {
	g := NewWithT(t)
	var none *Guard
	none.Report("x", 2, 1)
	g.Expect(none.Holds(florin)).To(BeFalse())
	g.Expect(none.SetSyncTarget(florin, began, "")).To(BeFalse())
	g.Expect(none.Current()).To(BeNil())
	g.Expect(none.Lost()).To(BeZero())

	guard, clock, changes := newGuard(fake.NewFakeClient(), began)
	guard.SetSyncTarget(florin, began.Add(-time.Hour), "")
	g.Expect(guard.Holds(florin)).To(BeFalse())
	guard.Report("the list", 100, 90)
	first := guard.Current()
	g.Expect(first.Evidence).To(Equal("the list has the resourceVersion 90 now, and had 100"))
	g.Expect(*changes).To(Equal(1))
	g.Expect(guard.Holds(florin)).To(BeTrue())
	g.Expect(guard.Holds(penny)).To(BeTrue(), "it is not known yet when it was made")
	g.Expect(guard.SetSyncTarget(penny, began.Add(time.Second), "")).To(BeFalse(), "it was made since")
	g.Expect(guard.SetSyncTarget(florin, began.Add(-time.Hour), "another")).To(BeTrue())
	g.Expect(guard.HeldCount()).To(Equal(1))
	g.Expect(guard.SetSyncTarget(florin, began.Add(-time.Hour), first.ID)).To(BeFalse())

	// Another observation of the same event does not hold the SyncTarget again.
	guard.Report("another list", 80, 70)
	clock.Step(episode - time.Second)
	guard.Report("another list", 120, 70)
	g.Expect(guard.Holds(florin)).To(BeTrue(), "whether that is the same event is not known yet")
	g.Expect(guard.save(t.Context())).To(Succeed())
	g.Expect(guard.Holds(florin)).To(BeFalse())
	g.Expect(guard.Lost()).To(BeEquivalentTo(120))
	g.Expect(guard.Explains(120)).To(BeTrue())
	g.Expect(guard.Explains(121)).To(BeFalse())

	// A later one does.
	clock.Step(time.Second)
	guard.Report("a list", 200, 150)
	g.Expect(guard.Current().ID).NotTo(Equal(first.ID))
	g.Expect(guard.Holds(florin)).To(BeTrue())
	g.Expect(*changes).To(Equal(2))
	guard.ForgetSyncTarget(florin)
	g.Expect(guard.HeldCount()).To(Equal(1), "the other one was made before that")
}

// A store that goes back again has lost the record of the first time.
func TestSecondRewindSoonAfter(t *testing.T) {
	g := NewWithT(t)
	workspace := fake.NewFakeClient()
	guard, _, _ := newGuard(workspace, began)
	guard.Report("the list", 100, 90)
	g.Expect(guard.save(t.Context())).To(Succeed())
	first := guard.Current()
	g.Expect(guard.SetSyncTarget(florin, began.Add(-time.Hour), first.ID)).To(BeFalse())
	g.Expect(workspace.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ledger", Name: configMapName}})).To(Succeed())
	guard.Report("the list", 99, 91)
	g.Expect(guard.Holds(florin)).To(BeTrue())
	g.Expect(guard.save(t.Context())).To(Succeed())
	g.Expect(guard.Current().ID).NotTo(Equal(first.ID))
	g.Expect(guard.Holds(florin)).To(BeTrue())
	g.Expect(guard.isStored).To(BeTrue())
}

// A rewind outlives the hub, and replicas that notice the same one agree on its ID.
func TestStoredRewinds(t *testing.T) {
	g := NewWithT(t)
	workspace := fake.NewFakeClient()
	first, _, _ := newGuard(workspace, began)
	g.Expect(first.Load(t.Context())).To(Succeed())
	g.Expect(first.Current()).To(BeNil())
	first.Report("the list", 100, 90)
	g.Expect(first.save(t.Context())).To(Succeed())
	g.Expect(first.isStored).To(BeTrue())

	second, _, changes := newGuard(workspace, began.Add(time.Minute))
	second.Report("another list", 110, 95)
	g.Expect(second.Current().ID).NotTo(Equal(first.Current().ID))
	g.Expect(second.save(t.Context())).To(Succeed())
	g.Expect(second.Current().ID).To(Equal(first.Current().ID))
	g.Expect(*changes).To(Equal(2))
	restarted, _, _ := newGuard(workspace, began.Add(time.Hour))
	g.Expect(restarted.Load(t.Context())).To(Succeed())
	g.Expect(restarted.Current()).To(Equal(second.Current()))
	g.Expect(restarted.Lost()).To(BeEquivalentTo(110))

	// A new rewind replaces an old one.
	restarted.Report("the list", 1000, 900)
	latest := restarted.Current()
	g.Expect(restarted.save(t.Context())).To(Succeed())
	g.Expect(restarted.Current()).To(Equal(latest))
	g.Expect(first.Load(t.Context())).To(Succeed())
	g.Expect(first.Current()).To(Equal(latest))

	var stored corev1.ConfigMap
	g.Expect(workspace.Get(t.Context(), types.NamespacedName{Namespace: "ledger", Name: configMapName}, &stored)).To(Succeed())
	stored.Data[rewindKey] = "?"
	g.Expect(workspace.Update(t.Context(), &stored)).To(Succeed())
	g.Expect(first.Load(t.Context())).To(MatchError(ContainSubstring("store-history")))
}

func TestWatermarks(t *testing.T) {
	g := NewWithT(t)
	guard, _, _ := newGuard(fake.NewFakeClient(), began)
	_, ok := guard.Watermarks("")
	g.Expect(ok).To(BeFalse(), "there is nothing to record")
	seen := uint64(0)
	stop := guard.Track("a", func() uint64 { return seen })
	next, ok := guard.Watermarks(`{"a":7,"ledger":5}`)
	g.Expect(ok).To(BeTrue())
	g.Expect(next).To(Equal(`{"a":7,"ledger":5}`), "an unread resource keeps its version")
	seen = 8
	next, _ = guard.Watermarks(`{"a":7,"ledger":5}`)
	g.Expect(next).To(Equal(`{"a":8,"ledger":5}`))
	next, _ = guard.Watermarks("no JSON")
	g.Expect(next).To(Equal(`{"a":8}`))

	guard.SetPrevious(`{"a":7,"b":9}`)
	guard.Check("a", "a", 7)
	guard.Check("c", "c", 1)
	guard.Check("b", "b", 0)
	g.Expect(guard.Current()).To(BeNil())
	guard.SetPrevious(`{"b":9}`)
	guard.Check("b", "b", 8)
	g.Expect(guard.Lost()).To(BeEquivalentTo(9))
	_, ok = guard.Watermarks(next)
	g.Expect(ok).To(BeFalse(), "a crash before the rewind is stored must not lose it")
	g.Expect(guard.save(t.Context())).To(Succeed())
	_, ok = guard.Watermarks(next)
	g.Expect(ok).To(BeTrue())
	stop()
	guard.SetPrevious("[]")
}
