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

// placementRestarts restarts the hub with many placements at rest, each of an object on all targets of the fleet.
func placementRestarts(ctx context.Context, w *placementEnv) ([]report.Row, error) {
	from, err := w.newWorkload(ctx, "hub-placement-restart")
	if err != nil {
		return nil, err
	}
	if err := w.place(ctx, from, w.env.Placements, everywhere, len(w.env.fleet)); err != nil {
		return nil, err
	}
	pairs, err := w.placed(ctx)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("a restart with %d placements on %d clusters each, %.0f copies in all: ", w.env.Placements, len(w.env.fleet), pairs)
	writes := report.Row{What: what + "writes", Limit: new(0.0)}
	known := report.Row{What: what + "from the start until all are known to be placed", Unit: "s"}
	for range w.env.Rounds {
		elapsed, written, err := w.restartAtRest(ctx, pairs)
		if err != nil {
			return nil, err
		}
		known.Hub, writes.Hub = append(known.Hub, elapsed.Seconds()), append(writes.Hub, sum(written))
		w.env.progress("the hub took %.2f s and wrote %v", elapsed.Seconds(), written)
	}
	return []report.Row{writes, known}, nil
}

// restartAtRest restarts the hub. It returns how long the hub took until it knew that all pairs are placed, and what it wrote until it
// was idle.
func (w *placementEnv) restartAtRest(ctx context.Context, pairs float64) (elapsed time.Duration, written map[string]float64, err error) {
	if err := w.env.StopHub(ctx); err != nil {
		return 0, nil, err
	}
	started := time.Now()
	if err := w.env.StartHub(ctx); err != nil {
		return 0, nil, err
	}
	if elapsed, err = w.env.await(ctx, started, w.placed, pairs, 0); err != nil {
		return 0, nil, err
	}
	// The sync controllers must have tried all copies too: until then, the hub writes no status of a placement.
	if _, err := w.env.await(ctx, started, w.env.foundInSync, float64(w.env.synced), 0); err != nil {
		return 0, nil, err
	}
	if err := w.placementsIdle(ctx); err != nil {
		return 0, nil, err
	}
	requests, err := w.env.Hub.Requests(ctx)
	if err != nil {
		return 0, nil, err
	}
	_, written = readsAndWrites(requests)
	return elapsed, written, nil
}
