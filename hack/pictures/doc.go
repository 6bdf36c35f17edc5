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

// Command pictures draws the chart's dashboards for Grafana from the metrics of a live hub, for the documentation. It
// records the metrics for a while, and evaluates the queries of the panels with Prometheus' own engine. So the pictures
// show the queries' true results in the panels' places, though not Grafana itself.
//
//	go -C hack/pictures run . -metrics http://127.0.0.1:8080/metrics -inventory root:inventory -name florin
//
// It is a module of its own: the hub needs neither Prometheus' engine nor the libraries that draw.
package main
