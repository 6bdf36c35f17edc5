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

package fleetcache

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/test/framework/inventoryenv"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

func TestMain(m *testing.M) { suite.Main(m) }

// testEnv is a running fleet, and a client that creates mailboxes as the hub's user does.
type testEnv struct {
	*inventoryenv.Env
	fleet *Fleet
	hub   client.Client
}

// newTestEnv runs a fleet until the test ends.
func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	env := &testEnv{Env: inventoryenv.New(t)}
	env.Start(t, env.register)
	return env
}

// register creates a fleet that finds the mailboxes of the hub's user.
func (e *testEnv) register(hub *inventoryenv.Hub) (err error) {
	config := hub.Access.WorkspaceConfig(inventoryenv.Workspace)
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return err
	}
	store := ledger.New(ledger.Options{ConfigMaps: core.ConfigMaps(ledger.Namespace), Clock: clock.RealClock{}, Log: logr.Discard()})
	if e.hub, err = client.New(config, client.Options{Scheme: inventoryenv.Scheme()}); err != nil {
		return err
	}
	if err := hub.Manager.GetLocalManager().Add(store); err != nil {
		return err
	}
	e.fleet = New(Options{
		Manager: hub.Manager,
		Mailboxes: mailbox.Locator{Provider: hub.Provider, Workspace: inventoryenv.Workspace, OwnerChecker: &mailbox.OwnerChecker{
			Ledger: store,
			WhoAmI: func(ctx context.Context) (authenticationv1.UserInfo, error) { return kcp.WhoAmI(ctx, config) },
		}},
		InventoryConfigFor: hub.Access.InventoryConfigFor,
		Scheme:             inventoryenv.Scheme(),
	})
	return e.fleet.Register(hub.Manager.GetLocalManager())
}

// createMailbox creates the mailbox workspace of a SyncTarget.
func (e *testEnv) createMailbox(t *testing.T, inventory logicalcluster.Name, syncTarget *edgev2alpha1.SyncTarget) *tenancyv1alpha1.Workspace {
	t.Helper()
	workspace := &tenancyv1alpha1.Workspace{
		ObjectMeta: metav1.ObjectMeta{Name: mailbox.Name(inventory, syncTarget.UID), Annotations: map[string]string{edgev2alpha1.AnnotationSyncTargetName: syncTarget.Name}},
		Spec:       tenancyv1alpha1.WorkspaceSpec{Type: &tenancyv1alpha1.WorkspaceTypeReference{Name: mailbox.WorkspaceType, Path: inventoryenv.Workspace}},
	}
	NewWithT(t).Expect(e.hub.Create(t.Context(), workspace)).To(Succeed())
	return workspace
}

func newObject[T client.Object](t *testing.T, in client.Client, object T) T {
	t.Helper()
	NewWithT(t).Expect(in.Create(t.Context(), object)).To(Succeed())
	return object
}

// newProdLocation returns a Location that selects the SyncTargets of newSyncTargetOf.
func newProdLocation() *edgev2alpha1.Location {
	prod := map[string]string{"env": "prod"}
	return &edgev2alpha1.Location{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: prod}, Spec: edgev2alpha1.LocationSpec{
		Resource:         edgev2alpha1.GroupVersionResource{Version: "v2alpha1", Resource: "synctargets"},
		InstanceSelector: &metav1.LabelSelector{MatchLabels: prod},
	}}
}

func newSyncTargetOf(name string, finalizers ...string) *edgev2alpha1.SyncTarget {
	return &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": "prod"}, Finalizers: finalizers}}
}

// verify verifies an inventory, and retries while the view is behind kcp.
func (e *testEnv) verify(t *testing.T, inventory logicalcluster.Name) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) { g.Expect(e.fleet.Verify(t.Context(), inventory)).To(Succeed()) })
}

func TestAgainstKCP(t *testing.T) {
	tier.Thorough(t)
	env := newTestEnv(t)

	t.Run("follows SyncTargets, Locations and mailboxes", func(t *testing.T) {
		g, inventory := NewWithT(t), env.NewInventory(t, "follows")
		newObject(t, inventory, newProdLocation())
		one := newObject(t, inventory, newSyncTargetOf("one"))
		suite.Eventually(t, func(g Gomega) {
			view := env.fleet.Snapshot().Inventory(inventory.Name)
			g.Expect(view).NotTo(BeNil())
			g.Expect(view.SyncTargets).To(HaveExactElements(fleet.SyncTarget{Inventory: inventory.Name, Name: "one", UID: one.UID, Labels: map[string]string{"env": "prod"}}))
			g.Expect(view.Locations).To(HaveLen(1))
			g.Expect(view.Locations[0].Labels).To(Equal(map[string]string{"env": "prod"}))
			g.Expect(view.Verified).To(BeFalse())
		})
		workspace := env.createMailbox(t, inventory.Name, one)
		var found fleet.SyncTarget
		suite.Eventually(t, func(g Gomega) {
			g.Expect(env.hub.Get(t.Context(), types.NamespacedName{Name: workspace.Name}, workspace)).To(Succeed())
			var ok bool
			found, ok = env.fleet.Snapshot().SyncTargetOf(logicalcluster.Name(workspace.Spec.Cluster))
			g.Expect(ok).To(BeTrue())
		})
		g.Expect(found.UID).To(Equal(one.UID))

		// A label moves the SyncTarget out of the Location. The view contains the change, but is not verified
		// until kcp confirms it.
		env.verify(t, inventory.Name)
		g.Expect(env.fleet.Snapshot().IsVerified(found.Mailbox)).To(BeTrue())
		before := one.DeepCopy()
		one.Labels["env"] = "test"
		g.Expect(inventory.Patch(t.Context(), one, client.MergeFrom(before))).To(Succeed())
		suite.Eventually(t, func(g Gomega) {
			view := env.fleet.Snapshot().Inventory(inventory.Name)
			g.Expect(view.Verified).To(BeFalse())
			g.Expect(view.SyncTargets[0].Labels).To(HaveKeyWithValue("env", "test"))
		})
		env.verify(t, inventory.Name)
		// The deleted mailbox has no SyncTarget any more.
		g.Expect(env.hub.Delete(t.Context(), workspace)).To(Succeed())
		suite.Eventually(t, func(g Gomega) {
			_, ok := env.fleet.Snapshot().SyncTargetOf(found.Mailbox)
			g.Expect(ok).To(BeFalse())
		})
	})

	t.Run("ignores a mailbox workspace that another user created", func(t *testing.T) {
		g, inventory := NewWithT(t), env.NewInventory(t, "foreign")
		one := newObject(t, inventory, newSyncTargetOf("one"))
		admin, err := client.New(env.Server.Workspace(inventoryenv.Workspace), client.Options{Scheme: inventoryenv.Scheme()})
		g.Expect(err).NotTo(HaveOccurred())
		hub := env.hub
		env.hub = admin
		workspace := env.createMailbox(t, inventory.Name, one)
		env.hub = hub
		suite.Eventually(t, func(g Gomega) {
			g.Expect(env.hub.Get(t.Context(), types.NamespacedName{Name: workspace.Name}, workspace)).To(Succeed())
			g.Expect(workspace.Status.Phase).To(BeEquivalentTo("Ready"))
		})
		// Another event of the inventory follows the workspace's event.
		newObject(t, inventory, newSyncTargetOf("two"))
		suite.Eventually(t, func(g Gomega) {
			view := env.fleet.Snapshot().Inventory(inventory.Name)
			g.Expect(view.SyncTargets).To(HaveLen(2))
			g.Expect(view.SyncTargets[0].Mailbox).To(BeEmpty())
		})
	})

	t.Run("verifies that a Location was deleted", func(t *testing.T) {
		g, inventory := NewWithT(t), env.NewInventory(t, "deletes")
		prod := newObject(t, inventory, newProdLocation())
		newObject(t, inventory, newSyncTargetOf("one"))
		suite.Eventually(t, func(g Gomega) {
			view := env.fleet.Snapshot().Inventory(inventory.Name)
			g.Expect(view).NotTo(BeNil())
			g.Expect(view.SyncTargets).To(HaveLen(1))
			g.Expect(view.Locations).To(HaveLen(1))
		})
		env.verify(t, inventory.Name)
		g.Expect(inventory.Delete(t.Context(), prod)).To(Succeed())
		suite.Eventually(t, func(g Gomega) {
			view := env.fleet.Snapshot().Inventory(inventory.Name)
			g.Expect(view.Locations).To(BeEmpty())
			g.Expect(view.Verified).To(BeFalse())
		})
		env.verify(t, inventory.Name)
		g.Expect(env.fleet.Snapshot().Inventory(inventory.Name)).To(HaveValue(And(HaveField("Verified", true), HaveField("Locations", BeEmpty()))))
	})

	t.Run("verifies nothing in an inventory that unbinds", func(t *testing.T) {
		g, inventory := NewWithT(t), env.NewInventory(t, "unbinds")
		newObject(t, inventory, newProdLocation())
		one := newObject(t, inventory, newSyncTargetOf("one", "example.com/keeps-the-binding"))
		suite.Eventually(t, func(g Gomega) {
			view := env.fleet.Snapshot().Inventory(inventory.Name)
			g.Expect(view).NotTo(BeNil())
			g.Expect(view.Locations).To(HaveLen(1))
		})
		g.Expect(inventory.Delete(t.Context(), &apisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: "synchub"}})).To(Succeed())
		suite.Eventually(t, func(g Gomega) {
			g.Expect(env.fleet.Snapshot().Inventory(inventory.Name)).To(HaveValue(And(HaveField("Verified", false), HaveField("Locations", BeEmpty()))))
			g.Expect(env.fleet.Verify(t.Context(), inventory.Name)).To(MatchError(ContainSubstring("the APIBinding synchub is being deleted")))
		})
		g.Expect(env.fleet.Snapshot().Inventory(inventory.Name).Verified).To(BeFalse())
		g.Expect(inventory.Get(t.Context(), types.NamespacedName{Name: "one"}, one)).To(Succeed())
		before := one.DeepCopy()
		one.Finalizers = nil
		g.Expect(inventory.Patch(t.Context(), one, client.MergeFrom(before))).To(Succeed())
		suite.Eventually(t, func(g Gomega) { g.Expect(env.fleet.Snapshot().Inventory(inventory.Name)).To(BeNil()) })
		g.Expect(env.fleet.Verify(t.Context(), inventory.Name)).NotTo(Succeed())
	})
}
