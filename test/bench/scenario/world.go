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

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/test/bench/bare"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/stage"
	"github.com/synchub-dev/synchub/test/scale"
)

const (
	// workers is how many places the world does something with at once, fillers how many objects it makes at once in a place.
	workers, fillers = 16, 8
	// limit is how long anything may take that is waited for.
	limit = 10 * time.Minute
)

// clusters are targets with an API server and an etcd of their own. They have no controllers, whose writes would be measured.
var clusters = []string{"florin", "guilder"}

// World is where scenarios are run.
type World struct {
	*stage.Stage
	Size

	// fleet are workspaces of the second kcp, clusters whole clusters.
	fleet, clusters []*place
	bare            *bare.Process
	// inStep is how many objects the hub keeps in step, but for those that it makes itself.
	inStep   int
	progress func(format string, args ...any)
}

// place is a target with its mailbox, as an administrator reaches them.
type place struct {
	name       string
	kubeconfig []byte
	// cluster is the mailbox's logical cluster.
	cluster      string
	above, below dynamic.Interface
}

// NewWorld returns a world for the scenarios, to be closed also after an error. All targets are connected, if any of the scenarios
// wants targets.
func NewWorld(ctx context.Context, scenarios []Scenario, size Size, progress func(format string, args ...any)) (*World, error) {
	w := &World{Size: size, progress: progress}
	options := stage.Options{Name: "bench", Rhythm: scale.Rhythm, Clusters: map[string]servers.TargetOptions{}, Progress: func(line string) { progress("%s", line) }}
	empty := !slices.ContainsFunc(scenarios, func(one Scenario) bool { return !one.Empty })
	if !empty {
		for _, name := range clusters {
			options.Clusters[name] = servers.TargetOptions{}
		}
	}
	var err error
	if w.Stage, err = stage.New(ctx, options); err != nil || empty {
		return w, err
	}
	return w, w.populate(ctx)
}

// populate makes the targets, and returns when all are connected.
func (w *World) populate(ctx context.Context) error {
	for _, name := range clusters {
		kubeconfig, err := os.ReadFile(w.Stage.Targets[name].Kubeconfig)
		if err != nil {
			return err
		}
		w.clusters = append(w.clusters, &place{name: name, kubeconfig: kubeconfig})
	}
	members, err := w.Fleet.Grow(ctx, w.Targets)
	if err != nil {
		return err
	}
	for _, member := range members {
		w.fleet = append(w.fleet, &place{name: member.Name, kubeconfig: member.Straight})
	}
	if err := w.each(ctx, w.all(), w.register); err != nil {
		return err
	}
	w.progress("%d targets are ready", len(w.all()))
	return w.startBare(ctx)
}

func (w *World) all() []*place { return slices.Concat(w.fleet, w.clusters) }

// register makes a SyncTarget, and returns when it is ready.
func (w *World) register(ctx context.Context, at *place) error {
	if err := w.Inventory.RegisterAlone(ctx, at.name, at.kubeconfig); err != nil {
		return err
	}
	var mailbox *rest.Config
	// It is an error until the SyncTarget is ready.
	err := poll(ctx, time.Second, func() (done bool, err error) {
		mailbox, err = w.Inventory.Mailbox(ctx, at.name)
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	syncTarget, err := w.Inventory.SyncTarget(ctx, at.name)
	if err != nil {
		return err
	}
	at.cluster = syncTarget.Status.Mailbox.Cluster
	if at.above, err = client(mailbox); err != nil {
		return err
	}
	target, err := clientcmd.RESTConfigFromKubeConfig(at.kubeconfig)
	if err != nil {
		return err
	}
	at.below, err = client(target)
	return err
}

func client(config *rest.Config) (dynamic.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return dynamic.NewForConfig(config)
}

// startBare starts a bare syncer, in the place of the one there was. It lists something else as well.
func (w *World) startBare(ctx context.Context, also ...bare.Lists) error {
	if err := w.stopBare(); err != nil {
		return err
	}
	endpoint, err := w.endpoint(ctx, bootstrap.MailboxExport)
	if err != nil {
		return err
	}
	few := []schema.GroupVersionResource{configMaps}
	more := []schema.GroupVersionResource{configMaps, deployments}
	plan := bare.Plan{Kubeconfig: w.Installation.HubKubeconfig, Endpoint: endpoint, Resources: more, Also: also}
	for _, at := range w.fleet {
		plan.Targets = append(plan.Targets, bare.Target{Mailbox: at.cluster, Kubeconfig: at.kubeconfig, Resources: few})
	}
	for _, at := range w.clusters {
		plan.Targets = append(plan.Targets, bare.Target{Mailbox: at.cluster, Kubeconfig: at.kubeconfig, Resources: more})
	}
	w.bare, err = bare.Start(ctx, plan)
	return err
}

func (w *World) stopBare() error {
	if w.bare == nil {
		return nil
	}
	stopped := w.bare
	w.bare = nil
	return stopped.Stop()
}

// endpoint returns the URL of an export's virtual workspace.
func (w *World) endpoint(ctx context.Context, export string) (string, error) {
	object, err := framework.Get(ctx, w.Installation.InWorkspace(w.Installation.Workspace), endpointSlices, "", export)
	if err != nil {
		return "", err
	}
	var slice apisv1alpha1.APIExportEndpointSlice
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &slice); err != nil {
		return "", fmt.Errorf("read the export's endpoints: %w", err)
	}
	if endpoints := slice.Status.APIExportEndpoints; len(endpoints) != 1 {
		return "", fmt.Errorf("the export has %d endpoints, where one is expected", len(endpoints))
	}
	return slice.Status.APIExportEndpoints[0].URL, nil
}

// each does something for all places, several at once.
func (w *World) each(ctx context.Context, places []*place, do func(context.Context, *place) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, at := range places {
		group.Go(func() error {
			if err := do(ctx, at); err != nil {
				return fmt.Errorf("%s: %w", at.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// poll returns when something is done.
func poll(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, every, limit, true, func(context.Context) (bool, error) { return done() })
}

// Close ends everything. Of a world that failed the logs stay, in the folder that it returns.
func (w *World) Close(ctx context.Context, failed bool) (logs string, err error) {
	err = w.stopBare()
	logs, closing := w.Stage.Close(ctx, failed)
	return logs, errors.Join(err, closing)
}
