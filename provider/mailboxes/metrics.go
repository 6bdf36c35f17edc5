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

package mailboxes

import (
	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/synchub-dev/synchub/provider/metrics"
)

var (
	endpointUp = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "synchub_mailbox_endpoint_up",
		Help: "1 if the hub can watch the endpoint (a kcp shard) of the mailbox export, else 0.",
	}, []string{"endpoint"})
	cacheObjects = prometheus.NewDesc("synchub_mailbox_cache_objects",
		"Cached objects of mailboxes.", []string{"endpoint", "resource"}, nil)
	cacheBytes = prometheus.NewDesc("synchub_mailbox_cache_bytes",
		"Estimated memory of the cached objects of mailboxes, in bytes.", []string{"endpoint", "resource"}, nil)
	totalBytes = prometheus.NewDesc("synchub_mailboxes_bytes",
		"Estimated memory of the cached objects of all mailboxes together, in bytes.", nil, nil)
	maxTotalBytes = prometheus.NewDesc("synchub_mailboxes_max_bytes",
		"Limit of the memory of the cached objects of all mailboxes together, in bytes; 0 means no limit.", nil, nil)
	fairShareBytes = prometheus.NewDesc("synchub_mailboxes_fair_share_bytes",
		"Memory that each mailbox may take now so that all mailboxes fit, in bytes; 0 while they fit without it.", nil, nil)
	limitedMailboxes = prometheus.NewDesc("synchub_mailboxes_limited",
		"Mailboxes with objects that are not cached because of a limit.", nil, nil)
	absencePending = prometheus.NewDesc("synchub_absence_pending_objects",
		"Objects that mailboxes lack, and whose copies stay until their absence is verified.", nil, nil)
	absenceOldest = prometheus.NewDesc("synchub_absence_oldest_pending_seconds",
		"Age of the oldest pending absence verification, in seconds; 0 if none is pending.", nil, nil)
	evictedMailboxes = prometheus.NewDesc("synchub_mailboxes_evicted",
		"Mailboxes without cached objects because they have too many objects.", nil, nil)
)

// runningMailboxes are the running [Mailboxes]: none on a hub that does not lead.
var runningMailboxes = metrics.New(collectMailboxes, cacheObjects, cacheBytes, totalBytes, maxTotalBytes, fairShareBytes, limitedMailboxes, evictedMailboxes, absencePending, absenceOldest)

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{endpointUp, runningMailboxes} }

// endpointResource identifies the cache of a resource at an endpoint.
type endpointResource struct{ endpoint, resource string }

func collectMailboxes(started []*Mailboxes, metrics chan<- prometheus.Metric) {
	if len(started) == 0 {
		return
	}
	objects, bytes := map[endpointResource]int64{}, map[endpointResource]int64{}
	for _, mailboxes := range started {
		for _, informer := range mailboxes.parts.endpoints.informers() {
			of := endpointResource{informer.endpoint.url, informer.resource.GroupResource().String()}
			objects[of] += informer.counted.size.Objects()
			bytes[of] += informer.counted.size.Bytes()
		}
	}
	collectTotals(started, metrics)
	collectAbsences(started, metrics)
	for of := range objects {
		for described, sum := range map[*prometheus.Desc]int64{cacheObjects: objects[of], cacheBytes: bytes[of]} {
			metrics <- prometheus.MustNewConstMetric(described, prometheus.GaugeValue, float64(sum), of.endpoint, of.resource)
		}
	}
}

// collectTotals collects the size of the caches of all mailboxes together, and the number of limited and evicted mailboxes.
func collectTotals(started []*Mailboxes, metrics chan<- prometheus.Metric) {
	var bytes, limit, share int64
	identityOnly, evicted := map[logicalcluster.Name]bool{}, map[logicalcluster.Name]bool{}
	for _, mailboxes := range started {
		bytes, limit, share = bytes+mailboxes.parts.limits.memory.cached.Bytes(), limit+mailboxes.parts.limits.memory.limit, share+mailboxes.parts.limits.memory.fairShare.Load()
		mailboxes.parts.usages.each(func(mailbox logicalcluster.Name, usage *usage, _ bool) {
			if usage.evicted.Load() {
				evicted[mailbox] = true
			} else if usage.counts().identityOnly > 0 {
				identityOnly[mailbox] = true
			}
		})
	}
	for described, value := range map[*prometheus.Desc]int64{
		totalBytes: bytes, maxTotalBytes: limit, fairShareBytes: share, limitedMailboxes: int64(len(identityOnly)), evictedMailboxes: int64(len(evicted)),
	} {
		metrics <- prometheus.MustNewConstMetric(described, prometheus.GaugeValue, float64(value))
	}
}

// collectAbsences collects the number of pending absence verifications, and the age of the oldest.
func collectAbsences(started []*Mailboxes, metrics chan<- prometheus.Metric) {
	total, oldest := 0, 0.0
	for _, mailboxes := range started {
		count, since := mailboxes.parts.absences.verifier.Pending()
		total += count
		if count > 0 {
			oldest = max(oldest, mailboxes.parts.options.Clock.Since(since).Seconds())
		}
	}
	metrics <- prometheus.MustNewConstMetric(absencePending, prometheus.GaugeValue, float64(total))
	metrics <- prometheus.MustNewConstMetric(absenceOldest, prometheus.GaugeValue, oldest)
}
