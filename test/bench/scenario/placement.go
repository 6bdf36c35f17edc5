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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/test/bench/report"
	"github.com/synchub-dev/synchub/test/framework"
)

const (
	// everywhere is the Location of all targets of the fleet, and single the Location of the first of them. A label of the same name
	// is on the Location, and on its SyncTargets.
	everywhere, single = "everywhere", "single"

	// placementQuiet is longer than the hub waits between two statuses of the placements of a workspace, so that none is
	// pending after so long without a request.
	placementQuiet = 7 * time.Second
)

// workload is a workload workspace with an administrator's client.
type workload struct {
	client dynamic.Interface
	// namespace is the namespace of the objects.
	namespace string
}

// placementEnv is an environment of scenarios with workload workspaces.
type placementEnv struct{ env *Env }

// withPlacements returns a scenario's function for such an environment.
func withPlacements(run func(context.Context, *placementEnv) ([]report.Row, error)) func(context.Context, *Env) ([]report.Row, error) {
	return func(ctx context.Context, w *Env) ([]report.Row, error) { return run(ctx, &placementEnv{w}) }
}

// newWorkload returns a workload workspace that serves EdgePlacements, and has a namespace of the same name.
func (w *placementEnv) newWorkload(ctx context.Context, name string) (*workload, error) {
	if err := w.offerLocations(ctx); err != nil {
		return nil, err
	}
	made, err := w.env.Installation.NewWorkload(ctx, name)
	if err != nil {
		return nil, err
	}
	to := &workload{namespace: name}
	if to.client, err = client(made.Config); err != nil {
		return nil, err
	}
	err = poll(ctx, 100*time.Millisecond, func() (bool, error) {
		_, err := to.client.Resource(edgePlacements).List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil, ignoreNotFound(err)
	})
	if err != nil {
		return nil, fmt.Errorf("wait until %s serves EdgePlacements: %w", name, err)
	}
	return to, create(ctx, to.client, namespaces, parse("{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}"))
}

// offerLocations makes the targets of the fleet available to all workspaces below root. It can be repeated.
func (w *placementEnv) offerLocations(ctx context.Context) error {
	for _, name := range []string{everywhere, single} {
		if err := framework.Apply(ctx, w.env.Inventory.Config, location(name)); err != nil {
			return err
		}
	}
	inventory, err := client(w.env.Inventory.Config)
	if err != nil {
		return err
	}
	return w.env.each(ctx, w.env.fleet, func(ctx context.Context, at *testTarget) error {
		labels := fmt.Sprintf(`{"metadata": {"labels": {%q: "true"}}}`, everywhere)
		if at == w.env.fleet[0] {
			labels = fmt.Sprintf(`{"metadata": {"labels": {%q: "true", %q: "true"}}}`, everywhere, single)
		}
		_, err := inventory.Resource(syncTargets).Patch(ctx, at.name, types.MergePatchType, []byte(labels), metav1.PatchOptions{})
		return err
	})
}

// location returns a Location for the SyncTargets that have a label of the same name.
func location(name string) string {
	return fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: Location
metadata: {name: %[1]s, labels: {%[1]s: "true"}}
spec:
  instanceSelector: {matchLabels: {%[1]s: "true"}}
  availableTo: {workspaces: ["root:*"]}
`, name)
}

// placement returns an EdgePlacement that places the ConfigMap of the same name at a Location.
func placement(namespace, name, location string) *unstructured.Unstructured {
	return parse(fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: %[2]s}
spec:
  locationSelectors: [{matchLabels: {%[3]s: "true"}}]
  downsync: [{resources: [configmaps], namespaces: [%[1]s], objectNames: [%[2]s]}]
`, namespace, name, location))
}

// placementOfAll returns an EdgePlacement that places all ConfigMaps of a namespace at a Location.
func placementOfAll(namespace, location string) *unstructured.Unstructured {
	return parse(fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: all}
spec:
  locationSelectors: [{matchLabels: {%[2]s: "true"}}]
  downsync: [{resources: [configmaps], namespaces: [%[1]s]}]
`, namespace, location))
}

// place creates ConfigMaps and, for each, an EdgePlacement that places it at a Location. It returns when the hub is idle and
// all are in sync. Destinations is the number of SyncTargets of the Location.
func (w *placementEnv) place(ctx context.Context, from *workload, count int, location string, destinations int) error {
	before, err := w.placed(ctx)
	if err != nil {
		return err
	}
	started, objects := time.Now(), configMapsOf(from.namespace, count)
	placements := make([]*unstructured.Unstructured, count)
	for i, object := range objects {
		placements[i] = placement(from.namespace, object.GetName(), location)
	}
	if err := create(ctx, from.client, configMaps, objects...); err != nil {
		return err
	}
	if err := create(ctx, from.client, edgePlacements, placements...); err != nil {
		return err
	}
	if err := w.awaitPlaced(ctx, started, before+float64(count*destinations)); err != nil {
		return err
	}
	w.env.synced += count * destinations
	w.env.progress("%d placements on %d targets each made in %.1f s", count, destinations, time.Since(started).Seconds())
	return nil
}

// awaitPlaced returns when the hub has placed so many pairs, and is idle.
func (w *placementEnv) awaitPlaced(ctx context.Context, started time.Time, pairs float64) error {
	if _, err := w.env.await(ctx, started, w.placed, pairs, time.Second); err != nil {
		return fmt.Errorf("wait until all is placed: %w", err)
	}
	return w.placementsIdle(ctx)
}

// placementsIdle returns when the hub has also written the statuses of all EdgePlacements.
func (w *placementEnv) placementsIdle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := w.env.Hub.WaitIdle(ctx, placementQuiet); err != nil {
		return err
	}
	return w.env.waitServersIdle(ctx)
}

// placed returns the number of pairs of an object and a destination whose mailbox has the object.
func (w *placementEnv) placed(ctx context.Context) (float64, error) {
	samples, err := w.env.Hub.Metrics(ctx)
	return samples[`synchub_placement_pairs{state="placed"}`], err
}
