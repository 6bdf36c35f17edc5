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

// line is a row of the table of needs. Without a cell it is a heading.
type line struct {
	label string
	cell  func(plan) string
}

// lines returns the rows of the table of needs.
func (p planner) lines() []line {
	divided := func(cell func(plan) string) func(plan) string {
		return func(made plan) string {
			if !made.fits {
				return "none is enough"
			}
			return cell(made)
		}
	}
	return []line{
		{"objects, edits a second", func(made plan) string {
			return count(float64(made.fleet.Objects)) + ", " + count(made.fleet.Edits)
		}},
		{"**one active replica, and a warm standby**", nil},
		{"memory limit of each", func(made plan) string { return size(made.one.Limit) }},
		{"`mailboxes.totalBytes`, `targets.totalBytes`", func(made plan) string { return caches(made.one.Caches) }},
		{"processors of the active one", func(made plan) string { return cores(made.one.Cores) }},
		{"start, until all objects are known to be in sync", func(made plan) string { return duration(made.one.Start) }},
		{"**SyncTargets divided among replicas with " + size(p.replica.Memory) + " each**", nil},
		{"replicas", divided(func(made plan) string { return count(float64(made.own.Replicas)) })},
		{"SyncTargets of the largest, and when one is lost", divided(func(made plan) string {
			return count(float64(made.own.Load.Largest)) + ", " + count(float64(made.own.Load.AfterLoss))
		})},
		{"its memory, holding its own mailboxes", divided(func(made plan) string { return size(made.own.Memory.Limit()) })},
		{"its memory, holding all mailboxes", divided(func(made plan) string { return size(made.all.Memory.Limit()) })},
		{"`mailboxes.totalBytes`, `targets.totalBytes`, own mailboxes", divided(func(made plan) string { return caches(made.own.Caches) })},
		{"its processors", divided(func(made plan) string { return cores(made.own.Cores) })},
		{"its start, until all objects are known to be in sync", divided(func(made plan) string { return duration(made.own.Start) })},
		{"renewals of Leases a second in the hosting cluster", divided(func(made plan) string { return count(p.Renewals(made.fleet)) })},
		{"**kcp**", nil},
		{"shards, and the reason", func(made plan) string { return fmt.Sprintf("%d: %s", made.kcp.Shards, made.kcp.Binding()) }},
		{"shards by size of etcd, by writes, by mailbox workspaces", func(made plan) string {
			return fmt.Sprintf("%d, %d, %d", made.kcp.ByStorage, made.kcp.ByWrites, made.kcp.ByMailboxes)
		}},
		{"stored in etcd, all shards", func(made plan) string { return size(made.kcp.Storage) }},
		{"writes a second, all shards, users and hub", func(made plan) string { return count(made.kcp.Writes) }},
		{"the hub's requests a second at rest, and with the edits", func(made plan) string {
			return count(made.kcp.HubRest) + ", " + count(made.kcp.HubPeak)
		}},
		{"the most of one replica to one shard, of `kcp.qps` " + count(p.QPS), func(made plan) string {
			return count(made.kcp.EndpointRequests(made.fleet, made.one, made.kcp.Shards))
		}},
		{"watches of mailboxes: one active; divided, all; divided, own", func(made plan) string { return p.watches(made) }},
		{"memory for mailbox workspaces", func(made plan) string { return size(made.kcp.MailboxMemory) }},
		{"until all mailboxes are made", func(made plan) string {
			return duration(made.kcp.MailboxesFast) + " to " + duration(made.kcp.MailboxesSlow)
		}},
		{"**clusters and metrics**", nil},
		{"watches on all clusters, of each replica that is connected", func(made plan) string { return count(float64(made.fleet.TargetWatches())) }},
		{"requests a second to all clusters at rest, likewise", func(made plan) string { return count(p.RestTargetRequests(made.fleet)) }},
		{"time series with `metrics.perResource` true, false", func(made plan) string {
			return count(p.Series(made.fleet, true)) + ", " + count(p.Series(made.fleet, false))
		}},
		{"`mailboxes.maxPerInventory`, with one inventory", func(made plan) string {
			return unlessDefault(float64(made.fleet.Clusters), p.MaxPerInventory)
		}},
		{"`mailboxes.maxObjects`", func(made plan) string {
			return unlessDefault(float64(made.fleet.Objects)/float64(made.fleet.Clusters), p.MaxObjects)
		}},
	}
}

func (p planner) watches(made plan) string {
	replicas := made.own.Replicas
	return strings.Join([]string{
		count(float64(made.fleet.MailboxWatches(model.HoldAll, made.one.Replicas, made.kcp.Shards))),
		count(float64(made.fleet.MailboxWatches(model.HoldAll, replicas, made.kcp.Shards))),
		count(float64(made.fleet.MailboxWatches(model.WatchOwn, replicas, made.kcp.Shards))),
	}, "; ")
}

// needs returns the table of needs.
func (p planner) needs(plans []plan) string {
	header := []string{"clusters"}
	for _, made := range plans {
		header = append(header, count(float64(made.fleet.Clusters)))
	}
	rows := [][]string{header}
	for _, l := range p.lines() {
		row := []string{l.label}
		for _, made := range plans {
			if l.cell == nil {
				row = append(row, "")
			} else {
				row = append(row, l.cell(made))
			}
		}
		rows = append(rows, row)
	}
	return table(rows)
}

// divisionOf is how many SyncTargets the table of divisions has.
const divisionOf = 10_000

// division returns a table that compares how evenly SyncTargets are divided.
func (p planner) division() string {
	rows := [][]string{{
		"replicas that share " + count(divisionOf) + " SyncTargets", "Pods of a Deployment", "when one is lost", "moved when one joins", "numbered Pods", "an even hash",
	}}
	hrw := sharder.NewHRW()
	for _, replicas := range []int{2, 3, 5, 10, 20} {
		part := func(syncTargets, replicas int) string {
			return fmt.Sprintf("%.2f", float64(syncTargets)*float64(replicas)/divisionOf)
		}
		pods := spread.Simulation{Sharder: hrw, Names: spread.DeploymentPods}.Divide(divisionOf, replicas)
		numbered := spread.Simulation{Sharder: hrw, Names: spread.StatefulSetPods}.Divide(divisionOf, replicas)
		even := spread.Simulation{Sharder: spread.Even{}, Names: spread.DeploymentPods}.Divide(divisionOf, replicas)
		rows = append(rows, []string{
			strconv.Itoa(replicas), part(pods.Largest, replicas), part(pods.AfterLoss, replicas-1), count(float64(pods.Moved)),
			part(numbered.Largest, replicas), part(even.Largest, replicas),
		})
	}
	return table(rows)
}

// sources returns the table of all numbers that the model starts from.
func sources(figures []inputs.Figure) string {
	rows := [][]string{{"number", "value", "from"}}
	for _, f := range figures {
		rows = append(rows, []string{f.Name, f.Value, "measured or default; " + f.Page + ", " + f.Place})
	}
	for _, s := range model.LimitSources {
		rows = append(rows, []string{s.Name, s.Value, "documented; " + s.Source})
	}
	for _, s := range model.AssumptionSources {
		rows = append(rows, []string{s.Name, s.Value, "assumed; " + s.Source})
	}
	return table(rows)
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

// size formats bytes with two digits or more.
func size(bytes float64) string {
	if bytes < gibi {
		return count(math.Ceil(bytes/(1<<20))) + " MiB"
	}
	if bytes < 10*gibi && math.Mod(bytes, gibi) != 0 {
		return fmt.Sprintf("%.1f GiB", bytes/gibi)
	}
	return count(math.Round(bytes/gibi)) + " GiB"
}

func caches(c model.Caches) string {
	text := func(bytes float64) string {
		if bytes == 0 {
			return "default"
		}
		return size(bytes)
	}
	return text(c.Mailboxes) + ", " + text(c.Targets)
}

func unlessDefault(need, given float64) string {
	if need <= given {
		return "default"
	}
	return count(need)
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
