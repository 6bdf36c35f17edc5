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
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/synchub-dev/synchub/hack/results"
)

const (
	kibi = 1 << 10
	mebi = 1 << 20
	gibi = 1 << 30
)

// costs are what was measured of the hub and of kcp, and the hub's own limits. Memory is in bytes, time in seconds.
type costs struct {
	// target is the memory of a target with its first resource, pair of each further resource.
	process, target, pair float64
	// object is the memory of a synced object of sampleBytes; mailboxObject is the part of it in the cache of the mailbox.
	object, mailboxObject float64
	// unselected is the memory of an object that no config selects: the hub stores its identity only.
	unselected float64
	// large is the memory that largeCount synced objects of largeBytes took.
	largeCount, large float64
	// inventory is the memory of a SyncTarget, and of its Secret, in the cache of inventories.
	inventory float64
	// idleCores are the CPUs of a hub with idleTargets targets at rest. change and serversChange are the CPU times for a new object.
	idleTargets, idleCores, change, serversChange float64
	// decode and watch are percentages of change.
	decode, watch float64
	// startSmall and startLarge are how long a hub takes after its start until smallObjects and largeObjects are in sync.
	startSmall, startLarge float64
	// burst is how long burstObjects creations took on one kcp.
	burstObjects, burst float64
	// fleet is the number of targets of the scale test; the other fields are its figures. Requests are counted per minute.
	fleet, mailboxesReady, restControl, restTarget float64
	// atOnce is how many mailboxes kcp prepares at a time, in about a second each.
	atOnce float64
	// kcpMemory is the memory of all kcps with so many mailboxes and so many workspaces of targets.
	kcpMailboxes, kcpTargets, kcpMemory float64
	seriesOfPair, seriesOfTarget        float64
	qps, qpsBurst                       float64
	maxObjects, maxBytes, maxMailboxes  float64
}

// Sizes of the objects that were measured, and how many a hub that was started had.
const (
	sampleBytes                = 2_000
	largeBytes                 = 1_000_000
	smallObjects, largeObjects = 1_000, 10_000
)

// source is where numbers are, and which costs they are.
type source struct {
	name string
	// page is a file. For a row of RESULTS.md it is the scenario.
	page string
	// pattern is the text around the numbers: # stands for a number, … for any text. A row has one more number, its result, or the
	// hub's own figure if raw is set.
	pattern string
	raw     bool
	// scale brings the last number to bytes or seconds.
	scale float64
	into  []*float64
}

const resultsPage = "RESULTS.md"

// sources returns the sources of all costs.
func sources(c *costs) []source {
	to := func(destinations ...*float64) []*float64 { return destinations }
	return []source{
		{"memory of the hub's process", "docs/sizing.md", "| the process | # MiB |", false, mebi, to(&c.process)},
		{"memory of a target, with its first resource", "docs/sizing.md", "| each target, with its first resource | # MiB |", false, mebi, to(&c.target)},
		{"memory of each further resource of a target", "memory", "heap and stacks of an idle pair…", false, 1, to(&c.pair)},
		{"memory of a synced object of 2 KB", "memory", "heap of a synced object of 2 KB…", false, 1, to(&c.object)},
		{"of that, in the cache of the mailbox", "docs/design/0020-targets-as-a-provider.md", "# KiB in the hub's caches of mailboxes", false, kibi, to(&c.mailboxObject)},
		{"memory of an object that the hub does not hold", "docs/operations.md", "the hub holds about # KiB", false, kibi, to(&c.unselected)},
		{"memory of large objects", "docs/sizing.md", "# ConfigMaps of 1 MB took 1.6 MB, and # MB when a config selected them", false, 1e6, to(&c.largeCount, &c.large)},
		{"memory of a SyncTarget in the cache of inventories, and of a Secret", "docs/operations.md", "the metadata of a kubeconfig's Secret, about # KiB each", false, kibi, to(&c.inventory)},
		{"CPU of an idle fleet", "fleet-idle", "# targets with 10 resources …: processor", false, 1, to(&c.idleTargets, &c.idleCores)},
		{"the hub's CPU time for 1,000 new objects", "burst", "…flight for each: processor time for 1,000 objects", true, 1e-3, to(&c.change)},
		{"the servers' CPU time for 1,000 new objects", "burst", "…: the servers' processor time for 1,000 objects", true, 1e-3, to(&c.serversChange)},
		{"part of the hub's CPU time that decodes objects, in %", resultsPage, "# % decoding objects", false, 1, to(&c.decode)},
		{"part of it that handles events, in %", resultsPage, "# % handling watch events", false, 1, to(&c.watch)},
		{"start with 1,000 objects", "restart", "1000 objects … against the same lists", true, 1, to(&c.startSmall)},
		{"start with 10,000 objects", "restart", "10000 objects … against the same lists", true, 1, to(&c.startLarge)},
		{"10,000 creations on one kcp", "burst", "# objects over …: elapsed", true, 1, to(&c.burstObjects, &c.burst)},
		{"fleet of the scale test, targets", "docs/performance.md", "| targets, objects on each | #, 10 |", false, 1, to(&c.fleet)},
		{"until its mailboxes were there, s", "docs/performance.md", "| then until all mailboxes are there | # s |", false, 1, to(&c.mailboxesReady)},
		{"its requests to kcp in a minute at rest", "docs/performance.md", "| requests per minute at rest: control | # |", false, 1, to(&c.restControl)},
		{"its requests to targets in a minute at rest", "docs/performance.md", "| requests per minute at rest: target | # |", false, 1, to(&c.restTarget)},
		{"mailboxes that kcp prepares at a time, in about a second each", "docs/sizing.md", "kcp prepares # at a time", false, 1, to(&c.atOnce)},
		{"memory of kcp, by mailboxes and workspaces of targets", "docs/sizing.md", "two kcps with # mailboxes and # target workspaces took # GiB", false, gibi, to(&c.kcpMailboxes, &c.kcpTargets, &c.kcpMemory)},
		{"time series of a target and resource", "docs/metrics.md", "has # series:", false, 1, to(&c.seriesOfPair)},
		{"time series of a target beside these", "docs/metrics.md", "each target has about # series", false, 1, to(&c.seriesOfTarget)},
		{"default of `--kcp-qps`", "docs/reference/cli-synchub.md", "`--kcp-qps` float32 | `#`", false, 1, to(&c.qps)},
		{"default of `--kcp-burst`", "docs/reference/cli-synchub.md", "`--kcp-burst` int | `#`", false, 1, to(&c.qpsBurst)},
		{"default of `--mailbox-max-objects`", "docs/operations.md", "`--mailbox-max-objects` (#) objects", false, 1, to(&c.maxObjects)},
		{"default of `--mailbox-max-bytes`, MiB", "docs/operations.md", "objects and `--mailbox-max-bytes` (# MiB)", false, mebi, to(&c.maxBytes)},
		{"default of `--inventory-max-mailboxes`", "docs/operations.md", "`--inventory-max-mailboxes` (#)", false, 1, to(&c.maxMailboxes)},
	}
}

// statements are limits that are documented elsewhere, and assumptions.
var statements = [][]string{
	{"greatest size of etcd's database", "8 GiB", "documented", "[etcd's system limits](https://etcd.io/docs/v3.6/dev-guide/limit/) suggest no more, and 2 GiB is the default"},
	{"how long former versions of an object stay in etcd", "5 min", "documented", "the default of `--etcd-compaction-interval` of kcp, as of [kube-apiserver](https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/)"},
	{"time between two renewals of the Lease of one of the 64 shards", "2 s", "documented", "the hub itself: [Several active replicas](operations.md#several-active-replicas)"},
	{"cost grows in proportion to the fleet", "", "**assumed**", "nothing larger than the fleets of [RESULTS.md](../RESULTS.md) was measured"},
	{"an edit, and a status, cost as much CPU time as a new object", "", "**assumed**", "only new objects were measured"},
	{"all clusters have as many objects", "", "**assumed**", "one large mailbox has [limits of its own](operations.md#limits)"},
	{"garbage, as a part of the objects", "100 %", "**assumed**", "as in [Sizing](sizing.md)"},
	{"stored in etcd beside an object's content", "1 KiB", "**assumed**", "managed fields, labels, the key"},
	{"part of etcd's size that is used", "50 %", "**assumed**", "the rest is for growth, and for what compaction leaves behind until etcd is defragmented"},
	{"memory of a shard for mailbox workspaces", "64 GiB", "**assumed**", "a large machine; kcp's memory for objects comes on top, and was not measured"},
	{"writes of a shard", "as in the burst", "**assumed**", "there, one kcp answered creations on two processors that all servers shared. A shard with processors of its own answers more"},
	{"margin of cache limits", "25 %", "**assumed**", "above the need"},
}

// readCosts returns the costs from the files below the root of the repository, and a row for each source: name, value, kind, place.
func readCosts(root string) (c costs, rows [][]string, err error) {
	text, err := os.ReadFile(filepath.Join(root, resultsPage))
	if err != nil {
		return c, nil, fmt.Errorf("read the results: %w", err)
	}
	measured, err := results.Parse(string(text))
	if err != nil {
		return c, nil, fmt.Errorf("read %s: %w", resultsPage, err)
	}
	for _, s := range sources(&c) {
		row, err := s.read(root, measured)
		if err != nil {
			return c, nil, fmt.Errorf("%s: %w", s.name, err)
		}
		rows = append(rows, row)
	}
	return c, append(rows, statements...), nil
}

// regexp returns the regular expression for the pattern. White space may differ.
func (s source) regexp() *regexp.Regexp {
	return regexp.MustCompile(strings.NewReplacer(" ", `\s+`, "#", `([\d.,]*\d)`, "…", ".*").Replace(regexp.QuoteMeta(s.pattern)))
}

func (s source) read(root string, measured []results.Row) ([]string, error) {
	if !strings.HasSuffix(s.page, ".md") {
		return s.readRow(measured)
	}
	text, err := os.ReadFile(filepath.Join(root, s.page))
	if err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	found := s.regexp().FindAllStringSubmatch(string(text), -1)
	if len(found) != 1 {
		return nil, fmt.Errorf("%s has %d places like %q, not one", s.page, len(found), s.pattern)
	}
	kind := "measured"
	if strings.HasPrefix(s.name, "default of") {
		kind = "the hub's default"
	}
	words := strings.ReplaceAll(strings.Trim(strings.Join(strings.Fields(found[0][0]), " "), "| "), "|", "–")
	return []string{s.name, strings.Join(found[0][1:], ", "), kind, link(s.page) + ": “" + words + "”"}, s.store(found[0][1:])
}

var units = map[string]float64{"KiB": kibi, "MiB": mebi, "s": 1, "% of a core": 0.01}

func (s source) readRow(measured []results.Row) ([]string, error) {
	for _, row := range measured {
		found := s.regexp().FindStringSubmatch(row.What)
		if row.Scenario != s.page || found == nil || !strings.HasPrefix(row.What, found[0]) {
			continue
		}
		figure := &row.Result
		if s.raw {
			figure = row.Hub
		}
		if figure == nil || units[figure.Unit] == 0 {
			return nil, fmt.Errorf("the row %q has no figure with a known unit", row.What)
		}
		number := strconv.FormatFloat(figure.Value, 'f', -1, 64)
		s.scale *= units[figure.Unit]
		return []string{s.name, number + " " + figure.Unit, "measured", link(resultsPage) + ": `" + s.page + "`, `" + row.What + "`"}, s.store(append(found[1:], number))
	}
	return nil, fmt.Errorf("%s has no row of %s like %q", resultsPage, s.page, s.pattern)
}

func (s source) store(numbers []string) error {
	for i, destination := range s.into {
		number, err := strconv.ParseFloat(strings.ReplaceAll(numbers[i], ",", ""), 64)
		if err != nil {
			return fmt.Errorf("%q is no number", numbers[i])
		}
		*destination = number
	}
	*s.into[len(s.into)-1] *= s.scale
	return nil
}

// link returns a link to a file of the repository from a page in docs.
func link(page string) string {
	target, ok := strings.CutPrefix(page, "docs/")
	if !ok {
		target = "../" + page
	}
	return "[" + strings.TrimPrefix(page, "docs/") + "](" + target + ")"
}
