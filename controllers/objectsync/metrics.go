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
	gosync "sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/metrics"
	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
)

var (
	syncDurations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "synchub_sync_duration_seconds",
		Help:    "Time to bring one object in sync, by resource, direction (down, up) and action.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	}, []string{"resource", "direction", "action"})
	syncActions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "synchub_sync_actions_total",
		Help: "Decisions about objects, by SyncTarget, resource, direction (down, up), action, cause and result (done, failed).",
	}, targetlabels.Names("resource", "direction", "action", "cause", "result"))
	failingObjects = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "synchub_sync_failing_objects",
		Help: "Objects that are not in sync until somebody acts, by SyncTarget, resource and reason.",
	}, targetlabels.Names("resource", "reason"))
	syncLatencies = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "synchub_sync_latency_seconds",
		Help: "Time from observing a change on one side until the other side acknowledged the resulting write, by SyncTarget, resource and direction (down, up, status).",
		// There is one histogram for each target, resource and direction, so the buckets are few.
		Buckets: []float64{0.005, 0.01, 0.025, 0.1, 0.5, 1, 5, 30},
	}, targetlabels.Names("resource", "direction"))
)

// Metrics that are computed from the running controllers at each scrape.
var (
	queueDepth = prometheus.NewDesc("synchub_sync_queue_depth",
		"Keys in the queue, including keys without a known change, by SyncTarget and resource.", targetlabels.Names("resource"), nil)
	pendingObjects = prometheus.NewDesc("synchub_sync_pending_objects",
		"Objects with changes that no pass has covered yet, also while the target is away, by SyncTarget and resource.", targetlabels.Names("resource"), nil)
	pendingSeconds = prometheus.NewDesc("synchub_sync_oldest_pending_seconds",
		"Age of the oldest pending change, by SyncTarget and resource; 0 if there is none.", targetlabels.Names("resource"), nil)

	unverifiedObjects = prometheus.NewDesc("synchub_sync_unverified_objects",
		"Objects of a target with the hub's label and a mark that names it, but that somebody else wrote, by SyncTarget and resource. They are left alone.", targetlabels.Names("resource"), nil)

	collector = metrics.New(collectQueueStats, queueDepth, pendingObjects, pendingSeconds, unverifiedObjects)
)

// Values of the label direction.
const (
	directionDown   = "down"
	directionUp     = "up"
	directionStatus = "status"
)

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector {
	return []prometheus.Collector{syncDurations, syncActions, failingObjects, syncLatencies, collector}
}

// controllerMetrics are the metrics of one controller. Controllers with the same labels share their series.
type controllerMetrics struct {
	labels    seriesLabels
	resource  string
	actions   *prometheus.CounterVec
	failing   *prometheus.GaugeVec
	latencies prometheus.ObserverVec

	lock gosync.Mutex
	// failures is the number of objects that the controller has added to failing, by reason.
	failures map[string]float64
}

// seriesLabels are the labels of the series about one SyncTarget. An empty resource stands for the sum of all resources:
// Prometheus drops empty labels.
type seriesLabels struct {
	syncTarget types.UID
	resource   string
}

// newMetrics returns the metrics of a controller. aggregate makes all controllers of the SyncTarget share one series per metric.
func newMetrics(syncTarget types.UID, resource plan.Resource, aggregate bool) *controllerMetrics {
	shared := seriesLabels{syncTarget: syncTarget, resource: resource.GroupResource().String()}
	if aggregate {
		shared.resource = ""
	}
	labels := targetlabels.Labels(syncTarget)
	labels["resource"] = shared.resource
	return &controllerMetrics{
		labels: shared, resource: resource.GroupResource().String(), failures: map[string]float64{},
		actions: syncActions.MustCurryWith(labels), failing: failingObjects.MustCurryWith(labels), latencies: syncLatencies.MustCurryWith(labels),
	}
}

func (m *controllerMetrics) observeReconcile(outcome outcome, duration time.Duration, err error) {
	direction, action := outcome.direction(), outcome.decision.Action
	result := "done"
	if err != nil {
		result = "failed"
	}
	if action != plan.None {
		syncDurations.WithLabelValues(m.resource, direction, string(action)).Observe(duration.Seconds())
	}
	m.actions.WithLabelValues(direction, string(action), string(outcome.decision.Cause), result).Inc()
}

// observeLatency records the time since the source changed. Without such a change the pass is a repair, or follows from a config,
// and has no latency.
func (m *controllerMetrics) observeLatency(outcome outcome, pending pendingChange, now time.Time) {
	direction, since := directionDown, pending.mailbox
	switch {
	case outcome.statusReturned:
		direction, since = directionStatus, pending.target
	case !outcome.decision.Action.Writes():
		return
	case outcome.up:
		direction, since = directionUp, pending.target
	}
	if !since.IsZero() {
		m.latencies.WithLabelValues(direction).Observe(now.Sub(since).Seconds())
	}
}

// failureChanged is called when the reason of an object's failure changes; "" means no failure.
func (m *controllerMetrics) failureChanged(before, now string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if before != "" {
		m.failing.WithLabelValues(before).Dec()
		m.failures[before]--
	}
	if now != "" {
		m.failing.WithLabelValues(now).Inc()
		m.failures[now]++
	}
}

// seriesUsers counts the running controllers that share each series. The last one deletes the series.
var seriesUsers = struct {
	gosync.Mutex
	count map[seriesLabels]int
}{count: map[seriesLabels]int{}}

// use keeps the series until the caller calls release. release subtracts this controller's failures, and deletes the series if no
// other controller uses them.
func (m *controllerMetrics) use() (release func()) {
	seriesUsers.Lock()
	defer seriesUsers.Unlock()
	seriesUsers.count[m.labels]++
	return m.release
}

func (m *controllerMetrics) release() {
	m.lock.Lock()
	for reason, objects := range m.failures {
		m.failing.WithLabelValues(reason).Sub(objects)
	}
	m.failures = map[string]float64{}
	m.lock.Unlock()
	seriesUsers.Lock()
	defer seriesUsers.Unlock()
	if seriesUsers.count[m.labels]--; seriesUsers.count[m.labels] > 0 {
		return
	}
	delete(seriesUsers.count, m.labels)
	series := prometheus.Labels{targetlabels.UID: string(m.labels.syncTarget), "resource": m.labels.resource}
	syncActions.DeletePartialMatch(series)
	failingObjects.DeletePartialMatch(series)
	syncLatencies.DeletePartialMatch(series)
}

// queueStats are the sums over the controllers that share a series.
type queueStats struct {
	depth, pending int
	since          time.Time
	now            time.Time
	unverified     int
}

func collectQueueStats(running []*Controller, metrics chan<- prometheus.Metric) {
	readings := map[seriesLabels]queueStats{}
	for _, controller := range running {
		key := controller.reporter.metrics.labels
		stats := readings[key]
		controller.addQueueStats(&stats)
		readings[key] = stats
	}
	for key, stats := range readings {
		gauge := func(described *prometheus.Desc, value float64) {
			metrics <- prometheus.MustNewConstMetric(described, prometheus.GaugeValue, value, targetlabels.Values(key.syncTarget, key.resource)...)
		}
		gauge(queueDepth, float64(stats.depth))
		gauge(pendingObjects, float64(stats.pending))
		age := 0.0
		if !stats.since.IsZero() {
			age = stats.now.Sub(stats.since).Seconds()
		}
		gauge(pendingSeconds, age)
		if stats.unverified > 0 {
			gauge(unverifiedObjects, float64(stats.unverified))
		}
	}
}

// addQueueStats adds the controller's figures.
func (c *Controller) addQueueStats(to *queueStats) {
	to.depth += c.QueueLength()
	pending, since := c.enqueuer.changes.count()
	to.pending += pending
	if to.since.IsZero() || pending > 0 && since.Before(to.since) {
		to.since = since
	}
	for _, api := range c.target.apis {
		to.unverified += api.countUnverified()
	}
	to.now = c.Clock.Now()
}
