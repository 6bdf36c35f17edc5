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

import (
	"strings"
	"testing"
	"time"
)

// TestHealthState simulates probes: x is a failed probe, o a successful one, and a digit is the number of minutes that pass. The
// result of each probe is U or D for a target that is up or down, in lower case if the next probe is due soon.
func TestHealthState(t *testing.T) {
	for name, test := range map[string]struct{ probes, want string }{
		"up after the first success":              {"ooo", "UUU"},
		"up after failures and the first success": {"xxxxxo", "DDDDDU"},
		"one failure":                          {"oxo", "UuU"},
		"two failures":                         {"oxxoxxo", "UuuUuuU"},
		"three failures":                       {"oxxx", "UuuD"},
		"interval while down":                  {"oxxxxxx", "UuuDDDD"},
		"two successes after an outage":        {"oxxxoo", "UuuDdU"},
		"two successes in a row":               {"oxxxoxoxoo", "UuuDdDdDdU"},
		"one success after a long outage":      {"oxxx5o", "UuuDU"},
		"two successes after a shorter outage": {"oxxx4oo", "UuuDdU"},
		"three failures after a recovery":      {"oxxxooxxx", "UuuDdUuuD"},
		"successes after a second outage":      {"oxxx5oxxxoo", "UuuDUuuDdU"},
		"a long outage counts from its start":  {"oxxx3x3o", "UuuDDU"},
		"alternating failures":                 {"oxoxoxoxox", "UuUuUuUuUu"},
	} {
		t.Run(name, func(t *testing.T) {
			now, state, got := time.Unix(1_000_000, 0), healthState{}, ""
			for _, event := range test.probes {
				if event != 'x' && event != 'o' {
					now = now.Add(time.Duration(event-'0') * time.Minute)
					continue
				}
				var wait time.Duration
				state, wait = state.record(event == 'o', now)
				letter := map[bool]string{true: "U", false: "D"}[state.up]
				switch wait {
				case uncertainProbeInterval:
					letter = strings.ToLower(letter)
				case probeInterval:
				default:
					t.Fatalf("the next probe is due in %v", wait)
				}
				got += letter
				now = now.Add(time.Second)
			}
			if got != test.want {
				t.Errorf("%s: want %s, got %s", test.probes, test.want, got)
			}
		})
	}
}

func TestHealthStateAfterTheClockWasSetBack(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	state, _ := healthState{downSince: now.Add(time.Hour), failures: failuresUntilDown}.record(true, now)
	if !state.up {
		t.Error("it is kept down until the clock has caught up")
	}
}

func TestAlignToProbes(t *testing.T) {
	second := time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		now        time.Time
		wait, want time.Duration
	}{
		"aligned":             {second, 9 * time.Second, 9 * time.Second},
		"not aligned":         {second.Add(200 * time.Millisecond), 9 * time.Second, 9800 * time.Millisecond},
		"just after a second": {second.Add(time.Nanosecond), 9 * time.Second, 10*time.Second - time.Nanosecond},
		"jittered":            {second, 9300 * time.Millisecond, 10 * time.Second},
	} {
		if got := alignToProbes(test.now, test.wait); got != test.want {
			t.Errorf("%s: want %s, got %s", name, test.want, got)
		}
	}
}
