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
	"maps"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/synchub-dev/synchub/provider/gauges"
)

var (
	endpointUp = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "synchub_mailbox_endpoint_up",
		Help: "Whether the endpoint (a kcp shard) of the mailbox export answered the last time: 1, or 0 if it cannot be watched.",
	}, []string{"endpoint"})
	cacheObjects = prometheus.NewDesc("synchub_mailbox_cache_objects",
		"Objects of mailboxes that the hub holds.", []string{"endpoint", "resource"}, nil)
	cacheBytes = prometheus.NewDesc("synchub_mailbox_cache_bytes",
		"Estimate of the memory that those take.", []string{"endpoint", "resource"}, nil)
	totalBytes = prometheus.NewDesc("synchub_mailboxes_bytes",
		"Estimate of the memory that the objects of all mailboxes take together.", nil, nil)
	totalLimit = prometheus.NewDesc("synchub_mailboxes_max_bytes",
		"How much that may be; 0 stands for no limit.", nil, nil)
	levelBytes = prometheus.NewDesc("synchub_mailboxes_level_bytes",
		"How much each mailbox may take now, so that all together fit; 0 while all fit anyway.", nil, nil)
	beyondLimits = prometheus.NewDesc("synchub_mailboxes_beyond_limits",
		"Mailboxes of which not all objects are held, because of their own limits, those of resources, or that of all together.", nil, nil)
	closedMailboxes = prometheus.NewDesc("synchub_mailboxes_closed",
		"Mailboxes of which nothing is held, since they have too many objects.", nil, nil)
)

// started are the mailboxes that are watched: none on a hub that does not lead.
var started = gauges.New(readMailboxes, cacheObjects, cacheBytes, totalBytes, totalLimit, levelBytes, beyondLimits, closedMailboxes)

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{endpointUp, started} }

func setUp(url string, isUp bool) {
	value := 0.0
	if isUp {
		value = 1
	}
	endpointUp.WithLabelValues(url).Set(value)
}

// held tells what is held of a resource at an endpoint.
type held struct{ endpoint, resource string }

func readMailboxes(started []*Mailboxes, metrics chan<- prometheus.Metric) {
	objects, bytes := map[held]int64{}, map[held]int64{}
	for _, mailboxes := range started {
		for _, watching := range mailboxes.watchings() {
			of := held{watching.endpoint.url, watching.resource.GroupResource().String()}
			objects[of] += watching.held.Objects()
			bytes[of] += watching.held.Bytes()
		}
	}
	readTotals(started, metrics)
	for of := range objects {
		for described, sum := range map[*prometheus.Desc]int64{cacheObjects: objects[of], cacheBytes: bytes[of]} {
			metrics <- prometheus.MustNewConstMetric(described, prometheus.GaugeValue, float64(sum), of.endpoint, of.resource)
		}
	}
}

// readTotals tells what all mailboxes take together.
func readTotals(started []*Mailboxes, metrics chan<- prometheus.Metric) {
	if len(started) == 0 {
		return
	}
	var bytes, limit, level int64
	beyond, closed := map[logicalcluster.Name]bool{}, map[logicalcluster.Name]bool{}
	for _, mailboxes := range started {
		bytes, limit, level = bytes+mailboxes.total.held.Bytes(), limit+mailboxes.total.limit, level+mailboxes.total.level.Load()
		mailboxes.eachAccount(func(mailbox logicalcluster.Name, account *account, _ bool) {
			if account.closed.Load() {
				closed[mailbox] = true
			} else if account.isBeyond() {
				beyond[mailbox] = true
			}
		})
	}
	for described, value := range map[*prometheus.Desc]int64{
		totalBytes: bytes, totalLimit: limit, levelBytes: level, beyondLimits: int64(len(beyond)), closedMailboxes: int64(len(closed)),
	} {
		metrics <- prometheus.MustNewConstMetric(described, prometheus.GaugeValue, float64(value))
	}
}

// watchings returns all wildcard watches there are.
func (m *Mailboxes) watchings() (all []*watching) {
	m.lock.RLock()
	defer m.lock.RUnlock()
	for _, endpoint := range m.endpoints {
		endpoint.lock.RLock()
		all = slices.AppendSeq(all, maps.Values(endpoint.watches))
		endpoint.lock.RUnlock()
	}
	return all
}
