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

package objectsync

import (
	"testing"
	"time"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// No watch reports new permissions, so the hub retries after a delay with jitter.
func TestRetryAfter(t *testing.T) {
	repair := outcome{requeueAfter: 15 * time.Second}
	for range 100 {
		if after := retryAfter(Failure{Reason: plan.ReasonForbidden}, outcome{}, 1); after < 5*time.Minute || after >= 5*time.Minute+30*time.Second {
			t.Fatalf("a permission is checked again after %s", after)
		}
	}
	if after := retryAfter(Failure{Reason: plan.ReasonContended}, repair, 1); after != repair.requeueAfter {
		t.Errorf("a repair that has to wait is tried after %s", after)
	}
}

// Failures that somebody must resolve are no errors of the controller, so their retries back off by the number of failed passes. For a
// deletion that is the number of failed passes too, although each needs a new verification of the absence.
func TestFailuresBackOff(t *testing.T) {
	for _, action := range []plan.Action{plan.Delete, plan.Release, plan.Apply, plan.Create, ""} {
		for failedPasses, want := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 8: 12800 * time.Millisecond, 13: 5 * time.Minute, 1000: 5 * time.Minute} {
			if after := retryAfter(Failure{Reason: plan.ReasonNotServed}, outcome{decision: plan.Decision{Action: action}}, failedPasses); after != want {
				t.Errorf("after %d failed passes, %s is tried after %s instead of %s", failedPasses, action, after, want)
			}
		}
	}
}
