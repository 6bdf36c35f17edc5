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

// Scenario is one thing that is measured.
type Scenario struct {
	// Name is how it is selected, About what it measures.
	Name, About string
	// LongRunning is left out of a quick run unless it is named: most of it is waiting until the hub has been idle for long.
	LongRunning bool
	// FreshServers is run with servers of its own: two kcps that hold 200,000 objects take more than 20 GiB.
	FreshServers bool
	// NoTargets is run in a world of its own in which there is no target yet.
	NoTargets bool

	run func(context.Context, *Env) ([]report.Row, error)
}

// Run measures, and returns what was found.
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

// All are the scenarios in the order in which they are run: those that want few objects come first.
var All = []Scenario{
	{Name: "requests", About: "what the hub asks for a create, an update, a status and a delete of one object", run: requests},
	{Name: "edit", About: "from a mailbox to its target, one change at a time", run: edits},
	{Name: "status", About: "from a target to its mailbox, one status at a time", run: statuses},
	{Name: "restart", About: "a restart with nothing changed", run: restarts},
	{Name: "burst", About: "many objects at once, over a fleet", run: fleetBurst},
	{Name: "burst-clusters", About: "many objects at once, over two whole clusters", FreshServers: true, run: clusterBurst},
	{Name: "memory", About: "what objects, and idle pairs of a target and a resource, take", FreshServers: true, run: memory},
	{Name: "busy", About: "an edit while many objects of another mailbox, or of the same, are synced", run: busy},
	{Name: "fleet", About: "what an event costs with more mailboxes", run: events},
	{Name: "long", About: "what is left after a long time in which much changes and targets come and go", LongRunning: true, run: long},
	{Name: "fleet-idle", About: "what hundreds of targets cost while nothing happens", LongRunning: true, NoTargets: true, run: fleetIdle},
}

// Size is how much is done.
type Size struct {
	// Targets is how many targets the fleet has, Rounds how often each comparison is made: an even number, since hub and bare
	// syncer take turns in who comes first, and the second finds servers with more to do.
	Targets, Rounds int
	// Burst is how many objects a burst has, over all targets; Edits how many single changes a round has.
	Burst, Edits int
	// Restarts are the numbers of objects in sync with which the hub is started again.
	Restarts []int
	// Memory is how many objects are made to see what one takes, Busy how many are synced while one of them is edited.
	Memory, Busy int
	// Long is how long targets come and go in the long run, Parts how often it is looked at meanwhile.
	Long  time.Duration
	Parts int
	// Idle is how many targets are measured while nothing happens.
	Idle int
}

var (
	// Full is what figures are quoted from.
	Full = Size{Targets: 100, Rounds: 4, Burst: 10_000, Edits: 200, Restarts: []int{1_000, 10_000}, Memory: 5_000, Busy: 10_000, Long: 20 * time.Minute, Parts: 4, Idle: 300}
	// Quick ends within ten minutes.
	Quick = Size{Targets: 20, Rounds: 2, Burst: 2_000, Edits: 100, Restarts: []int{1_000}, Memory: 2_000, Busy: 2_000, Long: time.Minute, Parts: 1, Idle: 20}
)

// GroupByEnv parts scenarios into those that are run in the same world. Where there are few objects, none has to be run afresh for
// their sake.
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
