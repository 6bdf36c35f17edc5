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

package tunnel

import "github.com/prometheus/client_golang/prometheus"

var (
	openSessions = prometheus.NewGauge(prometheus.GaugeOpts{Name: "synchub_tunnel_sessions", Help: "Tunnels that are open with this replica."})
	handshakes   = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "synchub_tunnel_handshakes_total",
		Help: "Handshakes for tunnels, by result: opened, connected, replaced, refused, unauthorized, bad_request, too_many, failed.",
	}, []string{"result"})
)

// Collectors returns the metrics of this package.
func Collectors() []prometheus.Collector { return []prometheus.Collector{openSessions, handshakes} }
