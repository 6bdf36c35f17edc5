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
	"fmt"
	"slices"
	"time"

	"github.com/synchub-dev/synchub/test/bench/baseline"
	"github.com/synchub-dev/synchub/test/bench/report"
)

// inFlight is the hub's number of concurrent requests per resource and target; see controllers/objectsync.
const inFlight = 4

// runCost is the cost of a run: elapsed time, CPU time of the syncer, and CPU time of the servers.
type runCost struct{ elapsed, cpu, servers time.Duration }

// costRows has a row for each part of the cost of a burst.
type costRows struct {
	elapsed, cpu, servers report.Row
	objects               int
}

func newCostRows(objects, targets int) *costRows {
	what := fmt.Sprintf("%d objects over %d targets, %d requests in flight for each: ", objects, targets, inFlight)
	return &costRows{
		elapsed: report.Row{What: what + "elapsed", Unit: "s", Limit: new(1.15)},
		cpu:     report.Row{What: what + "processor time for 1,000 objects", Unit: "s", Limit: new(1.5)},
		servers: report.Row{What: what + "the servers' processor time for 1,000 objects", Unit: "s"},
		objects: objects,
	}
}

func (b *costRows) rows() []report.Row {
	rows := []report.Row{b.elapsed, b.cpu}
	if slices.Max(b.servers.Direct) > 0 {
		rows = append(rows, b.servers)
	}
	return rows
}

// column selects the values of the hub or of the baseline in a row.
type column func(*report.Row) *[]float64

func hubColumn(row *report.Row) *[]float64    { return &row.Hub }
func directColumn(row *report.Row) *[]float64 { return &row.Direct }

func (b *costRows) add(of column, cost runCost) {
	forThousand := func(cost time.Duration) float64 { return cost.Seconds() * 1000 / float64(b.objects) }
	for row, value := range map[*report.Row]float64{
		&b.elapsed: cost.elapsed.Seconds(), &b.cpu: forThousand(cost.cpu), &b.servers: forThousand(cost.servers),
	} {
		*of(row) = append(*of(row), value)
	}
}

func fleetBurst(ctx context.Context, w *Env) ([]report.Row, error) {
	return w.runBursts(ctx, "fleet", w.fleet)
}

func clusterBurst(ctx context.Context, w *Env) ([]report.Row, error) {
	return w.runBursts(ctx, "clusters", w.clusters)
}

// runBursts syncs many objects, by the hub and by the baseline in alternation.
func (w *Env) runBursts(ctx context.Context, name string, targets []*testTarget) ([]report.Row, error) {
	each := w.Burst / len(targets)
	objects := each * len(targets)
	costs := newCostRows(objects, len(targets))
	for round := range w.Rounds {
		hub, direct := fmt.Sprintf("hub-burst-%s-%d", name, round), fmt.Sprintf("bare-burst-%s-%d", name, round)
		for _, namespace := range []string{hub, direct} {
			if err := w.fillSuspended(ctx, targets, namespace, each); err != nil {
				return nil, err
			}
		}
		runs := []func() error{
			func() error {
				cost, err := w.withServers(func() (runCost, error) { return w.burstDirectly(ctx, direct, objects) })
				costs.add(directColumn, cost)
				return err
			},
			func() error {
				cost, err := w.withServers(func() (runCost, error) { return w.burstByHub(ctx, hub, targets, objects) })
				costs.add(hubColumn, cost)
				return err
			},
		}
		// The order alternates, so that neither always finds the servers warm.
		for i := range runs {
			if err := w.waitIdle(ctx); err != nil {
				return nil, err
			}
			if err := runs[(i+round)%len(runs)](); err != nil {
				return nil, err
			}
		}
		w.synced += objects
		w.progress("round %d: the hub took %.2f s, a direct client %.2f s", round+1, costs.elapsed.Hub[round], costs.elapsed.Direct[round])
	}
	return costs.rows(), nil
}

// fillSuspended creates objects in each mailbox. In a hub namespace, their config is suspended until resume.
func (w *Env) fillSuspended(ctx context.Context, targets []*testTarget, namespace string, each int) error {
	started := time.Now()
	defer func() { w.progress("%d objects made in %.1f s", each*len(targets), time.Since(started).Seconds()) }()
	return w.each(ctx, targets, func(ctx context.Context, at *testTarget) error {
		if err := at.prepare(ctx, namespace); err != nil {
			return err
		}
		if isHubNamespace(namespace) {
			if err := at.configure(ctx, config(namespace, true, configMaps)); err != nil {
				return err
			}
		}
		return at.fill(ctx, configMaps, configMapsOf(namespace, each)...)
	})
}

// withServers adds the CPU time of the servers, until they are idle again, to the cost of a run.
func (w *measuredHub) withServers(do func() (runCost, error)) (runCost, error) {
	before, err := w.serversTime()
	if err != nil {
		return runCost{}, err
	}
	cost, err := do()
	if err != nil {
		return runCost{}, err
	}
	after, err := w.serversTime()
	cost.servers = after - before
	return cost, err
}

func (w *Env) burstDirectly(ctx context.Context, namespace string, objects int) (runCost, error) {
	before, err := w.baseline.Send(baseline.Request{Operation: baseline.Noop})
	if err != nil {
		return runCost{}, err
	}
	answer, err := w.baseline.Send(baseline.Request{Operation: baseline.Burst, Resource: configMaps, Namespace: namespace, Workers: inFlight})
	if err != nil {
		return runCost{}, err
	}
	if answer.Objects != objects {
		return runCost{}, fmt.Errorf("the bare syncer sees %d objects of %d", answer.Objects, objects)
	}
	// The watches on the targets still deliver events of the writes.
	if err := w.waitIdle(ctx); err != nil {
		return runCost{}, err
	}
	after, err := w.baseline.Send(baseline.Request{Operation: baseline.Noop})
	return runCost{elapsed: answer.Elapsed, cpu: after.CPU - before.CPU}, err
}

func (w *Env) burstByHub(ctx context.Context, namespace string, targets []*testTarget, objects int) (runCost, error) {
	used, err := w.processorTime(ctx)
	if err != nil {
		return runCost{}, err
	}
	elapsed, err := w.resume(ctx, namespace, targets, objects)
	if err != nil {
		return runCost{}, err
	}
	if err := w.waitIdle(ctx); err != nil {
		return runCost{}, err
	}
	total, err := w.processorTime(ctx)
	return runCost{elapsed: elapsed, cpu: total - used}, err
}

// resume resumes the configs of mailboxes, and returns how long the hub took to create their objects.
func (w *Env) resume(ctx context.Context, namespace string, targets []*testTarget, objects int) (time.Duration, error) {
	before, err := w.created(ctx)
	if err != nil {
		return 0, err
	}
	started := time.Now()
	err = w.each(ctx, targets, func(ctx context.Context, at *testTarget) error { return at.resume(ctx, namespace) })
	if err != nil {
		return 0, err
	}
	return w.await(ctx, started, w.created, before+float64(objects), time.Second)
}
