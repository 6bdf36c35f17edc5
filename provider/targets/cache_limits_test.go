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

package targets

import (
	"math/rand/v2"
	"testing"
)

// Targets that grow as much as they can never exceed the limit together, and every target may always take an equal share.
func TestTotalLimit(t *testing.T) {
	const limit, step = 1_000_000, 100
	for _, test := range []struct {
		greedy int
		// want is the approximate size of each greedy target.
		want int64
	}{{1, limit * 2 / 3}, {2, limit * 2 / 5}, {8, limit * 2 / 17}, {100, limit * 2 / 201}} {
		shared := &memoryLimit{limit: limit}
		shared.connections.Store(300)
		random := rand.New(rand.NewPCG(1, uint64(test.greedy))) //nolint:gosec // a test that can be repeated
		taken := make([]int64, test.greedy)
		for quarantined := map[int]bool{}; len(quarantined) < test.greedy; {
			one := random.IntN(test.greedy)
			if quarantined[one] {
				continue
			}
			taken[one] += step
			shared.cached.Add(1, step)
			quarantined[one] = !shared.allows(taken[one])
			if !quarantined[one] {
				delete(quarantined, one)
			}
		}
		for one := range taken {
			if taken[one] < test.want*7/10 || taken[one] > test.want*13/10 {
				t.Errorf("one of %d greedy targets takes %d", test.greedy, taken[one])
			}
		}
		if held := shared.cached.Bytes(); held > limit+int64(test.greedy)*step {
			t.Errorf("%d greedy ones take %d", test.greedy, held)
		}
		// All other targets get an equal share, though the limit is reached in the end.
		for range 300 - test.greedy {
			shared.pending.Add(limit / 300)
			if !shared.allows(limit / 300) {
				t.Fatal("an equal share is refused")
			}
		}
	}
	if none := (&memoryLimit{}); !none.allows(1 << 60) {
		t.Error("there is no limit")
	}
}

// A list counts until it is dropped, and not after the informer has ended, although the list may continue.
func TestPendingListsCount(t *testing.T) {
	shared := &memoryLimit{}
	one, other := pendingBytes{memory: shared}, pendingBytes{memory: shared}
	expect := func(want int64) {
		t.Helper()
		if got := shared.pending.Load(); got != want {
			t.Errorf("want %d, got %d", want, got)
		}
	}
	one.add(10)
	other.add(5)
	one.add(10)
	expect(25)
	one.reset()
	one.reset()
	expect(5)
	one.add(3)
	one.close()
	one.add(100)
	expect(5)
	one.reset()
	expect(5)
	other.close()
	expect(0)
}
