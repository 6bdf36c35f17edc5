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

package inventoryenv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// Workspace is the path of the provider workspace.
const Workspace = "root:synchub"

// content makes a workspace an inventory.
const content = `
{apiVersion: v1, kind: Namespace, metadata: {name: default}}
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: synchub}
spec:
  reference: {export: {path: %s, name: %s}}
  permissionClaims:
  - {group: "", resource: secrets, verbs: ["*"], state: Accepted, selector: {matchLabels: {%s: %s}}}
  - {group: "", resource: events, verbs: ["*"], state: Accepted, selector: {matchAll: true}}
  - {group: core.kcp.io, resource: logicalclusters, verbs: ["*"], state: Accepted, selector: {matchAll: true}}
`

// Scheme contains the kinds that the environment and its inventories use.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, apisv1alpha1.AddToScheme, apisv1alpha2.AddToScheme, tenancyv1alpha1.AddToScheme, edgev2alpha1.AddToScheme,
	} {
		// Registering fails only if two Go types claim one kind.
		_ = add(scheme)
	}
	return scheme
})

// Env is a kcp with a provider workspace.
type Env struct {
	Server *servers.KCP
}

// New prepares the provider workspace of the package's kcp.
func New(t testing.TB) *Env {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	env := &Env{Server: suite.KCP(t)}
	connections.Bootstrap(t, env.Server, Workspace)
	return env
}

// Hub is a manager whose clusters are the inventories, before its start.
type Hub struct {
	Manager mcmanager.Manager
	Access  *kcp.ConfigProvider
	// Provider is the provider workspace.
	Provider cluster.Cluster
}

// Start adds controllers to a new manager and runs it until stop is called, or the test ends.
func (e *Env) Start(t testing.TB, register func(*Hub) error) (stop func()) {
	t.Helper()
	hub, err := e.newHub(t)
	if err == nil {
		err = errors.Join(hub.Manager.GetLocalManager().Add(hub.Provider), register(hub))
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := hub.Manager.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}

func (e *Env) newHub(t testing.TB) (*Hub, error) {
	hub := &Hub{Access: connections.KCP(t, suite.ReadFile(t, e.Server.HubKubeconfig))}
	// The manager needs no API server of its own, since it does not elect a leader.
	local, err := ctrl.NewManager(e.Server.Workspace(Workspace), ctrl.Options{
		Scheme: Scheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}
	var provider *inventories.Provider
	// kcp may know the hub's rights a moment after they were granted.
	suite.Eventually(t, func(g gomega.Gomega) {
		provider, err = inventories.New(inventories.Options{
			KCP: hub.Access, Workspace: Workspace, Export: synchubv1alpha1.InventoryExport, Scheme: Scheme(), Log: logr.Discard(),
		})
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})
	hub.Provider, err = cluster.New(hub.Access.WorkspaceConfig(Workspace), func(o *cluster.Options) { o.Scheme, o.Logger = Scheme(), logr.Discard() })
	if err != nil {
		return nil, err
	}
	hub.Manager, err = mcmanager.WithMultiCluster(local, provider)
	return hub, err
}

// Inventory is an inventory workspace, and an administrator's client for it.
type Inventory struct {
	client.Client
	// Name is the logical cluster, and Path the path of the workspace.
	Name   logicalcluster.Name
	Path   string
	Config *rest.Config
}

// NewInventory creates an inventory workspace below root.
func (e *Env) NewInventory(t testing.TB, name string) *Inventory {
	t.Helper()
	g := gomega.NewWithT(t)
	made, err := framework.CreateWorkspace(t.Context(), e.Server.Config, "root", name, "root:universal")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	inventory := &Inventory{Name: logicalcluster.Name(made.Spec.Cluster), Path: "root:" + name, Config: e.Server.Workspace("root:" + name)}
	manifest := fmt.Sprintf(content, Workspace, synchubv1alpha1.InventoryExport, edgev2alpha1.LabelCredential, edgev2alpha1.CredentialKubeconfig)
	// kcp may know the rights in a new workspace a moment later.
	suite.Eventually(t, func(g gomega.Gomega) {
		g.Expect(framework.Apply(t.Context(), inventory.Config, manifest)).To(gomega.Succeed())
		_, err := framework.List(t.Context(), inventory.Config, edgev2alpha1.GroupVersion.WithResource("synctargets"), "", "")
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})
	inventory.Client, err = client.New(inventory.Config, client.Options{Scheme: Scheme()})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	return inventory
}
