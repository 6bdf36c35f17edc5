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

// Package timeline keeps account of Deployments on their way from a mailbox to a target and of their status on its way
// back: which stage each has reached, and how long each leg took.
package timeline

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Stage is a point on the way of a Deployment.
type Stage int

// The stages in their order.
const (
	// Created: the mailbox has the Deployment.
	Created Stage = iota
	// Applied: the target has it.
	Applied
	// Available: the target says that it is Available.
	Available
	// Returned: the mailbox says so too.
	Returned

	stages = int(Returned) + 1
)

// String says what happened, as the end of a sentence about a Deployment.
func (s Stage) String() string {
	switch s {
	case Created:
		return "created in the mailbox"
	case Applied:
		return "applied on the target"
	case Available:
		return "Available on the target"
	case Returned:
		return "status back in the mailbox"
	default:
		return fmt.Sprintf("stage %d", int(s))
	}
}

// Route is the way of one Deployment to one target.
type Route struct {
	Target, Namespace, Name string
}

// String names the Deployment and where it goes.
func (r Route) String() string { return fmt.Sprintf("%s/%s of %s", r.Namespace, r.Name, r.Target) }

// Journey is what is known of one route.
type Journey struct {
	Route
	at [stages]time.Time
}

// Reached is the number of stages that are known without a gap. News of a later stage may arrive first, since each side
// is watched by itself; it counts once the stages before it are known.
func (j Journey) Reached() int {
	for stage, at := range j.at {
		if at.IsZero() {
			return stage
		}
	}
	return stages
}

// At is when a stage was seen; zero if it was not.
func (j Journey) At(stage Stage) time.Time { return j.at[stage] }

// Leg is how long the way to a stage took from the stage before it; ok is false while one of them is unknown, and for the
// first stage. It is never negative: what is seen on two sides at almost the same moment may be seen in either order.
func (j Journey) Leg(stage Stage) (leg time.Duration, ok bool) {
	if stage <= Created || j.at[stage].IsZero() || j.at[stage-1].IsZero() {
		return 0, false
	}
	return max(0, j.at[stage].Sub(j.at[stage-1])), true
}

// Log holds the journeys of all routes. It may be used concurrently.
type Log struct {
	mu       sync.Mutex
	journeys []Journey
	done     chan struct{}
}

// NewLog returns a log for the routes, of which no stage is known yet.
func NewLog(routes ...Route) *Log {
	log := &Log{done: make(chan struct{})}
	for _, route := range routes {
		log.journeys = append(log.journeys, Journey{Route: route})
	}
	log.closeIfDone()
	return log
}

// Record notes when a stage was first seen and returns the stages that the journey has thereby reached, in order. A
// stage that is known already, and a route that is not followed, change nothing.
func (l *Log) Record(route Route, stage Stage, at time.Time) (journey Journey, reached []Stage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.journeys, func(j Journey) bool { return j.Route == route })
	if i < 0 || !l.journeys[i].at[stage].IsZero() {
		return Journey{}, nil
	}
	before := l.journeys[i].Reached()
	l.journeys[i].at[stage] = at
	for next := before; next < l.journeys[i].Reached(); next++ {
		reached = append(reached, Stage(next))
	}
	l.closeIfDone()
	return l.journeys[i], reached
}

// Journeys returns all journeys as they stand, in the order in which the log was given their routes.
func (l *Log) Journeys() []Journey {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.journeys)
}

// Done is closed when all journeys have reached the last stage.
func (l *Log) Done() <-chan struct{} { return l.done }

// closeIfDone is called after every change, of which none follows the one that completes the last journey.
func (l *Log) closeIfDone() {
	if !slices.ContainsFunc(l.journeys, func(j Journey) bool { return j.Reached() < stages }) {
		close(l.done)
	}
}

// Missing says what did not happen, one line per journey that is under way.
func (l *Log) Missing() []string {
	var lines []string
	for _, j := range l.Journeys() {
		if next := j.Reached(); next < stages {
			lines = append(lines, fmt.Sprintf("%s: not %s", j.Route, Stage(next)))
		}
	}
	return lines
}

// LongestReturn is the longest leg of a status back to its mailbox.
func (l *Log) LongestReturn() time.Duration {
	var longest time.Duration
	for _, j := range l.Journeys() {
		if leg, ok := j.Leg(Returned); ok {
			longest = max(longest, leg)
		}
	}
	return longest
}
