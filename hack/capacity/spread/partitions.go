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
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// PartitionCount is the number of partitions of the hub, in provider/partitions.
const PartitionCount = 64

// Partitions simulates how the hub divides SyncTargets, in provider/partitions: each belongs to a partition, and rendezvous hashing by
// SHA-256 says which replica should hold the partition.
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
	before, after := holders(names), holders(joined)
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
		load.AfterLoss = max(load.AfterLoss, s.largest(holders(left)))
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

// holders returns the replica that should hold each partition.
func holders(names []string) (holders [PartitionCount]string) {
	for partition := range uint32(PartitionCount) {
		var greatest uint64
		for _, name := range names {
			if weight := weight(partition, name); holders[partition] == "" || weight > greatest {
				holders[partition], greatest = name, weight
			}
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
