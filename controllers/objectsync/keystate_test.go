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

package objectsync

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/plan"
)

var someKey = types.NamespacedName{Namespace: "shop", Name: "till"}

func TestFailuresAreReportedOnce(t *testing.T) {
	states := newKeyStates(testclock.NewFakeClock(time.Unix(1000, 0)))
	conflict, conflictAgain := Failure{Reason: plan.ReasonConflict, Message: "first"}, Failure{Reason: plan.ReasonConflict, Message: "second"}
	if before, failed := states.clearFailure(someKey); failed || before != (Failure{}) {
		t.Errorf("an object that never failed has the failure %v", before)
	}
	set := func(key types.NamespacedName, failure Failure, want Failure, changed bool) {
		t.Helper()
		if before, got, _ := states.setFailure(key, failure); before != want || got != changed {
			t.Errorf("%v is a change: want %v after %v, got %v after %v", failure, changed, want, got, before)
		}
	}
	set(someKey, conflict, Failure{}, true)
	set(someKey, conflictAgain, conflict, false)
	snapshot := states.failures()
	if snapshot[someKey] != conflictAgain || len(snapshot) != 1 {
		t.Errorf("the last message is not kept: %v", snapshot)
	}
	third := Failure{Reason: plan.ReasonForbidden, Message: "third"}
	set(someKey, third, conflictAgain, true)
	set(types.NamespacedName{Name: "other"}, conflict, Failure{}, true)
	if snapshot[someKey] != conflictAgain {
		t.Error("the snapshot has changed")
	}
	if before, failed := states.clearFailure(someKey); !failed || before != third {
		t.Errorf("the cleared failure was %v, %v", before, failed)
	}
	if _, failed := states.clearFailure(someKey); failed || len(states.failures()) != 1 {
		t.Error("a failure is cleared twice, or not at all")
	}
	set(someKey, conflict, Failure{}, true)
}

// failedKeys finds keys by their reason and namespace.
func TestFailing(t *testing.T) {
	states := newKeyStates(testclock.NewFakeClock(time.Unix(1000, 0)))
	here, there := types.NamespacedName{Namespace: "shop", Name: "a"}, types.NamespacedName{Namespace: "bank", Name: "b"}
	states.setFailure(here, Failure{Reason: plan.ReasonNamespaceTerminating, Message: "m"})
	states.setFailure(there, Failure{Reason: plan.ReasonNamespaceTerminating, Message: "m"})
	states.setFailure(someKey, Failure{Reason: plan.ReasonNotServed, Message: "m"})
	failing := func(is func(types.NamespacedName, Failure) bool) int { return len(states.failedKeys(is)) }
	in := states.failedKeys(func(key types.NamespacedName, failure Failure) bool {
		return failure.Reason == plan.ReasonNamespaceTerminating && key.Namespace == "shop"
	})
	if !slices.Equal(in, []types.NamespacedName{here}) {
		t.Errorf("the failed keys in the namespace are %v", in)
	}
	all, none := func(types.NamespacedName, Failure) bool { return true }, func(types.NamespacedName, Failure) bool { return false }
	if failing(all) != 3 || failing(none) != 0 {
		t.Errorf("of three failed objects, all matches %d and none %d", failing(all), failing(none))
	}
	states.clearFailure(there)
	if failing(all) != 2 {
		t.Error("a key is still found after its failure was cleared")
	}
}

func TestRepairsOfOthers(t *testing.T) {
	states := newKeyStates(testclock.NewFakeClock(time.Unix(1000, 0)))
	repaired := func(key types.NamespacedName, want bool) {
		t.Helper()
		if wait := states.nextRepairDelay(key); (wait == 0) != want {
			t.Errorf("%v is repaired immediately: want %v, got the delay %v", key, want, wait)
		}
	}
	repaired(someKey, true)
	repaired(someKey, true)
	repaired(someKey, false)
	repaired(types.NamespacedName{Namespace: "shop", Name: "other"}, true)
	states.forgetHistory(someKey)
	repaired(someKey, true)
}

// The version of the last write is kept until the source is gone.
func TestChangesAreRemembered(t *testing.T) {
	states := newKeyStates(testclock.NewFakeClock(time.Unix(1000, 0)))
	other := types.NamespacedName{Name: "other"}
	for _, test := range []struct {
		name string
		do   func()
		want map[string]bool
	}{
		{"nothing", func() {}, map[string]bool{"7": false, "8": false}},
		{"a change", func() { states.recordWrite(someKey, "7") }, map[string]bool{"7": true, "8": false}},
		{"the same", func() { states.recordWrite(someKey, "7") }, map[string]bool{"7": true, "8": false}},
		{"a write of another key", func() { states.recordWrite(other, "8"); states.forgetHistory(other) }, map[string]bool{"7": true, "8": false}},
		{"a later version", func() { states.recordWrite(someKey, "8") }, map[string]bool{"7": false, "8": true}},
		{"the source is gone", func() { states.forgetHistory(someKey) }, map[string]bool{"7": false, "8": false}},
	} {
		test.do()
		for version, want := range test.want {
			if got := states.hasWritten(someKey, version); got != want {
				t.Errorf("%s: written for version %s: %v, want %v", test.name, version, got, want)
			}
		}
		if states.hasWritten(other, "8") {
			t.Errorf("%s: another key was written", test.name)
		}
	}
}
