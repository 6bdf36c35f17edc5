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

package inventories

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/metrics"
)

var (
	cacheObjects = prometheus.NewDesc("synchub_inventory_cache_objects",
		"Cached objects of inventory workspaces.", []string{"resource"}, nil)
	cacheBytes = prometheus.NewDesc("synchub_inventory_cache_bytes",
		"Estimated memory of the cached objects of inventory workspaces, in bytes.", []string{"resource"}, nil)
)

// runningProviders collects from the started providers. A hub that does not lead has none.
var runningProviders = metrics.New(collectProviders, cacheObjects, cacheBytes)

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{runningProviders} }

func collectProviders(started []*Provider, metrics chan<- prometheus.Metric) {
	for kind, resource := range map[schema.GroupVersionKind]string{syncTargets: "synctargets", secrets: "secrets", locations: "locations"} {
		var objects, bytes int64
		for _, provider := range started {
			for _, cache := range provider.endpointCaches() {
				objects += cache.sizes[kind].Objects()
				bytes += cache.sizes[kind].Bytes()
			}
		}
		if len(started) > 0 {
			metrics <- prometheus.MustNewConstMetric(cacheObjects, prometheus.GaugeValue, float64(objects), resource)
			metrics <- prometheus.MustNewConstMetric(cacheBytes, prometheus.GaugeValue, float64(bytes), resource)
		}
	}
}

// endpointCaches returns the caches of all endpoints.
func (p *Provider) endpointCaches() []*endpointCache {
	p.lock.Lock()
	defer p.lock.Unlock()
	return slices.Collect(maps.Values(p.caches))
}
