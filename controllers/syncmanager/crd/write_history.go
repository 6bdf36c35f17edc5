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

	"github.com/synchub-dev/synchub/controllers/internal/writes"
)

// writeHistory is an installer's knowledge of one CRD.
type writeHistory struct {
	// ready and installed are the values of the last state.
	ready, installed bool
	// desired is the content that was last written, and response the content that the target returned.
	desired, response fingerprint
	// repairs delays repeated writes of the same content.
	repairs writes.DriftBackoff
}

// isKnownResponse reports whether observed is the target's response to desired, so that another write would
// change nothing.
func (h *writeHistory) isKnownResponse(desired, observed fingerprint) bool {
	return h.desired == desired && h.response == observed
}

// backoff returns how long a repeated write of desired must wait; zero means that it may be made now.
func (h *writeHistory) backoff(desired fingerprint, now time.Time) time.Duration {
	if h.desired != desired {
		return 0
	}
	return h.repairs.Next(now)
}

// recordWrite stores the written content and the target's response.
func (h *writeHistory) recordWrite(desired, response fingerprint) {
	if h.desired != desired {
		h.repairs = writes.DriftBackoff{}
	}
	h.desired, h.response = desired, response
}
