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

package shards

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Count is the number of shards. It bounds the number of replicas that have work, and the requests for Leases, independent of
// the size of the fleet.
const Count = 64

// rank is the place of a replica among the candidates for a shard.
type rank int

const (
	// rankUnwanted: the replica must not hold the shard.
	rankUnwanted rank = iota - 1
	// rankFirst: the replica should hold the shard.
	rankFirst
	// rankSecond: the replica takes the shard if the first has ended.
	rankSecond
	// rankOther is the rank of all other replicas.
	rankOther
)

// Of returns the shard of a SyncTarget.
func Of(syncTarget types.UID) int {
	sum := fnv.New32a()
	// UIDs are random, so a simple hash divides them evenly. The write of a hash returns no error.
	_, _ = sum.Write([]byte(syncTarget))
	return int(sum.Sum32() % Count)
}

// Set is a set of shards.
type Set uint64

// All are all shards.
const All Set = 1<<Count - 1

// SetOf returns the set of one shard.
func SetOf(shard int) Set { return 1 << shard }

// Has reports whether the shard of a SyncTarget is in the set.
func (s Set) Has(syncTarget types.UID) bool { return s&SetOf(Of(syncTarget)) != 0 }

// assignment records which replica should hold each shard, and which replica takes it if the first has ended.
type assignment struct{ first, second [Count]string }

// assign assigns the shards among the live replicas. Replicas with different lists of live replicas may divide the shards
// differently.
func assign(live []string) (made assignment) {
	made.first = Assign(live)
	for _, lost := range live {
		left := Assign(slices.DeleteFunc(slices.Clone(live), func(name string) bool { return name == lost }))
		for shard, first := range made.first {
			if first == lost {
				made.second[shard] = left[shard]
			}
		}
	}
	return made
}

// rank returns the rank of a replica for a shard.
func (d assignment) rank(shard int, replica string) rank {
	switch replica {
	case d.first[shard]:
		return rankFirst
	case d.second[shard]:
		return rankSecond
	default:
		return rankOther
	}
}

// Assign divides shards by rendezvous hashing with bounded loads: the pairs of a shard and a replica are taken by their weight,
// the greatest first, and no replica gets more than an even share, rounded up. Without that bound the largest of ten replicas has
// twice an even share, since a few shards for each replica are distributed unevenly. It moves a few more shards when a replica
// starts or ends.
func Assign(live []string) (holders [Count]string) {
	type pair struct {
		weight  uint64
		shard   int
		replica string
	}
	pairs := make([]pair, 0, Count*len(live))
	for shard := range Count {
		for _, replica := range live {
			pairs = append(pairs, pair{weight(shard, replica), shard, replica})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.replica, b.replica), cmp.Compare(a.shard, b.shard))
	})
	held := map[string]int{}
	for _, one := range pairs {
		if holders[one.shard] == "" && held[one.replica] < (Count+len(live)-1)/len(live) {
			holders[one.shard] = one.replica
			held[one.replica]++
		}
	}
	return holders
}

// weight is the weight of a replica for a shard in rendezvous hashing.  The hash mixes well, since the names of replicas
// differ in few characters: with FNV-1a, which multicluster-runtime's sharder uses, numbered replicas have up to 2.5 times an
// even share.
func weight(shard int, replica string) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(replica+"|"), uint32(shard))) //nolint:gosec // shard is below Count
	return binary.BigEndian.Uint64(sum[:])
}
