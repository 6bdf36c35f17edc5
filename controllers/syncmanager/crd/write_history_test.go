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
	"testing"
	"time"
)

// The first write of a content is not a repair. For a changed content, the delays start from the beginning.
func TestWriteHistoryBackoff(t *testing.T) {
	t.Parallel()
	ours, others, now := fingerprint{1}, fingerprint{2}, time.Unix(0, 0)
	h := &writeHistory{}
	write := func(desired fingerprint, want time.Duration) {
		t.Helper()
		wait := h.backoff(desired, now)
		if wait != want {
			t.Errorf("it waits %s and not %s", wait, want)
		}
		if wait == 0 {
			h.recordWrite(desired, fingerprint{})
		}
	}
	write(ours, 0)
	write(ours, 0)
	write(ours, 0)
	write(ours, 15*time.Second)
	now = now.Add(14 * time.Second)
	write(ours, time.Second)
	write(others, 0)
	write(others, 0)
	write(others, 0)
	now = now.Add(time.Minute)
	write(others, 15*time.Second)
	now = now.Add(15 * time.Second)
	write(others, 0)
}

func TestWriteHistoryKnowsTheResponse(t *testing.T) {
	t.Parallel()
	h := &writeHistory{}
	h.recordWrite(fingerprint{1}, fingerprint{})
	h.recordWrite(fingerprint{2}, fingerprint{3})
	if !h.isKnownResponse(fingerprint{2}, fingerprint{3}) || h.isKnownResponse(fingerprint{1}, fingerprint{3}) || h.isKnownResponse(fingerprint{2}, fingerprint{2}) {
		t.Error("a response to an earlier write counts as known")
	}
}
