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

var refusedSyncTargets = prometheus.NewDesc("synchub_sync_targets_over_quota",
	"SyncTargets that get no mailbox, since those of their inventory workspace have as many as the hub makes.", nil, nil)

// activeQuotas collects metrics of the started quotas: none on a hub that does not lead.
var activeQuotas = metrics.New(collectQuotas, refusedSyncTargets)

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{activeQuotas} }

func collectQuotas(started []*Quota, metrics chan<- prometheus.Metric) {
	refused := 0
	for _, quota := range started {
		refused += quota.countRefused()
	}
	if len(started) > 0 {
		metrics <- prometheus.MustNewConstMetric(refusedSyncTargets, prometheus.GaugeValue, float64(refused))
	}
}

// countRefused returns how many SyncTargets get no mailbox.
func (p *Quota) countRefused() (count int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, all := range p.byInventory {
		count += len(all.refused)
	}
	return count
}
