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

	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/sharder"
)

// Even is rendezvous hashing by SHA-256: as even as random numbers can be. The shards and the library's own sharder are compared with it.
type Even struct{}

// ShouldOwn reports whether self has the greatest hash.
func (Even) ShouldOwn(clusterID string, peers []sharder.PeerInfo, self sharder.PeerInfo) bool {
	own := score(clusterID, self.ID)
	for _, peer := range peers {
		if peer.ID != self.ID && score(clusterID, peer.ID) > own {
			return false
		}
	}
	return true
}

func score(clusterID, peer string) uint64 {
	sum := sha256.Sum256([]byte(clusterID + "|" + peer))
	return binary.BigEndian.Uint64(sum[:])
}
