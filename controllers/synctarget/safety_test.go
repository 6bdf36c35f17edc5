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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// The target of a SyncTarget is cleaned up only if the SyncTarget itself was deleted, with the hub's finalizer.
// The deletion of the whole workspace does not request that.
func TestWhenATargetIsCleanedUp(t *testing.T) {
	for name, test := range map[string]struct {
		finalizer, terminating bool
		reason                 string
	}{
		"deleted":                            {finalizer: true, reason: ReasonCleaningUp},
		"without the hub's finalizer":        {},
		"its workspace is being deleted too": {finalizer: true, terminating: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newRemovalFixture(t, false)
			f.inventory.terminating = test.terminating
			if test.finalizer {
				f.syncTarget.Finalizers = append(f.syncTarget.Finalizers, mailbox.Finalizer)
			}
			_, err := f.reconcileDelete(t.Context(), mcreconcile.Request{}, f.inventory, f.syncTarget)
			g.Expect(err).NotTo(HaveOccurred())
			reason := ""
			if ready := meta.FindStatusCondition(f.syncTarget.Status.Conditions, edgev2alpha1.ConditionReady); ready != nil {
				reason = ready.Reason
			}
			g.Expect(reason).To(Equal(test.reason))
			g.Expect(f.IsCleanedUp(f.syncTarget.UID)).To(BeFalse())
			_, connected := f.Registry.Get(f.syncTarget.UID)
			g.Expect(connected).To(Equal(test.reason != ""), "the hub is connected")
			g.Expect(f.store.get(f.syncTarget.UID).drain != nil).To(Equal(test.reason != ""))
		})
	}
}

// A drain continues only in its mode and over its connection: it must not delete objects that should stay, or
// objects of another cluster.
func TestCurrentDrain(t *testing.T) {
	for name, test := range map[string]struct {
		mode  cleanup.Mode
		other bool
		want  bool
	}{
		"the same":           {cleanup.ModeOrphan, false, true},
		"another mode":       {cleanup.ModeDelete, false, false},
		"another connection": {cleanup.ModeOrphan, true, false},
	} {
		f := newRemovalFixture(t, false)
		canceled := false
		f.store.get(f.syncTarget.UID).drain.cancel = func() { canceled = true }
		connection := f.connection
		if test.other {
			connection = &targets.Connection{}
		}
		if got := f.store.currentDrain(f.syncTarget.UID, test.mode, connection) != nil; got != test.want || canceled == test.want || f.store.get(f.syncTarget.UID).drain != nil != test.want {
			t.Errorf("%s: it continues: %t, canceled: %t", name, got, canceled)
		}
	}
}

// Without the PublishedResources the hub does not know which namespaces may go with their contents.
func TestNoDrainBeforeAnythingIsPublished(t *testing.T) {
	f := newRemovalFixture(t, false)
	f.store.runContext = t.Context()
	f.store.setDrain(f.syncTarget.UID, nil)
	started, err := f.startDrain(t.Context(), mcreconcile.Request{}, f.inventory, f.syncTarget, f.connection, cleanup.ModeDelete)
	if started != nil || err != nil {
		t.Errorf("got %v, %v", started, err)
	}
}

func TestDrainModeOf(t *testing.T) {
	for policy, want := range map[edgev2alpha1.DeletionPolicy]cleanup.Mode{"": cleanup.ModeOrphan, edgev2alpha1.DeletionPolicyOrphan: cleanup.ModeOrphan, edgev2alpha1.DeletionPolicyDelete: cleanup.ModeDelete} {
		if got := drainModeOf(&edgev2alpha1.SyncTarget{Spec: edgev2alpha1.SyncTargetSpec{DeletionPolicy: policy}}); got != want {
			t.Errorf("%q: got %v", policy, got)
		}
	}
}

// Without usable credentials the existing connection ends, because its credentials are the SyncTarget's no more.
func TestConnectWithoutCredentials(t *testing.T) {
	for name, change := range map[string]func(*removalFixture){
		"no reference":      func(f *removalFixture) { f.syncTarget.Spec.KubeconfigSecretRef = nil },
		"a key that is not": func(f *removalFixture) { f.syncTarget.Spec.KubeconfigSecretRef.Key = "other" },
		"another Secret":    func(f *removalFixture) { f.syncTarget.Spec.KubeconfigSecretRef.Name = "another" },
		"not allowed":       func(f *removalFixture) { f.syncTarget.Name = "guilder" },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newRemovalFixture(t, false)
			change(f)
			connection, problem, err := f.connect(t.Context(), f.inventory, f.syncTarget, f.store.stateOf(f.syncTarget.UID))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(connection).To(BeNil())
			g.Expect(problem).NotTo(BeNil())
			g.Expect(problem.reason).To(BeElementOf(ReasonCredentialsMissing, ReasonCredentialsNotAllowed))
			_, connected := f.Registry.Get(f.syncTarget.UID)
			g.Expect(connected).To(BeFalse())
		})
	}
}

// Another cluster behind the kubeconfig takes the place of the former one only if the SyncTarget confirms that very cluster. The target of the
// fixture is the cluster "cluster".
func TestIdentifyCluster(t *testing.T) {
	for name, test := range map[string]struct {
		// before is the cluster in the ledger, and confirmed the annotation.
		before, confirmed string
		unreachable       bool
		identified        bool
		want              string
	}{
		"the first":                         {identified: true, want: "cluster"},
		"the same":                          {before: "cluster", identified: true, want: "cluster"},
		"the same, confirmed without cause": {before: "cluster", confirmed: "other", identified: true, want: "cluster"},
		"another":                           {before: "before", want: "before"},
		"another, and a third is confirmed": {before: "before", confirmed: "other", want: "before"},
		"another that is confirmed":         {before: "before", confirmed: "cluster", identified: true, want: "cluster"},
		"known, and not connected":          {before: "before", unreachable: true, identified: true, want: "before"},
		"unknown, and not connected":        {unreachable: true},
		"unknown, not connected, confirmed": {unreachable: true, confirmed: "cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newRemovalFixture(t, false)
			state, observed := f.store.stateOf(f.syncTarget.UID), observedState{connection: f.connection}
			if test.before != "" {
				g.Expect(f.Ledger.Update(t.Context(), f.syncTarget.UID, func(entry *ledger.Entry) { entry.Cluster = ledger.Cluster{ID: test.before, Server: "x"} })).To(Succeed())
			}
			if test.confirmed != "" {
				metav1.SetMetaDataAnnotation(&f.syncTarget.ObjectMeta, edgev2alpha1.AnnotationConfirmedCluster, test.confirmed)
			}
			f.expectCluster(f.syncTarget, state)
			if test.unreachable {
				observed.connection = nil
			} else if test.before == "before" {
				suite.WaitUntil(t, "another cluster is noticed", func() bool { return f.connection.Health.Get().Reason == targets.ReasonClusterChanged })
			}
			g.Expect(f.identifyCluster(t.Context(), mcreconcile.Request{}, f.syncTarget, &observed, state)).To(Succeed())
			g.Expect(observed.identified).To(Equal(test.identified))
			g.Expect(f.Ledger.Get(f.syncTarget.UID).Cluster.ID).To(Equal(test.want))
		})
	}
}

// Nothing is synced to a cluster that is unknown, that another SyncTarget stands for, or whose sync is
// suspended.
func TestWhatIsNotSynced(t *testing.T) {
	for name, change := range map[string]func(*removalFixture, *observedState){
		"no connection":      func(_ *removalFixture, o *observedState) { o.connection = nil },
		"an unknown cluster": func(_ *removalFixture, o *observedState) { o.identified = false },
		"an older claim":     func(_ *removalFixture, o *observedState) { o.conflictingTarget = &clusterIdentity{uid: "older"} },
		"suspended":          func(f *removalFixture, _ *observedState) { f.syncTarget.Spec.Suspend = true },
		"drained":            func(f *removalFixture, _ *observedState) { f.syncTarget.Spec.Drain = true },
		"no mailbox":         func(_ *removalFixture, o *observedState) { o.mailbox = "" },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newRemovalFixture(t, false)
			observed := observedState{connection: f.connection, identified: true, mailbox: "m"}
			change(f, &observed)
			f.startOrStopSync(f.syncTarget, observed)
			g.Expect(f.Sync.SyncTargets()).To(BeEmpty())
			g.Expect(f.store.get(f.syncTarget.UID).drain).NotTo(BeNil(), "a drain goes on")
		})
	}
}

// Findings of the previous leader count for the first connection only.
func TestTrustIsForOneConnection(t *testing.T) {
	until, first, second := time.Unix(2000, 0), &targets.Connection{}, &targets.Connection{}
	trust := &startupGrace{until: until}
	for range 2 {
		if !trust.forConnection(first).Equal(until) {
			t.Error("it does not count for the first connection")
		}
	}
	if !trust.forConnection(second).IsZero() || !trust.forConnection(first).IsZero() {
		t.Error("it counts for another connection")
	}
}
