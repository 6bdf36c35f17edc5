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

package syncerconfig

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/go-logr/logr"
)

// Configs of a busy mailbox are written less often, and soon after the mailbox is no longer busy.
func TestDelayUntilDue(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		last, due time.Duration // ago, from now
		unknown   bool
		want      time.Duration
	}{
		"its turn was long ago":                            {last: time.Hour, due: -time.Minute},
		"its turn is now":                                  {last: busyWriteInterval},
		"its turn is in a moment":                          {last: busyWriteInterval - time.Second, due: time.Second, want: time.Second},
		"its turn is in a while":                           {last: changeDelay, due: busyWriteInterval - changeDelay, want: writeInterval},
		"not all has been looked at":                       {unknown: true, want: changeDelay},
		"not all has been looked at, its turn or not":      {last: writeInterval, due: busyWriteInterval, unknown: true, want: changeDelay},
		"not all has been looked at, nearly long enough":   {last: busyWriteInterval - 1, unknown: true, want: 1},
		"not all can be looked at, the target may be away": {last: busyWriteInterval, unknown: true},
	} {
		seen := writeSchedule{lastWrite: now.Add(-test.last), due: now.Add(test.due)}
		if got := delayUntilDue(now, seen, !test.unknown); got != test.want {
			t.Errorf("%s: put off for %v, want %v", name, got, test.want)
		}
	}
}

// The configs of a single busy mailbox are written at once, and then every 15 seconds. If many mailboxes become
// busy at the same time, each waits for its turn, the last of very many for two minutes. The same applies to
// the following writes.
func TestBusyMailboxesTakeTurns(t *testing.T) {
	for name, test := range map[string]struct {
		otherCount  int
		first, then time.Duration
	}{
		"alone":         {first: 0, then: busyWriteInterval},
		"a few":         {otherCount: 4, first: 2 * time.Second, then: busyWriteInterval},
		"a hundred":     {otherCount: 99, first: 49500 * time.Millisecond, then: 50 * time.Second},
		"ten thousand":  {otherCount: 9999, first: maxBusyWriteInterval, then: maxBusyWriteInterval},
		"one by chance": {otherCount: 1, first: busyWriteSpacing, then: busyWriteInterval},
	} {
		clock := testclock.NewFakeClock(time.Unix(1_000_000, 0))
		c := New(Options{LeaderOnly: true, Clock: clock, Log: logr.Discard()})
		for i := range test.otherCount {
			c.scheduleWriteWith(types.UID(fmt.Sprint(i)), true, true)
		}
		for _, want := range []time.Duration{test.first, test.then, test.then} {
			waited := time.Duration(0)
			for {
				requeueAfter := c.scheduleWriteWith("this", true, true)
				if requeueAfter == 0 {
					break
				}
				waited += requeueAfter
				clock.Step(requeueAfter)
			}
			if waited != want {
				t.Errorf("%s: looked at after %v, want %v", name, waited, want)
			}
		}
	}
}

// A mailbox that becomes busy again and again is not written more often.
func TestBusyAgain(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1_000_000, 0))
	c := New(Options{LeaderOnly: true, Clock: clock, Log: logr.Discard()})
	if c.scheduleWriteWith("this", true, true) != 0 {
		t.Fatal("the first of all was put off")
	}
	c.scheduleWriteWith("this", false, true)
	clock.Step(time.Second)
	if requeueAfter := c.scheduleWriteWith("this", true, true); requeueAfter != writeInterval {
		t.Errorf("busy again after a second, it is put off for %v, want %v", requeueAfter, writeInterval)
	}
}

// A mailbox that alternates between busy and not busy waits no longer than other mailboxes.
func TestIntermittentlyBusy(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1_000_000, 0))
	c := New(Options{LeaderOnly: true, Clock: clock, Log: logr.Discard()})
	for i := range 30 {
		c.scheduleWriteWith(types.UID(fmt.Sprint(i)), true, true)
	}
	started, written := clock.Now(), 0
	for busy := true; clock.Since(started) < time.Minute; busy = !busy {
		if c.scheduleWriteWith("this", busy, true) == 0 {
			written++
		}
		clock.Step(time.Second)
	}
	if most := int(time.Minute / writeInterval); written < 4 || written > most {
		t.Errorf("looked at %d times in a minute, want once in 5 to 15 seconds", written)
	}
}

// The configs of a mailbox that is no longer busy are written soon: the sooner, the fewer other mailboxes are busy.
func TestNoLongerBusy(t *testing.T) {
	for otherCount, want := range map[int]time.Duration{0: 0, 1: busyWriteSpacing, 4: 2 * time.Second, 99: writeInterval} {
		clock := testclock.NewFakeClock(time.Unix(1_000_000, 0))
		c := New(Options{LeaderOnly: true, Clock: clock, Log: logr.Discard()})
		c.scheduleWriteWith("this", true, true)
		for i := range otherCount {
			c.scheduleWriteWith(types.UID(fmt.Sprint(i)), true, true)
		}
		if requeueAfter := c.scheduleWriteWith("this", false, true); requeueAfter != want {
			t.Errorf("with %d other mailboxes: delayed for %v, want %v", otherCount, requeueAfter, want)
		}
		for _, step := range []time.Duration{want, changeDelay, writeInterval} {
			clock.Step(step)
			if requeueAfter := c.scheduleWriteWith("this", false, true); requeueAfter != 0 {
				t.Errorf("with %d other mailboxes: delayed once more, for %v", otherCount, requeueAfter)
			}
		}
	}
}

// All busy mailboxes together cause two writes per second, however many they are.
func TestConfigsOfBusyMailboxesAreWrittenSeldom(t *testing.T) {
	const mailboxes, duration = 100, 5 * time.Minute
	clock := testclock.NewFakeClock(time.Unix(1_000_000, 0))
	c := New(Options{LeaderOnly: true, Clock: clock, Log: logr.Discard()})
	next, written := map[types.UID]time.Time{}, 0
	for start := clock.Now(); clock.Since(start) < duration; clock.Step(100 * time.Millisecond) {
		for i := range mailboxes {
			uid := types.UID(fmt.Sprint(i))
			if next[uid].After(clock.Now()) {
				continue
			}
			requeueAfter := c.scheduleWriteWith(uid, true, true)
			if requeueAfter == 0 {
				written++
				requeueAfter = writeInterval // an object changes all the time
			}
			next[uid] = clock.Now().Add(requeueAfter)
		}
	}
	if most := 1 + int(duration/busyWriteSpacing); written > most || written < most/2 {
		t.Errorf("written %d times, want at most %d, and not much less", written, most)
	}
	for i := range mailboxes {
		uid := types.UID(fmt.Sprint(i))
		c.forget(uid)
		c.forget(uid)
	}
	if c.busyMailboxes != 0 || len(c.schedules) != 0 {
		t.Errorf("%d mailboxes are busy, and %d are stored, but none is left", c.busyMailboxes, len(c.schedules))
	}
}

// The counts from before a start may stay while objects are untried, but not forever.
func TestInitialSyncIsLimited(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1_000_000, 0))
	c := New(Options{LeaderOnly: true, Clock: clock, Log: logr.Discard()})
	within := func(want bool) {
		t.Helper()
		if got := c.isWithinInitialSync("this"); got != want {
			t.Errorf("after %v: %v, want %v", clock.Since(time.Unix(1_000_000, 0)), got, want)
		}
	}
	within(false)
	c.scheduleWriteWith("this", false, false)
	clock.Step(initialSyncLimit - 1)
	c.scheduleWriteWith("this", true, false)
	within(true)
	clock.Step(1)
	within(false)
	c.scheduleWriteWith("this", false, true)
	c.scheduleWriteWith("this", false, false)
	within(true)
	c.scheduleWriteWith("this", false, true)
	within(false)
}
