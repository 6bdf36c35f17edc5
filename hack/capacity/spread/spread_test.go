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
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/sharder"
)

var sharders = map[string]sharder.Sharder{"HRW": sharder.NewHRW(), "Even": Even{}}

// Comparing peers in pairs finds the one peer of which the sharder says that it should own the SyncTarget.
func TestOwnerIsWhatTheSharderSays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // A test must be reproducible.
	for name, s := range sharders {
		for count := 1; count < 12; count++ {
			peers := peersOf(DeploymentPods(random, count))
			for _, uid := range UIDs(random, 200) {
				owner := Simulation{Sharder: s}.owner(uid, peers)
				for i, peer := range peers {
					if s.ShouldOwn(uid, peers, peer) != (i == owner) {
						t.Fatalf("%s: with %d peers, %s is owned by %d, and ShouldOwn of %d disagrees", name, count, uid, owner, i)
					}
				}
			}
		}
	}
}

// A replica that is lost gives its SyncTargets away, and no others move. One that joins takes some, and no others move.
func TestNothingElseMoves(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2)) //nolint:gosec // A test must be reproducible.
	for name, s := range sharders {
		simulation := Simulation{Sharder: s}
		peers := peersOf(DeploymentPods(random, 6))
		for _, uid := range UIDs(random, 500) {
			before := peers[simulation.owner(uid, peers)].ID
			without := peers[simulation.owner(uid, peers[:5])].ID
			if before != peers[5].ID && without != before {
				t.Fatalf("%s: %s moves from %s to %s, when %s is lost", name, uid, before, without, peers[5].ID)
			}
		}
	}
}

func TestDivideIsDeterministicAndBounded(t *testing.T) {
	type divider interface {
		Divide(syncTargets, replicas int) Load
	}
	dividers := map[string]divider{"Shards": Shards{DeploymentPods}}
	for name, s := range sharders {
		dividers[name] = Simulation{Sharder: s, Names: DeploymentPods}
	}
	for name, simulation := range dividers {
		for _, c := range []struct{ syncTargets, replicas int }{{1, 1}, {1, 5}, {100, 1}, {100, 2}, {300, 7}, {1000, 3}} {
			load := simulation.Divide(c.syncTargets, c.replicas)
			if again := simulation.Divide(c.syncTargets, c.replicas); again != load {
				t.Errorf("%s, %v: first %+v, then %+v", name, c, load, again)
			}
			even := (c.syncTargets + c.replicas - 1) / c.replicas
			if load.Largest < even || load.AfterLoss < load.Largest || load.AfterLoss > c.syncTargets || load.Moved > c.syncTargets {
				t.Errorf("%s, %v: impossible load %+v", name, c, load)
			}
		}
	}
}

// All of a shard is on one replica, so a large fleet is divided less evenly than without shards, and more replicas than shards
// have nothing more to share.
func TestShardsAreDividedAsAWhole(t *testing.T) {
	shards, even := Shards{DeploymentPods}.Divide(10_000, 20), Simulation{Sharder: Even{}, Names: DeploymentPods}.Divide(10_000, 20)
	if shards.Largest <= even.Largest {
		t.Errorf("with shards the largest replica has %d SyncTargets, and without %d", shards.Largest, even.Largest)
	}
	sizes := sizesOf(UIDs(rand.New(rand.NewPCG(4, 4)), 10_000)) //nolint:gosec // A test must be reproducible.
	if many := (Shards{DeploymentPods}).Divide(10_000, 100); many.Largest < slices.Min(sizes[:]) {
		t.Errorf("a replica has %d SyncTargets, less than the smallest shard", many.Largest)
	}
}

// The library hashes by FNV-1a, whose high bits follow from the last characters only a little. Numbered names differ in the
// last character, so one of three replicas gets half of the SyncTargets. If this fails, the library has become better: say so
// in docs/scaling.md.
// The hub's test of provider/shards expects the same digest.
func TestShardsAreDividedAsByTheHub(t *testing.T) {
	holders := assign([]string{"a", "b", "c", "d", "e", "f", "g"})
	if digest := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(holders[:], "")))); digest[:16] != "9a8ad0328aca5f10" {
		t.Errorf("the digest of %v is %s", holders, digest)
	}
}

func TestNumberedNamesAreDividedUnevenly(t *testing.T) {
	hrw := Simulation{Sharder: sharder.NewHRW(), Names: StatefulSetPods}.Divide(3000, 3)
	if hrw.Largest < 1400 {
		t.Errorf("the largest of three replicas has %d of 3000 SyncTargets", hrw.Largest)
	}
	even := Simulation{Sharder: Even{}, Names: StatefulSetPods}.Divide(3000, 3)
	if even.Largest > 1150 {
		t.Errorf("with an even hash the largest of three replicas has %d of 3000 SyncTargets", even.Largest)
	}
}

func TestNames(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3)) //nolint:gosec // A test must be reproducible.
	for name, made := range map[string][]string{
		"UIDs": UIDs(random, 1000), "Pods of a Deployment": DeploymentPods(random, 50), "Pods of a StatefulSet": StatefulSetPods(random, 50),
	} {
		slices.Sort(made)
		if len(slices.Compact(made)) != len(made) {
			t.Errorf("two %s are the same", name)
		}
	}
	for _, uid := range UIDs(random, 100) {
		if len(uid) != 36 || uid[14] != '4' || !strings.Contains("89ab", uid[19:20]) {
			t.Errorf("%s is no UID", uid)
		}
	}
}
