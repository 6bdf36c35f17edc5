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
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/test/bench/report"
	"github.com/synchub-dev/synchub/test/framework"
)

const (
	// teams is the number of workload workspaces that share a cluster.
	teams = 8
	// sharedNames and ownNames are the Locations of a cluster where workspaces share the namespaces, and of one where each has its own.
	sharedNames, ownNames = "shared-names", "own-names"
)

var clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}

// placementTenancy places many objects of several workspaces at once on a cluster where each has namespaces and an identity of its own,
// in alternation with a cluster where the hub writes all as itself.
func placementTenancy(ctx context.Context, w *placementEnv) ([]report.Row, error) {
	var workloads []*workload
	for i := range teams {
		one, err := w.newWorkload(ctx, fmt.Sprintf("hub-tenancy-%d", i))
		if err != nil {
			return nil, err
		}
		workloads = append(workloads, one)
	}
	if err := w.offerClusters(ctx); err != nil {
		return nil, err
	}
	each := w.env.Burst / teams
	what := fmt.Sprintf("%d objects of %d workspaces on one cluster, with namespaces and an identity of each, against a cluster without: ", each*teams, teams)
	elapsed := report.Row{What: what + "elapsed", Unit: "s", Limit: new(1.05)}
	cpu := report.Row{What: what + "processor time for 1,000 objects", Unit: "s"}
	burst := func(round int, location string, of column) error {
		cost, err := w.placeAtOnce(ctx, workloads, fmt.Sprintf("%s-%d", location, round), location, each)
		*of(&elapsed), *of(&cpu) = append(*of(&elapsed), cost.elapsed.Seconds()), append(*of(&cpu), cost.cpu.Seconds()*1000/float64(each*teams))
		return err
	}
	for round := range w.env.Rounds {
		runs := []func() error{
			func() error { return burst(round, sharedNames, directColumn) },
			func() error { return burst(round, ownNames, hubColumn) },
		}
		for i := range runs {
			if err := runs[(i+round)%len(runs)](); err != nil {
				return nil, err
			}
		}
		w.env.progress("round %d: %.2f s with tenancy, %.2f s without", round+1, elapsed.Hub[round], elapsed.Direct[round])
	}
	pairs, err := w.placed(ctx)
	if err != nil {
		return nil, err
	}
	_, written, err := w.restartAtRest(ctx, pairs)
	w.env.progress("after a restart the hub wrote %v", written)
	writes := report.Row{What: fmt.Sprintf("a restart with %.0f copies, half of them with tenancy: writes", pairs), Hub: []float64{sum(written)}, Limit: new(0.0)}
	return []report.Row{elapsed, cpu, writes}, err
}

// offerClusters offers the first cluster with shared namespaces, and the second one with tenancy.
func (w *placementEnv) offerClusters(ctx context.Context) error {
	inventory, err := client(w.env.Inventory.Config)
	if err != nil {
		return err
	}
	role := parse(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: hub-tenant}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, patch, delete]}]
`)
	if err := create(ctx, w.env.clusters[1].target, clusterRoles, role); err != nil {
		return err
	}
	tenancy := []string{`null`, `{"namespaces": "PerWorkspace", "identity": "Workspace", "role": "hub-tenant", "namespaceLabels": {"pod-security.kubernetes.io/enforce": "baseline"}}`}
	for i, name := range []string{sharedNames, ownNames} {
		if err := framework.Apply(ctx, w.env.Inventory.Config, location(name)); err != nil {
			return err
		}
		change := fmt.Sprintf(`{"metadata": {"labels": {%q: "true"}}, "spec": {"tenancy": %s}}`, name, tenancy[i])
		_, err := inventory.Resource(syncTargets).Patch(ctx, w.env.clusters[i].name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// placeAtOnce creates objects in a namespace of each workspace, and measures from the creation of the placements until the cluster of the
// Location has all objects.
func (w *placementEnv) placeAtOnce(ctx context.Context, workloads []*workload, suffix, location string, each int) (cost runCost, err error) {
	placements := make([]func() error, len(workloads))
	for i, one := range workloads {
		namespace := one.namespace + "-" + suffix
		if err := create(ctx, one.client, namespaces, parse("{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")); err != nil {
			return cost, err
		}
		if err := create(ctx, one.client, configMaps, configMapsOf(namespace, each)...); err != nil {
			return cost, err
		}
		placed := placementOfAll(namespace, location)
		placed.SetName(suffix)
		placements[i] = func() error { return create(ctx, one.client, edgePlacements, placed) }
	}
	if err := w.placementsIdle(ctx); err != nil {
		return cost, err
	}
	used, err := w.env.processorTime(ctx)
	if err != nil {
		return cost, err
	}
	before, err := w.createdConfigMaps(ctx)
	if err != nil {
		return cost, err
	}
	started := time.Now()
	for _, place := range placements {
		if err := place(); err != nil {
			return cost, err
		}
	}
	objects := each * len(workloads)
	if cost.elapsed, err = w.env.await(ctx, started, w.createdConfigMaps, before+float64(objects), time.Second); err != nil {
		return cost, err
	}
	w.env.synced += objects
	if err := w.placementsIdle(ctx); err != nil {
		return cost, err
	}
	total, err := w.env.processorTime(ctx)
	cost.cpu = total - used
	return cost, err
}

// createdConfigMaps returns the number of ConfigMaps that the hub has created on targets.
func (w *placementEnv) createdConfigMaps(ctx context.Context) (count float64, err error) {
	samples, err := w.env.Hub.Metrics(ctx)
	for sample, made := range samples {
		if strings.HasPrefix(sample, "synchub_sync_actions_total{") && strings.Contains(sample, `action="Create"`) &&
			strings.Contains(sample, `resource="configmaps"`) && strings.Contains(sample, `result="done"`) {
			count += made
		}
	}
	return count, err
}
