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

package partitions

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Count is the number of partitions. It bounds the number of replicas that have work, and the requests for Leases, whatever the fleet.
const Count = 64

// rank is the place of a replica among those that should hold a partition.
type rank int

const (
	// rankUnwanted: the replica must not hold the partition.
	rankUnwanted rank = iota - 1
	// rankFirst: the replica should hold the partition.
	rankFirst
	// rankSecond: the replica takes the partition if the first has ended.
	rankSecond
	// rankOther is that of all other replicas.
	rankOther
)

// Of returns the partition of a SyncTarget.
func Of(syncTarget types.UID) int {
	sum := fnv.New32a()
	// UIDs are random, so a simple hash divides them evenly. The write of a hash returns no error.
	_, _ = sum.Write([]byte(syncTarget))
	return int(sum.Sum32() % Count)
}

// division says which replica should hold each partition, and which one takes it if that has ended.
type division struct{ first, second [Count]string }

// divide divides the partitions among the live replicas. Replicas with different lists of the living may divide them differently.
func divide(living []string) (made division) {
	made.first = assign(living)
	for _, lost := range living {
		left := assign(slices.DeleteFunc(slices.Clone(living), func(name string) bool { return name == lost }))
		for partition, first := range made.first {
			if first == lost {
				made.second[partition] = left[partition]
			}
		}
	}
	return made
}

// rank returns the rank of a replica for a partition.
func (d division) rank(partition int, replica string) rank {
	switch replica {
	case d.first[partition]:
		return rankFirst
	case d.second[partition]:
		return rankSecond
	default:
		return rankOther
	}
}

// assign divides partitions by rendezvous hashing with bounded loads: the pairs of a partition and a replica are taken by their weight, the
// greatest first, and no replica gets more than an even share, rounded up. Without that bound the largest of ten replicas has twice an even
// share, since a few partitions for each are divided unevenly. It moves a few more partitions when a replica comes or goes.
func assign(living []string) (holders [Count]string) {
	type pair struct {
		weight    uint64
		partition int
		replica   string
	}
	pairs := make([]pair, 0, Count*len(living))
	for partition := range Count {
		for _, replica := range living {
			pairs = append(pairs, pair{weight(partition, replica), partition, replica})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.replica, b.replica), cmp.Compare(a.partition, b.partition))
	})
	held := map[string]int{}
	for _, one := range pairs {
		if holders[one.partition] == "" && held[one.replica] < (Count+len(living)-1)/len(living) {
			holders[one.partition] = one.replica
			held[one.replica]++
		}
	}
	return holders
}

// weight is that of rendezvous hashing. The hash mixes well, since the names of replicas differ in few characters: with FNV-1a, which
// multicluster-runtime's sharder uses, numbered replicas have up to 2.5 times an even share.
func weight(partition int, replica string) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(replica+"|"), uint32(partition))) //nolint:gosec // partition is below Count
	return binary.BigEndian.Uint64(sum[:])
}
