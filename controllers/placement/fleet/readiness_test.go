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

package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// syncTargetSince returns a SyncTarget whose condition Ready has a status since some minutes after the epoch; without a status it was
// created then.
func syncTargetSince(name string, status metav1.ConditionStatus, minutes int) edgev2alpha1.SyncTarget {
	at := metav1.Unix(int64(minutes*60), 0)
	one := edgev2alpha1.SyncTarget{}
	one.UID = types.UID(name)
	if status == "" {
		one.CreationTimestamp = at
		return one
	}
	one.Status.Conditions = []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: status, LastTransitionTime: at}}
	return one
}

func TestReadiness(t *testing.T) {
	var published []logicalcluster.Name
	fleet := New(Options{})
	fleet.ReadinessChanges().Subscribe(t.Context(), func(inventory logicalcluster.Name) { published = append(published, inventory) })
	expect := func(what string, changes int, want map[types.UID]int) {
		t.Helper()
		if len(published) != changes {
			t.Errorf("%s: %d changes were published: %v", what, len(published), published)
		}
		for _, name := range []types.UID{"a", "b", "c", "d"} {
			since, notReady := fleet.NotReadySince(name)
			minutes, is := want[name]
			if notReady != is || is && !since.Equal(time.Unix(int64(minutes*60), 0)) {
				t.Errorf("%s: %s is not Ready: %v, since %s", what, name, notReady, since)
			}
		}
	}
	first := []edgev2alpha1.SyncTarget{syncTargetSince("a", "True", 1), syncTargetSince("b", "False", 2), syncTargetSince("c", "", 3)}
	fleet.readiness.set("one", notReady(first))
	expect("at first", 1, map[types.UID]int{"b": 2, "c": 3})
	fleet.readiness.set("two", notReady([]edgev2alpha1.SyncTarget{syncTargetSince("d", "Unknown", 4)}))
	expect("another inventory", 2, map[types.UID]int{"b": 2, "c": 3, "d": 4})

	fleet.readiness.set("one", notReady(slices.Clone(first)))
	expect("nothing has changed", 2, map[types.UID]int{"b": 2, "c": 3, "d": 4})
	fleet.readiness.set("one", notReady([]edgev2alpha1.SyncTarget{first[0], syncTargetSince("b", "Unknown", 9), syncTargetSince("c", "True", 9)}))
	expect("one is Ready, and one still not", 3, map[types.UID]int{"b": 2, "d": 4})
	fleet.remove("one")
	expect("the inventory is gone", 4, map[types.UID]int{"d": 4})
}
