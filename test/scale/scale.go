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

package scale

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/fleet"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

const (
	// writers is the number of concurrent writing clients.
	writers = 8
	// idleDuration is how long the hub must make no requests with a cause to count as idle.
	idleDuration = 5 * time.Second
)

// IdleRequests are the requests of an idle hub to a target; see provider/targets.
var IdleRequests = fleet.IdleRequests{
	"version":                 8 * time.Second,
	"selfsubjectrulesreviews": 10 * time.Minute,
}

// Config configures a run. Nothing else may use the hub.
type Config struct {
	Installation *installation.Installation
	Hub          *installation.Hub
	Inventory    *installation.Inventory
	Fleet        *fleet.Fleet
	// Targets is the number of targets at the beginning, and Objects the number of objects for each. Resources is the
	// number of resources to sync, at least 1 and at most [MostResources].
	Targets, Objects, Resources int
	// Replicas is the number of replicas at the end, and StartReplica starts one. Below 2 there is only Hub. Sharded means that they divide
	// the targets among them; otherwise Hub leads, and all other replicas are warm standbys.
	Sharded bool
	// Hosting is an administrator's client config of the hosting cluster, for Sharded only.
	Hosting      *rest.Config
	Replicas     int
	StartReplica func() (*installation.Hub, error)
	// Quiet is how long the idle fleet is measured.
	Quiet time.Duration
	// Profile is called after the measurement, while the fleet is still idle. It may be nil.
	Profile  func(ctx context.Context) error
	Progress func(format string, args ...any)
}

// run is one run of the test.
type run struct {
	Config
	gomega.Gomega
	stepStartedAt time.Time
	measurements  Measurements
	// lastEdit is the number of the last edit, which its object shows, and added how many objects were added to mailboxes.
	lastEdit, added int
}

// Run registers a fleet, syncs objects, measures the idle fleet, lets targets come and go, and kills the leader. It calls report with the
// measurements so far, even if an assertion panics.
func Run(ctx context.Context, g gomega.Gomega, config Config, report func(Measurements)) {
	r := &run{Config: config, Gomega: g, stepStartedAt: time.Now(), measurements: Measurements{Targets: config.Targets, Objects: config.Objects, Resources: config.Resources}}
	defer func() { report(r.measurements) }()
	_, err := r.Fleet.Grow(ctx, r.Targets)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	r.finishStep(&r.measurements.Workspaces, "the fleet is made")
	r.register(ctx)
	r.sync(ctx)
	r.measure(ctx)
	r.churn(ctx)
	switch {
	case r.Replicas < 2:
	case r.Sharded:
		r.sharded(ctx)
	default:
		r.standbys(ctx)
	}
}

// finishStep records the duration of a step and starts the next.
func (r *run) finishStep(took *time.Duration, what string) {
	*took = time.Since(r.stepStartedAt)
	r.stepStartedAt = time.Now()
	r.Progress("%s after %s", what, took.Round(time.Millisecond))
}

// register creates the SyncTargets and returns when all are ready.
func (r *run) register(ctx context.Context) {
	members := slices.Clone(r.Fleet.Members)
	r.each(ctx, members, r.registerOne)
	r.finishStep(&r.measurements.Registered, "all targets are registered")
	r.waitSyncTargets(ctx, "mailboxes", len(members), func(syncTarget *edgev2alpha1.SyncTarget) bool {
		return meta.IsStatusConditionTrue(syncTarget.Status.Conditions, edgev2alpha1.ConditionMailboxReady)
	})
	r.finishStep(&r.measurements.Mailboxes, "all mailboxes are there")
	r.waitSyncTargets(ctx, "targets that are ready", len(members), isReady)
	r.finishStep(&r.measurements.Ready, "all targets are ready")
}

// registerOne creates a SyncTarget that shares no cluster: each workspace must count as a cluster.
func (r *run) registerOne(ctx context.Context, member *fleet.Member) error {
	return r.Inventory.RegisterExclusive(ctx, member.Name, member.Kubeconfig)
}

func isReady(syncTarget *edgev2alpha1.SyncTarget) bool {
	return meta.IsStatusConditionTrue(syncTarget.Status.Conditions, edgev2alpha1.ConditionReady)
}

// waitSyncTargets returns when is returns true for count SyncTargets.
func (r *run) waitSyncTargets(ctx context.Context, what string, count int, is func(*edgev2alpha1.SyncTarget) bool) {
	last := -1
	r.Eventually(func() (int, error) {
		all, err := r.syncTargets(ctx)
		done := 0
		for _, syncTarget := range all {
			if is(syncTarget) {
				done++
			}
		}
		if done/50 != last/50 {
			r.Progress("%d of %d %s", done, count, what)
		}
		last = done
		return done, err
	}).WithContext(ctx).WithPolling(time.Second).Should(gomega.Equal(count), what)
}

func (r *run) syncTargets(ctx context.Context) (map[string]*edgev2alpha1.SyncTarget, error) {
	objects, err := framework.List(ctx, r.Inventory.Config, installation.SyncTargets, "", "")
	all := make(map[string]*edgev2alpha1.SyncTarget, len(objects))
	for i := range objects {
		syncTarget := &edgev2alpha1.SyncTarget{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, syncTarget); err != nil {
			return nil, err
		}
		all[syncTarget.Name] = syncTarget
	}
	return all, err
}

// each calls do for all members, with several calls at a time.
func (r *run) each(ctx context.Context, members []*fleet.Member, do func(context.Context, *fleet.Member) error) {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, member := range members {
		group.Go(func() error {
			if err := do(groupCtx, member); err != nil {
				return fmt.Errorf("%s: %w", member.Name, err)
			}
			return nil
		})
	}
	r.Expect(group.Wait()).To(gomega.Succeed())
}

// sync creates objects in all mailboxes and returns when each is on its target.
func (r *run) sync(ctx context.Context) {
	all, err := r.syncTargets(ctx)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	r.each(ctx, r.Fleet.Members, func(ctx context.Context, member *fleet.Member) error {
		return r.fill(ctx, all[member.Name])
	})
	r.finishStep(&r.measurements.Filled, "all mailboxes are filled")
	r.each(ctx, r.Fleet.Members, func(ctx context.Context, member *fleet.Member) error {
		r.waitObjects(ctx, member, r.Objects)
		return nil
	})
	r.finishStep(&r.measurements.Synced, "all objects are on their targets")
}

// fill creates the objects and the config in a SyncTarget's mailbox.
func (r *run) fill(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) error {
	manifests := []string{selection(r.Resources)}
	for i := range r.Objects {
		manifests = append(manifests, configMap(fmt.Sprintf("object-%d", i)))
	}
	return framework.Apply(ctx, r.Installation.InWorkspace(syncTarget.Status.Mailbox.Workspace), strings.Join(manifests, ""))
}

// waitObjects returns when a target has count objects.
func (r *run) waitObjects(ctx context.Context, member *fleet.Member, count int) {
	r.Eventually(func() (int, error) {
		objects, err := framework.List(ctx, member.Config, configMaps, namespace, objectLabel)
		return len(objects), err
	}).WithContext(ctx).WithPolling(100*time.Millisecond).Should(gomega.Equal(count), "objects on %s", member.Name)
}

// readiness returns the status of a SyncTarget's condition Ready; empty if the SyncTarget does not exist.
func (r *run) readiness(ctx context.Context, name string) (metav1.ConditionStatus, error) {
	all, err := r.syncTargets(ctx)
	if err != nil || all[name] == nil {
		return "", err
	}
	ready := meta.FindStatusCondition(all[name].Status.Conditions, edgev2alpha1.ConditionReady)
	if ready == nil {
		return metav1.ConditionUnknown, nil
	}
	return ready.Status, nil
}
