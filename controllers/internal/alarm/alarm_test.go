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

package alarm_test

import (
	"context"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/internal/alarm"
)

const patience = 3 * time.Minute

// sleeping starts a sleep and returns a channel that is closed when it ends.
func sleeping(ctx context.Context, of *alarm.Alarm, limit time.Duration) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		of.Sleep(ctx, limit)
	}()
	return ended
}

func ends(t *testing.T, ended <-chan struct{}, why string) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatalf("it sleeps on though %s", why)
	}
}

func TestAlarm(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	tested := alarm.New(clock)
	tested.Ring()
	tested.Ring()
	ends(t, sleeping(t.Context(), tested, 0), "it rang before")

	timed := sleeping(t.Context(), tested, time.Minute)
	for !clock.HasWaiters() {
		select {
		case <-timed:
			t.Fatal("one ring ended two sleeps")
		case <-time.After(time.Millisecond):
		}
	}
	clock.Step(time.Minute)
	ends(t, timed, "the time is over")

	ctx, cancel := context.WithCancel(t.Context())
	endless := sleeping(ctx, tested, 0)
	cancel()
	ends(t, endless, "its context has ended")

	rung := sleeping(t.Context(), tested, 0)
	tested.Ring()
	ends(t, rung, "it rang")
}
