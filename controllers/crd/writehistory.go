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

package crd

import (
	"time"

	"github.com/synchub-dev/synchub/controllers/internal/driftbackoff"
)

// writeHistory is what an installer remembers of one definition.
type writeHistory struct {
	// ready and installed are of the last state.
	ready, installed bool
	// desired is what was last written, and answer what the target made of it.
	desired, response fingerprint
	// repairs is how often the same had to be written again.
	repairs driftbackoff.Backoff
}

// isKnownResponse tells whether what is observed is what the target makes of desired: writing it again would change nothing.
func (h *writeHistory) isKnownResponse(desired, observed fingerprint) bool {
	return h.desired == desired && h.response == observed
}

// backoff returns how long writing desired again must wait; zero means that it is written now.
func (h *writeHistory) backoff(desired fingerprint, now time.Time) time.Duration {
	if h.desired != desired {
		return 0
	}
	return h.repairs.Next(now)
}

// recordWrite notes what was written, and what the target made of it.
func (h *writeHistory) recordWrite(desired, answer fingerprint) {
	if h.desired != desired {
		h.repairs = driftbackoff.Backoff{}
	}
	h.desired, h.response = desired, answer
}
