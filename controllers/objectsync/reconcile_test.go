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
)

// No watch tells when the hub is permitted more, so it tries again by itself; not all objects at once.
func TestRetryAfter(t *testing.T) {
	repair := outcome{requeueAfter: 15 * time.Second}
	for range 100 {
		if after := retryAfter(Failure{Reason: ReasonForbidden}, outcome{}); after < 5*time.Minute || after >= 5*time.Minute+30*time.Second {
			t.Fatalf("a permission is asked for again after %s", after)
		}
	}
	if after := retryAfter(Failure{Reason: ReasonContended}, repair); after != repair.requeueAfter {
		t.Errorf("a repair that has to wait is tried after %s", after)
	}
	for _, reason := range []string{ReasonInvalid, ReasonFailed, ReasonNotServed, ReasonTargetUnreachable} {
		if after := retryAfter(Failure{Reason: reason}, outcome{requeueAfter: time.Second}); after != 0 {
			t.Errorf("%s must be left to the queue, not tried after %s", reason, after)
		}
	}
}
