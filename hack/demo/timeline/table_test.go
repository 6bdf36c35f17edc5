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
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/synchub-dev/synchub/hack/demo/timeline"
)

func TestTable(t *testing.T) {
	for name, test := range map[string]struct {
		record func(*timeline.Log)
		want   string
	}{
		"before anything": {
			record: func(*timeline.Log) {},
			want: `
TEAM  CLUSTER  WRITTEN  APPLIED  AVAILABLE  STATUS BACK
shop  florin   …
bank  guilder  …`,
		},
		"under way": {
			record: func(log *timeline.Log) {
				log.Record(first, timeline.Created, after(0))
				log.Record(first, timeline.Applied, after(43))
				log.Record(second, timeline.Created, after(7))
				log.Record(second, timeline.Returned, after(8)) // not shown before the earlier stages
			},
			want: `
TEAM  CLUSTER  WRITTEN       APPLIED  AVAILABLE  STATUS BACK
shop  florin   03:04:05.000  43ms     …
bank  guilder  03:04:05.007  …`,
		},
		"in the end": {
			record: func(log *timeline.Log) {
				for stage, at := range []int{0, 43, 1243, 1250} {
					log.Record(first, timeline.Stage(stage), after(at))
					log.Record(second, timeline.Stage(stage), after(at/1000))
				}
			},
			want: `
TEAM  CLUSTER  WRITTEN       APPLIED  AVAILABLE  STATUS BACK
shop  florin   03:04:05.000  43ms     1200ms     7ms
bank  guilder  03:04:05.000  <1ms     1ms        <1ms`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := timeline.NewLog(first, second)
			test.record(log)
			if got := trimmed(timeline.Table(log.Timelines())); got != strings.TrimPrefix(test.want, "\n") {
				t.Errorf("got\n%s\nwant%s", got, test.want)
			}
		})
	}
}

// trimmed removes the padding at the end of each line.
func trimmed(table string) string {
	lines := strings.Split(table, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// A line wider than the terminal could not be redrawn in place.
func TestTableFitsATerminal(t *testing.T) {
	route := timeline.Route{Team: "shop", Cluster: "guilder"}
	log := timeline.NewLog(route)
	for stage, at := range []int{0, 10_000, 100_000, 110_000} {
		log.Record(route, timeline.Stage(stage), after(at))
	}
	for line := range strings.Lines(timeline.Table(log.Timelines())) {
		if width := utf8.RuneCountInString(strings.TrimRight(line, "\n")); width > 80 {
			t.Errorf("%d columns: %s", width, line)
		}
	}
}

func TestLine(t *testing.T) {
	log := timeline.NewLog(first)
	log.Record(first, timeline.Created, after(0))
	log.Record(first, timeline.Applied, after(43))
	j := log.Timelines()[0]
	for stage, want := range map[timeline.Stage]string{
		timeline.Created: "03:04:05.000  shop     florin   written in the workspace",
		timeline.Applied: "03:04:05.043  shop     florin   applied on the cluster after 43ms",
	} {
		if got := timeline.Line(j, stage); got != want {
			t.Errorf("got\n%q, want\n%q", got, want)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for duration, want := range map[time.Duration]string{
		0:                       "<1ms",
		999 * time.Microsecond:  "<1ms",
		time.Millisecond:        "1ms",
		1500 * time.Microsecond: "2ms",
		2 * time.Second:         "2000ms",
	} {
		if got := timeline.Milliseconds(duration); got != want {
			t.Errorf("%v: %q, want %q", duration, got, want)
		}
	}
}
