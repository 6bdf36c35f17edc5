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

	"github.com/synchub-dev/synchub/test/bench/bare"
	"github.com/synchub-dev/synchub/test/bench/figures"
)

// inFlight is how many requests for one resource of one target the hub has in flight at once; see controllers/sync.
const inFlight = 4

// took is what something cost.
type took struct{ elapsed, cpu time.Duration }

func fleetBurst(ctx context.Context, w *World) ([]figures.Row, error) {
	return w.bursts(ctx, "fleet", w.fleet)
}

func clusterBurst(ctx context.Context, w *World) ([]figures.Row, error) {
	return w.bursts(ctx, "clusters", w.clusters)
}

// bursts has many objects synced, by the hub and directly in turn.
func (w *World) bursts(ctx context.Context, name string, places []*place) ([]figures.Row, error) {
	each := w.Burst / len(places)
	objects := each * len(places)
	what := fmt.Sprintf("%d objects over %d targets, %d requests in flight for each: ", objects, len(places), inFlight)
	elapsed := figures.Row{What: what + "elapsed", Unit: "s", Limit: new(1.15)}
	cpu := figures.Row{What: what + "processor time for 1,000 objects", Unit: "s", Limit: new(1.5)}
	for round := range w.Rounds {
		hub, direct := fmt.Sprintf("hub-burst-%s-%d", name, round), fmt.Sprintf("bare-burst-%s-%d", name, round)
		for _, namespace := range []string{hub, direct} {
			if err := w.fillSuspended(ctx, places, namespace, each); err != nil {
				return nil, err
			}
		}
		runs := []func() error{
			func() error { return add(&elapsed.Direct, &cpu.Direct, objects)(w.burstDirectly(ctx, direct, objects)) },
			func() error { return add(&elapsed.Hub, &cpu.Hub, objects)(w.burstByHub(ctx, hub, places, objects)) },
		}
		// Neither is always the one that finds the servers warm.
		for i := range runs {
			if err := w.rest(ctx); err != nil {
				return nil, err
			}
			if err := runs[(i+round)%len(runs)](); err != nil {
				return nil, err
			}
		}
		w.inStep += objects
		w.progress("round %d: the hub took %.2f s, a direct client %.2f s", round+1, elapsed.Hub[round], elapsed.Direct[round])
	}
	return []figures.Row{elapsed, cpu}, nil
}

// fillSuspended makes so many objects in each mailbox, which the hub, if they are its own, syncs when that is resumed.
func (w *World) fillSuspended(ctx context.Context, places []*place, namespace string, each int) error {
	started := time.Now()
	defer func() { w.progress("%d objects made in %.1f s", each*len(places), time.Since(started).Seconds()) }()
	return w.each(ctx, places, func(ctx context.Context, at *place) error {
		if err := at.prepare(ctx, namespace); err != nil {
			return err
		}
		if isHubs(namespace) {
			if err := at.configure(ctx, config(namespace, true, configMaps)); err != nil {
				return err
			}
		}
		return at.fill(ctx, configMaps, configMapsOf(namespace, each)...)
	})
}

// add notes what something cost; processor time is noted for a thousand objects.
func add(elapsed, cpu *[]float64, objects int) func(took, error) error {
	return func(cost took, err error) error {
		*elapsed = append(*elapsed, cost.elapsed.Seconds())
		*cpu = append(*cpu, cost.cpu.Seconds()*1000/float64(objects))
		return err
	}
}

func (w *World) burstDirectly(ctx context.Context, namespace string, objects int) (took, error) {
	before, err := w.bare.Carry(bare.Order{Do: bare.Nothing})
	if err != nil {
		return took{}, err
	}
	answer, err := w.bare.Carry(bare.Order{Do: bare.Burst, Resource: configMaps, Namespace: namespace, Workers: inFlight})
	if err != nil {
		return took{}, err
	}
	if answer.Objects != objects {
		return took{}, fmt.Errorf("the bare syncer sees %d objects of %d", answer.Objects, objects)
	}
	// The watches of the targets tell of what was written.
	if err := w.rest(ctx); err != nil {
		return took{}, err
	}
	after, err := w.bare.Carry(bare.Order{Do: bare.Nothing})
	return took{answer.Elapsed, after.CPU - before.CPU}, err
}

func (w *World) burstByHub(ctx context.Context, namespace string, places []*place, objects int) (took, error) {
	used, err := w.processorTime(ctx)
	if err != nil {
		return took{}, err
	}
	elapsed, err := w.resume(ctx, namespace, places, objects)
	if err != nil {
		return took{}, err
	}
	if err := w.rest(ctx); err != nil {
		return took{}, err
	}
	total, err := w.processorTime(ctx)
	return took{elapsed, total - used}, err
}

// resume takes away the suspension of mailboxes, and returns how long it took until their objects were created.
func (w *World) resume(ctx context.Context, namespace string, places []*place, objects int) (time.Duration, error) {
	before, err := w.created(ctx)
	if err != nil {
		return 0, err
	}
	started := time.Now()
	err = w.each(ctx, places, func(ctx context.Context, at *place) error { return at.resume(ctx, namespace) })
	if err != nil {
		return 0, err
	}
	return w.await(ctx, started, w.created, before+float64(objects))
}
