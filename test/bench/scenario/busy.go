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

	"golang.org/x/sync/errgroup"

	"github.com/synchub-dev/synchub/test/bench/report"
)

// busy edits an object of one mailbox while the hub is idle, while it syncs many objects of another mailbox, and while it
// syncs many of the same mailbox. An object of the baseline syncer is edited in alternation.
func busy(ctx context.Context, w *Env) ([]report.Row, error) {
	own, other := w.clusters[0], w.clusters[1]
	tracks, err := w.tracksOfBoth(ctx, "busy", []*testTarget{own}, configMaps, mailboxToTarget)
	defer stopAll(tracks)
	if err != nil {
		return nil, err
	}
	edited := &editPair{hub: tracks["hub"][0], baseline: tracks["bare"][0]}
	what := fmt.Sprintf("p99 of an edit while %d objects of ", w.Busy)
	others := report.Row{What: what + "another mailbox are synced, against when nothing is", Unit: "ms", Limit: new(2.0)}
	beside := report.Row{What: what + "another mailbox are synced, against a bare syncer's beside it", Unit: "ms"}
	bare := report.Row{What: fmt.Sprintf("p99 of a bare syncer's edit while %d objects of another mailbox are synced, against when nothing is", w.Busy), Unit: "ms"}
	same := report.Row{What: what + "the same mailbox are synced", Unit: "ms", Limit: new(1000.0)}
	for round := range w.Rounds {
		quiet, err := edited.times(ctx, w.Edits)
		if err != nil {
			return nil, err
		}
		namespace := fmt.Sprintf("hub-busy-%d", round)
		away, err := w.editsDuring(ctx, edited, other, namespace)
		if err != nil {
			return nil, err
		}
		here, err := w.editsDuring(ctx, edited, own, namespace)
		if err != nil {
			return nil, err
		}
		others.Hub, others.Direct = append(others.Hub, p99(away.hub)), append(others.Direct, p99(quiet.hub))
		beside.Hub, beside.Direct = append(beside.Hub, p99(away.hub)), append(beside.Direct, p99(away.baseline))
		bare.Hub, bare.Direct = append(bare.Hub, p99(away.baseline)), append(bare.Direct, p99(quiet.baseline))
		same.Hub = append(same.Hub, p99(here.hub))
		w.progress("round %d: quiet %.1f ms, bare %.1f ms; another mailbox %.1f ms, bare %.1f ms; the same %.1f ms, bare %.1f ms", round+1,
			p99(quiet.hub), p99(quiet.baseline), p99(away.hub), p99(away.baseline), p99(here.hub), p99(here.baseline))
	}
	return []report.Row{others, bare, beside, same}, nil
}

func p99(latencies []float64) float64 { return report.Percentile(latencies, 99) }

// editsDuring edits objects while the hub syncs many objects of a mailbox.
func (w *Env) editsDuring(ctx context.Context, edited *editPair, at *testTarget, namespace string) (taken latencies, err error) {
	targets := []*testTarget{at}
	if err := w.fillSuspended(ctx, targets, namespace, w.Busy); err != nil {
		return taken, err
	}
	if err := w.waitIdle(ctx); err != nil {
		return taken, err
	}
	synced := make(chan struct{})
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(synced)
		_, err := w.resume(groupCtx, namespace, targets, w.Busy)
		return err
	})
	group.Go(func() error {
		taken, err = edited.until(groupCtx, synced)
		return err
	})
	if err := group.Wait(); err != nil {
		return taken, err
	}
	w.synced += w.Busy
	return taken, w.waitIdle(ctx)
}

// latencies are the latencies of edits in milliseconds.
type latencies struct{ hub, baseline []float64 }

// editPair edits an object of the hub and one of the baseline syncer in alternation.
type editPair struct {
	hub, baseline measured
	number        int
}

// measured is an object whose changes can be measured.
type measured interface {
	// measure makes a change, and returns how long after the response it arrived.
	measure(ctx context.Context, change change, number int) (time.Duration, error)
}

func (e *editPair) once(ctx context.Context, taken *latencies) error {
	e.number++
	hub, err := e.hub.measure(ctx, edit, e.number)
	if err != nil {
		return err
	}
	bare, err := e.baseline.measure(ctx, edit, e.number)
	if err != nil {
		return err
	}
	taken.hub = append(taken.hub, report.In(time.Millisecond, hub)...)
	taken.baseline = append(taken.baseline, report.In(time.Millisecond, bare)...)
	return nil
}

func (e *editPair) times(ctx context.Context, count int) (taken latencies, err error) {
	for range count {
		if err := e.once(ctx, &taken); err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// until edits until done is closed, but at least once.
func (e *editPair) until(ctx context.Context, done <-chan struct{}) (taken latencies, err error) {
	for {
		if err := e.once(ctx, &taken); err != nil {
			return taken, err
		}
		select {
		case <-done:
			return taken, nil
		default:
		}
	}
}
