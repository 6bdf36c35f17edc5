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

package definition

import (
	"testing"
	"time"
)

func TestHistoryWaits(t *testing.T) {
	t.Parallel()
	ours, others, begin := fingerprint{1}, fingerprint{2}, time.Unix(0, 0)
	for name, c := range map[string]struct {
		// written is when ours was written, in seconds.
		written []int
		desired fingerprint
		now     int
		wait    time.Duration
	}{
		"nothing written":              {nil, ours, 0, 0},
		"first repair":                 {[]int{0}, ours, 1, 0},
		"second repair":                {[]int{0, 1}, ours, 2, 0},
		"third repair":                 {[]int{0, 1, 2}, ours, 2, 15 * time.Second},
		"third repair, waiting":        {[]int{0, 1, 2}, ours, 10, 7 * time.Second},
		"third repair, waited":         {[]int{0, 1, 2}, ours, 17, 0},
		"fourth repair":                {[]int{0, 1, 2, 17}, ours, 17, 30 * time.Second},
		"fifth repair":                 {[]int{0, 1, 2, 17, 47}, ours, 47, time.Minute},
		"never more than five minutes": {[]int{0, 1, 2, 17, 47, 107, 227, 467}, ours, 467, 5 * time.Minute},
		"repairs of long ago":          {[]int{0, 1, 2}, ours, 700, 0},
		"one repair of long ago":       {[]int{0, 1, 2, 600}, ours, 602, 13 * time.Second},
		"a change of what must be":     {[]int{0, 1, 2, 3}, others, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &history{}
			for _, second := range c.written {
				h.wrote(ours, fingerprint{}, begin.Add(time.Duration(second)*time.Second))
			}
			if wait := h.wait(c.desired, begin.Add(time.Duration(c.now)*time.Second)); wait != c.wait {
				t.Errorf("it waits %s and not %s", wait, c.wait)
			}
		})
	}
}

func TestHistoryForgetsRepairsOfAnother(t *testing.T) {
	t.Parallel()
	h, now := &history{}, time.Unix(0, 0)
	for range 3 {
		h.wrote(fingerprint{1}, fingerprint{}, now)
	}
	h.wrote(fingerprint{2}, fingerprint{3}, now)
	if wait := h.wait(fingerprint{2}, now); wait != 0 {
		t.Errorf("it waits %s for what others did to something else", wait)
	}
	if !h.isAnswer(fingerprint{2}, fingerprint{3}) || h.isAnswer(fingerprint{1}, fingerprint{3}) || h.isAnswer(fingerprint{2}, fingerprint{2}) {
		t.Error("an answer is that to what was written last")
	}
}
