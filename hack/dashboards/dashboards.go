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

import "fmt"

// ofTarget selects the series of the chosen SyncTarget.
const ofTarget = `inventory="$inventory", name="$name"`

// latency returns the queries of the median and the 99th percentile of the time of a change, by direction.
func latency(selector string) (queries []query) {
	for _, quantile := range []struct {
		legend string
		value  float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		queries = append(queries, query{"{{direction}} " + quantile.legend, fmt.Sprintf(
			"histogram_quantile(%v, sum by (le, direction) (rate(synchub_sync_latency_seconds_bucket{%s}[$__rate_interval])))", quantile.value, selector)})
	}
	return queries
}

func stat(title, unit, expr string, red float64) panel {
	return panel{title: title, kind: "stat", unit: unit, queries: []query{{"", expr}}, red: &red}
}

// never is a value that no metric reaches: such a stat is always green.
const never = 1e15

func graph(title, unit string, queries ...query) panel {
	return panel{title: title, kind: "timeseries", unit: unit, queries: queries}
}

func (p panel) withDescription(description string) panel {
	p.description = description
	return p
}

func (p panel) pile() panel {
	p.stacked = true
	return p
}

// fleet shows all clusters together, and the worst of them.
func fleet() dashboard {
	return dashboard{
		uid: "synchub-fleet", title: "synchub / Fleet", description: "All clusters that the hub keeps in sync, and the worst of them.",
		rows: []row{
			{"Now", []panel{
				stat("SyncTargets", "short", "count(max by (sync_target) (synchub_sync_target_info))", never),
				stat("Not ready", "short", `count(max by (sync_target) (synchub_sync_target_condition{condition="Ready", status!="True"})) or vector(0)`, 1),
				stat("Clusters that do not answer", "short", "count(max by (sync_target) (synchub_target_up) == 0) or vector(0)", 1),
				stat("Objects that fail", "short", "sum(max by (sync_target, resource, reason) (synchub_sync_failing_objects)) or vector(0)", 1),
				stat("Oldest change that waits", "s", "max(synchub_sync_oldest_pending_seconds)", 60),
				stat("Oldest absence that is not verified", "s", "max(synchub_absence_oldest_pending_seconds)", 600),
			}},
			{"Changes", []panel{
				graph("Time of a change through the hub", "s", latency("")...).withDescription("From the moment at which the hub observes a change until the other side has acknowledged it."),
				graph("Writes", "ops", query{"{{direction}} {{action}}", `sum by (direction, action) (rate(synchub_sync_actions_total{action!~"None|"}[$__rate_interval]))`}).pile(),
				graph("Objects that fail, by reason", "short", query{"{{reason}}", "sum by (reason) (max by (sync_target, resource, reason) (synchub_sync_failing_objects)) > 0"}).pile(),
			}},
			{"The worst clusters", []panel{
				{title: "Conditions that are not True", kind: "table", queries: []query{{"", `max by (name, inventory, condition, status) (synchub_sync_target_condition{condition=~"Ready|MailboxReady|HeartbeatHealthy|SyncerAuthorized|SyncerReady", status!="True"})`}}},
				graph("Longest waits", "s", query{"{{name}}", "topk(10, max by (name, inventory) (synchub_sync_oldest_pending_seconds) > 1)"}),
				graph("Tokens that end first", "s", query{"{{name}}", "bottomk(10, max by (name, inventory) (synchub_target_token_expiry_timestamp_seconds) - time())"}),
			}},
			{"Placement and mailboxes", []panel{
				graph("Pairs of an object and a destination", "short", query{"{{state}}", "max by (state) (synchub_placement_pairs)"}).pile(),
				graph("Mailboxes to come", "short", query{"{{state}}", "max by (state) (synchub_mailbox_creations)"}).pile(),
				graph("Time until a mailbox is ready", "s", query{"p99", "histogram_quantile(0.99, sum by (le) (rate(synchub_mailbox_creation_seconds_bucket[$__rate_interval])))"}),
			}},
		},
	}
}

// byResource is a query with a series for each resource, or one for all of them with --metrics-per-resource=false.
func byResource(expr string) query { return query{"{{resource}}", named(expr)} }

// named gives a series without a resource a name for its legend.
func named(expr string) string {
	return `label_replace(` + expr + `, "resource", "all resources", "resource", "")`
}

// target shows one cluster.
func target() dashboard {
	of := func(metric, more string) string { return metric + "{" + ofTarget + more + "}" }
	return dashboard{
		uid: "synchub-target", title: "synchub / SyncTarget", description: "One cluster that the hub keeps in sync.",
		variables: []variable{
			{"inventory", "Inventory", "label_values(synchub_sync_target_info, inventory)"},
			{"name", "SyncTarget", `label_values(synchub_sync_target_info{inventory="$inventory"}, name)`},
		},
		rows: []row{
			{"Now", []panel{
				stat("Answers", "bool_yes_no", "max("+of("synchub_target_up", "")+")", never),
				stat("Time since its last answer", "s", "time() - max("+of("synchub_target_last_answer_timestamp_seconds", "")+")", 60),
				stat("Token ends in", "s", "max("+of("synchub_target_token_expiry_timestamp_seconds", "")+") - time()", never),
				stat("Objects that fail", "short", "sum(max by (resource, reason) ("+of("synchub_sync_failing_objects", "")+")) or vector(0)", 1),
				stat("Oldest change that waits", "s", "max("+of("synchub_sync_oldest_pending_seconds", "")+")", 60),
				stat("Forged marks", "short", "sum(max by (resource) ("+of("synchub_sync_unverified_objects", "")+")) or vector(0)", 1),
			}},
			{"Changes", []panel{
				graph("Time of a change through the hub", "s", latency(ofTarget)...),
				graph("Decisions", "ops", query{"{{direction}} {{action}} {{cause}}", "sum by (direction, action, cause) (rate(" + of("synchub_sync_actions_total", `, action!~"None|"`) + "[$__rate_interval]))"}).pile(),
				graph("Objects that wait, by resource", "short", byResource("max by (resource) ("+of("synchub_sync_pending_objects", "")+") > 0")).pile(),
			}},
			{"State", []panel{
				{title: "Conditions", kind: "table", queries: []query{{"", "max by (condition, status) (" + of("synchub_sync_target_condition", "") + ")"}}},
				graph("Objects that fail", "short", query{"{{resource}} {{reason}}", named("max by (resource, reason) (" + of("synchub_sync_failing_objects", "") + ") > 0")}).pile(),
				graph("Connection", "short", query{"{{reason}}", "max by (reason) (" + of("synchub_target_state", "") + ")"}, query{"has come up", "max(" + of("synchub_target_connections_total", "") + ")"}),
			}},
			{"What the hub holds of it", []panel{
				graph("Objects", "short", byResource("max by (resource) ("+of("synchub_target_cache_objects", "")+")")).pile(),
				graph("Memory", "bytes", byResource("max by (resource) ("+of("synchub_target_cache_bytes", "")+")")).pile(),
				graph("Queue", "short", byResource("max by (resource) ("+of("synchub_sync_queue_depth", "")+") > 0")).pile(),
			}},
		},
	}
}

// hub shows the replicas.
func hub() dashboard {
	return dashboard{
		uid: "synchub-hub", title: "synchub / Hub", description: "The replicas of the hub: which one leads, and what they use.",
		rows: []row{
			{"Now", []panel{
				stat("Replicas", "short", "count(synchub_build_info)", never),
				stat("Leads", "bool_yes_no", `max(leader_election_master_status{name="synchub"})`, never),
				stat("Endpoints of kcp that are away", "short", "count(max by (endpoint) (synchub_mailbox_endpoint_up) == 0) or vector(0)", 1),
				stat("Mailboxes over their limit", "short", "max(synchub_mailboxes_limited) + max(synchub_mailboxes_evicted)", 1),
				stat("SyncTargets over the quota", "short", "max(synchub_sync_targets_over_quota)", 1),
			}},
			{"Process", []panel{
				graph("Processor", "short", query{"{{instance}}", `rate(process_cpu_seconds_total[$__rate_interval]) * on (job, instance) group_left () max by (job, instance) (synchub_build_info)`}),
				graph("Memory", "bytes",
					query{"{{instance}} resident", `process_resident_memory_bytes * on (job, instance) group_left () max by (job, instance) (synchub_build_info)`},
					query{"{{instance}} heap", `go_memstats_heap_inuse_bytes * on (job, instance) group_left () max by (job, instance) (synchub_build_info)`}),
				graph("Goroutines", "short", query{"{{instance}}", `go_goroutines * on (job, instance) group_left () max by (job, instance) (synchub_build_info)`}),
			}},
			{"What is held", []panel{
				graph("Of mailboxes", "bytes", query{"held", "max(synchub_mailboxes_bytes)"}, query{"limit", "max(synchub_mailboxes_max_bytes)"}, query{"fair share of each", "max(synchub_mailboxes_fair_share_bytes) > 0"}),
				graph("Of targets", "bytes", query{"held", "max(synchub_targets_bytes)"}, query{"limit", "max(synchub_targets_max_bytes) > 0"}),
				graph("Of mailboxes, by resource", "bytes", query{"{{resource}}", "sum by (resource) (max by (endpoint, resource) (synchub_mailbox_cache_bytes))"}).pile(),
			}},
			{"Requests", []panel{
				graph("Requests", "ops", query{"{{destination}} {{class}}", "sum by (destination, class) (rate(synchub_requests_total[$__rate_interval]))"}).pile(),
				graph("Answers that are no success", "ops", query{"{{destination}} {{code}}", `sum by (destination, code) (rate(synchub_requests_total{code!~"2.."}[$__rate_interval]))`}).pile(),
				graph("Objects of inventories", "short", query{"{{resource}}", "max by (resource) (synchub_inventory_cache_objects)"}),
			}},
			{"Controllers", []panel{
				graph("Queues", "short", query{"{{name}}", "sum by (name) (workqueue_depth) > 0"}).pile(),
				graph("Shards of SyncTargets", "short", query{"{{instance}}", "synchub_shards_owned > 0"}).withDescription("Of replicas that divide the SyncTargets. There are 64."),
				graph("Errors", "ops", query{"{{controller}}", "sum by (controller) (rate(controller_runtime_reconcile_errors_total[$__rate_interval])) > 0"}),
			}},
		},
	}
}
