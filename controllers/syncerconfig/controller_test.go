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

// While much is going on configs are looked at less often, but soon after it is over.
func TestPutOff(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		last, due time.Duration // ago, from now
		unknown   bool
		want      time.Duration
	}{
		"its turn was long ago":                            {last: time.Hour, due: -time.Minute},
		"its turn is now":                                  {last: busyInterval},
		"its turn is in a moment":                          {last: busyInterval - time.Second, due: time.Second, want: time.Second},
		"its turn is in a while":                           {last: soon, due: busyInterval - soon, want: interval},
		"not all has been looked at":                       {unknown: true, want: soon},
		"not all has been looked at, its turn or not":      {last: interval, due: busyInterval, unknown: true, want: soon},
		"not all has been looked at, nearly long enough":   {last: busyInterval - 1, unknown: true, want: 1},
		"not all can be looked at, the target may be away": {last: busyInterval, unknown: true},
	} {
		seen := look{last: now.Add(-test.last), due: now.Add(test.due)}
		if got := putOff(now, seen, !test.unknown); got != test.want {
			t.Errorf("%s: put off for %v, want %v", name, got, test.want)
		}
	}
}

// The configs of one busy mailbox are looked at at once, and then every 15 seconds. Of many that become busy at the same
// time each waits for its share, the last of very many for two minutes; and so it is from then on.
func TestBusyMailboxesTakeTurns(t *testing.T) {
	for name, test := range map[string]struct {
		others      int
		first, then time.Duration
	}{
		"alone":         {first: 0, then: busyInterval},
		"a few":         {others: 4, first: 2 * time.Second, then: busyInterval},
		"a hundred":     {others: 99, first: 49500 * time.Millisecond, then: 50 * time.Second},
		"ten thousand":  {others: 9999, first: longestInterval, then: longestInterval},
		"one by chance": {others: 1, first: busyShare, then: busyInterval},
	} {
		clock := testclock.NewFakeClock(time.Unix(1_000_000, 0))
		c := NewController(nil, nil, clock, logr.Discard())
		for i := range test.others {
			c.take(types.UID(fmt.Sprint(i)), true, true)
		}
		for _, want := range []time.Duration{test.first, test.then, test.then} {
			waited := time.Duration(0)
			for {
				later := c.take("this", true, true)
				if later == 0 {
					break
				}
				waited += later
				clock.Step(later)
			}
			if waited != want {
				t.Errorf("%s: looked at after %v, want %v", name, waited, want)
			}
		}
	}
}

// A mailbox that becomes busy again and again is looked at no more often for that.
func TestBusyAgain(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1_000_000, 0))
	c := NewController(nil, nil, clock, logr.Discard())
	if c.take("this", true, true) != 0 {
		t.Fatal("the first of all was put off")
	}
	c.take("this", false, true)
	clock.Step(time.Second)
	if later := c.take("this", true, true); later != interval {
		t.Errorf("busy again after a second, it is put off for %v, want %v", later, interval)
	}
}

// A mailbox that is busy and is not by turns is no worse off than others for that.
func TestBusyByTurns(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1_000_000, 0))
	c := NewController(nil, nil, clock, logr.Discard())
	for i := range 30 {
		c.take(types.UID(fmt.Sprint(i)), true, true)
	}
	started, written := clock.Now(), 0
	for busy := true; clock.Since(started) < time.Minute; busy = !busy {
		if c.take("this", busy, true) == 0 {
			written++
		}
		clock.Step(time.Second)
	}
	if most := int(time.Minute / interval); written < 4 || written > most {
		t.Errorf("looked at %d times in a minute, want once in 5 to 15 seconds", written)
	}
}

// Where a mailbox no longer is busy, its configs are looked at soon: the sooner, the fewer others are.
func TestNoLongerBusy(t *testing.T) {
	for others, want := range map[int]time.Duration{0: 0, 1: busyShare, 4: 2 * time.Second, 99: interval} {
		clock := testclock.NewFakeClock(time.Unix(1_000_000, 0))
		c := NewController(nil, nil, clock, logr.Discard())
		c.take("this", true, true)
		for i := range others {
			c.take(types.UID(fmt.Sprint(i)), true, true)
		}
		if later := c.take("this", false, true); later != want {
			t.Errorf("of %d others: put off for %v, want %v", others, later, want)
		}
		for _, step := range []time.Duration{want, soon, interval} {
			clock.Step(step)
			if later := c.take("this", false, true); later != 0 {
				t.Errorf("of %d others: put off once more, for %v", others, later)
			}
		}
	}
}

// However many mailboxes are busy, their configs are written twice a second together.
func TestConfigsOfBusyMailboxesAreWrittenSeldom(t *testing.T) {
	const mailboxes, duration = 100, 5 * time.Minute
	clock := testclock.NewFakeClock(time.Unix(1_000_000, 0))
	c := NewController(nil, nil, clock, logr.Discard())
	next, written := map[types.UID]time.Time{}, 0
	for start := clock.Now(); clock.Since(start) < duration; clock.Step(100 * time.Millisecond) {
		for i := range mailboxes {
			uid := types.UID(fmt.Sprint(i))
			if next[uid].After(clock.Now()) {
				continue
			}
			later := c.take(uid, true, true)
			if later == 0 {
				written++
				later = interval // an object changes all the time
			}
			next[uid] = clock.Now().Add(later)
		}
	}
	if most := 1 + int(duration/busyShare); written > most || written < most/2 {
		t.Errorf("written %d times, want at most %d, and not much less", written, most)
	}
	for i := range mailboxes {
		uid := types.UID(fmt.Sprint(i))
		c.forget(uid)
		c.forget(uid)
	}
	if c.busy != 0 || len(c.looks) != 0 {
		t.Errorf("%d mailboxes are held to be busy, %d are remembered, when none is left", c.busy, len(c.looks))
	}
}
