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

package apiresourceschema_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/apis/schemas"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/apiresourceschema"
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	startLimit = 5 * time.Minute
	// patience is how long a test waits for what must happen.
	patience = 3 * time.Minute
)

// The clusters of this package: PublishedResources are in hosting, SyncTargets stand for the others.
const (
	hosting = "hosting"
	florin  = "florin"
)

// world are the servers of this package, and the controller that works there.
type world struct {
	*servers.World
	dir     string
	hosting client.Client
	// provider is a client for the provider workspace.
	provider client.Client
	stop     func()

	lock        sync.Mutex
	definitions []published.Definition
}

// shared is the world of this package, made by the first test that needs it.
var shared = struct {
	sync.Mutex
	*world
	err error
}{}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if shared.world != nil {
		if shared.stop != nil {
			shared.stop()
		}
		err := shared.Stop()
		if code == 0 {
			err = errors.Join(err, os.RemoveAll(shared.dir))
		} else {
			fmt.Fprintln(os.Stderr, "the files of the servers are in", shared.dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// theWorld returns the world, with the controller at work.
func theWorld(t *testing.T) *world {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.world == nil && shared.err == nil {
		shared.world = &world{}
		shared.err = shared.world.start(t.Context())
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.world
}

func (w *world) start(ctx context.Context) error {
	root, err := framework.RepositoryRoot()
	if err != nil {
		return err
	}
	if w.dir, err = os.MkdirTemp("", "synchub-schemas-"); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	options := servers.Options{Dir: w.dir, Bin: filepath.Join(root, "bin")}
	if w.World, err = servers.StartWorld(starting, options, map[string]servers.TargetOptions{hosting: {}, florin: {}}); err != nil {
		return err
	}
	if _, err := framework.CreateWorkspace(starting, w.KCP.Config, "root", "provider", ""); err != nil {
		return err
	}
	syncTargets, err := schemas.CRD("synctargets.edge.kubestellar.io")
	if err != nil {
		return err
	}
	for _, definition := range []*apiextensionsv1.CustomResourceDefinition{schemas.PublishedResourceCRD(), syncTargets} {
		manifest, err := yaml.Marshal(definition)
		if err != nil {
			return err
		}
		if err := framework.Apply(starting, w.Targets[hosting].Config, string(manifest)); err != nil {
			return err
		}
	}
	return w.work()
}

// work runs the controller until the world is stopped.
func (w *world) work() error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, eventsv1.AddToScheme, apisv1alpha1.AddToScheme, edgev2alpha1.AddToScheme, synchubv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(w.Targets[hosting].Config, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return err
	}
	provider, err := cluster.New(w.KCP.Workspace("root:provider"), func(o *cluster.Options) { o.Scheme, o.Logger = scheme, logr.Discard() })
	if err != nil {
		return err
	}
	if w.hosting, err = client.New(w.Targets[hosting].Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if w.provider, err = client.New(w.KCP.Workspace("root:provider"), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	asked, err := discovery.NewDiscoveryClientForConfig(w.Targets[hosting].Config)
	if err != nil {
		return err
	}
	var controller *apiresourceschema.Controller
	registry := targets.NewRegistry(targets.Options{
		FieldManager: "synchub-test", Limits: kcp.Limits{QPS: 100, Burst: 200}, Clock: clock.RealClock{}, Log: logr.Discard(),
		OnChange: func(syncTarget types.UID) { controller.TargetChanged(syncTarget) },
	})
	controller = apiresourceschema.NewController(apiresourceschema.Options{
		Hosting: manager.GetClient(), HostingREST: asked.RESTClient(), Namespace: metav1.NamespaceDefault, Provider: provider,
		Targets:     &apiresourceschema.SyncTargets{Inventories: inventories{w.hosting}, Bindings: bindings{}, Registry: registry},
		Definitions: published.NewDefinitions(w.tell),
		Recorder:    manager.GetEventRecorder("synchub"), Clock: clock.RealClock{},
	})
	if err := errors.Join(manager.Add(provider), manager.Add(registry), controller.Register(manager)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		if err := manager.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	w.stop = func() {
		cancel()
		working.Wait()
	}
	return w.connect(ctx, registry)
}

// connect makes the SyncTarget of florin and connects it.
func (w *world) connect(ctx context.Context, registry *targets.Registry) error {
	kubeconfig, err := os.ReadFile(w.Targets[florin].Kubeconfig)
	if err != nil {
		return err
	}
	syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: florin}}
	// The kind is served a moment after its definition was made, and the registry begins with the manager.
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := w.hosting.Create(ctx, syncTarget)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		connection, err := registry.Connect(syncTarget.UID, kubeconfig, kcp.Limits{})
		return err == nil && connection.Up(), nil
	})
}

// tell takes over the definitions to install.
func (w *world) tell(all []published.Definition) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.definitions = all
}

// installed returns the definition to install for a PublishedResource, nil for none.
func (w *world) installed(name string) *published.Definition {
	w.lock.Lock()
	defer w.lock.Unlock()
	for i := range w.definitions {
		if w.definitions[i].PublishedResource == name {
			return &w.definitions[i]
		}
	}
	return nil
}

// The only inventory workspace, whose SyncTargets are in the hosting cluster.
const (
	inventoryCluster = "2lofxgqp6hq5v8rn"
	inventoryPath    = "root:org:inventory"
)

type inventories struct{ client client.Client }

func (i inventories) GetCluster(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	if name != inventoryCluster {
		return nil, fmt.Errorf("cluster %s: %w", name, multicluster.ErrClusterNotFound)
	}
	return inventory{client: i.client}, nil
}

type inventory struct {
	cluster.Cluster
	client client.Client
}

func (i inventory) GetClient() client.Client { return i.client }

// bindings are those that kcp would show of the inventory workspace.
type bindings struct{}

func (bindings) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	binding := apisv1alpha1.APIBinding{}
	binding.Annotations = map[string]string{"kcp.io/cluster": inventoryCluster, "kcp.io/path": inventoryPath}
	list.(*apisv1alpha1.APIBindingList).Items = []apisv1alpha1.APIBinding{binding}
	return nil
}

// publish makes a PublishedResource, of which nothing is left when the test ends.
func (w *world) publish(t *testing.T, name, spec string) {
	t.Helper()
	resource := &synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &resource.Spec); err != nil {
		t.Fatal(err)
	}
	if err := w.hosting.Create(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.hosting.Delete(context.Background(), resource) })
}

// get returns a PublishedResource.
func (w *world) get(g Gomega, t *testing.T, name string) *synchubv1alpha1.PublishedResource {
	t.Helper()
	resource := &synchubv1alpha1.PublishedResource{}
	g.Expect(w.hosting.Get(t.Context(), types.NamespacedName{Name: name}, resource)).To(Succeed())
	return resource
}

// becomes waits until the condition SchemaReady has a reason and a message with a part, and returns the schema's name.
func (w *world) becomes(t *testing.T, name, reason, part string) (schema string) {
	t.Helper()
	eventually(t, func(g Gomega) {
		resource := w.get(g, t, name)
		condition := meta.FindStatusCondition(resource.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason + ": " + condition.Message).To(And(HavePrefix(reason+": "), ContainSubstring(part)))
		g.Expect(condition.ObservedGeneration).To(Equal(resource.Generation))
		schema = resource.Status.SchemaName
	})
	return schema
}

// changes waits for a schema other than the one named.
func (w *world) changes(t *testing.T, name, before string) (schema string) {
	t.Helper()
	eventually(t, func(g Gomega) {
		schema = w.get(g, t, name).Status.SchemaName
		g.Expect(schema).NotTo(BeElementOf(before, ""))
	})
	return schema
}

// schemaNamed returns a schema of the provider workspace.
func (w *world) schemaNamed(t *testing.T, name string) *apisv1alpha1.APIResourceSchema {
	t.Helper()
	schema := &apisv1alpha1.APIResourceSchema{}
	if err := w.provider.Get(t.Context(), types.NamespacedName{Name: name}, schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// hasEvent waits for an event on a PublishedResource.
func (w *world) hasEvent(t *testing.T, name, reason string, parts ...string) {
	t.Helper()
	eventually(t, func(g Gomega) {
		var all eventsv1.EventList
		g.Expect(w.hosting.List(t.Context(), &all, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
		g.Expect(slices.ContainsFunc(all.Items, func(event eventsv1.Event) bool {
			return event.Regarding.Kind == "PublishedResource" && event.Regarding.Name == name && event.Reason == reason &&
				!slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(event.Note, part) })
		})).To(BeTrue(), "%s %v", reason, parts)
	})
}

// apply applies a manifest to a cluster.
func (w *world) apply(t *testing.T, cluster, manifest string) {
	t.Helper()
	if err := framework.Apply(t.Context(), w.Targets[cluster].Config, manifest); err != nil {
		t.Fatal(err)
	}
}

// eventually waits with the package's patience.
func eventually(t *testing.T, what func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(what).WithContext(t.Context()).WithTimeout(patience).WithPolling(20 * time.Millisecond).Should(Succeed())
}
