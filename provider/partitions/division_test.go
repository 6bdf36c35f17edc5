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
			t.Fatalf("partition %d", number)
		}
		counts[number]++
	}
	if len(counts) != Count {
		t.Errorf("%d partitions have SyncTargets", len(counts))
	}
	if found := Of("3f1c2c3e-0001-4f00-8000-000000000001"); found != 11 {
		t.Errorf("the partition of a SyncTarget changes between releases: %d", found)
	}
}

// TestDivide has the names of Pods, and numbered ones. No replica has more than an even share, most partitions stay where they are when a
// replica comes or goes, and the second is who gets a partition when the first has ended.
func TestDivide(t *testing.T) {
	for _, format := range []string{"synchub-7d9f8b6c5d-x%dk2j", "synchub-%d"} {
		for replicas := 1; replicas <= 12; replicas++ {
			var living []string
			for number := range replicas {
				living = append(living, fmt.Sprintf(format, number))
			}
			division := divide(living)
			expectEvenShares(t, living, division)
			slices.Reverse(living)
			if divide(living) != division {
				t.Errorf("%d replicas: their order decides", replicas)
			}
			if replicas > 1 {
				expectFewMoves(t, living, division)
			}
		}
	}
	if divide(nil).first != [Count]string{} {
		t.Error("nobody lives, and has partitions")
	}
}

// expectEvenShares expects a first and a second replica for each partition, and of none too many.
func expectEvenShares(t *testing.T, living []string, division division) {
	t.Helper()
	replicas := len(living)
	shares := map[string]int{}
	for partition, first := range division.first {
		shares[first]++
		if division.rank(partition, first) != rankFirst || !slices.Contains(living, first) {
			t.Errorf("%d replicas, partition %d: the first is %q", replicas, partition, first)
		}
		if second := division.second[partition]; replicas > 1 && (second == first || division.rank(partition, second) != rankSecond || !slices.Contains(living, second)) {
			t.Errorf("%d replicas, partition %d: the first is %q, and the second %q", replicas, partition, first, second)
		}
		if division.rank(partition, "unknown") != rankOther {
			t.Errorf("a replica that does not live has a rank")
		}
	}
	for replica, share := range shares {
		if share > (Count+replicas-1)/replicas {
			t.Errorf("%d replicas: %s has %d partitions", replicas, replica, share)
		}
	}
}

// The division must stay the same, so that replicas of two releases divide alike while one replaces the other. The capacity model, which
// has a copy of the code, expects the same digest.
func TestAssignIsTheSameInEachRelease(t *testing.T) {
	holders := assign([]string{"a", "b", "c", "d", "e", "f", "g"})
	if digest := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(holders[:], "")))); digest[:16] != "9a8ad0328aca5f10" {
		t.Errorf("the digest of %v is %s", holders, digest)
	}
}

// expectFewMoves takes each replica away: its partitions go to the second ones, and few others move.
func expectFewMoves(t *testing.T, living []string, before division) {
	t.Helper()
	for _, gone := range living {
		after := divide(slices.DeleteFunc(slices.Clone(living), func(name string) bool { return name == gone }))
		moved := 0
		for partition, first := range before.first {
			switch {
			case first == gone && after.first[partition] != before.second[partition]:
				t.Errorf("partition %d of %s goes to %s, not to the second", partition, gone, after.first[partition])
			case first != gone && after.first[partition] != first:
				moved++
			}
		}
		if moved > Count/3 {
			t.Errorf("%d of %d other partitions move when one of %d replicas goes", moved, Count, len(living))
		}
	}
}
