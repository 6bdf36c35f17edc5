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

package apiexport

import (
	"testing"
	"time"
)

func TestClaimRetriesBackOff(t *testing.T) {
	var reminder claimRetrier
	now := time.Unix(1_000_000, 0)
	ask := func(generation int64, wantDue bool, wantAgain time.Duration) {
		t.Helper()
		if isDue, requeueAfter := reminder.isDue(generation, now); isDue != wantDue || requeueAfter != wantAgain {
			t.Fatalf("due: %t, again in %s", isDue, requeueAfter)
		}
	}
	ask(1, false, minClaimRetryInterval)
	now = now.Add(minClaimRetryInterval - time.Second)
	ask(1, false, time.Second)
	now = now.Add(time.Second)
	for pause := 2 * minClaimRetryInterval; pause < maxClaimRetryInterval; pause *= 2 {
		ask(1, true, pause)
		ask(1, false, pause)
		now = now.Add(pause)
	}
	for range 3 {
		ask(1, true, maxClaimRetryInterval)
		now = now.Add(maxClaimRetryInterval)
	}
	// A new generation starts with the shortest interval.
	ask(2, false, minClaimRetryInterval)
	now = now.Add(minClaimRetryInterval)
	ask(2, true, 2*minClaimRetryInterval)
}
