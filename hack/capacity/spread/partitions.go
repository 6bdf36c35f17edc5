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

// PartitionCount is the number of partitions of the hub, in provider/partitions.
const PartitionCount = 64

// Partitions simulates how the hub divides SyncTargets, in provider/partitions: each belongs to a partition, and rendezvous hashing with
// bounded loads says which replica should hold the partition.
type Partitions struct {
	Names Names
}

// Divide returns the load of replicas that share a number of SyncTargets. It returns the same numbers each time.
func (p Partitions) Divide(syncTargets, replicas int) Load {
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

// partitionSizes are the numbers of SyncTargets in the partitions.
type partitionSizes [PartitionCount]int

func sizesOf(syncTargets []string) (sizes partitionSizes) {
	for _, uid := range syncTargets {
		sizes[partitionOf(uid)]++
	}
	return sizes
}

// divide returns the load of replicas. joined are those and one more.
func (s partitionSizes) divide(names, joined []string) Load {
	before, after := assign(names), assign(joined)
	load := Load{Largest: s.largest(before)}
	for partition, size := range s {
		if before[partition] != after[partition] {
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
func (s partitionSizes) largest(holders [PartitionCount]string) (largest int) {
	held := map[string]int{}
	for partition, size := range s {
		held[holders[partition]] += size
		largest = max(largest, held[holders[partition]])
	}
	return largest
}

// assign divides partitions by rendezvous hashing with bounded loads, as provider/partitions does: the pairs of a partition and a replica
// are taken by their weight, the greatest first, and no replica gets more than an even share, rounded up.
func assign(living []string) (holders [PartitionCount]string) {
	type pair struct {
		weight    uint64
		partition uint32
		replica   string
	}
	pairs := make([]pair, 0, PartitionCount*len(living))
	for partition := range uint32(PartitionCount) {
		for _, replica := range living {
			pairs = append(pairs, pair{weight(partition, replica), partition, replica})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.replica, b.replica), cmp.Compare(a.partition, b.partition))
	})
	held := map[string]int{}
	for _, one := range pairs {
		if holders[one.partition] == "" && held[one.replica] < (PartitionCount+len(living)-1)/len(living) {
			holders[one.partition] = one.replica
			held[one.replica]++
		}
	}
	return holders
}

func partitionOf(syncTarget string) uint32 {
	sum := fnv.New32a()
	// The write of a hash returns no error.
	_, _ = sum.Write([]byte(syncTarget))
	return sum.Sum32() % PartitionCount
}

func weight(partition uint32, replica string) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(replica+"|"), partition))
	return binary.BigEndian.Uint64(sum[:])
}
