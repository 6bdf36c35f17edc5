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

package sync

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/provider/gauges"
)

var (
	durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "synchub_sync_duration_seconds",
		Help:    "Time to bring one object in step, by resource, direction (down, up) and action.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	}, []string{"resource", "direction", "action"})
	actions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "synchub_sync_actions_total",
		Help: "Decisions about objects, by SyncTarget, resource, direction (down, up), action, cause and result (done, failed).",
	}, []string{"sync_target", "resource", "direction", "action", "cause", "result"})
	failing = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "synchub_sync_failing_objects",
		Help: "Objects that are not in step until somebody acts, by SyncTarget, resource and reason.",
	}, []string{"sync_target", "resource", "reason"})
	latencies = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "synchub_sync_latency_seconds",
		Help: "Time from seeing a change on one side until the other side acknowledged what it led to, by SyncTarget, resource and direction (down, up, status).",
		// Few, since there is one histogram per target, resource and direction.
		Buckets: []float64{0.005, 0.01, 0.025, 0.1, 0.5, 1, 5, 30},
	}, []string{"sync_target", "resource", "direction"})
)

// What is read off the controllers that run.
var (
	queueDepth = prometheus.NewDesc("synchub_sync_queue_depth",
		"Objects in the queue, those included that are only looked at again, by SyncTarget and resource.", []string{"sync_target", "resource"}, nil)
	waitingObjects = prometheus.NewDesc("synchub_sync_waiting_objects",
		"Objects that changed and were not tried since, or not since the target is away, by SyncTarget and resource.", []string{"sync_target", "resource"}, nil)
	waitingSeconds = prometheus.NewDesc("synchub_sync_waiting_oldest_seconds",
		"For how long the first of those waits, by SyncTarget and resource; 0 if none does.", []string{"sync_target", "resource"}, nil)

	unverifiedObjects = prometheus.NewDesc("synchub_sync_unverified_objects",
		"Objects of a target with the hub's label and a mark that names it, but that somebody else wrote, by SyncTarget and resource. They are left alone.", []string{"sync_target", "resource"}, nil)

	controllers = gauges.New(readControllers, queueDepth, waitingObjects, waitingSeconds, unverifiedObjects)
)

// Values of the label direction.
const (
	directionDown   = "down"
	directionUp     = "up"
	directionStatus = "status"
)

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector {
	return []prometheus.Collector{durations, actions, failing, latencies, controllers}
}

// metrics are the series of one controller.
type metrics struct {
	syncTarget, resource string
}

func newMetrics(syncTarget types.UID, resource Resource) *metrics {
	return &metrics{syncTarget: string(syncTarget), resource: resource.GroupResource().String()}
}

func (m *metrics) reconciled(outcome outcome, duration time.Duration, err error) {
	direction, action := directionDown, outcome.decision.Action
	if outcome.up {
		direction = directionUp
	}
	result := "done"
	if err != nil {
		result = "failed"
	}
	if action != decide.None {
		durations.WithLabelValues(m.resource, direction, string(action)).Observe(duration.Seconds())
	}
	actions.WithLabelValues(m.syncTarget, m.resource, direction, string(action), string(outcome.decision.Cause), result).Inc()
}

// acknowledged is called when what was decided about an object has been done. How long it took counts from the change that
// was seen on the side from which it comes, if there was one: else it is a repair, or follows a config.
func (m *metrics) acknowledged(outcome outcome, seen change, now time.Time) {
	direction, since := directionDown, seen.mailbox
	switch {
	case outcome.returned:
		direction, since = directionStatus, seen.target
	case !outcome.decision.Action.Writes():
		return
	case outcome.up:
		direction, since = directionUp, seen.target
	}
	if !since.IsZero() {
		latencies.WithLabelValues(m.syncTarget, m.resource, direction).Observe(now.Sub(since).Seconds())
	}
}

// failed is called when the reason for which an object fails has changed; "" stands for none.
func (m *metrics) failed(before, now string) {
	if before != "" {
		failing.WithLabelValues(m.syncTarget, m.resource, before).Dec()
	}
	if now != "" {
		failing.WithLabelValues(m.syncTarget, m.resource, now).Inc()
	}
}

// remove drops the series that are this controller's alone.
func (m *metrics) remove() {
	series := prometheus.Labels{"sync_target": m.syncTarget, "resource": m.resource}
	actions.DeletePartialMatch(series)
	failing.DeletePartialMatch(series)
	latencies.DeletePartialMatch(series)
}

// reading is what is read off the controllers of a target and resource.
type reading struct {
	depth, waiting int
	since          time.Time
	now            time.Time
	unverified     int
}

func readControllers(running []*Controller, metrics chan<- prometheus.Metric) {
	type pair struct{ syncTarget, resource string }
	readings := map[pair]reading{}
	for _, controller := range running {
		about := pair{controller.metrics.syncTarget, controller.metrics.resource}
		read := readings[about]
		controller.read(&read)
		readings[about] = read
	}
	for about, read := range readings {
		gauge := func(described *prometheus.Desc, value float64) {
			metrics <- prometheus.MustNewConstMetric(described, prometheus.GaugeValue, value, about.syncTarget, about.resource)
		}
		gauge(queueDepth, float64(read.depth))
		gauge(waitingObjects, float64(read.waiting))
		age := 0.0
		if !read.since.IsZero() {
			age = read.now.Sub(read.since).Seconds()
		}
		gauge(waitingSeconds, age)
		if read.unverified > 0 {
			gauge(unverifiedObjects, float64(read.unverified))
		}
	}
}

// read adds what there is to read off a controller.
func (c *Controller) read(to *reading) {
	to.depth += c.Backlog()
	waiting, since := c.pending.count()
	to.waiting += waiting
	if to.since.IsZero() || waiting > 0 && since.Before(to.since) {
		to.since = since
	}
	to.unverified += c.unverified()
	to.now = c.Clock.Now()
}
