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

// unwanted is the rank of a replica that must not hold a partition.
const unwanted = -1

// Of returns the partition of a SyncTarget.
func Of(syncTarget types.UID) int {
	sum := fnv.New32a()
	// UIDs are random, so a simple hash divides them evenly. The write of a hash returns no error.
	_, _ = sum.Write([]byte(syncTarget))
	return int(sum.Sum32() % Count)
}

// rankOf returns the place of a replica among those that should hold a partition, 0 for the first, or [unwanted] if it is not among the
// living. Replicas with different lists may both believe to be the first.
func rankOf(partition int, replica string, living []string) int {
	ranked := slices.Clone(living)
	slices.SortFunc(ranked, func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(partition, b), weight(partition, a)), cmp.Compare(a, b))
	})
	return slices.Index(ranked, replica)
}

// weight is that of rendezvous hashing. The hash mixes well, since the names of replicas differ in few characters: with FNV-1a, which
// multicluster-runtime's sharder uses, numbered replicas have up to 2.5 times an even share.
func weight(partition int, replica string) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(replica+"|"), uint32(partition))) //nolint:gosec // partition is below Count
	return binary.BigEndian.Uint64(sum[:])
}
