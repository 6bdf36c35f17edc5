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
	for name, test := range map[string]struct {
		last    time.Duration
		busy    int // mailboxes, of which this is one unless there is none
		unknown bool
		want    time.Duration
	}{
		"little waits":                                     {last: interval},
		"many wait, looked at a moment ago":                {last: soon, busy: 1, want: interval},
		"many wait, looked at a while ago":                 {last: interval, busy: 1, want: interval},
		"many wait, nearly long enough":                    {last: busyInterval - time.Second, busy: 1, want: time.Second},
		"many wait, long enough":                           {last: busyInterval, busy: 1},
		"many wait, and they were never looked at":         {last: 24 * time.Hour, busy: 1},
		"many wait in some mailboxes, long enough":         {last: busyInterval, busy: 30},
		"many wait in many mailboxes, not long enough":     {last: busyInterval, busy: 100, want: interval},
		"many wait in many mailboxes, nearly long enough":  {last: 49 * time.Second, busy: 100, want: time.Second},
		"many wait in many mailboxes, long enough":         {last: 50 * time.Second, busy: 100},
		"many wait in a thousand mailboxes, long enough":   {last: longestInterval, busy: 1000},
		"not all has been looked at":                       {unknown: true, want: soon},
		"not all has been looked at, and many wait":        {last: interval, busy: 1, unknown: true, want: soon},
		"not all has been looked at, nearly long enough":   {last: busyInterval - 1, unknown: true, want: 1},
		"not all can be looked at, the target may be away": {last: busyInterval, unknown: true},
	} {
		if got := putOff(test.last, test.busy, test.busy > 0, !test.unknown); got != test.want {
			t.Errorf("%s: put off for %v, want %v", name, got, test.want)
		}
	}
}

// However many mailboxes are busy, their configs are written twice a second together; each at once when it no longer is.
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
	if most := mailboxes + int(duration/busyShare); written > most || written < most/2 {
		t.Errorf("written %d times, want at most %d, and not much less", written, most)
	}
	for i := range mailboxes {
		uid := types.UID(fmt.Sprint(i))
		if later := c.take(uid, false, true); later != 0 {
			t.Errorf("%s is not busy any more, and is put off for %v", uid, later)
		}
		c.forget(uid)
		c.forget(uid)
	}
	if c.busy != 0 || len(c.looks) != 0 {
		t.Errorf("%d mailboxes are held to be busy, %d are remembered, when none is left", c.busy, len(c.looks))
	}
}
