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

import "time"

const (
	// contentionWindow and repairsAtOnce: what somebody else did to a definition is undone at once, from the third time
	// within ten minutes with growing waits.
	contentionWindow = 10 * time.Minute
	repairsAtOnce    = 2
	firstWait        = 15 * time.Second
	lastWait         = 5 * time.Minute
)

// history is what an installer remembers of one definition.
type history struct {
	// ready and installed are of the last state.
	ready, installed bool
	// desired is what was last written, and answer what the target made of it.
	desired, answer fingerprint
	// repairs are when the same was written again, the oldest first.
	repairs []time.Time
}

// isAnswer tells whether what is observed is what the target makes of desired: writing it again would change nothing.
func (h *history) isAnswer(desired, observed fingerprint) bool {
	return h.desired == desired && h.answer == observed
}

// wait returns how long writing desired again must wait; zero if it need not.
func (h *history) wait(desired fingerprint, now time.Time) time.Duration {
	if h.desired != desired {
		return 0
	}
	for len(h.repairs) > 0 && now.Sub(h.repairs[0]) > contentionWindow {
		h.repairs = h.repairs[1:]
	}
	excess := len(h.repairs) - repairsAtOnce
	if excess < 0 {
		return 0
	}
	wait := firstWait
	for ; excess > 0 && wait < lastWait; excess-- {
		wait *= 2
	}
	due := h.repairs[len(h.repairs)-1].Add(min(wait, lastWait))
	return max(due.Sub(now), 0)
}

// wrote notes what was written.
func (h *history) wrote(desired, answer fingerprint, now time.Time) {
	if h.desired == desired {
		h.repairs = append(h.repairs, now)
	} else {
		h.repairs = nil
	}
	h.desired, h.answer = desired, answer
}
