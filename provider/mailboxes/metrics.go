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

import "github.com/prometheus/client_golang/prometheus"

var endpointUp = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "synchub_mailbox_endpoint_up",
	Help: "Whether the endpoint (a kcp shard) of the mailbox export answered the last time: 1, or 0 if it cannot be watched.",
}, []string{"endpoint"})

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{endpointUp} }

func setUp(url string, isUp bool) {
	value := 0.0
	if isUp {
		value = 1
	}
	endpointUp.WithLabelValues(url).Set(value)
}
