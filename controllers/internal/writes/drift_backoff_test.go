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

package writes

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// fakeWriter is another writer on the target, which undoes every repair at once.
type fakeWriter struct {
	t       *testing.T
	clock   *testclock.FakeClock
	repairs DriftBackoff
}

func newFakeWriter(t *testing.T) *fakeWriter {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	return &fakeWriter{t: t, clock: clock}
}

// repaired fails the test unless the drift is repaired at once.
func (w *fakeWriter) repaired() {
	w.t.Helper()
	if wait := w.repairs.Next(w.clock.Now()); wait != 0 {
		w.t.Fatalf("at %v: want a repair, it waits %v", w.clock.Now(), wait)
	}
}

// waits fails the test unless the repair has to wait for that long.
func (w *fakeWriter) waits(want time.Duration) {
	w.t.Helper()
	if wait := w.repairs.Next(w.clock.Now()); wait != want {
		w.t.Fatalf("at %v: want to wait %v, got %v", w.clock.Now(), want, wait)
	}
}

func TestDriftBackoff(t *testing.T) {
	writer := newFakeWriter(t)
	writer.repaired()
	writer.repaired()
	for round, wait := range []time.Duration{
		15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute,
		5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	} {
		writer.waits(wait)
		// An early call neither repairs nor extends the wait.
		writer.clock.Step(wait / 3)
		writer.waits(wait - wait/3)
		writer.clock.Step(wait - wait/3 - time.Nanosecond)
		writer.waits(time.Nanosecond)
		// The queue may be late.
		writer.clock.Step(time.Nanosecond + time.Duration(round%2)*time.Second)
		writer.repaired()
	}
}

// A writer that returns within ten minutes gets the same waits. For one that returns later, the waits start
// from the beginning.
func TestDriftBackoffIsReset(t *testing.T) {
	for name, test := range map[string]struct {
		quiet time.Duration
		want  time.Duration
	}{
		"soon":                    {time.Minute, time.Minute},
		"after ten minutes":       {repairWindow, time.Minute},
		"after more than that":    {repairWindow + time.Nanosecond, 0},
		"after a day":             {24 * time.Hour, 0},
		"before the next was due": {time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			writer := newFakeWriter(t)
			writer.repaired()
			writer.repaired()
			for _, wait := range []time.Duration{15 * time.Second, 30 * time.Second} {
				writer.waits(wait)
				writer.clock.Step(wait)
				writer.repaired()
			}
			writer.clock.Step(test.quiet)
			if test.want > 0 {
				writer.waits(test.want)
				return
			}
			writer.repaired()
			writer.repaired()
			writer.waits(15 * time.Second)
		})
	}
}

func TestDriftBackoffWithinTheWindow(t *testing.T) {
	const minute = time.Minute
	for name, test := range map[string]struct {
		// steps are the times between drifts.
		steps     []time.Duration
		contended bool
	}{
		"the second at once":                  {[]time.Duration{0}, false},
		"the third at once":                   {[]time.Duration{0, 0}, true},
		"the third within ten minutes":        {[]time.Duration{5 * minute, 4 * minute}, true},
		"the third at ten minutes":            {[]time.Duration{5 * minute, 5 * minute}, true},
		"the third after ten minutes":         {[]time.Duration{5 * minute, 5*minute + 1}, false},
		"the fourth, each in its ten minutes": {[]time.Duration{6 * minute, 6 * minute, 6 * minute}, false},
		"the fourth, close to the third":      {[]time.Duration{6 * minute, 6 * minute, 3 * minute}, true},
		"rarely":                              {[]time.Duration{11 * minute, 11 * minute, 11 * minute, 11 * minute}, false},
	} {
		t.Run(name, func(t *testing.T) {
			writer := newFakeWriter(t)
			writer.repaired()
			for i, step := range test.steps {
				writer.clock.Step(step)
				if i == len(test.steps)-1 && test.contended {
					writer.waits(15 * time.Second)
					return
				}
				writer.repaired()
			}
		})
	}
}

// The window starts at the last repair, not at a drift that disappeared during its wait.
func TestRepairThatWasNotNeeded(t *testing.T) {
	writer := newFakeWriter(t)
	writer.repaired()
	writer.repaired()
	writer.waits(15 * time.Second)
	writer.clock.Step(repairWindow + time.Nanosecond)
	writer.repaired()
	writer.repaired()
	writer.waits(15 * time.Second)
}

// A repair that could not be made does not count.
func TestRefund(t *testing.T) {
	writer := newFakeWriter(t)
	for range 5 {
		writer.repaired()
		writer.repairs.Refund()
	}
	writer.repaired()
	writer.repaired()
	writer.waits(15 * time.Second)
	(&DriftBackoff{}).Refund()
}
