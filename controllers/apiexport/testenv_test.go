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

package apiexport_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/apis/schemas"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/apiexport"
	"github.com/synchub-dev/synchub/controllers/apiresourceschema"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// Paths of the workspaces in the test.
const (
	hostingPath  = "root:hosting"
	providerPath = "root:synchub"
	vendorPath   = "root:vendor"
)

// testEnv is one kcp with one mailbox, and the running controllers.
type testEnv struct {
	kcp               *servers.KCP
	hosting, provider client.Client
	// mailbox is the logical cluster of the mailbox.
	mailbox string
	boxes   *mailboxes.Mailboxes
	sync    *syncmanager.Manager
	// stop stops the controllers.
	stop func()
}

var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme, apisv1alpha1.AddToScheme, apisv1alpha2.AddToScheme, synchubv1alpha1.AddToScheme,
	} {
		// Registering fails only if two Go types claim one kind.
		_ = add(scheme)
	}
	return scheme
}()

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	w := &testEnv{kcp: suite.KCP(t)}
	if err := w.prepare(t); err != nil {
		t.Fatal(err)
	}
	if err := w.work(t, w.kcp.Workspace(hostingPath)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.stop() })
	return w
}

// prepare creates the workspaces.
func (w *testEnv) prepare(t *testing.T) error {
	ctx := t.Context()
	for _, path := range []string{hostingPath, vendorPath} {
		if _, err := framework.CreateWorkspace(ctx, w.kcp.Config, "root", strings.TrimPrefix(path, "root:"), ""); err != nil {
			return err
		}
	}
	connections.Bootstrap(t, w.kcp, providerPath)
	definition, err := yaml.Marshal(schemas.PublishedResourceCRD())
	if err != nil {
		return err
	}
	suite.Apply(t, w.kcp.Workspace(hostingPath), string(definition))
	mailbox, err := framework.CreateWorkspace(ctx, w.kcp.Config, providerPath, "mailbox", providerPath+":"+synchubv1alpha1.WorkspaceType)
	if err != nil {
		return err
	}
	w.mailbox = mailbox.Spec.Cluster
	if w.hosting, err = client.New(w.kcp.Workspace(hostingPath), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	w.provider, err = client.New(w.kcp.Workspace(providerPath), client.Options{Scheme: scheme})
	return err
}

// work runs the controllers, with a client config for the hosting cluster, until stop is called.
func (w *testEnv) work(t *testing.T, hosting *rest.Config) error {
	t.Helper()
	manager, err := ctrl.NewManager(hosting, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return err
	}
	access := connections.KCP(t, suite.ReadFile(t, w.kcp.HubKubeconfig))
	provider, err := cluster.New(access.WorkspaceConfig(providerPath), func(o *cluster.Options) { o.Scheme, o.Logger = scheme, logr.Discard() })
	if err != nil {
		return err
	}
	hostingDiscovery, err := discovery.NewClient(w.kcp.Workspace(hostingPath), nil)
	if err != nil {
		return err
	}
	w.boxes = mailboxes.New(mailboxes.Options{
		Access: access, Workspace: providerPath, Export: synchubv1alpha1.MailboxExport, Resources: syncmanager.ConfigResources, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	w.sync = syncmanager.New(syncmanager.Dependencies{Mailboxes: w.boxes, Clock: clock.RealClock{}, Log: logr.Discard()}, &configv1alpha1.HubConfiguration{})
	recorder := manager.GetEventRecorder("synchub")
	err = errors.Join(
		manager.Add(provider), manager.Add(w.boxes),
		apiresourceschema.New(apiresourceschema.Options{
			Hosting: manager.GetClient(), HostingDiscovery: hostingDiscovery, Namespace: metav1.NamespaceDefault, Provider: provider,
			CRDs: &crd.Store{}, Recorder: recorder, Clock: clock.RealClock{},
		}).Register(manager),
		apiexport.New(apiexport.Options{
			Hosting: manager.GetClient(), Provider: provider, Export: synchubv1alpha1.MailboxExport, WorkloadExport: synchubv1alpha1.WorkloadExport,
			Mailboxes: w.boxes, CacheLimits: w.boxes.Limits, Sync: w.sync, Counter: syncmanager.NewFleetCounter(w.sync, noEntries{}), Recorder: recorder, Clock: clock.RealClock{},
		}).Register(manager),
	)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		if err := manager.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	w.stop = func() {
		cancel()
		working.Wait()
	}
	return nil
}

// noEntries is a ledger without SyncTargets.
type noEntries struct{}

func (noEntries) IsLoaded() bool { return true }

func (noEntries) Each(func(types.UID, *ledger.Entry)) {}

// vendorExport creates another export with a cluster-scoped API that has a status, binds it in the mailbox, and returns the
// identity hash of the export.
func (w *testEnv) vendorExport(t *testing.T, resource string) (identity string) {
	t.Helper()
	plural, group, _ := strings.Cut(resource, ".")
	w.apply(t, vendorPath, fmt.Sprintf(`
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: v1.%[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Cluster
  names: {plural: %[1]s, singular: gizmo, kind: Gizmo, listKind: GizmoList}
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}]
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: {name: vendor}
spec: {resources: [{group: %[2]s, name: %[1]s, schema: v1.%[1]s.%[2]s, storage: {crd: {}}}]}
`, plural, group))
	vendor, err := client.New(w.kcp.Workspace(vendorPath), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, func(g Gomega) {
		var export apisv1alpha2.APIExport
		g.Expect(vendor.Get(t.Context(), types.NamespacedName{Name: "vendor"}, &export)).To(Succeed())
		identity = export.Status.IdentityHash
		g.Expect(identity).NotTo(BeEmpty())
	})
	w.apply(t, w.mailbox, "{apiVersion: apis.kcp.io/v1alpha2, kind: APIBinding, metadata: {name: vendor}, spec: {reference: {export: {path: '"+vendorPath+"', name: vendor}}}}")
	return identity
}

// apply applies a manifest to a workspace.
func (w *testEnv) apply(t *testing.T, workspace, manifest string) {
	t.Helper()
	suite.Apply(t, w.kcp.Workspace(workspace), manifest)
}
