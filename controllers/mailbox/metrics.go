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
	"github.com/prometheus/client_golang/prometheus"

	"github.com/synchub-dev/synchub/provider/metrics"
)

var (
	refusedSyncTargets = prometheus.NewDesc("synchub_sync_targets_over_quota",
		"SyncTargets without a mailbox, because their inventory workspace has reached the limit of mailboxes.", nil, nil)
	creations = prometheus.NewDesc("synchub_mailbox_creations",
		"SyncTargets that need a mailbox: waiting for their turn, or creating while kcp initializes the workspace.", []string{"state"}, nil)
	creationSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "synchub_mailbox_creation_seconds",
		Help:    "Time from the moment at which a SyncTarget needs a mailbox until the mailbox is ready, the time in the queue included.",
		Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 900},
	})
)

// activeQuotas and activeLimiters collect metrics of started components: none on a replica that is not the
// leader.
var (
	activeQuotas   = metrics.New(collectQuotas, refusedSyncTargets)
	activeLimiters = metrics.New(collectLimiters, creations)
)

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector {
	return []prometheus.Collector{activeQuotas, activeLimiters, creationSeconds}
}

func collectQuotas(started []*Quota, metrics chan<- prometheus.Metric) {
	refused := 0
	for _, quota := range started {
		refused += quota.countRefused()
	}
	if len(started) > 0 {
		metrics <- prometheus.MustNewConstMetric(refusedSyncTargets, prometheus.GaugeValue, float64(refused))
	}
}

func collectLimiters(started []*creationLimiter, metrics chan<- prometheus.Metric) {
	if len(started) == 0 {
		return
	}
	counts := map[string]int{"waiting": 0, "creating": 0}
	for _, limiter := range started {
		waiting, creating := limiter.counts()
		counts["waiting"], counts["creating"] = counts["waiting"]+waiting, counts["creating"]+creating
	}
	for state, count := range counts {
		metrics <- prometheus.MustNewConstMetric(creations, prometheus.GaugeValue, float64(count), state)
	}
}
