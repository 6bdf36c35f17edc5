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

package mailbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

func TestInitializationRetries(t *testing.T) {
	t.Parallel()
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	retries := newInitializationRetries(clock)
	stuck, other := mcreconcile.Request{ClusterName: "stuck"}, mcreconcile.Request{ClusterName: "other"}
	if next := retries.next(stuck); next != initializationTimeout {
		t.Errorf("a mailbox that kcp does not initialize yet is reconciled after %s, want %s", next, initializationTimeout)
	}
	var due []time.Duration
	for began := clock.Now(); clock.Since(began) < 40*time.Minute; clock.Step(time.Second) {
		if retries.take(stuck) {
			due = append(due, clock.Since(began))
		} else if next := retries.next(stuck); next <= 0 || next > maxRetryDelay {
			t.Fatalf("after %s, the next attempt is due after %s", clock.Since(began), next)
		}
	}
	if want := "[10s 30s 1m10s 2m30s 5m10s 10m30s 20m30s 30m30s]"; fmt.Sprint(due) != want {
		t.Errorf("the attempts were due after %v, want after %v", due, want)
	}
	clock.Step(maxRetryDelay)
	if next := retries.next(stuck); next != time.Second {
		t.Errorf("an attempt that is overdue is due after %s, want 1s", next)
	}
	if retries.take(other) {
		t.Error("an attempt was due for a mailbox that is new")
	}
	retries.setMissing(stuck, "no wheels")
	retries.setMissing(mcreconcile.Request{ClusterName: "unknown"}, "no gears")
	clock.Step(maxRetryDelay)
	if !retries.take(stuck) || retries.missing(stuck) != "no wheels" || retries.missing(other) != "" || len(retries.retries) != 2 {
		t.Errorf("kcp's message is not kept: %v", retries.retries)
	}
	retries.forget(stuck)
	if retries.take(stuck) || retries.next(stuck) != minRetryDelay {
		t.Error("a mailbox that is created again did not begin anew")
	}
}

func TestStuckConditionNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for missing, want := range map[string]string{
		"":                           "may bind both exports (see `synchub init`).",
		"no informer for the claim.": "kcp's message about its APIBinding: no informer for the claim. If that names an API of another export, some workspace must bind it first.",
	} {
		if got := stuckCondition("root:synchub:m", "Initializing", missing).Message; !strings.HasSuffix(got, want) {
			t.Errorf("with %q: %s", missing, got)
		}
	}
}
