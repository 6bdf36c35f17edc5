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

// Command capacity computes what large fleets need from the costs that were measured: the tables of docs/scaling.md, and its chart. With
// flags that describe another fleet it prints the tables.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/synchub-dev/synchub/hack/chart"
	"github.com/synchub-dev/synchub/provider/shards"
)

// options are the flags. The numbers of fleet are for one cluster, so that fleets of several sizes can be compared.
type options struct {
	page, chart, clusters string
	fleet                 fleet
	// memory and cores belong to a replica that shares the fleet.
	memory, cores float64
}

func main() {
	var o options
	flag.StringVar(&o.page, "page", "", "put the tables into this page, instead of printing them")
	flag.StringVar(&o.chart, "chart", "", "draw the chart into this file")
	bind(&o, flag.CommandLine)
	flag.Parse()
	if err := run(".", o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
}

// bind adds the flags that describe a fleet and a replica.
func bind(o *options, flags *flag.FlagSet) {
	flags.StringVar(&o.clusters, "clusters", "100,1000,10000", "numbers of clusters, with commas")
	flags.Float64Var(&o.fleet.objects, "objects", 1000, "objects in the mailbox of each cluster")
	flags.Float64Var(&o.fleet.objectBytes, "object-bytes", sampleBytes, "mean size of an object")
	flags.Float64Var(&o.fleet.selected, "selected", 1, "part of the objects that a config selects")
	flags.Float64Var(&o.fleet.resources, "resources", 10, "resources that are synced with each cluster")
	flags.Float64Var(&o.fleet.edits, "edits", 0.1, "edits a second in the mailbox of each cluster")
	flags.Float64Var(&o.fleet.statusesPerEdit, "statuses", 1, "statuses that come back for each edit")
	flags.Float64Var(&o.fleet.shards, "shards", 0, "shards of kcp; 0 stands for the least number that is enough")
	flags.Float64Var(&o.memory, "memory-limit", 16, "memory limit in GiB of a sharded replica")
	flags.Float64Var(&o.cores, "cores", 2, "CPUs of a sharded replica")
}

func run(root string, o options, to io.Writer) error {
	c, sources, err := readCosts(root)
	if err != nil {
		return err
	}
	var plans []plan
	for text := range strings.SplitSeq(o.clusters, ",") {
		clusters, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("%q is no number of clusters", text)
		}
		made, err := o.plan(c, float64(clusters))
		if err != nil {
			return err
		}
		plans = append(plans, made)
	}
	tables := []string{
		planTable("need", needs(o), plans), planTable("value", values(c), plans), planTable("detail", details(c), plans),
		divisions(), table(append([][]string{{"number", "value", "kind", "from"}}, sources...)),
	}
	if o.chart != "" {
		if err := o.draw(c); err != nil {
			return err
		}
	}
	if o.page != "" {
		return replaceTables(o.page, tables)
	}
	_, err = io.WriteString(to, strings.Join(tables, "\n"))
	return err
}

// plan is what one fleet needs.
type plan struct {
	fleet fleet
	one   hub
	// sharded is one of the replicas that share the SyncTargets.
	sharded hub
	kcp     kcp
}

func (o options) plan(c costs, clusters float64) (plan, error) {
	f := o.fleet
	f.clusters = clusters
	if err := f.validate(); err != nil {
		return plan{}, err
	}
	return plan{fleet: f, one: c.oneActive(f), sharded: c.sharded(f, o.memory*gibi, o.cores), kcp: c.kcp(f)}, nil
}

// endpointRequests returns how many writes a second the active replica sends to one shard of kcp.
func (p plan) endpointRequests() float64 { return p.kcp.hubPeak / p.kcp.shards }

// draw writes the chart of memory and replicas.
func (o options) draw(c costs) error {
	one := chart.Curve{Label: "one active replica", Color: chart.Limit}
	own := chart.Curve{Label: "sharded replicas, the largest", Color: chart.Good}
	limit := chart.Curve{Label: "memory limit of a sharded replica", Color: chart.Text, Dashed: true}
	replicas := chart.Curve{Label: "sharded replicas of the hub", Color: chart.Good}
	kcpShards := chart.Curve{Label: "shards of kcp", Color: chart.Limit}
	for _, clusters := range []float64{100, 300, 500, 700, 1000, 2000, 3000, 5000, 7000, 10_000} {
		made, err := o.plan(c, clusters)
		if err != nil {
			return err
		}
		for curve, value := range map[*chart.Curve]float64{
			&one: made.one.memory / gibi, &limit: o.memory, &kcpShards: made.kcp.shards, &own: made.sharded.memory / gibi, &replicas: float64(made.sharded.replicas),
		} {
			curve.Points = append(curve.Points, [2]float64{clusters, value})
		}
	}
	clusters := []float64{100, 200, 500, 1000, 2000, 5000, 10_000}
	image := chart.Curves(
		chart.Panel{Title: fmt.Sprintf("Memory in GiB of a replica, with %s objects for each cluster", count(o.fleet.objects)), XLabel: "clusters",
			XTicks: clusters, YTicks: []float64{1, 2, 5, 10, 20, 50, 100, 200}, Curves: []chart.Curve{one, own, limit}},
		chart.Panel{Title: "Replicas of the hub, and shards of kcp", XLabel: "clusters",
			XTicks: clusters, YTicks: []float64{0, 2, 4, 6, 8, 10, 12, 14, 16}, Curves: []chart.Curve{replicas, kcpShards}},
	)
	if err := os.WriteFile(o.chart, image, 0o644); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}

// line is a row of a table about plans.
type line struct {
	label string
	cell  func(plan) string
}

// needs are the rows of the table for readers in a hurry.
func needs(o options) []line {
	return []line{
		{"objects", func(p plan) string { return count(p.fleet.clusters * p.fleet.objects) }},
		{"edits a second", func(p plan) string { return count(p.fleet.clusters * p.fleet.edits) }},
		{"one active replica: its memory limit, and its standby's", func(p plan) string { return size(p.one.limit) }},
		{"sharded: replicas of " + size(o.memory*gibi), sharded(func(h hub) string { return strconv.Itoa(h.replicas) })},
		{"shards of kcp, and their reason", func(p plan) string { return count(p.kcp.shards) + ": " + p.kcp.reason() }},
		{"the hub's requests a second to kcp, at rest", func(p plan) string { return count(p.kcp.hubRest) }},
		{"the same with the edits", func(p plan) string { return count(p.kcp.hubPeak) }},
		{"registering all clusters", func(p plan) string { return duration(p.kcp.fast) + " to " + duration(p.kcp.slow) }},
		{"start of one active replica", func(p plan) string { return duration(p.one.start) }},
		{"start of a sharded replica", sharded(func(h hub) string { return duration(h.start) })},
	}
}

// values are the rows of the table of the chart's values.
func values(c costs) []line {
	return []line{
		{"`resources.limits.memory`", func(p plan) string { return quantity(p.one.limit) }},
		{"`mailboxes.totalBytes`", func(p plan) string { return orDefault(p.one.mailboxBytes) }},
		{"`targets.totalBytes`", func(p plan) string { return orDefault(p.one.targetBytes) }},
		{"sharded: `replicaCount`", sharded(func(h hub) string { return strconv.Itoa(h.replicas) })},
		{"sharded: `resources.limits.memory`", sharded(func(h hub) string { return quantity(h.limit) })},
		{"sharded: `mailboxes.totalBytes`", sharded(func(h hub) string { return orDefault(h.mailboxBytes) })},
		{"sharded: `targets.totalBytes`", sharded(func(h hub) string { return orDefault(h.targetBytes) })},
		{"`mailboxes.maxPerInventory`, with one inventory", func(p plan) string { return unlessDefault(p.fleet.clusters, c.maxMailboxes) }},
		{"`mailboxes.maxObjects`", func(p plan) string { return unlessDefault(p.fleet.objects, c.maxObjects) }},
		{"`mailboxes.maxBytes`", func(p plan) string {
			if bytes := c.mailboxMemory(p.fleet, p.fleet.objects) * margin; bytes > c.maxBytes {
				return size(bytes)
			}
			return "default"
		}},
		{"`kcp.qps`", func(p plan) string { return unlessDefault(p.endpointRequests(), c.qps) }},
		// docs/metrics.md recommends metrics by resource for up to 100 clusters.
		{"`metrics.perResource`", func(p plan) string { return strconv.FormatBool(p.fleet.clusters <= 100) }},
	}
}

// details are the rows of the table behind the other ones.
func details(c costs) []line {
	watches := func(p plan, replicas int) string { return count(float64(replicas) * p.kcp.shards * p.fleet.resources) }
	series := func(p plan, pairs float64) string {
		return count(p.fleet.clusters * (pairs*c.seriesOfPair + c.seriesOfTarget))
	}
	return []line{
		{"one active: CPUs", func(p plan) string { return cores(p.one.cores) }},
		{"sharded: CPUs of the largest replica", sharded(func(h hub) string { return cores(h.cores) })},
		{"sharded: SyncTargets of the largest replica", sharded(func(h hub) string { return count(float64(h.load.largest)) })},
		{"sharded: the same, when any one replica is lost", sharded(func(h hub) string { return count(float64(h.load.afterLoss)) })},
		{"sharded: its memory then", sharded(func(h hub) string { return size(h.memory) })},
		{"sharded: renewals of Leases a second in the hosting cluster", sharded(func(hub) string { return count(shards.Count / leaseRenewal) })},
		{"shards for the size of etcd, with a database of " + size(etcdBytes*etcdUsed) + " each", func(p plan) string { return count(p.kcp.byStorage) }},
		{"shards for writes, with " + count(c.writesOfShard()) + " a second each", func(p plan) string { return count(p.kcp.byWrites) }},
		{"shards for mailbox workspaces, with " + size(shardMemory) + " each", func(p plan) string { return count(p.kcp.byMailboxes) }},
		{"stored in etcd, all shards", func(p plan) string { return size(p.kcp.storage) }},
		{"writes a second to kcp, of users and the hub", func(p plan) string { return count(p.kcp.writes) }},
		{"memory of kcp for mailbox workspaces", func(p plan) string { return size(p.kcp.mailboxMemory) }},
		{"CPUs of kcp and the clusters together, for the edits", func(p plan) string { return cores(p.kcp.cores) }},
		{"the hub's requests a second to one shard, of `kcp.qps` " + count(c.qps), func(p plan) string { return count(p.endpointRequests()) }},
		{"Secrets that one active replica reads at its start, of `kcp.burst` " + count(c.qpsBurst), func(p plan) string { return count(p.fleet.clusters) }},
		{"watches of mailboxes, one active and a standby", func(p plan) string { return watches(p, p.one.replicas) }},
		{"watches of mailboxes, sharded", func(p plan) string { return sharded(func(h hub) string { return watches(p, h.replicas) })(p) }},
		// One for each resource, and the watches of namespaces and definitions.
		{"watches on all clusters, twice with a warm standby", func(p plan) string { return count(p.fleet.clusters * (p.fleet.resources + 2)) }},
		{"requests a second to all clusters at rest, likewise", func(p plan) string { return count(c.restTarget / c.fleet / 60 * p.fleet.clusters) }},
		{"time series, with `metrics.perResource`", func(p plan) string { return series(p, p.fleet.resources) }},
		{"time series, without", func(p plan) string { return series(p, 1) }},
	}
}

// sharded is for cells about replicas that share the SyncTargets.
func sharded(cell func(hub) string) func(plan) string {
	return func(p plan) string {
		if p.sharded.replicas == 0 {
			return "does not fit"
		}
		return cell(p.sharded)
	}
}

// planTable returns a table with a column for each plan.
func planTable(corner string, lines []line, plans []plan) string {
	rows := [][]string{{corner}}
	for _, p := range plans {
		rows[0] = append(rows[0], count(p.fleet.clusters)+" clusters")
	}
	for _, l := range lines {
		row := []string{l.label}
		for _, p := range plans {
			row = append(row, l.cell(p))
		}
		rows = append(rows, row)
	}
	return table(rows)
}

// divisions returns a table about how evenly SyncTargets are divided.
func divisions() string {
	const syncTargets = 10_000
	rows := [][]string{{"replicas", "largest replica", "the same, when one is lost", "moved when one joins"}}
	for _, replicas := range []int{2, 3, 5, 10, 20} {
		part := func(number int) string { return fmt.Sprintf("%.2f", float64(number*replicas)/syncTargets) }
		load := divide(syncTargets, replicas)
		rows = append(rows, []string{strconv.Itoa(replicas), part(load.largest), part(load.afterLoss), count(float64(load.moved))})
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
	return resource.NewQuantity(int64(bytes), resource.BinarySI).String()
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
