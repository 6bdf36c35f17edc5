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
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"synchub.dev/hack/capacity/inputs"
	"synchub.dev/hack/capacity/model"
	"synchub.dev/hack/capacity/spread"
)

// options are the flags. Numbers of objects and edits are for one cluster, so that fleets of several sizes can be compared.
type options struct {
	root, page, chart string
	clusters          string
	objects           int
	objectBytes       float64
	selected          float64
	resources         int
	edits, statuses   float64
	memoryLimit       float64
	cores             float64
	mailboxes         string
	shards            int
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", "../..", "the directory of the repository")
	flag.StringVar(&o.page, "page", "", "put the tables into this page, instead of printing them")
	flag.StringVar(&o.chart, "chart", "", "draw the chart into this file")
	bind(&o, flag.CommandLine)
	flag.Parse()
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
}

// bind adds the flags that describe a fleet and a replica.
func bind(o *options, flags *flag.FlagSet) {
	flags.StringVar(&o.clusters, "clusters", "100,1000,10000", "numbers of clusters, with commas")
	flags.IntVar(&o.objects, "objects", 1000, "objects in the mailbox of each cluster")
	flags.Float64Var(&o.objectBytes, "object-bytes", model.SampleBytes, "mean size of an object")
	flags.Float64Var(&o.selected, "selected", 1, "part of the objects that a config selects")
	flags.IntVar(&o.resources, "resources", 10, "resources that are synced with each cluster")
	flags.Float64Var(&o.edits, "edits", 0.1, "edits a second in the mailbox of each cluster")
	flags.Float64Var(&o.statuses, "statuses", 1, "statuses that come back for each edit")
	flags.Float64Var(&o.memoryLimit, "memory-limit", 16, "memory limit in GiB of a replica that shares the fleet with others")
	flags.Float64Var(&o.cores, "cores", 2, "processors of a replica")
	flags.StringVar(&o.mailboxes, "mailboxes", string(model.WatchOwn), "mailboxes of a replica that shares the fleet: own, all (it holds the objects of all), drop (it reads all, and holds its own)")
	flags.IntVar(&o.shards, "shards", 0, "shards of kcp; 0 stands for the least number that is enough")
}

const (
	mebi = 1 << 20
	gibi = 1 << 30
)

func run(o options, to io.Writer) error {
	costs, figures, err := inputs.Read(o.root)
	if err != nil {
		return err
	}
	p, err := newPlanner(o, costs)
	if err != nil {
		return err
	}
	tables, err := p.tables(o)
	if err != nil {
		return err
	}
	tables = append(tables, divisions(), sources(figures))
	if o.chart != "" {
		if err := p.draw(o); err != nil {
			return err
		}
	}
	if o.page != "" {
		return replaceTables(o.page, tables)
	}
	_, err = io.WriteString(to, strings.Join(tables, "\n"))
	return err
}

func newPlanner(o options, costs model.Costs) (planner, error) {
	p := planner{
		Model:   model.Model{Costs: costs, Limits: model.Documented, Assumptions: model.Assumed},
		divider: newMemo(spread.Shards{Names: spread.DeploymentPods}),
		even:    newMemo(spread.Simulation{Sharder: spread.Even{}, Names: spread.DeploymentPods}),
		replica: model.Replica{Memory: o.memoryLimit * gibi, Cores: o.cores},
		reading: model.Reading(o.mailboxes),
	}
	if _, ok := readings[p.reading]; !ok {
		return planner{}, fmt.Errorf("a replica reads own or all mailboxes, or drops others, not %q", o.mailboxes)
	}
	return p, nil
}

// tables returns the tables about the fleets of the options.
func (p planner) tables(o options) ([]string, error) {
	plans, err := p.plans(o)
	if err != nil {
		return nil, err
	}
	return []string{planTable("need", p.needs(), plans), planTable("value", p.values(), plans), planTable("detail", p.details(), plans)}, nil
}

// fleet returns the fleet of so many clusters.
func (o options) fleet(clusters int) model.Fleet {
	return model.Fleet{
		Clusters: clusters, Objects: clusters * o.objects, ObjectBytes: o.objectBytes, Selected: o.selected, Resources: o.resources,
		Edits: float64(clusters) * o.edits, StatusesPerEdit: o.statuses,
		Shards: o.shards,
	}
}

// planner computes plans by one model.
type planner struct {
	model.Model
	// divider is the one that the hub has, and even one to compare with.
	divider, even model.Divider
	replica       model.Replica
	// reading is what a replica that shares the fleet reads of mailboxes.
	reading model.Reading
}

// readings says what a replica holds.
var readings = map[model.Reading]string{
	model.WatchOwn: "hold their own mailboxes",
	model.HoldOwn:  "read all mailboxes, and hold their own",
	model.HoldAll:  "hold all mailboxes",
}

// memo remembers the loads that a simulation has returned.
type memo struct {
	simulation model.Divider
	loads      map[[2]int]spread.Load
}

func newMemo(simulation model.Divider) memo { return memo{simulation, map[[2]int]spread.Load{}} }

// Divide asks the simulation once.
func (m memo) Divide(syncTargets, replicas int) spread.Load {
	key := [2]int{syncTargets, replicas}
	load, ok := m.loads[key]
	if !ok {
		load = m.simulation.Divide(syncTargets, replicas)
		m.loads[key] = load
	}
	return load
}

// plan is what one fleet needs.
type plan struct {
	fleet model.Fleet
	one   model.Hub
	// divided are the replicas if SyncTargets are divided, all and dropping as many that read more, and even those with an even
	// hash. fits is false if no number of replicas is enough.
	divided, all, dropping, even model.Hub
	fits                         bool
	kcp                          model.Kcp
}

func (p planner) plans(o options) ([]plan, error) {
	var plans []plan
	for text := range strings.SplitSeq(o.clusters, ",") {
		clusters, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%q is no number of clusters", text)
		}
		one, err := p.plan(o.fleet(clusters))
		if err != nil {
			return nil, err
		}
		plans = append(plans, one)
	}
	return plans, nil
}

func (p planner) plan(f model.Fleet) (plan, error) {
	if err := f.Validate(); err != nil {
		return plan{}, err
	}
	made := plan{fleet: f, one: p.OneActive(f), kcp: p.Kcp(f)}
	var err error
	if made.divided, err = p.Divided(f, p.reading, p.replica, p.divider); errors.Is(err, model.ErrNoFit) {
		return made, nil
	}
	made.fits = true
	made.all = p.DividedAmong(f, model.HoldAll, made.divided.Replicas, p.divider)
	made.dropping = p.DividedAmong(f, model.HoldOwn, made.divided.Replicas, p.divider)
	made.even, err = p.Divided(f, p.reading, p.replica, p.even)
	return made, err
}
