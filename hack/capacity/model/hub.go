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

package model

import (
	"errors"
	"math"

	"synchub.dev/hack/capacity/spread"
)

// Hub is what each replica of the hub needs.
type Hub struct {
	Replicas int
	// Targets is the greatest number of SyncTargets that a replica has: all, or its share after another replica was lost.
	Targets int
	// Memory is what the replica with most SyncTargets takes, and Limit the limit that it needs.
	Memory Memory
	Limit  float64
	// Cores is the processor time per second of that replica.
	Cores float64
	// Start is how many seconds after its start it has reconciled all objects.
	Start float64
	// Caches are the limits of caches that it needs.
	Caches Caches
	// Load is how SyncTargets are divided. It is empty if one replica has all.
	Load spread.Load
}

// OneActive returns what a leader and its warm standby need.
func (m Model) OneActive(f Fleet) Hub {
	return m.hub(f, 2, f.Clusters, HoldAll)
}

func (m Model) hub(f Fleet, replicas, targets int, reading Reading) Hub {
	s := f.shareOf(targets, reading)
	memory := m.memory(f, s)
	limit := roundUp(memory.Limit(), m.Assumptions.LimitStep)
	return Hub{
		Replicas: replicas, Targets: targets, Memory: memory, Limit: limit, Caches: m.caches(memory, limit),
		Cores: m.cores(f, s, reading), Start: m.start(f, s),
	}
}

// ErrNoFit means that no number of replicas is enough: a part of the need is the same in each.
var ErrNoFit = errors.New("no number of replicas is enough")

// Divider says how SyncTargets are divided.
type Divider interface {
	Divide(syncTargets, replicas int) spread.Load
}

// Divided returns the least number of replicas that share a fleet, such that all fit when any one is lost.
func (m Model) Divided(f Fleet, reading Reading, replica Replica, divider Divider) (Hub, error) {
	fits := func(hub Hub) bool { return hub.Limit <= replica.Memory && hub.Cores <= replica.Cores }
	for replicas := 2; replicas <= max(2, f.Clusters); replicas++ {
		even := int(math.Ceil(float64(f.Clusters) / float64(replicas-1)))
		if !fits(m.hub(f, replicas, even, reading)) {
			continue
		}
		if hub := m.DividedAmong(f, reading, replicas, divider); fits(hub) {
			return hub, nil
		}
	}
	return Hub{}, ErrNoFit
}

// DividedAmong returns what each of some replicas needs when any one is lost.
func (m Model) DividedAmong(f Fleet, reading Reading, replicas int, divider Divider) Hub {
	load := divider.Divide(f.Clusters, replicas)
	hub := m.hub(f, replicas, load.AfterLoss, reading)
	hub.Load = load
	return hub
}

// Renewals returns how often in a second Leases of shards are renewed in the hosting cluster. Another replica reads each as often.
func (m Model) Renewals() float64 { return spread.ShardCount / m.Limits.LeaseRenewal }

// Series returns the number of time series of a fleet, by resource or added up.
func (m Model) Series(f Fleet, perResource bool) float64 {
	pairs := 1.0
	if perResource {
		pairs = float64(f.Resources)
	}
	return float64(f.Clusters) * (pairs*m.SeriesOfPair + m.SeriesOfTarget)
}

// RestTargetRequests returns how many requests a second all targets get together at rest.
func (m Model) RestTargetRequests(f Fleet) float64 {
	return m.RestTarget / m.Fleet / 60 * float64(f.Clusters)
}

// TargetWatches returns the number of watches on all targets together: one for each resource, and those of namespaces and
// definitions.
func (f Fleet) TargetWatches() int { return f.Clusters * (f.Resources + 2) }
