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
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
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
	if one := types.UID("3f1c2c3e-0001-4f00-8000-000000000001"); Of(one) != Of(one) {
		t.Error("the partition of a SyncTarget changes")
	}
}

// TestRank has the names of Pods, and numbered ones: each replica is the first for an even share, and a replica that comes or goes moves
// only its own share.
func TestRank(t *testing.T) {
	for _, format := range []string{"synchub-7d9f8b6c5d-x%dk2j", "synchub-%d"} {
		var living []string
		for number := range 5 {
			living = append(living, fmt.Sprintf(format, number))
		}
		first := func(of int, living []string) (first string) {
			for _, replica := range living {
				if rankOf(of, replica, living) == 0 {
					first = replica
				}
			}
			return first
		}
		shares := map[string]int{}
		for number := range Count {
			winner := first(number, living)
			shares[winner]++
			if shuffled := slices.Clone(living); true {
				slices.Reverse(shuffled)
				if first(number, shuffled) != winner {
					t.Errorf("partition %d: the order of the replicas decides", number)
				}
			}
			for gone := range living {
				left := slices.Delete(slices.Clone(living), gone, gone+1)
				after := first(number, left)
				if living[gone] != winner && after != winner {
					t.Errorf("partition %d moves from %s to %s although %s went", number, winner, after, living[gone])
				}
				if living[gone] == winner && rankOf(number, after, living) != 1 {
					t.Errorf("partition %d does not go to the second", number)
				}
			}
		}
		for _, replica := range living {
			// An even share is 12.8.
			if share := shares[replica]; share < 5 || share > 22 {
				t.Errorf("%s has %d of %d partitions", replica, share, Count)
			}
		}
	}
	if rankOf(1, "unknown", []string{"a", "b"}) != -1 {
		t.Error("a replica that is not known has a rank")
	}
}
