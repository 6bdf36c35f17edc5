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

	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/sharder"
)

// PartitionCount is the number of partitions of the hub, in provider/partitions.
const PartitionCount = 64

// Partitions is how the hub divides SyncTargets, in provider/partitions: each belongs to a partition, and rendezvous hashing by SHA-256 says
// which replica should hold the partition.
type Partitions struct{}

// ShouldOwn reports whether self should hold the partition of the SyncTarget.
func (Partitions) ShouldOwn(clusterID string, peers []sharder.PeerInfo, self sharder.PeerInfo) bool {
	partition := partitionOf(clusterID)
	own := weight(partition, self.ID)
	for _, peer := range peers {
		if peer.ID != self.ID && weight(partition, peer.ID) > own {
			return false
		}
	}
	return true
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
