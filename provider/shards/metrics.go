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

package shards

import "github.com/prometheus/client_golang/prometheus"

// ownedShards is how many shards this process holds.
var ownedShards = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "synchub_shards_owned", Help: "Shards of SyncTargets that this replica holds, of 64. 0 unless SyncTargets are sharded among the replicas.",
})

// Collectors returns the collectors of the metrics.
func Collectors() []prometheus.Collector { return []prometheus.Collector{ownedShards} }
