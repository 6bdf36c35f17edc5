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

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/bench/baseline"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/benchenv"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/scale"
)

const (
	// workers is the number of targets that are set up at a time, and fillers the number of concurrent creations in one
	// mailbox.
	workers, fillers = 16, 8
	// limit is the timeout of all waits.
	limit = 10 * time.Minute
)

// clusters are targets with their own API server and etcd. They have no controllers, whose writes would be measured too.
var clusters = []string{"florin", "guilder"}

// higherLimits let the hub cache the objects of all rounds, which are not deleted. With the default limits it would not sync the
// youngest of them.
var higherLimits = []string{
	"--mailbox-max-objects=100000", fmt.Sprint("--mailbox-max-bytes=", 512<<20), fmt.Sprint("--mailboxes-max-bytes=", 1<<30),
	fmt.Sprint("--target-cache-bytes=", 512<<20), fmt.Sprint("--targets-max-bytes=", 1<<30),
}

// Env is the environment of scenarios.
type Env struct {
	measuredHub
	Size

	// fleet are targets in workspaces of the second kcp, and clusters are targets in whole clusters.
	fleet, clusters []*testTarget
	baseline        *baseline.Process
	// synced is the number of objects that the hub keeps in sync, without those that it creates itself.
	synced   int
	progress func(format string, args ...any)
}

// testTarget is a target with its mailbox and an administrator's clients for both.
type testTarget struct {
	name       string
	kubeconfig []byte
	// cluster is the mailbox's logical cluster.
	cluster         string
	mailbox, target dynamic.Interface
}

// NewEnv returns an environment for the scenarios, with all targets connected if any scenario needs targets. Call
// [Env.Close] even after an error.
func NewEnv(ctx context.Context, scenarios []Scenario, size Size, progress func(format string, args ...any)) (*Env, error) {
	w := &Env{Size: size, progress: progress}
	options := benchenv.Options{
		Name: "bench", IdleRequests: scale.IdleRequests, Clusters: map[string]servers.TargetOptions{}, HubArguments: higherLimits,
		Progress: func(line string) { progress("%s", line) },
	}
	empty := !slices.ContainsFunc(scenarios, func(one Scenario) bool { return !one.NoTargets })
	if !empty {
		for _, name := range clusters {
			options.Clusters[name] = servers.TargetOptions{}
		}
	}
	var err error
	if w.Env, err = benchenv.New(ctx, options); err != nil || empty {
		return w, err
	}
	return w, w.populate(ctx)
}

// populate creates the targets, and returns when all are connected.
func (w *Env) populate(ctx context.Context) error {
	for _, name := range clusters {
		kubeconfig, err := os.ReadFile(w.Env.Targets[name].Kubeconfig)
		if err != nil {
			return err
		}
		w.clusters = append(w.clusters, &testTarget{name: name, kubeconfig: kubeconfig})
	}
	members, err := w.Fleet.Grow(ctx, w.Targets)
	if err != nil {
		return err
	}
	for _, member := range members {
		w.fleet = append(w.fleet, &testTarget{name: member.Name, kubeconfig: member.DirectKubeconfig})
	}
	if err := w.each(ctx, w.all(), w.register); err != nil {
		return err
	}
	w.progress("%d targets are ready", len(w.all()))
	return w.startBaseline(ctx)
}

func (w *Env) all() []*testTarget { return slices.Concat(w.fleet, w.clusters) }

// register creates a SyncTarget, and returns when it is ready.
func (w *Env) register(ctx context.Context, at *testTarget) error {
	if err := w.Inventory.RegisterExclusive(ctx, at.name, at.kubeconfig); err != nil {
		return err
	}
	var mailbox *rest.Config
	// Mailbox returns an error until the SyncTarget is ready.
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
	if at.mailbox, err = client(mailbox); err != nil {
		return err
	}
	target, err := clientcmd.RESTConfigFromKubeConfig(at.kubeconfig)
	if err != nil {
		return err
	}
	at.target, err = client(target)
	return err
}

func client(config *rest.Config) (dynamic.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return dynamic.NewForConfig(config)
}

// startBaseline starts a baseline syncer in place of the previous one. The syncer also lists the extra resources.
func (w *Env) startBaseline(ctx context.Context, also ...baseline.Lists) error {
	if err := w.stopBaseline(); err != nil {
		return err
	}
	endpoint, err := w.endpoint(ctx, synchubv1alpha1.MailboxExport)
	if err != nil {
		return err
	}
	few := []schema.GroupVersionResource{configMaps}
	more := []schema.GroupVersionResource{configMaps, deployments}
	plan := baseline.Config{Kubeconfig: w.Installation.HubKubeconfig, Endpoint: endpoint, Resources: more, ExtraLists: also}
	for _, at := range w.fleet {
		plan.Targets = append(plan.Targets, baseline.Target{Mailbox: at.cluster, Kubeconfig: at.kubeconfig, Resources: few})
	}
	for _, at := range w.clusters {
		plan.Targets = append(plan.Targets, baseline.Target{Mailbox: at.cluster, Kubeconfig: at.kubeconfig, Resources: more})
	}
	w.baseline, err = baseline.Start(ctx, plan)
	return err
}

func (w *Env) stopBaseline() error {
	if w.baseline == nil {
		return nil
	}
	stopped := w.baseline
	w.baseline = nil
	return stopped.Stop()
}

// endpoint returns the URL of an export's virtual workspace.
func (w *Env) endpoint(ctx context.Context, export string) (string, error) {
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

// each calls do for all targets, with several calls at a time.
func (w *Env) each(ctx context.Context, targets []*testTarget, do func(context.Context, *testTarget) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, at := range targets {
		group.Go(func() error {
			if err := do(ctx, at); err != nil {
				return fmt.Errorf("%s: %w", at.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// poll calls done at the interval until it returns true or an error.
func poll(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, every, limit, true, func(context.Context) (bool, error) { return done() })
}

// Close stops everything. If the benchmark failed, it keeps the logs and returns their directory.
func (w *Env) Close(ctx context.Context, failed bool) (logs string, err error) {
	err = w.stopBaseline()
	logs, closing := w.Env.Close(ctx, failed)
	return logs, errors.Join(err, closing)
}
