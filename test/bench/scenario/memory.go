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
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/test/bench/report"
)

const kibi, mebi = 1 << 10, 1 << 20

const idleNamespace = "hub-idle"

// idle are resources without a selected object in any mailbox of the fleet.
var idle = []schema.GroupVersionResource{
	corev1.SchemeGroupVersion.WithResource("secrets"),
	corev1.SchemeGroupVersion.WithResource("serviceaccounts"),
	rbacv1.SchemeGroupVersion.WithResource("roles"),
	rbacv1.SchemeGroupVersion.WithResource("rolebindings"),
}

// memory measures the hub's memory before and after idle pairs and objects are added.
func memory(ctx context.Context, w *Env) ([]report.Row, error) {
	if err := w.prepareIdle(ctx); err != nil {
		return nil, err
	}
	before, err := w.footprint(ctx)
	if err != nil {
		return nil, err
	}
	base := report.Row{
		What: fmt.Sprintf("resident, with %d targets and %d objects in sync", len(w.all()), w.synced), Unit: "MiB", Hub: []float64{before.resident / mebi},
	}
	if err := w.idlePairs(ctx); err != nil {
		return nil, err
	}
	after, err := w.footprint(ctx)
	if err != nil {
		return nil, err
	}
	pairs := float64(len(w.fleet) * len(idle))
	pair := report.Row{
		What: fmt.Sprintf("heap and stacks of an idle pair of a target and a resource, by %.0f", pairs), Unit: "KiB", Limit: new(64.0),
		Hub: []float64{(after.heap + after.stacks - before.heap - before.stacks) / pairs / kibi},
	}
	each := w.Memory / len(w.clusters)
	objects := float64(each * len(w.clusters))
	if err := w.syncObjects(ctx, each); err != nil {
		return nil, err
	}
	full, err := w.footprint(ctx)
	if err != nil {
		return nil, err
	}
	object := report.Row{
		What: fmt.Sprintf("heap of a synced object of 2 KB, by %.0f", objects), Unit: "KiB", Limit: new(10.0),
		Hub: []float64{(full.heap - after.heap) / objects / kibi},
	}
	return []report.Row{base, pair, object}, nil
}

// prepareIdle creates the prerequisites of idle pairs that are not part of their cost: namespaces, configs, and the hub's
// state of a target that exists only while some resource is synced. For the latter, each target gets a first pair, of
// ConfigMaps, without objects.
func (w *Env) prepareIdle(ctx context.Context) error {
	err := w.each(ctx, w.fleet, func(ctx context.Context, at *testTarget) error {
		if err := at.prepare(ctx, idleNamespace); err != nil {
			return err
		}
		return at.configure(ctx, config(idleNamespace, false, configMaps))
	})
	if err != nil {
		return err
	}
	return w.waitIdle(ctx)
}

// idlePairs selects resources without objects and waits until the hub watches them on all targets.
func (w *Env) idlePairs(ctx context.Context) error {
	before, err := w.watches(ctx)
	if err != nil {
		return err
	}
	err = w.each(ctx, w.fleet, func(ctx context.Context, at *testTarget) error {
		return at.reconfigure(ctx, config(idleNamespace, false, append(idle, configMaps)...))
	})
	if err != nil {
		return err
	}
	err = poll(ctx, time.Second, func() (bool, error) {
		now, err := w.watches(ctx)
		return now-before >= float64(len(w.fleet)*len(idle)), err
	})
	if err != nil {
		return err
	}
	return w.waitIdle(ctx)
}

// watches returns how often the hub has started a watch of an idle resource on a target.
func (w *measuredHub) watches(ctx context.Context) (count float64, err error) {
	requests, err := w.Hub.Requests(ctx)
	for kind, made := range requests {
		for _, resource := range idle {
			if kind.Destination == "target" && kind.Verb == "watch" && kind.Resource == resource.Resource {
				count += made
			}
		}
	}
	return count, err
}

// syncObjects creates objects for each of the whole clusters and waits until they are in sync.
func (w *Env) syncObjects(ctx context.Context, each int) error {
	const namespace = "hub-memory"
	before, err := w.created(ctx)
	started := time.Now()
	if err != nil {
		return err
	}
	err = w.each(ctx, w.clusters, func(ctx context.Context, at *testTarget) error {
		if err := at.prepare(ctx, namespace); err != nil {
			return err
		}
		if err := at.configure(ctx, config(namespace, false, configMaps)); err != nil {
			return err
		}
		return at.fill(ctx, configMaps, configMapsOf(namespace, each)...)
	})
	if err != nil {
		return err
	}
	objects := each * len(w.clusters)
	w.synced += objects
	if _, err := w.await(ctx, started, w.created, before+float64(objects), time.Second); err != nil {
		return err
	}
	return w.waitIdle(ctx)
}
