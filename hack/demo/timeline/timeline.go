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

// Package timeline records the way of Deployments from the workspaces of teams to clusters, and of their status back: the
// stages that each Deployment has reached, and the duration of each leg. [Log] collects the observations, and [Table] and
// [Line] format them. The package starts no watches; the demo calls [Log.Record].
package timeline

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// Stage is a point in the sync of a Deployment.
type Stage int

// The stages, in order.
const (
	// Created: the team has written the Deployment.
	Created Stage = iota
	// Applied: the cluster has the Deployment.
	Applied
	// Available: the Deployment is Available on the cluster.
	Available
	// Returned: the Deployment is Available in the mailbox too.
	Returned

	stages = int(Returned) + 1
)

// String describes the stage, as the end of a sentence about a Deployment.
func (s Stage) String() string {
	switch s {
	case Created:
		return "written in the workspace"
	case Applied:
		return "applied on the cluster"
	case Available:
		return "Available on the cluster"
	case Returned:
		return "status back in the mailbox"
	default:
		return fmt.Sprintf("stage %d", int(s))
	}
}

// Route is the way of a team's Deployment to one cluster.
type Route struct {
	Team, Cluster string
}

// String names the team and the cluster.
func (r Route) String() string { return fmt.Sprintf("%s on %s", r.Team, r.Cluster) }

// Timeline contains the observations of one route.
type Timeline struct {
	Route
	at [stages]time.Time
}

// Reached returns the number of stages that were observed without a gap. Each side has its own watch, so a later
// stage may be observed first. It counts once the earlier stages have been observed.
func (j Timeline) Reached() int {
	for stage, at := range j.at {
		if at.IsZero() {
			return stage
		}
	}
	return stages
}

// At returns the time at which a stage was observed, or zero.
func (j Timeline) At(stage Stage) time.Time { return j.at[stage] }

// Leg returns the time from the previous stage to the given one. ok is false for the first stage, and while one of
// the two times is unknown. Leg is never negative, although two sides may observe nearly simultaneous events in
// either order.
func (j Timeline) Leg(stage Stage) (leg time.Duration, ok bool) {
	if stage <= Created || j.at[stage].IsZero() || j.at[stage-1].IsZero() {
		return 0, false
	}
	return max(0, j.at[stage].Sub(j.at[stage-1])), true
}

// Log contains the timelines of all routes. It is safe for concurrent use.
type Log struct {
	mu        sync.Mutex
	timelines []Timeline
	done      chan struct{}
}

// NewLog returns a log for the routes, without observations.
func NewLog(routes ...Route) *Log {
	log := &Log{done: make(chan struct{})}
	for _, route := range routes {
		log.timelines = append(log.timelines, Timeline{Route: route})
	}
	log.closeIfDone()
	return log
}

// Record notes the first observation of a stage. It returns the stages that the timeline has thereby reached, in
// order. A repeated stage or an unknown route changes nothing.
func (l *Log) Record(route Route, stage Stage, at time.Time) (timeline Timeline, reached []Stage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.timelines, func(j Timeline) bool { return j.Route == route })
	if i < 0 || !l.timelines[i].at[stage].IsZero() {
		return Timeline{}, nil
	}
	before := l.timelines[i].Reached()
	l.timelines[i].at[stage] = at
	for next := before; next < l.timelines[i].Reached(); next++ {
		reached = append(reached, Stage(next))
	}
	l.closeIfDone()
	return l.timelines[i], reached
}

// Timelines returns the current timelines, in the order of the routes passed to NewLog.
func (l *Log) Timelines() []Timeline {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.timelines)
}

// Done returns a channel that is closed when all timelines have reached the last stage.
func (l *Log) Done() <-chan struct{} { return l.done }

// closeIfDone closes done if all timelines are complete. Record calls it after every change; no change follows the one
// that completes the last timeline.
func (l *Log) closeIfDone() {
	if !slices.ContainsFunc(l.timelines, func(j Timeline) bool { return j.Reached() < stages }) {
		close(l.done)
	}
}

// Missing describes the missing stages, one line per incomplete timeline.
func (l *Log) Missing() []string {
	var lines []string
	for _, j := range l.Timelines() {
		if next := j.Reached(); next < stages {
			lines = append(lines, fmt.Sprintf("%s: not %s", j.Route, Stage(next)))
		}
	}
	return lines
}

// LongestReturn returns the longest time of a status back to its mailbox.
func (l *Log) LongestReturn() time.Duration {
	var longest time.Duration
	for _, j := range l.Timelines() {
		if leg, ok := j.Leg(Returned); ok {
			longest = max(longest, leg)
		}
	}
	return longest
}

const (
	clockFormat = "15:04:05.000"
	// waiting is the content of the cell for the next stage.
	waiting = "…"
)

// Table formats all timelines, one per line below the header. The result ends without a line break.
func Table(timelines []Timeline) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TEAM\tCLUSTER\tWRITTEN\tAPPLIED\tAVAILABLE\tSTATUS BACK")
	for _, j := range timelines {
		cells := []string{j.Team, j.Cluster}
		for stage := range stages {
			cells = append(cells, cell(j, Stage(stage)))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush() // a strings.Builder never fails
	return strings.TrimRight(text.String(), "\n")
}

func cell(j Timeline, stage Stage) string {
	switch {
	case int(stage) > j.Reached():
		return ""
	case int(stage) == j.Reached():
		return waiting
	case stage == Created:
		return j.At(Created).Format(clockFormat)
	default:
		leg, _ := j.Leg(stage)
		return Milliseconds(leg)
	}
}

// Line describes one stage that a timeline has reached, for an output that cannot be redrawn.
func Line(j Timeline, stage Stage) string {
	line := fmt.Sprintf("%s  %-8s %-8s %s", j.At(stage).Format(clockFormat), j.Team, j.Cluster, stage)
	if leg, ok := j.Leg(stage); ok {
		line += " after " + Milliseconds(leg)
	}
	return line
}

// Milliseconds formats a duration in whole milliseconds, and a shorter one as "<1ms".
func Milliseconds(d time.Duration) string {
	if d < time.Millisecond {
		return "<1ms"
	}
	return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
}
