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

package targets

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/metrics"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
)

var (
	targetUp = prometheus.NewDesc("synchub_target_up",
		"Whether the target answers: 1 or 0.", targetlabels.Names(), nil)
	targetState = prometheus.NewDesc("synchub_target_state",
		"1 for the current reason of the connection's condition.", targetlabels.Names("reason"), nil)
	targetConnections = prometheus.NewDesc("synchub_target_connections_total",
		"Number of times that the target came up.", targetlabels.Names(), nil)
	lastAnswer = prometheus.NewDesc("synchub_target_last_answer_timestamp_seconds",
		"When the target last answered a probe, in seconds since 1970. Absent if it never has.", targetlabels.Names(), nil)
	tokenIssued = prometheus.NewDesc("synchub_target_token_issued_timestamp_seconds",
		"When the token of the target's kubeconfig was issued, in seconds since 1970. Absent if the token does not expire.", targetlabels.Names(), nil)
	tokenExpiry = prometheus.NewDesc("synchub_target_token_expiry_timestamp_seconds",
		"When the token of the target's kubeconfig expires, in seconds since 1970. Absent if the token does not expire.", targetlabels.Names(), nil)
	cacheObjects = prometheus.NewDesc("synchub_target_cache_objects",
		"Cached objects of the target.", targetlabels.Names("resource"), nil)
	cacheBytes = prometheus.NewDesc("synchub_target_cache_bytes",
		"Estimated memory of the target's cached objects, in bytes.", targetlabels.Names("resource"), nil)
	totalBytes = prometheus.NewDesc("synchub_targets_bytes",
		"Estimated memory of all targets together (caches, expectations, and lists being read), in bytes.", nil, nil)
	maxTotalBytes = prometheus.NewDesc("synchub_targets_max_bytes",
		"Limit of the memory of all targets together, in bytes; 0 means no limit.", nil, nil)
)

// runningRegistries are the registries between the start and the end of Start: none on a hub that does not lead.
var runningRegistries = metrics.New(collectRegistries, targetUp, targetState, targetConnections, lastAnswer, tokenIssued, tokenExpiry, cacheObjects, cacheBytes, totalBytes, maxTotalBytes)

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector {
	return append(tunnel.Collectors(), runningRegistries)
}

func collectRegistries(running []*Registry, metrics chan<- prometheus.Metric) {
	connections := map[types.UID]*Connection{}
	for _, registry := range running {
		registry.lock.RLock()
		maps.Copy(connections, registry.connections)
		registry.lock.RUnlock()
	}
	for _, connection := range connections {
		connection.collectHealth(metrics)
		connection.Watches.collectCacheSizes(metrics)
	}
	collectTotals(running, metrics)
}

// collectTotals collects the size of the caches of all targets together.
func collectTotals(running []*Registry, metrics chan<- prometheus.Metric) {
	if len(running) == 0 {
		return
	}
	var bytes, limit int64
	for _, registry := range running {
		total := registry.options.memory
		bytes, limit = bytes+total.cached.Bytes()+total.pending.Load(), limit+total.limit
	}
	metrics <- prometheus.MustNewConstMetric(totalBytes, prometheus.GaugeValue, float64(bytes))
	metrics <- prometheus.MustNewConstMetric(maxTotalBytes, prometheus.GaugeValue, float64(limit))
}

// collectHealth collects the health of the target, and when the token of the kubeconfig was issued and expires.
func (c *Connection) collectHealth(metrics chan<- prometheus.Metric) {
	health := c.Health.Get()
	gauge := func(described *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(described, prometheus.GaugeValue, value, targetlabels.Values(c.SyncTarget, labels...)...)
	}
	up := 0.0
	if health.Up {
		up = 1
	}
	gauge(targetUp, up)
	gauge(targetState, 1, health.Reason)
	metrics <- prometheus.MustNewConstMetric(targetConnections, prometheus.CounterValue, float64(c.Health.Epoch()), targetlabels.Values(c.SyncTarget)...)
	if !health.LastSeen.IsZero() {
		gauge(lastAnswer, float64(health.LastSeen.UnixMilli())/1000)
	}
	if token, ok := c.Token.Claims(); ok {
		gauge(tokenIssued, float64(token.IssuedAt.Unix()))
		gauge(tokenExpiry, float64(token.ExpiresAt.Unix()))
	}
}

// collectCacheSizes collects the size of the caches of each resource, or of all resources together.
func (w *Watches) collectCacheSizes(metrics chan<- prometheus.Metric) {
	objects, bytes := map[string]int64{}, map[string]int64{}
	for _, informer := range w.informers.list() {
		resource := ""
		if !w.aggregateMetrics {
			resource = requestmetrics.ResourceLabel(informer.resource.String())
		}
		objects[resource] += informer.cached.Objects()
		bytes[resource] += informer.cached.Bytes()
	}
	for resource := range objects {
		labels := targetlabels.Values(w.env.syncTarget, resource)
		metrics <- prometheus.MustNewConstMetric(cacheObjects, prometheus.GaugeValue, float64(objects[resource]), labels...)
		metrics <- prometheus.MustNewConstMetric(cacheBytes, prometheus.GaugeValue, float64(bytes[resource]), labels...)
	}
}
