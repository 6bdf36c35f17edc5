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

// fewPlacements is the number of placements of the workspace that a workspace with many is compared with.
const fewPlacements = 10

// placementEvents edits an object of a workload workspace with many placements, and one of a workspace with few, in
// alternation. In both workspaces each placement has an object of its own, and all objects go to the same target. So the
// workspaces differ only in the number of placements and of objects.
func placementEvents(ctx context.Context, w *placementEnv) ([]report.Row, error) {
	row := report.Row{
		What: fmt.Sprintf("an edit in a workload workspace with %d placements, until the mailbox has it, against one with %d: p50", w.env.ManyPlacements, fewPlacements),
		Unit: "ms", Limit: new(1.1),
	}
	var tracks []*track
	for _, count := range []int{w.env.ManyPlacements, fewPlacements} {
		one, err := w.placedTrack(ctx, fmt.Sprintf("hub-placement-%d", count), count)
		if err != nil {
			return nil, err
		}
		defer one.arrivals.stream.Stop()
		tracks = append(tracks, one)
	}
	number := 0
	for range w.env.Rounds {
		var taken [2][]time.Duration
		for i := range w.env.Edits {
			for turn := range tracks {
				side := (i + turn) % len(tracks)
				number++
				one, err := tracks[side].measure(ctx, edit, number)
				if err != nil {
					return nil, err
				}
				taken[side] = append(taken[side], one)
			}
		}
		many, few := report.Median(report.In(time.Millisecond, taken[0]...)), report.Median(report.In(time.Millisecond, taken[1]...))
		row.Hub, row.Direct = append(row.Hub, many), append(row.Direct, few)
		w.env.progress("%d placements: %.1f ms, %d placements: %.1f ms", w.env.ManyPlacements, many, fewPlacements, few)
	}
	return []report.Row{row}, nil
}

// placedTrack returns a track from an object of a new workload workspace to its copy in the first mailbox.
func (w *placementEnv) placedTrack(ctx context.Context, name string, placements int) (*track, error) {
	from, err := w.newWorkload(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := w.place(ctx, from, placements, single, 1); err != nil {
		return nil, err
	}
	arrivals, err := newWatcher(ctx, w.env.fleet[0].mailbox, configMaps, name)
	return &track{from: from.client.Resource(configMaps).Namespace(name), name: "object-0", arrivals: arrivals}, err
}
