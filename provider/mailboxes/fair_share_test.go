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

package mailboxes

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestFairShare(t *testing.T) {
	for name, test := range map[string]struct {
		wanted []int64
		room   int64
		want   int64
	}{
		"no users":                  {nil, 10, math.MaxInt64},
		"all fit":                   {[]int64{3, 7}, 10, math.MaxInt64},
		"equal shares":              {[]int64{9, 9}, 10, 5},
		"who wants little has it":   {[]int64{2, 9, 9}, 10, 4},
		"one that wants all":        {[]int64{1, 1, 1, 1 << 50}, 10, 7},
		"more mailboxes than bytes": {[]int64{9, 9, 9}, 2, 1},
		"those who want nothing":    {[]int64{0, 0, 12}, 10, 10},
		"unused room is shared":     {[]int64{4, 5, 9}, 13, 4},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fairShare(test.wanted, test.room); got != test.want {
				t.Errorf("want %d, got %d", test.want, got)
			}
		})
	}
}

func TestSteps(t *testing.T) {
	for _, level := range []int64{1, 2, 3, 1000, 1 << 20, 1<<20 + 1, 1<<20 - 1, 64 << 20, 1 << 40} {
		step := roundDownToStep(level)
		if step > level || float64(step) < float64(level)/math.Exp2(1.0/stepsPerDoubling)-1 {
			t.Errorf("the step for %d is %d", level, step)
		}
		if again := roundDownToStep(step); again != step {
			t.Errorf("%d is a step, but its step is %d", step, again)
		}
	}
}

// For any sizes of the mailboxes, all together fit into the room, a mailbox that wants less than its equal share is cut by at
// most a step or two, and the level changes only if it must fall or can rise far.
func TestNextFairShare(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a test that can be repeated
	for range 300 {
		room := 1_000 + random.Int64N(1<<40)
		wanted := make([]int64, 1+random.IntN(300))
		for i := range wanted {
			wanted[i] = random.Int64N(room) >> random.IntN(20)
		}
		var level int64
		for range 20 {
			one := random.IntN(len(wanted))
			wanted[one] = random.Int64N(room) >> random.IntN(20)
			before := level
			level = nextFairShare(before, slices.Clone(wanted), room)
			var sum, all int64
			for _, want := range wanted {
				all += want
				if level > 0 {
					want = min(want, level)
				}
				sum += want
			}
			if sum > room {
				t.Fatalf("level %d after %d: %d bytes of %d", level, before, sum, room)
			}
			share := float64(room) / float64(len(wanted))
			if level > 0 && float64(level) < share/2 {
				t.Fatalf("level %d cuts who wants less than the equal share of %v", level, share)
			}
			if before == 0 && level > 0 && all <= room {
				t.Fatalf("there is room for all, but a level of %d", level)
			}
			if again := nextFairShare(level, slices.Clone(wanted), room); again != level {
				t.Fatalf("the level is %d, then %d, though the wanted sizes are the same", level, again)
			}
		}
	}
}

// A small change does not move the fair share back and forth.
func TestTheFairShareDoesNotFlap(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8)) //nolint:gosec // a test that can be repeated
	base := []int64{1 << 20, 1 << 24, 1 << 24, 1 << 27, 1 << 27, 1 << 27}
	for room := int64(1 << 27); room < 1<<28; room += room / 100 {
		var level, moves int64
		for range 200 {
			wanted := slices.Clone(base)
			for i := range wanted {
				wanted[i] += random.Int64N(wanted[i]/5) - wanted[i]/10
			}
			next := nextFairShare(level, wanted, room)
			if next != level {
				moves++
			}
			level = next
		}
		if moves > 2 || level == 0 {
			t.Errorf("with room for %d bytes the level has moved %d times, to %d", room, moves, level)
		}
		if level = nextFairShare(level, []int64{1 << 20}, room); level != 0 {
			t.Errorf("all fit, but there is a level of %d", level)
		}
	}
}
