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

	"github.com/synchub-dev/synchub/test/bench/report"
)

// placementMemory measures the heap of the hub before and after objects are written directly into all mailboxes of the fleet,
// and before and after as many copies are placed there. In both cases the hub syncs the objects with the targets, and holds
// them as they are in the mailbox and on the target. Only for the copies it also holds:
//
//   - the source in the workload workspace, once for all its copies,
//   - the state of each pair of an object and a destination,
//   - the hub's mark, which makes the copy in the mailbox larger, and the mark that is in sync.
//
// The difference is what placement takes. A first object of each kind exists before, so that workspaces, namespaces and
// SyncerConfigs do not count.
func placementMemory(ctx context.Context, w *placementEnv) ([]report.Row, error) {
	const direct = "hub-memory-direct"
	onAll, err := w.placeAllOf(ctx, "hub-memory-placed", everywhere)
	if err != nil {
		return nil, err
	}
	onOne, err := w.placeAllOf(ctx, "hub-memory-single", single)
	if err != nil {
		return nil, err
	}
	if err := w.fillConfigured(ctx, direct); err != nil {
		return nil, err
	}
	if err := w.placementsIdle(ctx); err != nil {
		return nil, err
	}
	each := w.env.Memory / len(w.env.fleet)
	objects := configMapsOf(direct, each)
	unplaced, err := w.heapOf(ctx, each*len(w.env.fleet), func() error {
		return w.env.each(ctx, w.env.fleet, func(ctx context.Context, at *testTarget) error { return at.fill(ctx, configMaps, objects...) })
	})
	if err != nil {
		return nil, err
	}
	copies, err := w.heapOf(ctx, each*len(w.env.fleet), func() error { return onAll.fill(ctx, each) })
	if err != nil {
		return nil, err
	}
	// Here each copy has a source of its own.
	only, err := w.heapOf(ctx, w.env.Memory/2, func() error { return onOne.fill(ctx, w.env.Memory/2) })
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("heap of an object of 2 KB, by %d objects on %d clusters: ", each, len(w.env.fleet))
	alone := fmt.Sprintf("heap of an object of 2 KB, by %d objects on one cluster: ", w.env.Memory/2)
	return []report.Row{
		{What: what + "a copy beyond an object of the mailbox", Unit: "KiB", Limit: new(4.0), Hub: []float64{copies - unplaced}},
		{What: what + "an object that is written into the mailbox", Unit: "KiB", Hub: []float64{unplaced}},
		{What: alone + "a copy and its source beyond an object of the mailbox", Unit: "KiB", Hub: []float64{only - unplaced}},
	}, nil
}

// placeAllOf returns a workload workspace whose ConfigMaps are all placed at a Location. It has a first ConfigMap.
func (w *placementEnv) placeAllOf(ctx context.Context, name, location string) (*workload, error) {
	from, err := w.newWorkload(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := create(ctx, from.client, configMaps, configMap(name, "first")); err != nil {
		return nil, err
	}
	return from, create(ctx, from.client, edgePlacements, placementOfAll(name, location))
}

// fill creates ConfigMaps in the workload workspace.
func (o *workload) fill(ctx context.Context, count int) error {
	return create(ctx, o.client, configMaps, configMapsOf(o.namespace, count)...)
}

// fillConfigured creates a namespace with a SyncerConfig and a first object in each mailbox of the fleet.
func (w *placementEnv) fillConfigured(ctx context.Context, namespace string) error {
	return w.env.each(ctx, w.env.fleet, func(ctx context.Context, at *testTarget) error {
		if err := at.prepare(ctx, namespace); err != nil {
			return err
		}
		if err := at.configure(ctx, config(namespace, false, configMaps)); err != nil {
			return err
		}
		return at.fill(ctx, configMaps, configMap(namespace, "first"))
	})
}

// heapOf returns by how many KiB the heap has grown for each object when the hub has created all of them on targets.
func (w *placementEnv) heapOf(ctx context.Context, objects int, fill func() error) (float64, error) {
	before, err := w.env.footprint(ctx)
	if err != nil {
		return 0, err
	}
	created, err := w.env.created(ctx)
	if err != nil {
		return 0, err
	}
	started := time.Now()
	if err := fill(); err != nil {
		return 0, err
	}
	if _, err := w.env.await(ctx, started, w.env.created, created+float64(objects), time.Second); err != nil {
		return 0, err
	}
	w.env.synced += objects
	if err := w.placementsIdle(ctx); err != nil {
		return 0, err
	}
	after, err := w.env.footprint(ctx)
	return (after.heap - before.heap) / float64(objects) / kibi, err
}
