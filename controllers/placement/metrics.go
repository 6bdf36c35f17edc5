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

package placement

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/synchub-dev/synchub/controllers/placement/rollout"
	"github.com/synchub-dev/synchub/provider/metrics"
)

// States of pairs in metrics.
const (
	statePlaced  = "placed"
	statePending = "pending"
	// stateWaiting: the rollout does not admit the object to the destination yet.
	stateWaiting     = "waiting"
	stateFailed      = "failed"
	stateWithdrawing = "withdrawing"
	// stateKept: the workspace is not visible, so the hub keeps its copies as they are.
	stateKept = "kept"
)

var (
	workspacesDesc = prometheus.NewDesc("synchub_placement_workspaces",
		"Workload workspaces that the hub knows.", nil, nil)
	pairsDesc = prometheus.NewDesc("synchub_placement_pairs",
		"Pairs of an object and a destination, by state: placed, pending, waiting, failed, withdrawing, or kept because the workspace is not visible.", []string{"state"}, nil)
)

// States of rollouts in metrics.
const (
	rolloutComplete    = "complete"
	rolloutProgressing = "progressing"
	rolloutPaused      = "paused"
	// rolloutStopped: the waiting destinations do not start, because other destinations have failed.
	rolloutStopped = "stopped"
)

var rolloutsDesc = prometheus.NewDesc("synchub_placement_rollouts",
	"EdgePlacements with a rollout strategy, by state: complete, progressing, paused, or stopped because destinations failed.", []string{"state"}, nil)

// runningControllers are the running controllers: none on a replica that is not the leader.
var runningControllers = metrics.New(collect, workspacesDesc, pairsDesc, rolloutsDesc)

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{runningControllers} }

func collect(running []*Controller, metrics chan<- prometheus.Metric) {
	if len(running) == 0 {
		return
	}
	workspaces, pairs := 0, map[string]int{statePlaced: 0, statePending: 0, stateWaiting: 0, stateFailed: 0, stateWithdrawing: 0, stateKept: 0}
	rollouts := map[string]int{rolloutComplete: 0, rolloutProgressing: 0, rolloutPaused: 0, rolloutStopped: 0}
	for _, controller := range running {
		for _, w := range controller.workspaces.list() {
			workspaces++
			w.countStates(pairs)
			w.countRollouts(rollouts)
		}
	}
	for state, count := range rollouts {
		metrics <- prometheus.MustNewConstMetric(rolloutsDesc, prometheus.GaugeValue, float64(count), state)
	}
	metrics <- prometheus.MustNewConstMetric(workspacesDesc, prometheus.GaugeValue, float64(workspaces))
	for state, count := range pairs {
		metrics <- prometheus.MustNewConstMetric(pairsDesc, prometheus.GaugeValue, float64(count), state)
	}
}

// countStates adds the numbers of pairs by state.
func (w *workspace) countStates(counts map[string]int) {
	isKept := w.active.get() == nil
	w.pairs.locked(func(objects map[objectKey]*object) {
		for _, entry := range objects {
			for _, found := range entry.pairs {
				switch {
				case isKept:
					counts[stateKept]++
				case !found.desired:
					counts[stateWithdrawing]++
				case found.placed:
					counts[statePlaced]++
				case found.failure != nil:
					counts[stateFailed]++
				case found.waiting:
					counts[stateWaiting]++
				default:
					counts[statePending]++
				}
			}
		}
	})
}

// countRollouts adds the numbers of rollouts by state.
func (w *workspace) countRollouts(counts map[string]int) {
	active := w.active.get()
	if active == nil {
		return
	}
	w.pairs.locked(func(map[objectKey]*object) {
		for _, placement := range active.all {
			if summed := placement.summarizeRollout(); summed != nil {
				counts[summed.state()]++
			}
		}
	})
}

// state returns the state of a rollout in metrics.
func (s *rolloutSummary) state() string {
	switch isComplete := s.counts[rollout.Waiting]+s.counts[rollout.Progressing]+s.counts[rollout.Failed] == 0; {
	case isComplete:
		return rolloutComplete
	case s.paused:
		return rolloutPaused
	case s.stopped:
		return rolloutStopped
	default:
		return rolloutProgressing
	}
}
