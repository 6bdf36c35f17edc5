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
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/uuid"
)

func TestOf(t *testing.T) {
	counts := map[int]int{}
	for range 100 * Count {
		number := Of(uuid.NewUUID())
		if number < 0 || number >= Count {
			t.Fatalf("shard %d", number)
		}
		counts[number]++
	}
	if len(counts) != Count {
		t.Errorf("%d shards have SyncTargets", len(counts))
	}
	if found := Of("3f1c2c3e-0001-4f00-8000-000000000001"); found != 11 {
		t.Errorf("the shard of a SyncTarget changes between releases: %d", found)
	}
}

// TestAssign uses the names of Pods, and numbered names. No replica has more than an even share, and most shards stay when a
// replica comes or goes. When the first replica has ended, the second gets the shard.
func TestAssign(t *testing.T) {
	for _, format := range []string{"synchub-7d9f8b6c5d-x%dk2j", "synchub-%d"} {
		for replicas := 1; replicas <= 12; replicas++ {
			var live []string
			for number := range replicas {
				live = append(live, fmt.Sprintf(format, number))
			}
			assignment := assign(live)
			expectEvenShares(t, live, assignment)
			slices.Reverse(live)
			if assign(live) != assignment {
				t.Errorf("%d replicas: their order decides", replicas)
			}
			if replicas > 1 {
				expectFewMoves(t, live, assignment)
			}
		}
	}
	if assign(nil).first != [Count]string{} {
		t.Error("an assignment without replicas has shards")
	}
}

// expectEvenShares expects a first and a second replica for each shard, and no more than an even share for any replica.
func expectEvenShares(t *testing.T, live []string, assignment assignment) {
	t.Helper()
	replicas := len(live)
	shares := map[string]int{}
	for shard, first := range assignment.first {
		shares[first]++
		if assignment.rank(shard, first) != rankFirst || !slices.Contains(live, first) {
			t.Errorf("%d replicas, shard %d: the first is %q", replicas, shard, first)
		}
		if second := assignment.second[shard]; replicas > 1 && (second == first || assignment.rank(shard, second) != rankSecond || !slices.Contains(live, second)) {
			t.Errorf("%d replicas, shard %d: the first is %q, and the second %q", replicas, shard, first, second)
		}
		if assignment.rank(shard, "unknown") != rankOther {
			t.Errorf("a replica that does not live has a rank")
		}
	}
	for replica, share := range shares {
		if share > (Count+replicas-1)/replicas {
			t.Errorf("%d replicas: %s has %d shards", replicas, replica, share)
		}
	}
}

// The assignment must stay the same, so that replicas of two releases divide alike while one replaces the other.
func TestAssignIsTheSameInEachRelease(t *testing.T) {
	holders := Assign([]string{"a", "b", "c", "d", "e", "f", "g"})
	if digest := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(holders[:], "")))); digest[:16] != "9a8ad0328aca5f10" {
		t.Errorf("the digest of %v is %s", holders, digest)
	}
}

// expectFewMoves removes each replica in turn: its shards go to the second ones, and few other shards move.
func expectFewMoves(t *testing.T, live []string, before assignment) {
	t.Helper()
	for _, gone := range live {
		after := assign(slices.DeleteFunc(slices.Clone(live), func(name string) bool { return name == gone }))
		moved := 0
		for shard, first := range before.first {
			switch {
			case first == gone && after.first[shard] != before.second[shard]:
				t.Errorf("shard %d of %s is moved to %s, not to the second", shard, gone, after.first[shard])
			case first != gone && after.first[shard] != first:
				moved++
			}
		}
		if moved > Count/3 {
			t.Errorf("%d of %d other shards move when one of %d replicas ends", moved, Count, len(live))
		}
	}
}
