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

package spread

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// ShardCount is the number of shards of the hub, in provider/shards.
const ShardCount = 64

// Shards simulates how the hub divides SyncTargets, in provider/shards: each belongs to a shard, and rendezvous hashing with
// bounded loads says which replica should hold the shard.
type Shards struct {
	Names Names
}

// Divide returns the load of replicas that share a number of SyncTargets. It returns the same numbers each time.
func (p Shards) Divide(syncTargets, replicas int) Load {
	random := rand.New(rand.NewPCG(uint64(syncTargets), uint64(replicas))) //nolint:gosec // A simulation must be reproducible.
	sizes := sizesOf(UIDs(random, syncTargets))
	var worst Load
	for range draws {
		// The last one is the replica that joins.
		names := p.Names(random, replicas+1)
		load := sizes.divide(names[:replicas], names)
		worst.Largest = max(worst.Largest, load.Largest)
		worst.AfterLoss = max(worst.AfterLoss, load.AfterLoss)
		worst.Moved = max(worst.Moved, load.Moved)
	}
	return worst
}

// shardSizes are the numbers of SyncTargets in the shards.
type shardSizes [ShardCount]int

func sizesOf(syncTargets []string) (sizes shardSizes) {
	for _, uid := range syncTargets {
		sizes[shardOf(uid)]++
	}
	return sizes
}

// divide returns the load of replicas. joined are those and one more.
func (s shardSizes) divide(names, joined []string) Load {
	before, after := assign(names), assign(joined)
	load := Load{Largest: s.largest(before)}
	for shard, size := range s {
		if before[shard] != after[shard] {
			load.Moved += size
		}
	}
	if len(names) == 1 {
		load.AfterLoss = load.Largest
		return load
	}
	for lost := range names {
		left := slices.Delete(slices.Clone(names), lost, lost+1)
		load.AfterLoss = max(load.AfterLoss, s.largest(assign(left)))
	}
	return load
}

// largest returns the number of SyncTargets of the replica with most.
func (s shardSizes) largest(holders [ShardCount]string) (largest int) {
	held := map[string]int{}
	for shard, size := range s {
		held[holders[shard]] += size
		largest = max(largest, held[holders[shard]])
	}
	return largest
}

// assign divides shards by rendezvous hashing with bounded loads, as provider/shards does: the pairs of a shard and a replica
// are taken by their weight, the greatest first, and no replica gets more than an even share, rounded up.
func assign(living []string) (holders [ShardCount]string) {
	type pair struct {
		weight  uint64
		shard   uint32
		replica string
	}
	pairs := make([]pair, 0, ShardCount*len(living))
	for shard := range uint32(ShardCount) {
		for _, replica := range living {
			pairs = append(pairs, pair{weight(shard, replica), shard, replica})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.replica, b.replica), cmp.Compare(a.shard, b.shard))
	})
	held := map[string]int{}
	for _, one := range pairs {
		if holders[one.shard] == "" && held[one.replica] < (ShardCount+len(living)-1)/len(living) {
			holders[one.shard] = one.replica
			held[one.replica]++
		}
	}
	return holders
}

func shardOf(syncTarget string) uint32 {
	sum := fnv.New32a()
	// The write of a hash returns no error.
	_, _ = sum.Write([]byte(syncTarget))
	return sum.Sum32() % ShardCount
}

func weight(shard uint32, replica string) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(replica+"|"), shard))
	return binary.BigEndian.Uint64(sum[:])
}
