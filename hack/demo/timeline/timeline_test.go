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

package timeline_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/synchub-dev/synchub/hack/demo/timeline"
)

var (
	begin  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first  = timeline.Route{Team: "shop", Cluster: "florin"}
	second = timeline.Route{Team: "bank", Cluster: "guilder"}
)

func after(milliseconds int) time.Time {
	return begin.Add(time.Duration(milliseconds) * time.Millisecond)
}

// sighting is one call of Record, and the stages that it must return.
type sighting struct {
	stage   timeline.Stage
	at      int
	reached []timeline.Stage
}

func TestRecord(t *testing.T) {
	for name, test := range map[string]struct {
		sightings []sighting
		legs      map[timeline.Stage]time.Duration
	}{
		"in order": {
			sightings: []sighting{
				{timeline.Created, 0, []timeline.Stage{timeline.Created}},
				{timeline.Applied, 40, []timeline.Stage{timeline.Applied}},
				{timeline.Available, 240, []timeline.Stage{timeline.Available}},
				{timeline.Returned, 245, []timeline.Stage{timeline.Returned}},
			},
			legs: map[timeline.Stage]time.Duration{
				timeline.Applied:   40 * time.Millisecond,
				timeline.Available: 200 * time.Millisecond,
				timeline.Returned:  5 * time.Millisecond,
			},
		},
		"the first sighting counts": {
			sightings: []sighting{
				{timeline.Created, 0, []timeline.Stage{timeline.Created}},
				{timeline.Applied, 40, []timeline.Stage{timeline.Applied}},
				{timeline.Applied, 90, nil},
			},
			legs: map[timeline.Stage]time.Duration{timeline.Applied: 40 * time.Millisecond},
		},
		"the cluster is seen before the create call returns": {
			sightings: []sighting{
				{timeline.Applied, 3, nil},
				{timeline.Created, 4, []timeline.Stage{timeline.Created, timeline.Applied}},
			},
			legs: map[timeline.Stage]time.Duration{timeline.Applied: 0},
		},
		"the mailbox is seen before the cluster": {
			sightings: []sighting{
				{timeline.Created, 0, []timeline.Stage{timeline.Created}},
				{timeline.Returned, 70, nil},
				{timeline.Applied, 30, []timeline.Stage{timeline.Applied}},
				{timeline.Available, 71, []timeline.Stage{timeline.Available, timeline.Returned}},
			},
			legs: map[timeline.Stage]time.Duration{
				timeline.Applied:   30 * time.Millisecond,
				timeline.Available: 41 * time.Millisecond,
				timeline.Returned:  0,
			},
		},
		"nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			log := timeline.NewLog(first)
			for _, s := range test.sightings {
				if _, reached := log.Record(first, s.stage, after(s.at)); !slices.Equal(reached, s.reached) {
					t.Errorf("%v at %d: reached %v, want %v", s.stage, s.at, reached, s.reached)
				}
			}
			j := log.Timelines()[0]
			for _, stage := range []timeline.Stage{timeline.Created, timeline.Applied, timeline.Available, timeline.Returned} {
				leg, ok := j.Leg(stage)
				want, wantOK := test.legs[stage]
				if leg != want || ok != wantOK {
					t.Errorf("leg to %v: %v, %v, want %v, %v", stage, leg, ok, want, wantOK)
				}
			}
		})
	}
}

func TestLogIsDoneWithTheLastStageOfTheLastTimeline(t *testing.T) {
	log := timeline.NewLog(first, second)
	// One timeline ends with its last stage, the other with an earlier stage that arrived late.
	for _, s := range []struct {
		route timeline.Route
		stage timeline.Stage
	}{
		{first, timeline.Created}, {first, timeline.Applied}, {first, timeline.Available}, {first, timeline.Returned},
		{second, timeline.Created}, {second, timeline.Applied}, {second, timeline.Returned},
		{timeline.Route{Team: "unknown"}, timeline.Created},
	} {
		log.Record(s.route, s.stage, begin)
		if isDone(log) {
			t.Fatalf("done with %v of %v", s.stage, s.route)
		}
	}
	if missing, want := log.Missing(), []string{"bank on guilder: not Available on the cluster"}; !slices.Equal(missing, want) {
		t.Errorf("missing %q, want %q", missing, want)
	}
	log.Record(second, timeline.Available, begin)
	log.Record(second, timeline.Available, begin)
	if !isDone(log) {
		t.Error("not done with all stages of both")
	}
	if missing := log.Missing(); len(missing) > 0 {
		t.Errorf("missing %q in the end", missing)
	}
}

func isDone(log *timeline.Log) bool {
	select {
	case <-log.Done():
		return true
	default:
		return false
	}
}

func TestLongestReturn(t *testing.T) {
	log := timeline.NewLog(first, second)
	if longest := log.LongestReturn(); longest != 0 {
		t.Errorf("%v before anything returned", longest)
	}
	log.Record(first, timeline.Available, after(0))
	log.Record(first, timeline.Returned, after(9))
	log.Record(second, timeline.Available, after(100))
	log.Record(second, timeline.Returned, after(104))
	if longest, want := log.LongestReturn(), 9*time.Millisecond; longest != want {
		t.Errorf("%v, want %v", longest, want)
	}
}

func TestEveryStageIsReachedOnceHoweverMany(t *testing.T) {
	log := timeline.NewLog(first)
	var wait sync.WaitGroup
	var mu sync.Mutex
	count := map[timeline.Stage]int{}
	for range 8 {
		for stage := timeline.Created; stage <= timeline.Returned; stage++ {
			wait.Go(func() {
				_, reached := log.Record(first, stage, begin)
				mu.Lock()
				defer mu.Unlock()
				for _, stage := range reached {
					count[stage]++
				}
			})
		}
	}
	wait.Wait()
	<-log.Done()
	for stage := timeline.Created; stage <= timeline.Returned; stage++ {
		if count[stage] != 1 {
			t.Errorf("%v was reached %d times", stage, count[stage])
		}
	}
}
