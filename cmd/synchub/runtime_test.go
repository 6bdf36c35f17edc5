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

package main

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestConfigureGC(t *testing.T) {
	for name, test := range map[string]struct {
		gogc, gomemlimit string
		limit            int64
		percent          int
		want             int64
		// share is the share of the mailboxes.
		share int64
	}{
		"without a limit":          {limit: 0, percent: gcPercent, want: math.MaxInt64, share: 193_273_527},
		"with a limit":             {limit: 1 << 30, percent: gcPercent, want: (1 << 30) / 10 * 9, share: 193_273_527},
		"the environment has both": {gogc: "77", gomemlimit: "8GiB", limit: 1 << 30, percent: 77, want: 8 << 30, share: (8 << 30) / 5},
		"the environment has one":  {gogc: "77", limit: 1 << 30, percent: 77, want: (1 << 30) / 10 * 9, share: 193_273_527},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", test.gogc)
			t.Setenv("GOMEMLIMIT", test.gomemlimit)
			// The runtime's limit from the environment at start.
			started := int64(math.MaxInt64)
			if test.gomemlimit != "" {
				started = 8 << 30
			}
			percent, limit := debug.SetGCPercent(77), debug.SetMemoryLimit(started)
			t.Cleanup(func() {
				debug.SetGCPercent(percent)
				debug.SetMemoryLimit(limit)
			})
			configureGC(test.limit)
			if got := debug.SetMemoryLimit(-1); got != test.want {
				t.Errorf("want a limit of %d bytes, got %d", test.want, got)
			}
			if got := defaultMailboxesBytes(); got != test.share {
				t.Errorf("want %d bytes for mailboxes, got %d", test.share, got)
			}
			if got, want := defaultTargetsBytes(), test.share*5/4; got < want || got > want+1 {
				t.Errorf("want %d bytes for targets, got %d", want, got)
			}
			if got := debug.SetGCPercent(test.percent); got != test.percent {
				t.Errorf("want garbage to be collected at %d %%, got %d", test.percent, got)
			}
		})
	}
}
