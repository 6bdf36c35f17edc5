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

	"golang.org/x/sync/errgroup"

	"github.com/synchub-dev/synchub/test/bench/figures"
)

// busy edits an object of one mailbox while nothing else happens, while many objects of another mailbox are synced, and while
// many of its own are.
func busy(ctx context.Context, w *World) ([]figures.Row, error) {
	own, other := w.clusters[0], w.clusters[1]
	tracks, err := w.tracks(ctx, "hub-busy", []*place{own}, configMaps, downwards)
	if err != nil {
		return nil, err
	}
	defer stopAll(tracks)
	edited := &editing{track: tracks[0]}
	what := fmt.Sprintf("p99 of an edit while %d objects of ", w.Busy)
	others := figures.Row{What: what + "another mailbox are synced, against when nothing is", Unit: "ms", Limit: new(2.0)}
	same := figures.Row{What: what + "the same mailbox are synced", Unit: "ms", Limit: new(1000.0)}
	for round := range w.Rounds {
		quiet, err := edited.times(ctx, w.Edits)
		if err != nil {
			return nil, err
		}
		others.Direct = append(others.Direct, figures.Percentile(quiet, 99))
		for row, at := range map[*figures.Row]*place{&others: other, &same: own} {
			during, err := w.editsDuring(ctx, edited, at, fmt.Sprintf("hub-busy-%d", round))
			if err != nil {
				return nil, err
			}
			row.Hub = append(row.Hub, figures.Percentile(during, 99))
		}
	}
	return []figures.Row{others, same}, nil
}

// editsDuring edits while the hub syncs many objects of a mailbox, and returns how long the edits took to arrive.
func (w *World) editsDuring(ctx context.Context, edited *editing, at *place, namespace string) (latencies []float64, err error) {
	places := []*place{at}
	if err := w.fillSuspended(ctx, places, namespace, w.Busy); err != nil {
		return nil, err
	}
	if err := w.rest(ctx); err != nil {
		return nil, err
	}
	synced := make(chan struct{})
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(synced)
		_, err := w.resume(groupCtx, namespace, places, w.Busy)
		return err
	})
	group.Go(func() error {
		latencies, err = edited.until(groupCtx, synced)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	w.inStep += w.Busy
	return latencies, w.rest(ctx)
}

// editing is an object that is edited again and again.
type editing struct {
	*track
	number int
}

func (e *editing) once(ctx context.Context) (milliseconds float64, err error) {
	e.number++
	latency, err := e.measure(ctx, edit, e.number)
	return latency.Seconds() * 1000, err
}

func (e *editing) times(ctx context.Context, count int) (latencies []float64, err error) {
	for range count {
		latency, err := e.once(ctx)
		if err != nil {
			return nil, err
		}
		latencies = append(latencies, latency)
	}
	return latencies, nil
}

// until edits at least once.
func (e *editing) until(ctx context.Context, done <-chan struct{}) (latencies []float64, err error) {
	for {
		latency, err := e.once(ctx)
		if err != nil {
			return nil, err
		}
		latencies = append(latencies, latency)
		select {
		case <-done:
			return latencies, nil
		default:
		}
	}
}
