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
	"math"
	"testing"
)

// simple has costs that are easy to compute with.
var simple = costs{
	process: 100 * mebi, target: mebi, pair: mebi / 10.0, object: 8000, mailboxObject: 5000, unselected: 1000,
	large: 40 * 1_006_000, largeCount: 40, inventory: 1000,
	idleCores: 0.03, idleTargets: 300, change: 1e-3, serversChange: 4e-3, decode: 10, watch: 10,
	startSmall: 2, startLarge: 11, burst: 20, burstObjects: 10_000,
	fleet: 300, restControl: 300, restTarget: 1800, mailboxesReady: 600, atOnce: 10,
	kcpMemory: 600 * 70 * mebi, kcpMailboxes: 300, kcpTargets: 300,
}

// fleetOf returns a fleet with a number of objects in all, and ten edits a second.
func fleetOf(clusters, objects float64) fleet {
	return fleet{clusters: clusters, objects: objects / clusters, objectBytes: sampleBytes, selected: 1, resources: 11, edits: 10 / clusters, statusesPerEdit: 1}
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*math.Abs(want)+1e-9 }

func expect(t *testing.T, values map[string][2]float64) {
	t.Helper()
	for name, value := range values {
		if !near(value[0], value[1]) {
			t.Errorf("%s: %g, want %g", name, value[0], value[1])
		}
	}
}

func TestOneActive(t *testing.T) {
	h := simple.oneActive(fleetOf(300, 10_000))
	expect(t, map[string][2]float64{
		"base": {h.base, (100 + 300*2) * mebi}, "memory": {h.memory, (700*mebi + 160e6) / 0.9}, "limit": {h.limit, gibi},
		"CPUs": {h.cores, 0.03 + 20*1e-3}, "start": {h.start, 11}, "mailbox cache": {h.mailboxBytes, 0}, "target cache": {h.targetBytes, 0},
	})
}

func TestObjectsOfOtherKinds(t *testing.T) {
	f := fleetOf(10, 10_000)
	unselected, large, empty := f, f, f
	unselected.selected, large.objectBytes, empty.objectBytes = 0, sampleBytes+1000, 0
	cheap := simple
	cheap.mailboxObject = 2500
	expect(t, map[string][2]float64{
		"2 KB": {simple.mailboxMemory(f, 10_000), 50e6}, "unselected": {simple.mailboxMemory(unselected, 10_000), 10e6},
		// 40 objects of 1 MB take 1,006,000 bytes each, so each byte beyond 2 KB takes one.
		"3 KB": {simple.mailboxMemory(large, 10_000), 60e6},
		// An object is never cheaper than the knowledge that it exists.
		"empty": {cheap.mailboxMemory(empty, 10_000), 10e6},
	})
}

// A limit is named when the default is too small: a quarter is enough for 3 of 16 GB, a fifth is not for 5.
func TestCacheLimits(t *testing.T) {
	h := simple.oneActive(fleetOf(1, 1_000_000))
	expect(t, map[string][2]float64{"mailboxes": {h.mailboxBytes, roundUp(5e9*1.25, mebi)}, "targets": {h.targetBytes, 0}})
}

func TestSharded(t *testing.T) {
	f := fleetOf(1000, 1_000_000)
	h := simple.sharded(f, 8*gibi, 2)
	if h.replicas == 0 || h.limit > 8*gibi || h.limit < h.memory || h.targets != float64(h.load.afterLoss) {
		t.Errorf("%+v", h)
	}
	if fewer := simple.hub(f, h.replicas-1, float64(divide(1000, h.replicas-1).afterLoss)); fewer.limit <= 8*gibi {
		t.Errorf("%d replicas, and %d would be enough", h.replicas, h.replicas-1)
	}
	// The events of other mailboxes are read, for a fifth of the CPU time.
	expect(t, map[string][2]float64{"CPUs": {simple.hub(f, 2, 500).cores, 0.05 + 20*1e-3*(0.5+0.5*0.2)}})
	for name, replica := range map[string][2]float64{"memory": {gibi / 8, 2}, "CPU": {1 << 40, 0}} {
		if h := simple.sharded(f, replica[0], replica[1]); h.replicas != 0 {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

func TestKcp(t *testing.T) {
	f := fleetOf(1200, 2_000_000)
	f.edits = 0.5
	k := simple.kcp(f)
	// A status for each edit, and one of a config: 1,200 mailboxes write at most 240 of these a second.
	expect(t, map[string][2]float64{
		"at rest": {k.hubRest, 20}, "with edits": {k.hubPeak, 20 + 600 + 240}, "writes": {k.writes, 1460},
		"storage": {k.storage, 3024 * (2_000_000 + 1460*300)}, "memory": {k.mailboxMemory, 84_000 * mebi}, "CPUs": {k.cores, 4.8},
		"fast": {k.fast, 120}, "slow": {k.slow, 2400}, "to a shard": {plan{kcp: k}.endpointRequests(), 860 / 3.0},
		"by storage": {k.byStorage, 2}, "by writes": {k.byWrites, 3}, "by mailboxes": {k.byMailboxes, 2}, "shards": {k.shards, 3},
	})
	f.shards = 6
	expect(t, map[string][2]float64{"given shards": {simple.kcp(f).shards, 6}})
}

func TestReason(t *testing.T) {
	for want, k := range map[string]kcp{
		"one is enough":                {shards: 1, byStorage: 1, byWrites: 1, byMailboxes: 1},
		"size of etcd":                 {shards: 3, byStorage: 3, byWrites: 1, byMailboxes: 1},
		"writes":                       {shards: 3, byStorage: 1, byWrites: 3, byMailboxes: 1},
		"memory of mailbox workspaces": {shards: 3, byStorage: 1, byWrites: 1, byMailboxes: 3},
		"given":                        {shards: 4, byStorage: 1, byWrites: 3, byMailboxes: 1},
		"too few, 3 are needed":        {shards: 2, byStorage: 1, byWrites: 3, byMailboxes: 1},
	} {
		if got := k.reason(); got != want {
			t.Errorf("%+v: %s, want %s", k, got, want)
		}
	}
}

func TestDivide(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {1, 5}, {100, 2}, {300, 7}, {1000, 3}} {
		made := divide(c[0], c[1])
		if again := divide(c[0], c[1]); again != made {
			t.Errorf("%v: first %+v, then %+v", c, made, again)
		}
		even := (c[0] + c[1] - 1) / c[1]
		if c[1] > 1 && made.afterLoss < made.largest || made.largest < even || made.afterLoss > c[0] || made.moved > c[0] {
			t.Errorf("%v: impossible load %+v", c, made)
		}
	}
}
