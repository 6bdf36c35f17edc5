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

package status

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// readyTarget returns a SyncTarget that the hub has reported at a time, with failed objects.
func readyTarget(name string, reported time.Time, failed int32) *edgev2alpha1.SyncTarget {
	return &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))}, Status: edgev2alpha1.SyncTargetStatus{
		Conditions:              []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready"}},
		LastSyncerHeartbeatTime: &metav1.Time{Time: reported},
		PendingSince:            &metav1.Time{Time: start.Add(-time.Minute)},
		Counts:                  &edgev2alpha1.TargetCounts{Synced: 4, Failed: failed},
	}}
}

func fleetOf(syncTargets ...*edgev2alpha1.SyncTarget) *fleet {
	made := &fleet{changed: true}
	for _, one := range syncTargets {
		made.list.Items = append(made.list.Items, *one)
	}
	return made
}

// A pipe gets a picture after a change of the state, and none if only ages differ.
func TestPicture(t *testing.T) {
	for name, isTerminal := range map[string]bool{"a terminal": true, "a pipe": false} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			clock := clocktesting.NewFakeClock(start)
			shown := &picture{out: &out, isTerminal: isTerminal, all: true, clock: clock}
			seen := fleetOf(readyTarget("florin", start, 0))
			for _, step := range []struct {
				what    string
				after   time.Duration
				change  *edgev2alpha1.SyncTarget
				onAPipe bool
				want    string
			}{
				{"the first", 0, nil, true, "counted up to 0s ago"},
				{"time passes", 30 * time.Second, nil, false, "counted up to 30s ago"},
				{"a heartbeat", 30 * time.Second, readyTarget("florin", start.Add(time.Minute), 0), false, "counted up to 0s ago"},
				{"an object fails", time.Second, readyTarget("florin", start.Add(time.Minute), 2), true, "2 failed"},
				{"the hub is silent", 4 * time.Minute, nil, true, "1 cluster: 0 ready, 1 unknown."},
				{"it stays silent", time.Minute, nil, false, "No hub has written anything for 5m"},
			} {
				clock.Step(step.after)
				if step.change != nil {
					_ = seen.apply(watch.Modified, step.change)
				}
				out.Reset()
				if err := shown.update(seen.take(true)); err != nil {
					t.Fatal(err)
				}
				switch {
				case !isTerminal && !step.onAPipe:
					if out.Len() > 0 {
						t.Errorf("%s: it prints\n%s", step.what, out.String())
					}
				case !strings.Contains(out.String(), step.want) || strings.HasPrefix(out.String(), clearScreen) != isTerminal:
					t.Errorf("%s: want %q, got\n%s", step.what, step.want, out.String())
				}
			}
		})
	}
}

// screen is a terminal that another goroutine reads.
type screen struct {
	mutex sync.Mutex
	bytes.Buffer
}

func (s *screen) Write(text []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.Buffer.Write(text)
}

func (s *screen) text() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.String()
}

// Without any change of a SyncTarget, the picture still gets older, and shows that the hub is silent.
func TestFollowShowsTime(t *testing.T) {
	clock, out, ended := clocktesting.NewFakeClock(start), &screen{}, make(chan error)
	shown := &picture{out: out, isTerminal: true, clock: clock}
	finished := make(chan error)
	go func() { finished <- shown.follow(fleetOf(readyTarget("florin", start, 0)), ended) }()
	expect := func(text string) {
		t.Helper()
		suite.WaitUntil(t, text, func() bool { return strings.Contains(out.text(), text) })
	}
	expect("counted up to 0s ago")
	suite.WaitUntil(t, "it waits", clock.HasWaiters)
	clock.Step(redrawInterval)
	clock.Step(agesInterval)
	expect("counted up to 11s ago")
	clock.Step(3 * time.Minute)
	expect("HubSilent: No hub has written anything for 3m11s")
	errEnded := errors.New("the watch has ended")
	ended <- errEnded
	if err := <-finished; !errors.Is(err, errEnded) {
		t.Errorf("got %v", err)
	}
}

func TestCountsOfClusters(t *testing.T) {
	fleet := fleetOf(readyTarget("well", start, 0))
	for range maxStatusRows + 1 {
		fleet.list.Items = append(fleet.list.Items, *readyTarget("failing", start, 1))
	}
	var out bytes.Buffer
	if err := Print(&out, rowsOf(&fleet.list, start), false, start); err != nil {
		t.Fatal(err)
	}
	if want := "\n1 more needs attention; see them with --all.\n\n1 is well.\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("want %q, got\n%s", want, out.String())
	}
}
