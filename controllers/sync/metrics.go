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
)

var (
	durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "synchub_sync_duration_seconds",
		Help:    "Time to bring one object in step, by resource, direction (down, up) and action.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	}, []string{"resource", "direction", "action"})
	actions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "synchub_sync_actions_total",
		Help: "Actions on objects, by SyncTarget, resource, direction (down, up), action and result (done, failed).",
	}, []string{"sync_target", "resource", "direction", "action", "result"})
	failing = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "synchub_sync_failing_objects",
		Help: "Objects that are not in step until somebody acts, by SyncTarget, resource and reason.",
	}, []string{"sync_target", "resource", "reason"})
)

// Values of the label direction.
const (
	directionDown = "down"
	directionUp   = "up"
)

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{durations, actions, failing} }

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
	actions.WithLabelValues(m.syncTarget, m.resource, direction, string(action), result).Inc()
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
}
