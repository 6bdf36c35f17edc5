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
	// probeInterval is how often a target is asked for its version; the probe of each target is shifted at random by up
	// to a tenth of it, and to the next beat then.
	probeInterval = 10 * time.Second
	// probeAlignment is what probes fall on, so that the hub is woken for those of many targets together, and not for each.
	probeAlignment = time.Second
	// uncertainProbeInterval is how soon it is asked again while one answer more would change what is thought of it.
	uncertainProbeInterval = time.Second
	// failuresUntilDown is how many probes must fail in a row.
	failuresUntilDown = 3
	// successesUntilUp is how many must succeed in a row for a target that went down less than flapTime ago. Others come up
	// with the first.
	successesUntilUp = 2
	flapPeriod       = 5 * time.Minute
)

// healthState is what the probes of a target have told so far.
type healthState struct {
	up bool
	// failures and successes are how many probes in a row have failed, or succeeded, until now.
	failures, successes int
	// downSince is when the target went down last; zero if it was never up.
	downSince time.Time
}

// observe decides what another probe changes, and how soon the next one is due.
func (c healthState) observe(succeeded bool, now time.Time) (next healthState, wait time.Duration) {
	if !succeeded {
		c.successes = 0
		c.failures = min(c.failures+1, failuresUntilDown)
		switch {
		case !c.up:
			return c, probeInterval
		case c.failures < failuresUntilDown:
			return c, uncertainProbeInterval
		}
		c.up, c.downSince = false, now
		return c, probeInterval
	}
	c.failures = 0
	c.successes = min(c.successes+1, successesUntilUp)
	// A clock that was set back must not keep a target down.
	lately := !c.downSince.IsZero() && now.Sub(c.downSince).Abs() < flapPeriod
	if !c.up && lately && c.successes < successesUntilUp {
		return c, uncertainProbeInterval
	}
	c.up = true
	return c, probeInterval
}

// alignToProbes returns for how long to wait if that is to end with a beat, and not earlier.
func alignToProbes(now time.Time, wait time.Duration) time.Duration {
	due := now.Add(wait)
	if on := due.Truncate(probeAlignment); on.Before(due) {
		due = on.Add(probeAlignment)
	}
	return due.Sub(now)
}
