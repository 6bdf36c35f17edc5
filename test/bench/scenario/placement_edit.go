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

	"github.com/synchub-dev/synchub/test/bench/baseline"
	"github.com/synchub-dev/synchub/test/bench/report"
)

const (
	// placedAtOnce is how many mailboxes the hub writes to at once for one workload workspace, and how many destinations the
	// bare syncer does at once; see docs/placement.md.
	placedAtOnce = 16
	// placementPause is how long the hub must have been idle between two edits.
	placementPause = time.Second
)

// timeLimited are the resources whose writes a period limits, so that they do not belong to one change.
var timeLimited = []string{"edgeplacements/status", "singleplacementslices", "syncerconfigs/status", "locations/status"}

// placementEdits edits one object that is placed on the whole fleet, in alternation with a bare syncer that updates an object
// in as many mailboxes, and applies it to as many targets.
func placementEdits(ctx context.Context, w *placementEnv) ([]report.Row, error) {
	const name = "hub-placement-edit"
	from, err := w.newWorkload(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := w.place(ctx, from, 1, everywhere, len(w.env.fleet)); err != nil {
		return nil, err
	}
	bare, err := w.env.tracks(ctx, "bare-placement-edit", w.env.fleet, configMaps, mailboxToTarget)
	tracks := map[string][]*track{"bare": bare}
	defer func() { stopAll(tracks) }()
	if err != nil {
		return nil, err
	}
	hub, err := w.env.watchFleet(ctx, name)
	tracks["hub"] = hub
	if err != nil {
		return nil, err
	}
	edited := &placedEdit{placements: w, source: from.client.Resource(configMaps).Namespace(name), hub: hub, bare: bare}
	rows, err := edited.writes(ctx)
	if err != nil {
		return nil, err
	}
	last := report.Row{
		What: fmt.Sprintf("an edit of an object on %d clusters, %d at once, until the last cluster has it: p50", len(w.env.fleet), placedAtOnce), Unit: "ms", Limit: new(1.3),
	}
	for range w.env.Rounds {
		if err := edited.round(ctx, &last); err != nil {
			return rows, err
		}
	}
	return append([]report.Row{last}, rows...), nil
}

// watchFleet watches the ConfigMaps of a namespace on all targets of the fleet. The tracks must be stopped even after an error.
func (w *Env) watchFleet(ctx context.Context, namespace string) (tracks []*track, err error) {
	for _, at := range w.fleet {
		arrivals, err := newWatcher(ctx, at.target, configMaps, namespace)
		if err != nil {
			return tracks, err
		}
		tracks = append(tracks, &track{arrivals: arrivals})
	}
	return tracks, nil
}

// placedEdit is an object of a workload workspace, and an object that the bare syncer writes to all mailboxes and targets.
type placedEdit struct {
	placements *placementEnv
	source     dynamic.ResourceInterface
	hub, bare  []*track
	number     int
}

// round adds the medians of a round to a row. Hub and bare syncer take turns in who comes first.
func (e *placedEdit) round(ctx context.Context, row *report.Row) error {
	var hub, bare []time.Duration
	for i := range e.placements.env.PlacedEdits {
		sides := []func() error{
			func() error { return keep(&hub)(e.byHub(ctx)) },
			func() error { return keep(&bare)(e.byBare(ctx)) },
		}
		for turn := range sides {
			if err := e.placements.env.Hub.WaitIdle(ctx, placementPause, timeLimited...); err != nil {
				return err
			}
			e.number++
			if err := sides[(i+turn)%len(sides)](); err != nil {
				return err
			}
		}
	}
	median := func(taken []time.Duration) float64 { return report.Median(report.In(time.Millisecond, taken...)) }
	row.Hub, row.Direct = append(row.Hub, median(hub)), append(row.Direct, median(bare))
	e.placements.env.progress("the hub took %.0f ms, a bare syncer %.0f ms", median(hub), median(bare))
	return nil
}

// keep returns a function that keeps a duration unless there is an error.
func keep(all *[]time.Duration) func(time.Duration, error) error {
	return func(one time.Duration, err error) error {
		if err == nil {
			*all = append(*all, one)
		}
		return err
	}
}

// byHub edits the source, and returns how long after the answer the last target had the edit.
func (e *placedEdit) byHub(ctx context.Context) (time.Duration, error) {
	_, err := e.source.Patch(ctx, "object-0", types.MergePatchType, []byte(edit.patch(e.number)), metav1.PatchOptions{})
	answered := time.Now()
	if err != nil {
		return 0, err
	}
	last, err := lastArrival(ctx, e.hub, e.number)
	return last.Sub(answered), err
}

// byBare lets the bare syncer write the number to all mailboxes and targets, and returns how long after the request the last
// target had it.
func (e *placedEdit) byBare(ctx context.Context) (time.Duration, error) {
	request := baseline.Request{
		Operation: baseline.Place, Resource: configMaps, Namespace: "bare-placement-edit", Name: "single", Entry: fmt.Sprint(e.number), Workers: placedAtOnce,
	}
	started := time.Now()
	answer, err := e.placements.env.baseline.Send(request)
	if err != nil {
		return 0, err
	}
	if answer.Objects != len(e.placements.env.fleet) {
		return 0, fmt.Errorf("the bare syncer has %d mailboxes of %d", answer.Objects, len(e.placements.env.fleet))
	}
	last, err := lastArrival(ctx, e.bare, e.number)
	return last.Sub(started), err
}

// lastArrival returns when the last of the watched objects had the number.
func lastArrival(ctx context.Context, tracks []*track, number int) (last time.Time, err error) {
	for _, one := range tracks {
		arrived, err := one.arrivals.until(ctx, func(object *unstructured.Unstructured) bool { return edit.shows(object) == fmt.Sprint(number) })
		if err != nil {
			return last, err
		}
		if arrived.After(last) {
			last = arrived
		}
	}
	return last, nil
}

// writes makes one edit and counts the writes of objects to mailboxes and targets, for each destination.
func (e *placedEdit) writes(ctx context.Context) ([]report.Row, error) {
	before, err := e.placements.env.Hub.Requests(ctx)
	if err != nil {
		return nil, err
	}
	e.number++
	if _, err := e.byHub(ctx); err != nil {
		return nil, err
	}
	if err := e.placements.placementsIdle(ctx); err != nil {
		return nil, err
	}
	after, err := e.placements.env.Hub.Requests(ctx)
	counts := map[string]float64{}
	for kind, count := range after {
		if kind.Class == "object" {
			counts[kind.Destination] += count - before[kind]
		}
	}
	var rows []report.Row
	for _, destination := range []string{"mailbox", "target"} {
		rows = append(rows, report.Row{
			What:  fmt.Sprintf("an edit of an object on %d clusters: writes to each %s", len(e.placements.env.fleet), destination),
			Limit: new(1.0), Hub: []float64{counts[destination] / float64(len(e.placements.env.fleet))},
		})
	}
	return rows, err
}
