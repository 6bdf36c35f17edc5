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

package scenario

import (
	"context"
	"time"

	"github.com/synchub-dev/synchub/test/bench/report"
)

// Scenario is one benchmark.
type Scenario struct {
	// Name selects the scenario, and About describes it.
	Name, About string
	// LongRunning scenarios are left out of a quick run unless they are named: they mostly wait until the hub has been idle
	// for long.
	LongRunning bool
	// FreshServers scenarios run with servers of their own: two kcps with 200,000 objects take more than 20 GiB.
	FreshServers bool
	// NoTargets scenarios run in an environment of their own, without targets.
	NoTargets bool

	run func(context.Context, *Env) ([]report.Row, error)
}

// Run runs the scenario on an idle environment and returns its results.
func (s Scenario) Run(ctx context.Context, world *Env) ([]report.Row, error) {
	if err := world.waitIdle(ctx); err != nil {
		return nil, err
	}
	rows, err := s.run(ctx, world)
	for i := range rows {
		rows[i].Scenario = s.Name
	}
	return rows, err
}

// All are the scenarios in the order in which they run: those with few objects first.
var All = []Scenario{
	{Name: "requests", About: "what the hub asks for a create, an update, a status and a delete of one object", run: requests},
	{Name: "edit", About: "from a mailbox to its target, one change at a time", run: edits},
	{Name: "status", About: "from a target to its mailbox, one status at a time", run: statuses},
	{Name: "restart", About: "a restart with nothing changed", run: restarts},
	{Name: "takeover", About: "how long a change waits when the leader ends or is killed", run: takeovers},
	{Name: "burst", About: "many objects at once, over a fleet", run: fleetBurst},
	{Name: "burst-clusters", About: "many objects at once, over two whole clusters", FreshServers: true, run: clusterBurst},
	{Name: "memory", About: "what objects, and idle pairs of a target and a resource, take", FreshServers: true, run: memory},
	{Name: "busy", About: "an edit while many objects of another mailbox, or of the same, are synced", run: busy},
	{Name: "fleet", About: "what an event costs with more mailboxes", run: events},
	{Name: "long", About: "what is left after a long time in which much changes and targets come and go", LongRunning: true, run: long},
	{Name: "placement-edit", About: "one edit of an object that is placed on a fleet", FreshServers: true, run: withPlacements(placementEdits)},
	{Name: "placement-events", About: "what an edit costs with more placements", run: withPlacements(placementEvents)},
	{Name: "placement-busy", About: "an edit while many objects of another workload workspace are placed", run: withPlacements(placementBusy)},
	{Name: "placement-tenancy", About: "many objects at once, where each workspace has namespaces and an identity of its own", run: withPlacements(placementTenancy)},
	{Name: "placement-memory", About: "what a placed object takes beyond one of the mailbox", run: withPlacements(placementMemory)},
	{Name: "placement-restart", About: "a restart with many placements and nothing changed", run: withPlacements(placementRestarts)},
	{Name: "fleet-idle", About: "what hundreds of targets cost while nothing happens", LongRunning: true, NoTargets: true, run: fleetIdle},
}

// Size is the size of a run.
type Size struct {
	// Targets is the number of targets in the fleet. Rounds is the number of rounds of each comparison. It is even, since
	// hub and baseline alternate in the order, and the second finds busier servers.
	Targets, Rounds int
	// Burst is the number of objects of a burst over all targets, and Edits the number of single changes in a round.
	Burst, Edits int
	// Restarts are the numbers of objects in sync at restarts of the hub.
	Restarts []int
	// Memory is the number of objects for the memory per object. Busy is the number of objects to sync while another object
	// is edited.
	Memory, Busy int
	// Long is the duration of the long run, and Parts the number of its measurements.
	Long  time.Duration
	Parts int
	// Idle is the number of targets of the idle fleet.
	Idle int
	// PlacedEdits is the number of edits of an object on the whole fleet in a round.
	PlacedEdits int
	// Placements is the number of placements at a restart, and ManyPlacements the number in a large workload workspace.
	Placements, ManyPlacements int
}

var (
	// Full is the size of published results.
	Full = Size{Targets: 100, Rounds: 4, Burst: 10_000, Edits: 200, Restarts: []int{1_000, 10_000}, Memory: 5_000, Busy: 10_000, Long: 20 * time.Minute, Parts: 4, Idle: 300, PlacedEdits: 10, Placements: 100, ManyPlacements: 1_000}
	// Quick takes a quarter of an hour.
	Quick = Size{Targets: 20, Rounds: 2, Burst: 2_000, Edits: 100, Restarts: []int{1_000}, Memory: 2_000, Busy: 2_000, Long: time.Minute, Parts: 1, Idle: 20, PlacedEdits: 5, Placements: 20, ManyPlacements: 200}
)

// GroupByEnv groups scenarios that run in the same environment. With few objects, FreshServers has no effect.
func GroupByEnv(scenarios []Scenario, few bool) (parts [][]Scenario) {
	for i, one := range scenarios {
		if i == 0 || one.FreshServers && !few || one.NoTargets || scenarios[i-1].NoTargets {
			parts = append(parts, nil)
		}
		last := len(parts) - 1
		parts[last] = append(parts[last], one)
	}
	return parts
}
