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
	"slices"
	"strings"
	"time"

	"github.com/synchub-dev/synchub/test/bench/report"
	"github.com/synchub-dev/synchub/test/framework/benchenv"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// takeovers ends or kills the leader with as many objects in sync as at the last restart, and measures how long a change waits that
// is made in this moment. After a kill the lease duration does not count: nobody may lead before.
func takeovers(ctx context.Context, w *Env) (rows []report.Row, err error) {
	if missing := slices.Max(w.Restarts) - w.synced; missing > 0 {
		if err := w.addObjects(ctx, "hub-takeover", missing); err != nil {
			return nil, err
		}
	}
	tracks, err := w.tracks(ctx, "hub-takeover-edit", w.clusters[:1], configMaps, mailboxToTarget)
	defer stopAll(map[string][]*track{"hub": tracks})
	if err != nil {
		return nil, err
	}
	number := 0
	for _, standby := range []string{"warm", "cold"} {
		what := fmt.Sprintf("%d objects in sync, %s standby: from the end of the leader until a change has arrived, ", w.synced, standby)
		ended := report.Row{What: what + "after SIGTERM", Unit: "s"}
		killed := report.Row{What: what + "after kill -9, without the lease duration", Unit: "s"}
		if standby == "warm" {
			ended.Limit, killed.Limit = new(1.0), new(1.0)
		}
		for range w.Rounds {
			for _, row := range []*report.Row{&ended, &killed} {
				number++
				elapsed, err := w.takeOver(ctx, standby, row == &killed, tracks[0], number)
				if err != nil {
					return rows, err
				}
				row.Hub = append(row.Hub, elapsed.Seconds())
				w.progress("%s%.2f s", row.What, elapsed.Seconds())
			}
		}
		rows = append(rows, ended, killed)
	}
	// Other scenarios read the profiles of the hub.
	_, err = w.restart(ctx)
	return rows, err
}

// takeOver replaces the leader by a standby, and returns how long a change waited that was made in this moment.
func (w *Env) takeOver(ctx context.Context, standby string, kill bool, one *track, number int) (time.Duration, error) {
	next, err := w.StartReplica("--standby=" + standby)
	if err != nil {
		return 0, err
	}
	if err := next.AwaitReady(ctx); err != nil {
		return 0, err
	}
	if standby == "warm" {
		err := poll(ctx, 100*time.Millisecond, func() (bool, error) {
			prepared, err := cachedOfTargets(ctx, next)
			return prepared >= float64(w.synced), err
		})
		if err != nil {
			return 0, fmt.Errorf("wait until the standby has filled its caches: %w", err)
		}
	}
	if err := w.waitIdle(ctx); err != nil {
		return 0, err
	}
	leader, started := w.Hub, time.Now()
	w.Hub = next
	end := make(chan error, 1)
	if kill {
		end <- leader.Kill9()
	} else {
		go func() {
			_, err := leader.Terminate(ctx)
			end <- err
		}()
	}
	if _, err := one.measure(ctx, edit, number); err != nil {
		return 0, err
	}
	elapsed := time.Since(started)
	if kill {
		elapsed -= benchenv.LeaseDuration
	}
	return elapsed, <-end
}

// cachedOfTargets returns how many objects of all targets a replica caches.
func cachedOfTargets(ctx context.Context, replica *installation.Hub) (objects float64, err error) {
	samples, err := replica.Metrics(ctx)
	for sample, count := range samples {
		if strings.HasPrefix(sample, "synchub_target_cache_objects{") {
			objects += count
		}
	}
	return objects, err
}
