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

package ledger_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	kcpcoreclient "github.com/kcp-dev/client-go/kubernetes/typed/core/v1"
	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

func TestMain(m *testing.M) { suite.Main(m) }

const providerWorkspace = "root:synchub"

// replica is a replica of the hub with its ledger, and the SyncTargets whose changes the ledger has reported.
type replica struct {
	*ledger.Store

	lock    sync.Mutex
	changed []types.UID
}

// newReplica returns a replica that runs until the test ends. The leader renews its ConfigMap.
func newReplica(t *testing.T, hub *rest.Config, leads bool) *replica {
	t.Helper()
	var elected chan struct{}
	if !leads {
		elected = make(chan struct{})
	}
	r := &replica{Store: ledger.New(ledger.Options{
		ConfigMaps: configMapsOf(t, hub), Elected: elected, Clock: clock.RealClock{}, Log: logr.Discard(),
		Identity: func(context.Context) (ledger.HubIdentity, error) { return ledger.HubIdentity{Lease: "one"}, nil },
	})}
	r.Changes().Subscribe(t.Context(), func(syncTarget types.UID) {
		r.lock.Lock()
		defer r.lock.Unlock()
		r.changed = append(r.changed, syncTarget)
	})
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() {
		if err := r.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

// configMapsOf returns the ConfigMaps of the ledger, with the client that a hub has for them.
func configMapsOf(t *testing.T, hub *rest.Config) corev1client.ConfigMapInterface {
	t.Helper()
	workspaces, err := kcpcoreclient.NewForConfig(hub)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return workspaces.Cluster(logicalcluster.NewPath(providerWorkspace)).ConfigMaps(ledger.Namespace)
}

func (r *replica) countChanges(syncTarget types.UID) (count int) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, one := range r.changed {
		if one == syncTarget {
			count++
		}
	}
	return count
}

// Replicas with the rights of a hub's user share the ledger in a real provider workspace.
func TestReplicasShareTheLedger(t *testing.T) {
	tier.Thorough(t)
	g := NewWithT(t)
	kcp := suite.KCP(t)
	g.Expect(bootstrap.Run(t.Context(), bootstrap.Options{
		Config: func(workspace string) *rest.Config { return kcp.Workspace(workspace) }, Workspace: providerWorkspace, HubUser: servers.HubUser,
		Report: func(string, string) {},
	})).To(Succeed())
	hub := kcp.HubConfig
	suite.WaitUntil(t, "the rights of the hub's user", func() bool {
		// kcp needs a moment until the rights take effect. A replica without rights ends.
		watching, err := configMapsOf(t, hub).Watch(t.Context(), metav1.ListOptions{})
		if err == nil {
			watching.Stop()
		}
		return err == nil
	})

	early := newReplica(t, hub, false)
	leader := newReplica(t, hub, true)
	for _, one := range []*replica{leader, early} {
		g.Expect(one.WaitForLoad(t.Context())).To(Succeed())
	}
	g.Expect(early.PreviousRenewTime()).NotTo(BeZero(), "its leader has written that it leads")
	update := func(l *replica, change func(*ledger.Entry)) {
		t.Helper()
		g.Expect(l.Update(t.Context(), "florin", change)).To(Succeed())
	}
	update(leader, func(entry *ledger.Entry) { entry.Name, entry.Mailbox = "florin", "m" })
	suite.Eventually(t, func(g Gomega) { g.Expect(early.Get("florin").Mailbox).To(Equal("m")) })
	late := newReplica(t, hub, false)
	g.Expect(late.WaitForLoad(t.Context())).To(Succeed())
	g.Expect(late.Get("florin").Mailbox).To(Equal("m"), "from the list")

	// Both write the same entry, and neither has seen the other's last write: the conflict is resolved.
	for i := range int64(20) {
		var writing sync.WaitGroup
		for _, change := range []struct {
			by *replica
			of func(*ledger.Entry)
		}{
			{leader, func(entry *ledger.Entry) { entry.VerifiedGeneration = i + 1 }},
			{early, func(entry *ledger.Entry) {
				entry.Ready, entry.SyncSummary = new(i%2 == 0), &ledger.SyncSummary{Synced: true, Objects: map[string]int64{"configmaps": i}}
			}},
		} {
			writing.Go(func() {
				if err := change.by.Update(t.Context(), "florin", change.of); err != nil {
					t.Error(err)
				}
			})
		}
		writing.Wait()
	}
	g.Expect(late.EnsureFresh(t.Context(), time.Now())).To(Succeed())
	entry := late.Get("florin")
	g.Expect(entry.VerifiedGeneration).To(BeEquivalentTo(20))
	g.Expect(entry.SyncSummary.Objects).To(HaveKeyWithValue("configmaps", int64(19)))
	g.Expect(late.Get("florin")).To(Equal(entry), "no later event is newer")
	for _, one := range []*replica{leader, early, late} {
		suite.Eventually(t, func(g Gomega) { g.Expect(one.Get("florin")).To(Equal(entry)) })
	}
	g.Expect(late.countChanges("florin")).To(BeNumerically(">", 1))

	admin, err := client.New(kcp.Workspace(providerWorkspace), client.Options{Scheme: bootstrap.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	var left corev1.ConfigMap
	// Somebody deletes the ConfigMap: the entry is not forgotten, and is written again.
	deleted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ledger.Namespace, Name: "florin"}}
	g.Expect(admin.Delete(t.Context(), deleted)).To(Succeed())
	for _, one := range []*replica{leader, early, late} {
		suite.Eventually(t, func(g Gomega) { g.Expect(one.Has("florin")).To(BeFalse()) })
		g.Expect(one.Get("florin")).To(Equal(entry))
	}
	g.Expect(late.Update(t.Context(), "florin", func(*ledger.Entry) {})).To(Succeed())
	g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(deleted), &left)).To(Succeed())
	for _, one := range []*replica{leader, early, late} {
		suite.Eventually(t, func(g Gomega) { g.Expect(one.Has("florin")).To(BeTrue()) })
		g.Expect(one.Get("florin")).To(Equal(entry))
	}

	// An entry that the leader deletes is forgotten once it is cleaned up, and a late response does not bring it back.
	g.Expect(early.Update(t.Context(), "florin", func(entry *ledger.Entry) { entry.CleanedUp = true })).To(Succeed())
	for _, one := range []*replica{leader, late} {
		suite.Eventually(t, func(g Gomega) { g.Expect(one.Get("florin").CleanedUp).To(BeTrue()) })
	}
	g.Expect(leader.Delete(t.Context(), "florin")).To(Succeed())
	g.Expect(early.UpdateExisting(t.Context(), "florin", func(entry *ledger.Entry) { entry.Ready = nil })).To(Succeed())
	for _, one := range []*replica{leader, early, late} {
		suite.Eventually(t, func(g Gomega) {
			all, loaded := one.SyncTargets()
			g.Expect(loaded).To(BeTrue())
			g.Expect(slices.Contains(all, "florin")).To(BeFalse())
			g.Expect(one.Get("florin")).To(BeZero())
		})
	}
	g.Expect(admin.Get(t.Context(), types.NamespacedName{Namespace: ledger.Namespace, Name: "florin"}, &left)).NotTo(Succeed())

	// A foreign ConfigMap in the namespace is not an entry.
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ledger.Namespace, Name: "foreign"}, Data: map[string]string{"entry": "{}"}}
	g.Expect(admin.Create(t.Context(), foreign)).To(Succeed())
	update(early, func(entry *ledger.Entry) { entry.Name = "florin" })
	suite.Eventually(t, func(g Gomega) { all, _ := late.SyncTargets(); g.Expect(all).To(ConsistOf(types.UID("florin"))) })
}
