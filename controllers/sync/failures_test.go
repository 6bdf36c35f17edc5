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

package sync

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
)

func TestFailuresAreToldOnce(t *testing.T) {
	failures := newFailures(testclock.NewFakeClock(time.Unix(1000, 0)))
	conflict, conflictAgain := Failure{ReasonConflict, "first"}, Failure{ReasonConflict, "second"}
	if before, failed := failures.clear(someKey); failed || before != (Failure{}) {
		t.Errorf("an object that never failed was said to have: %v", before)
	}
	set := func(key types.NamespacedName, failure Failure, want Failure, changed bool) {
		t.Helper()
		if before, got := failures.set(key, failure); before != want || got != changed {
			t.Errorf("%v is new: want %v after %v, got %v after %v", failure, changed, want, got, before)
		}
	}
	set(someKey, conflict, Failure{}, true)
	set(someKey, conflictAgain, conflict, false)
	snapshot := failures.snapshot()
	if snapshot[someKey] != conflictAgain || len(snapshot) != 1 {
		t.Errorf("the last message does not count: %v", snapshot)
	}
	third := Failure{ReasonForbidden, "third"}
	set(someKey, third, conflictAgain, true)
	set(types.NamespacedName{Name: "other"}, conflict, Failure{}, true)
	if snapshot[someKey] != conflictAgain {
		t.Error("a snapshot changes")
	}
	if before, failed := failures.clear(someKey); !failed || before != third {
		t.Errorf("cleared was %v, %v", before, failed)
	}
	if _, failed := failures.clear(someKey); failed || len(failures.snapshot()) != 1 {
		t.Error("a failure is not cleared once")
	}
	set(someKey, conflict, Failure{}, true)
}

// What waits for a cure is found by what it waits for.
func TestFailing(t *testing.T) {
	failures := newFailures(testclock.NewFakeClock(time.Unix(1000, 0)))
	here, there := types.NamespacedName{Namespace: "shop", Name: "a"}, types.NamespacedName{Namespace: "bank", Name: "b"}
	failures.set(here, Failure{ReasonNamespaceTerminating, "m"})
	failures.set(there, Failure{ReasonNamespaceTerminating, "m"})
	failures.set(someKey, Failure{ReasonNotServed, "m"})
	failing := func(is func(types.NamespacedName, Failure) bool) int { return len(failures.failing(is)) }
	in := failures.failing(func(key types.NamespacedName, failure Failure) bool {
		return failure.Reason == ReasonNamespaceTerminating && key.Namespace == "shop"
	})
	if !slices.Equal(in, []types.NamespacedName{here}) {
		t.Errorf("in the namespace fail %v", in)
	}
	all, none := func(types.NamespacedName, Failure) bool { return true }, func(types.NamespacedName, Failure) bool { return false }
	if failing(all) != 3 || failing(none) != 0 {
		t.Errorf("of three objects fail %d or %d", failing(all), failing(none))
	}
	failures.clear(there)
	if failing(all) != 2 {
		t.Error("what does not fail any more is still found")
	}
}

// writer is another writer on the target, which undoes every repair as soon as it is made.
type writer struct {
	t        *testing.T
	clock    *testclock.FakeClock
	failures *failures
}

func newWriter(t *testing.T) *writer {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	return &writer{t: t, clock: clock, failures: newFailures(clock)}
}

// repaired fails the test unless drift is repaired at once.
func (w *writer) repaired() {
	w.t.Helper()
	if wait, contended := w.failures.repair(someKey); contended || wait != 0 {
		w.t.Fatalf("at %v: want a repair, got %v, %v", w.clock.Now(), wait, contended)
	}
}

// waits fails the test unless the repair has to wait for that long.
func (w *writer) waits(want time.Duration) {
	w.t.Helper()
	if wait, contended := w.failures.repair(someKey); !contended || wait != want {
		w.t.Fatalf("at %v: want to wait %v, got %v, %v", w.clock.Now(), want, wait, contended)
	}
}

func TestRepairs(t *testing.T) {
	writer := newWriter(t)
	writer.repaired()
	writer.repaired()
	for round, wait := range []time.Duration{
		15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute,
		5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	} {
		writer.waits(wait)
		// Asking early neither repairs nor puts it off.
		writer.clock.Step(wait / 3)
		writer.waits(wait - wait/3)
		writer.clock.Step(wait - wait/3 - time.Nanosecond)
		writer.waits(time.Nanosecond)
		// Sometimes the queue is late.
		writer.clock.Step(time.Nanosecond + time.Duration(round%2)*time.Second)
		writer.repaired()
	}
}

// A writer that comes back within ten minutes finds the waits where they were, one that comes later finds them forgotten.
func TestRepairsAreForgotten(t *testing.T) {
	for name, test := range map[string]struct {
		quiet time.Duration
		want  time.Duration
	}{
		"soon":                    {time.Minute, time.Minute},
		"after ten minutes":       {contentionWindow, time.Minute},
		"after more than that":    {contentionWindow + time.Nanosecond, 0},
		"after a day":             {24 * time.Hour, 0},
		"before the next was due": {time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			writer := newWriter(t)
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

func TestRepairsWithinTenMinutes(t *testing.T) {
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
			writer := newWriter(t)
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

// What was put off and then went away by itself counts from the last repair.
func TestRepairThatWasNotNeeded(t *testing.T) {
	writer := newWriter(t)
	writer.repaired()
	writer.repaired()
	writer.waits(15 * time.Second)
	writer.clock.Step(contentionWindow + time.Nanosecond)
	writer.repaired()
	writer.repaired()
	writer.waits(15 * time.Second)
}

func TestRepairsOfOthers(t *testing.T) {
	writer := newWriter(t)
	writer.repaired()
	writer.repaired()
	writer.waits(15 * time.Second)
	if _, contended := writer.failures.repair(types.NamespacedName{Namespace: "shop", Name: "other"}); contended {
		t.Error("one object's drift holds up another's repair")
	}
	writer.failures.forget(someKey)
	writer.repaired()
}

// What was made of a state of a source is remembered until the source is gone.
func TestChangesAreRemembered(t *testing.T) {
	failures := newFailures(testclock.NewFakeClock(time.Unix(1000, 0)))
	other := types.NamespacedName{Name: "other"}
	for _, test := range []struct {
		name string
		do   func()
		want map[string]bool
	}{
		{"nothing", func() {}, map[string]bool{"7": false, "8": false}},
		{"a change", func() { failures.changed(someKey, "7") }, map[string]bool{"7": true, "8": false}},
		{"the same", func() { failures.changed(someKey, "7") }, map[string]bool{"7": true, "8": false}},
		{"of another", func() { failures.changed(other, "8"); failures.forget(other) }, map[string]bool{"7": true, "8": false}},
		{"a later state", func() { failures.changed(someKey, "8") }, map[string]bool{"7": false, "8": true}},
		{"it is gone", func() { failures.forget(someKey) }, map[string]bool{"7": false, "8": false}},
	} {
		test.do()
		for version, want := range test.want {
			if got := failures.hasChanged(someKey, version); got != want {
				t.Errorf("%s: for state %s it was changed: %v, want %v", test.name, version, got, want)
			}
		}
		if failures.hasChanged(other, "8") {
			t.Errorf("%s: another object was changed", test.name)
		}
	}
}
