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
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/shards"
)

// Documented limits and assumptions, which statements has in words. Memory is in bytes, time in seconds.
const (
	etcdBytes      = 8 * gibi
	etcdUsed       = 0.5
	compaction     = 300.0
	leaseRenewal   = 2.0
	storedOverhead = 1 * kibi
	shardMemory    = 64 * gibi
	margin         = 1.25
)

// Fixed parts of the hub, see cmd/synchub/runtime.go. Go uses goPart of the memory limit; mailboxesPart and targetsPart of that are the
// default limits of caches.
const (
	goPart        = 0.9
	mailboxesPart = 1.0 / 5
	targetsPart   = 1.0 / 4
)

// fleet is the synced fleet. Objects, edits and resources are counted per cluster.
type fleet struct {
	clusters, objects, objectBytes, selected, resources float64
	edits, statusesPerEdit                              float64
	// shards is the number of kcp's shards. Zero stands for the least that is enough.
	shards float64
}

func (f fleet) validate() error {
	if f.clusters < 1 || f.resources < 1 || f.selected < 0 || f.selected > 1 || min(f.objects, f.objectBytes, f.edits, f.statusesPerEdit, f.shards) < 0 {
		return fmt.Errorf("%+v: a fleet has at least one cluster and resource, the selected part is from 0 to 1, and no number is negative", f)
	}
	return nil
}

// changes returns how many edits and statuses there are in a second.
func (f fleet) changes() float64 { return f.clusters * f.edits * (1 + f.statusesPerEdit) }

// hub is what a replica of the hub needs.
type hub struct {
	replicas int
	load     load
	// targets is the greatest number of SyncTargets that the replica can have.
	targets float64
	// base is the memory without objects, memory the least memory limit, and limit is that in whole GiB.
	base, memory, limit float64
	cores               float64
	// start is how many seconds after its start it has reconciled all objects.
	start float64
	// mailboxBytes and targetBytes are limits of caches. Zero stands for the default, which is enough.
	mailboxBytes, targetBytes float64
}

// hub returns what a replica with so many SyncTargets needs. It reads the events of all mailboxes, and drops the objects of SyncTargets
// that are not its own.
func (c costs) hub(f fleet, replicas int, targets float64) hub {
	part, objects := targets/f.clusters, targets*f.objects
	mailboxes := c.mailboxMemory(f, objects)
	copies := objects * f.selected * (c.object - c.mailboxObject)
	perStart := (c.startLarge - c.startSmall) / (largeObjects - smallObjects)
	h := hub{
		replicas: replicas, targets: targets,
		base:  c.process + targets*(c.target+(f.resources-1)*c.pair) + (f.clusters-targets)*2*c.inventory,
		cores: c.idleCores/c.idleTargets*targets + f.changes()*c.change*(part+(1-part)*(c.decode+c.watch)/100),
		start: c.startSmall + perStart*(objects-smallObjects),
	}
	// A limit that is near makes Go collect more often, for CPU time. As much garbage as objects costs little.
	h.memory = (h.base + 2*(mailboxes+copies)) / goPart
	h.limit = roundUp(h.memory, gibi)
	if mailboxes*margin > h.limit*goPart*mailboxesPart {
		h.mailboxBytes = roundUp(mailboxes*margin, mebi)
	}
	if copies*margin > h.limit*goPart*targetsPart {
		h.targetBytes = roundUp(copies*margin, mebi)
	}
	return h
}

// mailboxMemory returns the memory of objects in the caches of mailboxes. The hub keeps no values of what is on targets, so a larger
// object takes more in the mailbox only.
func (c costs) mailboxMemory(f fleet, objects float64) float64 {
	perByte := (c.large/c.largeCount - c.object) / (largeBytes - sampleBytes)
	selected := max(c.mailboxObject+(f.objectBytes-sampleBytes)*perByte, c.unselected)
	return objects * (f.selected*selected + (1-f.selected)*c.unselected)
}

func roundUp(value, step float64) float64 { return math.Ceil(value/step) * step }

// oneActive returns what a leader and its warm standby need.
func (c costs) oneActive(f fleet) hub { return c.hub(f, 2, f.clusters) }

// sharded returns the least number of replicas that share a fleet, such that all fit when any one is lost. It has no replicas if no number of
// them is enough.
func (c costs) sharded(f fleet, memory, cores float64) hub {
	fits := func(h hub) bool { return h.limit <= memory && h.cores <= cores }
	for replicas := 2; replicas <= max(2, int(f.clusters)); replicas++ {
		if !fits(c.hub(f, replicas, math.Ceil(f.clusters/float64(replicas-1)))) {
			continue
		}
		load := divide(int(f.clusters), replicas)
		h := c.hub(f, replicas, float64(load.afterLoss))
		if h.load = load; fits(h) {
			return h
		}
	}
	return hub{}
}

// kcp is what kcp needs.
type kcp struct {
	shards, byStorage, byWrites, byMailboxes float64
	// storage is what all shards store in etcd, and mailboxMemory the memory of all mailbox workspaces.
	storage, mailboxMemory float64
	// writes is how many writes all shards get in a second; hubRest and hubPeak are the hub's, at rest and while the fleet changes.
	writes, hubRest, hubPeak float64
	cores                    float64
	// fast and slow are how long it takes to make all mailboxes: as fast as the hub asks for them, and as slowly as in the scale test.
	fast, slow float64
}

func (c costs) kcp(f fleet) kcp {
	edits := f.clusters * f.edits
	k := kcp{
		cores: f.changes() * c.serversChange, hubRest: c.restControl / c.fleet / 60 * f.clusters,
		fast: f.clusters / c.atOnce, slow: c.mailboxesReady / c.fleet * f.clusters,
		mailboxMemory: c.kcpMemory / (c.kcpMailboxes + c.kcpTargets) * f.clusters,
	}
	// One write for each status that returns, and one status of a config for an edit. A mailbox has at most one each 5 s.
	k.hubPeak = k.hubRest + edits*f.statusesPerEdit + min(edits, f.clusters/5)
	k.writes = edits + k.hubPeak
	k.storage = (f.objectBytes + storedOverhead) * (f.clusters*f.objects + k.writes*compaction)
	k.byStorage = max(1, math.Ceil(k.storage/(etcdBytes*etcdUsed)))
	k.byWrites = max(1, math.Ceil(k.writes/c.writesOfShard()))
	k.byMailboxes = max(1, math.Ceil(k.mailboxMemory/shardMemory))
	if k.shards = f.shards; k.shards == 0 {
		k.shards = k.needed()
	}
	return k
}

// writesOfShard returns how many writes in a second one kcp has answered in the benchmarks.
func (c costs) writesOfShard() float64 { return c.burstObjects / c.burst }

func (k kcp) needed() float64 { return max(k.byStorage, k.byWrites, k.byMailboxes) }

// reason returns what the number of shards follows from.
func (k kcp) reason() string {
	switch needed := k.needed(); {
	case k.shards > needed:
		return "given"
	case k.shards < needed:
		return fmt.Sprintf("too few, %.0f are needed", needed)
	case needed == 1:
		return "one is enough"
	case k.byStorage == needed:
		return "size of etcd"
	case k.byWrites == needed:
		return "writes"
	default:
		return "memory of mailbox workspaces"
	}
}

// load is the worst division of SyncTargets among replicas.
type load struct {
	// largest is the number of SyncTargets of the replica with most, and afterLoss is it once any one replica is gone.
	largest, afterLoss int
	// moved is the greatest number of SyncTargets that change their replica when one more joins.
	moved int
}

// draws is how many sets of names are tried: the names of Pods are random, and with some of them the division is worse.
const draws = 10

// divide returns the load of replicas that share SyncTargets, as provider/shards divides them. It returns the same numbers each time.
func divide(syncTargets, replicas int) (worst load) {
	random := rand.New(rand.NewPCG(uint64(syncTargets), uint64(replicas))) //nolint:gosec // A simulation must be reproducible.
	var sizes [shards.Count]int
	for range syncTargets {
		sizes[shards.Of(uid(random))]++
	}
	largest := func(holders [shards.Count]string) (largest int) {
		held := map[string]int{}
		for shard, size := range sizes {
			held[holders[shard]] += size
			largest = max(largest, held[holders[shard]])
		}
		return largest
	}
	for range draws {
		// The last one is the replica that joins.
		names := podNames(random, replicas+1)
		before, after := shards.Assign(names[:replicas]), shards.Assign(names)
		worst.largest = max(worst.largest, largest(before))
		moved := 0
		for shard, size := range sizes {
			if before[shard] != after[shard] {
				moved += size
			}
		}
		worst.moved = max(worst.moved, moved)
		for lost := range replicas {
			left := slices.Delete(slices.Clone(names[:replicas]), lost, lost+1)
			worst.afterLoss = max(worst.afterLoss, largest(shards.Assign(left)))
		}
	}
	return worst
}

func uid(random *rand.Rand) types.UID {
	high, low := random.Uint64(), random.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%x%03x-%012x", high>>32, high>>16&0xffff, high&0xfff, 8+low>>62, low>>48&0xfff, low&0xffffffffffff))
}

// podNames returns the names of the Pods of a Deployment. They end with characters from the alphabet of Kubernetes' generated names.
func podNames(random *rand.Rand, count int) []string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	names := make([]string, count)
	for i := range names {
		names[i] = "synchub-6d4cf56db6-"
		for range 5 {
			names[i] += string(alphabet[random.IntN(len(alphabet))])
		}
	}
	return names
}
