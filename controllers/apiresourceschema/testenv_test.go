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
	"testing"

	"github.com/go-logr/logr"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/apis/schemas"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/apiresourceschema"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// The clusters of this package: hosting has the PublishedResources, the other ones are targets of SyncTargets.
const (
	hosting = "hosting"
	florin  = "florin"
)

// testEnv holds the servers of this package and the running controller.
type testEnv struct {
	*servers.Environment
	hosting client.Client
	// provider is a client for the provider workspace.
	provider client.Client

	scheme           *runtime.Scheme
	hostingDiscovery *discovery.Client

	// installations are the CRDs to install that the controller has found.
	installations
	// florin is the UID of the SyncTarget florin.
	florin types.UID
}

func TestMain(m *testing.M) { suite.Main(m) }

// sharedTestEnv returns the environment with the running controller.
var sharedTestEnv = suite.Shared(func(t testing.TB) *testEnv {
	ctrl.SetLogger(logr.Discard())
	w := &testEnv{Environment: suite.Start(t, func(ctx context.Context, options servers.Options) (*servers.Environment, error) {
		return servers.StartEnvironment(ctx, options, map[string]servers.TargetOptions{hosting: {}, florin: {}})
	})}
	if err := w.start(t); err != nil {
		t.Fatal(err)
	}
	return w
})

func (w *testEnv) start(t testing.TB) error {
	if _, err := framework.CreateWorkspace(t.Context(), w.KCP.Config, "root", "provider", ""); err != nil {
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
		suite.Apply(t, w.Targets[hosting].Config, string(manifest))
	}
	return w.work(t)
}

// work runs the controller until all tests have ended.
func (w *testEnv) work(t testing.TB) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, eventsv1.AddToScheme, apisv1alpha1.AddToScheme, edgev2alpha1.AddToScheme, synchubv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	w.scheme = scheme
	var err error
	if w.hosting, err = client.New(w.Targets[hosting].Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if w.provider, err = client.New(w.KCP.Workspace("root:provider"), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if w.hostingDiscovery, err = discovery.NewClient(w.Targets[hosting].Config, nil); err != nil {
		return err
	}
	leader, err := w.newReplica(&w.installations)
	if err != nil {
		return err
	}
	if err := leader.register(); err != nil {
		return err
	}
	suite.Run(leader.manager.Start)
	w.connect(t, leader.registry)
	return nil
}

// replica is a controller with a manager and connections of its own.
type replica struct {
	apiresourceschema.Options
	manager  ctrl.Manager
	registry *targets.Registry
	// sources finds the connections.
	sources *apiresourceschema.SyncTargets
}

// newReplica returns a replica that leads and connects to nothing, unless its options are changed before it starts.
func (w *testEnv) newReplica(found *installations) (*replica, error) {
	manager, err := ctrl.NewManager(w.Targets[hosting].Config, ctrl.Options{
		Scheme: w.scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}
	provider, err := cluster.New(w.KCP.Workspace("root:provider"), func(o *cluster.Options) { o.Scheme, o.Logger = w.scheme, logr.Discard() })
	if err != nil {
		return nil, err
	}
	registry := targets.NewRegistry(targets.Options{
		FieldManager: "synchub-test", Limits: kcp.Limits{QPS: 100, Burst: 200}, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	sources := &apiresourceschema.SyncTargets{Inventories: fakeInventories{w.hosting}, ResolvePath: resolvePath, Registry: registry, Connect: func(types.UID) {}}
	return &replica{apiresourceschema.Options{
		ConnectionChanged: &registry.Changed,
		Hub:               publishedresource.Hub{UID: "this-hub", Workspace: "root:provider"},
		Hosting:           manager.GetClient(), HostingDiscovery: w.hostingDiscovery, Namespace: metav1.NamespaceDefault, Provider: provider,
		Targets: sources, CRDs: &found.Store, Recorder: manager.GetEventRecorder("synchub"), Clock: clock.RealClock{},
	}, manager, registry, sources}, errors.Join(manager.Add(provider), manager.Add(registry))
}

// register makes the controller part of the manager, which the caller runs.
func (r *replica) register() error {
	return apiresourceschema.New(r.Options).Register(r.manager)
}
