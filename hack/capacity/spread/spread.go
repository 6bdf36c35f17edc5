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
	"math/rand/v2"
	"slices"

	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/sharder"
)

// draws is how many sets of names are tried: the names of Pods are random, and with some of them the division is worse.
const draws = 10

// Load is the worst division of all sets of names that were tried.
type Load struct {
	// Largest is the number of SyncTargets of the replica with most.
	Largest int
	// AfterLoss is that number once any one replica is gone. It is all SyncTargets if there was one replica only.
	AfterLoss int
	// Moved is the greatest number of SyncTargets that change their replica when one more joins.
	Moved int
}

// Simulation divides SyncTargets. It returns the same numbers each time.
type Simulation struct {
	Sharder sharder.Sharder
	Names   Names
}

// Divide returns the load of replicas that share a number of SyncTargets.
func (s Simulation) Divide(syncTargets, replicas int) Load {
	random := rand.New(rand.NewPCG(uint64(syncTargets), uint64(replicas))) //nolint:gosec // A simulation must be reproducible.
	uids := UIDs(random, syncTargets)
	var worst Load
	var former []string
	for draw := range draws {
		// The last one is the replica that joins.
		names := s.Names(random, replicas+1)
		if draw > 0 && slices.Equal(names, former) {
			break
		}
		former = names
		load := s.divide(uids, names[:replicas], names[replicas])
		worst.Largest = max(worst.Largest, load.Largest)
		worst.AfterLoss = max(worst.AfterLoss, load.AfterLoss)
		worst.Moved = max(worst.Moved, load.Moved)
	}
	return worst
}

func (s Simulation) divide(uids, names []string, joining string) Load {
	peers := peersOf(names)
	owned := make([][]string, len(peers))
	var load Load
	for _, uid := range uids {
		owner := s.owner(uid, peers)
		owned[owner] = append(owned[owner], uid)
		if s.owner(uid, []sharder.PeerInfo{peers[owner], {ID: joining}}) == 1 {
			load.Moved++
		}
	}
	counts := make([]int, len(peers))
	for i, own := range owned {
		counts[i] = len(own)
	}
	load.Largest = slices.Max(counts)
	load.AfterLoss = len(uids)
	if len(peers) == 1 {
		return load
	}
	load.AfterLoss = 0
	for lost := range peers {
		load.AfterLoss = max(load.AfterLoss, s.largestWithout(lost, peers, owned, counts))
	}
	return load
}

// largestWithout returns how many SyncTargets the replica with most has when one is gone. Only those of the lost one move.
func (s Simulation) largestWithout(lost int, peers []sharder.PeerInfo, owned [][]string, counts []int) int {
	left := slices.Delete(slices.Clone(peers), lost, lost+1)
	after := slices.Delete(slices.Clone(counts), lost, lost+1)
	for _, uid := range owned[lost] {
		after[s.owner(uid, left)]++
	}
	return slices.Max(after)
}

// owner returns the index of the peer that owns a SyncTarget. It compares the peers in pairs: asking each peer about all
// would take a number of hashes that grows with the square of the peers.
func (s Simulation) owner(uid string, peers []sharder.PeerInfo) int {
	best := 0
	pair := []sharder.PeerInfo{peers[0], {}}
	for i := 1; i < len(peers); i++ {
		pair[1] = peers[i]
		if s.Sharder.ShouldOwn(uid, pair, peers[i]) {
			best, pair[0] = i, peers[i]
		}
	}
	return best
}

func peersOf(names []string) []sharder.PeerInfo {
	peers := make([]sharder.PeerInfo, len(names))
	for i, name := range names {
		peers[i].ID = name
	}
	return peers
}
