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

package main

import (
	"github.com/synchub-dev/synchub/hack/chart"
	"github.com/synchub-dev/synchub/hack/results"
)

type resultChart struct {
	file, title string
	axis        chart.Axis
	row         func(results.Row) (chart.Row, error)
	lines       []line
}

// line stands for the rows of a chart that have one label. Without a scenario it is a heading.
type line struct {
	// label may have the groups of what, such as $1.
	label string
	// scenario and what select rows; what is a regular expression, since the rows name numbers of objects and targets.
	scenario, what string
}

var (
	ratioAxis = chart.Axis{Mark: 1, Step: 0.5, Unit: "×", Caption: "Dot: median of the rounds. Line: from the least to the greatest. Orange bar: limit. Red: above the limit."}
	shareAxis = chart.Axis{Step: 20, Unit: " %", Caption: "Orange bar: limit. Red: above the limit."}
)

var charts = []resultChart{
	{"results-ratios.svg", "Latency and CPU time of the hub, compared", ratioAxis, ratio, []line{
		{label: "Against a bare syncer"},
		{"one edit, median", "edit", `: p50$`},
		{"one edit, 99th percentile", "edit", `: p99$`},
		{"one status, median", "status", `: p50$`},
		{"one status, 99th percentile", "status", `: p99$`},
		{"restart with $1 objects", "restart", `^(\d+) objects .* against the same lists$`},
		{"$1 objects to $2 targets", "burst", `^(\d+) objects over (\d+) targets.*: elapsed$`},
		{"… CPU time of the program", "burst", `flight for each: processor time`},
		{"… CPU time of the servers", "burst", `: the servers' processor time`},
		{"$1 objects to $2 clusters", "burst-clusters", `^(\d+) objects over (\d+) targets.*: elapsed$`},
		{"… CPU time of the program", "burst-clusters", `flight for each: processor time`},
		{"… CPU time of the servers", "burst-clusters", `: the servers' processor time`},
		{"edit beside $1 objects", "busy", `while (\d+) objects .* against a bare syncer's beside it$`},
		{label: "Against itself"},
		{"edit beside $1 objects, to one in quiet", "busy", `^p99 of an edit while (\d+) objects .* against when nothing is$`},
		{"… the bare syncer's", "busy", `^p99 of a bare syncer's edit .* against when nothing is$`},
		{"routing an event: $1 mailboxes, to $2", "fleet", `with ([\d,]+) mailboxes.* against (\d+)$`},
		{"heap after $1 of changes", "long", `^(\S+) of changes .*: heap$`},
	}},
	{"results-placement.svg", "Latency of an edit in a workload workspace, compared", ratioAxis, ratio, []line{
		{label: "Against a plain client"},
		{"one edit, until the last of $1 clusters has it", "placement-edit", `on (\d+) clusters.* until the last cluster has it: p50$`},
		{"one edit while another workspace is placed", "placement-busy", `: p50$`},
		{label: "Against itself"},
		{"one edit with $1 placements, to one with $2", "placement-events", `with (\d+) placements.* one with (\d+): p50$`},
	}},
	{"results-budgets.svg", "Memory and idle CPU of the hub, in percent of their limits", shareAxis, share, []line{
		{"heap of a synced object of $1", "memory", `^heap of a synced object of (\d+ KB)`},
		{"heap of a placed copy, beyond that", "placement-memory", `clusters: a copy beyond`},
		{"heap of an idle pair of target and resource", "memory", `idle pair`},
		{"memory with $1 idle targets", "fleet-idle", `^(\d+) targets.*: resident memory$`},
		{"CPU with $1 idle targets", "fleet-idle", `^(\d+) targets.*: processor$`},
	}},
}
