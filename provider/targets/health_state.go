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

package targets

import "time"

const (
	// probeInterval is how often a target is probed. Each interval varies at random by up to a tenth, and is aligned to
	// probeAlignment.
	probeInterval = 10 * time.Second
	// probeAlignment aligns probes to whole seconds, so that the hub wakes up once for many targets.
	probeAlignment = time.Second
	// uncertainProbeInterval is the interval while one more result would change the state.
	uncertainProbeInterval = time.Second
	// failuresUntilDown is how many probes must fail in a row.
	failuresUntilDown = 3
	// successesUntilUp is how many probes must succeed in a row for a target that went down less than flapPeriod ago. All other
	// targets come up after the first success.
	successesUntilUp = 2
	flapPeriod       = 5 * time.Minute
)

// healthState is the state of a target according to its probes.
type healthState struct {
	up bool
	// failures and successes count the last probes in a row that failed or succeeded.
	failures, successes int
	// downSince is when the target went down last; zero if it was never up.
	downSince time.Time
}

// record returns the state after another probe, and the delay until the next one.
func (h healthState) record(succeeded bool, now time.Time) (next healthState, wait time.Duration) {
	if !succeeded {
		h.successes = 0
		h.failures = min(h.failures+1, failuresUntilDown)
		switch {
		case !h.up:
			return h, probeInterval
		case h.failures < failuresUntilDown:
			return h, uncertainProbeInterval
		}
		h.up, h.downSince = false, now
		return h, probeInterval
	}
	h.failures = 0
	h.successes = min(h.successes+1, successesUntilUp)
	// A clock that was set back must not keep a target down.
	isFlapping := !h.downSince.IsZero() && now.Sub(h.downSince).Abs() < flapPeriod
	if !h.up && isFlapping && h.successes < successesUntilUp {
		return h, uncertainProbeInterval
	}
	h.up = true
	return h, probeInterval
}

// alignToProbes extends a wait to the next aligned time.
func alignToProbes(now time.Time, wait time.Duration) time.Duration {
	due := now.Add(wait)
	if on := due.Truncate(probeAlignment); on.Before(due) {
		due = on.Add(probeAlignment)
	}
	return due.Sub(now)
}
