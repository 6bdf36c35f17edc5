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
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/sharder"

	"synchub.dev/hack/capacity/inputs"
	"synchub.dev/hack/capacity/model"
	"synchub.dev/hack/capacity/spread"
)

// line is a row of a table about plans.
type line struct {
	label string
	cell  func(plan) string
}

// needs are the rows of the table for readers in a hurry.
func (p planner) needs() []line {
	limit := size(p.replica.Memory)
	return []line{
		{"objects", func(made plan) string { return count(float64(made.fleet.Objects)) }},
		{"edits a second", func(made plan) string { return count(made.fleet.Edits) }},
		{"one active replica: its memory limit, and its standby's", func(made plan) string { return size(made.one.Limit) }},
		{"divided: replicas of " + limit + " that " + readings[p.reading], divided(func(made plan) string { return count(float64(made.divided.Replicas)) })},
		{"divided: memory of as many that hold all mailboxes", divided(func(made plan) string { return size(made.all.Memory.Limit()) })},
		{"shards of kcp, and their reason", func(made plan) string {
			return fmt.Sprintf("%d: %s", made.kcp.Shards, made.kcp.Binding())
		}},
		{"the hub's requests a second to kcp, at rest", func(made plan) string { return count(made.kcp.HubRest) }},
		{"the same with the edits", func(made plan) string { return count(made.kcp.HubPeak) }},
		{"registering all clusters", func(made plan) string {
			return duration(made.kcp.MailboxesFast) + " to " + duration(made.kcp.MailboxesSlow)
		}},
		{"start of one active replica", func(made plan) string { return duration(made.one.Start) }},
		{"start of a divided replica", divided(func(made plan) string { return duration(made.divided.Start) })},
	}
}

// values are the rows of the table of the chart's values.
func (p planner) values() []line {
	return []line{
		{"`resources.limits.memory`", func(made plan) string { return quantity(made.one.Limit) }},
		{"`mailboxes.totalBytes`", func(made plan) string { return orDefault(made.one.Caches.Mailboxes) }},
		{"`targets.totalBytes`", func(made plan) string { return orDefault(made.one.Caches.Targets) }},
		{"divided: `replicaCount`", divided(func(made plan) string { return count(float64(made.divided.Replicas)) })},
		{"divided: `resources.limits.memory`", divided(func(made plan) string { return quantity(made.divided.Limit) })},
		{"divided: `mailboxes.totalBytes`", divided(func(made plan) string { return orDefault(made.divided.Caches.Mailboxes) })},
		{"divided: `targets.totalBytes`", divided(func(made plan) string { return orDefault(made.divided.Caches.Targets) })},
		{"`mailboxes.maxPerInventory`, with one inventory", func(made plan) string {
			return unlessDefault(float64(made.fleet.Clusters), p.MaxPerInventory)
		}},
		{"`mailboxes.maxObjects`", func(made plan) string { return unlessDefault(p.Mailbox(made.fleet).Objects, p.MaxObjects) }},
		{"`mailboxes.maxBytes`", func(made plan) string {
			if bytes := p.Mailbox(made.fleet).Bytes; bytes > p.MaxBytes {
				return size(bytes)
			}
			return "default"
		}},
		{"`kcp.qps`", func(made plan) string {
			return unlessDefault(made.kcp.EndpointRequests(made.fleet, made.one), p.QPS)
		}},
		{"`metrics.perResource`", func(made plan) string { return strconv.FormatBool(made.fleet.Clusters <= perResourceUpTo) }},
	}
}

// perResourceUpTo is the number of clusters up to which docs/metrics.md recommends metrics by resource.
const perResourceUpTo = 100

// details are the rows of the table behind the others.
func (p planner) details() []line {
	return []line{
		{"one active: processors", func(made plan) string { return cores(made.one.Cores) }},
		{"divided: processors of the largest replica", divided(func(made plan) string { return cores(made.divided.Cores) })},
		{"divided: the same, if it reads all mailboxes and drops those of others", divided(func(made plan) string { return cores(made.dropping.Cores) })},
		{"divided: start of a replica that holds all mailboxes", divided(func(made plan) string { return duration(made.all.Start) })},
		{"divided: SyncTargets of the largest replica", divided(func(made plan) string { return count(float64(made.divided.Load.Largest)) })},
		{"divided: the same, when any one replica is lost", divided(func(made plan) string { return count(float64(made.divided.Load.AfterLoss)) })},
		{"divided: its memory then", divided(func(made plan) string { return size(made.divided.Memory.Limit()) })},
		{"divided: replicas, if there were no shards", divided(func(made plan) string { return count(float64(made.even.Replicas)) })},
		{"divided: renewals of Leases a second in the hosting cluster, and as many reads", divided(func(plan) string { return count(p.Renewals()) })},
		{"shards for the size of etcd, with a database of " + size(p.Limits.Etcd*p.Assumptions.EtcdUsed) + " each", func(made plan) string { return strconv.Itoa(made.kcp.ByStorage) }},
		{"shards for writes, with " + count(p.BurstObjects/p.Burst) + " a second each", func(made plan) string { return strconv.Itoa(made.kcp.ByWrites) }},
		{"shards for mailbox workspaces, with " + size(p.Assumptions.ShardMemory) + " each", func(made plan) string { return strconv.Itoa(made.kcp.ByMailboxes) }},
		{"stored in etcd, all shards", func(made plan) string { return size(made.kcp.Storage) }},
		{"writes a second to kcp, of users and the hub", func(made plan) string { return count(made.kcp.Writes) }},
		{"memory of kcp for mailbox workspaces", func(made plan) string { return size(made.kcp.MailboxMemory) }},
		{"processors of kcp and the clusters together, for the edits", func(made plan) string { return cores(made.kcp.Cores) }},
		{"the hub's requests a second to one shard, of `kcp.qps` " + count(p.QPS), func(made plan) string {
			return count(made.kcp.EndpointRequests(made.fleet, made.one))
		}},
		{"Secrets that one active replica reads at its start, of `kcp.burst` " + count(p.QPSBurst), func(made plan) string { return count(float64(made.fleet.Clusters)) }},
		{"watches of mailboxes, one active and a standby", func(made plan) string {
			return count(float64(made.fleet.MailboxWatches(model.HoldAll, made.one.Replicas, made.kcp.Shards)))
		}},
		{"watches of mailboxes, divided, wildcard", divided(func(made plan) string {
			return count(float64(made.fleet.MailboxWatches(model.HoldAll, made.divided.Replicas, made.kcp.Shards)))
		})},
		{"watches of mailboxes, divided, one for each own mailbox", divided(func(made plan) string {
			return count(float64(made.fleet.MailboxWatches(model.WatchOwn, made.divided.Replicas, made.kcp.Shards)))
		})},
		{"watches on all clusters, twice with a warm standby", func(made plan) string { return count(float64(made.fleet.TargetWatches())) }},
		{"requests a second to all clusters at rest, likewise", func(made plan) string { return count(p.RestTargetRequests(made.fleet)) }},
		{"time series, with `metrics.perResource`", func(made plan) string { return count(p.Series(made.fleet, true)) }},
		{"time series, without", func(made plan) string { return count(p.Series(made.fleet, false)) }},
	}
}

// divided is for cells about replicas that share the SyncTargets.
func divided(cell func(plan) string) func(plan) string {
	return func(made plan) string {
		if !made.fits {
			return "does not fit"
		}
		return cell(made)
	}
}

// planTable returns a table with a column for each plan.
func planTable(corner string, lines []line, plans []plan) string {
	rows := [][]string{{corner}}
	for _, made := range plans {
		rows[0] = append(rows[0], count(float64(made.fleet.Clusters))+" clusters")
	}
	for _, l := range lines {
		row := []string{l.label}
		for _, made := range plans {
			row = append(row, l.cell(made))
		}
		rows = append(rows, row)
	}
	return table(rows)
}

// divisionOf is how many SyncTargets the table of divisions has.
const divisionOf = 10_000

// divisions returns a table that compares how evenly SyncTargets are divided.
func divisions() string {
	rows := [][]string{{
		"replicas", "largest replica", "the same, when one is lost", "moved when one joins", "without shards", "the library's hash", "the same with numbered Pods",
	}}
	part := func(syncTargets, replicas int) string {
		return fmt.Sprintf("%.2f", float64(syncTargets)*float64(replicas)/divisionOf)
	}
	divided := spread.Shards{Names: spread.DeploymentPods}
	divide := func(by sharder.Sharder, names spread.Names, replicas int) spread.Load {
		return spread.Simulation{Sharder: by, Names: names}.Divide(divisionOf, replicas)
	}
	for _, replicas := range []int{2, 3, 5, 10, 20} {
		load := divided.Divide(divisionOf, replicas)
		rows = append(rows, []string{
			strconv.Itoa(replicas), part(load.Largest, replicas), part(load.AfterLoss, replicas), count(float64(load.Moved)),
			part(divide(spread.Even{}, spread.DeploymentPods, replicas).Largest, replicas),
			part(divide(sharder.NewHRW(), spread.DeploymentPods, replicas).Largest, replicas),
			part(divide(sharder.NewHRW(), spread.StatefulSetPods, replicas).Largest, replicas),
		})
	}
	return table(rows)
}

// sources returns the table of all numbers that the model starts from.
func sources(figures []inputs.Figure) string {
	rows := [][]string{{"number", "value", "kind", "from"}}
	for _, f := range figures {
		kind := "measured"
		if f.Default {
			kind = "the hub's default"
		}
		rows = append(rows, []string{f.Name, f.Value, kind, link(f.Page) + ": " + f.Place})
	}
	for _, s := range model.LimitSources {
		rows = append(rows, []string{s.Name, s.Value, "documented", s.Source})
	}
	for _, s := range model.AssumptionSources {
		rows = append(rows, []string{s.Name, s.Value, "**assumed**", s.Source})
	}
	return table(rows)
}

// link returns a link to a file of the repository from a page in docs.
func link(page string) string {
	target, ok := strings.CutPrefix(page, "docs/")
	if !ok {
		target = "../" + page
	}
	return "[" + strings.TrimPrefix(page, "docs/") + "](" + target + ")"
}

// table returns rows as Markdown. The first one is the header.
func table(rows [][]string) string {
	var out strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&out, "|%s\n", strings.Repeat(" --- |", len(row)))
		}
	}
	return out.String()
}

// replaceTables writes tables into a page in place of those whose header starts with the same cell.
func replaceTables(page string, tables []string) error {
	content, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	lines := strings.Split(string(content), "\n")
	for _, replacement := range tables {
		firstCell, _, _ := strings.Cut(strings.TrimPrefix(replacement, "| "), " |")
		start := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "| "+firstCell+" |") })
		if start < 0 {
			return fmt.Errorf("%s has no table that starts with %q", page, firstCell)
		}
		end := start
		for end < len(lines) && strings.HasPrefix(lines[end], "|") {
			end++
		}
		lines = slices.Replace(lines, start, end, strings.Split(strings.TrimSuffix(replacement, "\n"), "\n")...)
	}
	if err := os.WriteFile(page, []byte(strings.Join(lines, "\n")), 0o644); err != nil { //nolint:gosec // Everybody may read the documentation.
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// size formats bytes, and rounds up.
func size(bytes float64) string {
	switch {
	case bytes < gibi:
		return count(math.Ceil(bytes/mebi)) + " MiB"
	case bytes < 10*gibi && math.Mod(bytes, gibi) != 0:
		return fmt.Sprintf("%.1f GiB", math.Ceil(bytes/gibi*10)/10)
	default:
		return count(math.Ceil(bytes/gibi)) + " GiB"
	}
}

// quantity formats a memory limit as Kubernetes takes it.
func quantity(bytes float64) string {
	if math.Mod(bytes, gibi) == 0 {
		return fmt.Sprintf("%.0fGi", bytes/gibi)
	}
	return fmt.Sprintf("%.0fMi", math.Ceil(bytes/mebi))
}

func orDefault(bytes float64) string {
	if bytes == 0 {
		return "default"
	}
	return fmt.Sprintf("%.0f (%s)", bytes, size(bytes))
}

func unlessDefault(need, given float64) string {
	if need <= given {
		return "default"
	}
	return fmt.Sprintf("%.0f", math.Ceil(need))
}

func cores(cores float64) string {
	if cores < 0.1 {
		return "under 0.1"
	}
	return fmt.Sprintf("%.1f", cores)
}

// count formats a number without decimals, with commas.
func count(number float64) string {
	digits := strconv.FormatFloat(math.Round(number), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func duration(seconds float64) string {
	switch {
	case seconds < 100:
		return count(math.Ceil(seconds)) + " s"
	case seconds < 2*3600:
		return count(seconds/60) + " min"
	default:
		return fmt.Sprintf("%.1f h", seconds/3600)
	}
}
