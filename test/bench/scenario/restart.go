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

	"github.com/synchub-dev/synchub/test/bench/figures"
)

// restarts starts the hub again with more and more objects in step, one in ten of them a Deployment.
func restarts(ctx context.Context, w *World) (rows []figures.Row, err error) {
	for step, objects := range w.Restarts {
		if err := w.stock(ctx, fmt.Sprintf("hub-restart-%d", step), objects-w.inStep); err != nil {
			return rows, err
		}
		what := fmt.Sprintf("%d objects in step: ", w.inStep)
		reads := figures.Row{What: what + "reads other than lists, watches, discovery and health", Limit: new(0.0)}
		writes := figures.Row{What: what + "writes", Limit: new(0.0)}
		known := figures.Row{What: what + "from the start until all are known to be in step, against the same lists", Unit: "s", Limit: new(1.5)}
		for range w.Rounds {
			started := time.Now()
			if err := w.startBare(ctx); err != nil {
				return rows, err
			}
			known.Direct = append(known.Direct, time.Since(started).Seconds())
			elapsed, err := w.restart(ctx)
			if err != nil {
				return rows, err
			}
			known.Hub = append(known.Hub, elapsed.Seconds())
			requests, err := w.Hub.Requests(ctx)
			if err != nil {
				return rows, err
			}
			read, written := readsAndWrites(requests)
			reads.Hub, writes.Hub = append(reads.Hub, sum(read)), append(writes.Hub, sum(written))
			w.progress("the hub took %.2f s, lists %.2f s; it read %v and wrote %v", elapsed.Seconds(), known.Direct[len(known.Direct)-1], read, written)
		}
		rows = append(rows, writes, reads, known)
	}
	return rows, nil
}

// stock has so many more objects put in step on the whole clusters.
func (w *World) stock(ctx context.Context, namespace string, objects int) error {
	each := objects / len(w.clusters)
	err := w.each(ctx, w.clusters, func(ctx context.Context, at *place) error {
		if err := at.prepare(ctx, namespace); err != nil {
			return err
		}
		if err := at.configure(ctx, config(namespace, false, configMaps, deployments)); err != nil {
			return err
		}
		for i := range each {
			resource := configMaps
			if i%10 == 0 {
				resource = deployments
			}
			if err := at.fill(ctx, resource, newObject(resource, namespace, fmt.Sprintf("object-%d", i))); err != nil {
				return err
			}
		}
		return nil
	})
	w.inStep += each * len(w.clusters)
	if err != nil {
		return err
	}
	return w.rest(ctx)
}

// restart ends the hub and starts it again, and returns how long it took until it had looked at all there is, when it is at
// rest.
func (w *World) restart(ctx context.Context) (time.Duration, error) {
	if err := w.StopHub(ctx); err != nil {
		return 0, err
	}
	started := time.Now()
	if err := w.StartHub(ctx); err != nil {
		return 0, err
	}
	elapsed, err := w.await(ctx, started, w.looked, float64(w.inStep))
	if err != nil {
		return 0, err
	}
	return elapsed, w.rest(ctx)
}
