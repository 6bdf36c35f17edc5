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

package synctarget

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Among several SyncTargets of one cluster the oldest is synced, in any order of observation.
func TestConflictingTarget(t *testing.T) {
	at := func(uid types.UID, second int64, cluster string) clusterIdentity {
		return clusterIdentity{uid: uid, name: string(uid), created: time.Unix(second, 0), cluster: cluster}
	}
	for name, test := range map[string]struct {
		others []clusterIdentity
		mine   clusterIdentity
		want   types.UID
		// stranger is true if another workspace has a SyncTarget of the same cluster.
		stranger bool
	}{
		"alone":                         {mine: at("a", 2, "x")},
		"others elsewhere":              {others: []clusterIdentity{at("b", 1, "y")}, mine: at("a", 2, "x")},
		"a younger one":                 {others: []clusterIdentity{at("b", 3, "x")}, mine: at("a", 2, "x")},
		"an older one":                  {others: []clusterIdentity{at("b", 1, "x")}, mine: at("a", 2, "x"), want: "b"},
		"two older ones":                {others: []clusterIdentity{at("b", 1, "x"), at("c", 0, "x"), at("d", 9, "x")}, mine: at("a", 2, "x"), want: "c"},
		"one of the same second":        {others: []clusterIdentity{at("b", 2, "x")}, mine: at("a", 2, "x")},
		"one of the same second, first": {others: []clusterIdentity{at("A", 2, "x")}, mine: at("a", 2, "x"), want: "A"},
		"nobody knows the clusters":     {others: []clusterIdentity{at("b", 1, "")}, mine: at("a", 2, "")},
		"an older one of another workspace": {
			others: []clusterIdentity{{uid: "b", inventory: "other", created: time.Unix(1, 0), cluster: "x"}}, mine: at("a", 2, "x"), stranger: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := append([]clusterIdentity{test.mine}, test.others...)
			for range all {
				var known clusterIdentities
				for _, one := range all {
					known.set(one)
				}
				got := known.conflictingTarget(test.mine)
				if test.want == "" && got != nil || test.want != "" && (got == nil || got.uid != test.want) {
					t.Errorf("seen in the order %v: got %v", all, got)
				}
				if got := known.otherInventoryTarget(test.mine); (got != nil) != test.stranger {
					t.Errorf("of another workspace: got %v", got)
				}
				all = append(all[1:], all[0])
			}
		})
	}
}

// A changed claim enqueues the SyncTargets whose conflicts it changes.
func TestClusterIdentitiesReturnTheConcerned(t *testing.T) {
	var known clusterIdentities
	expect := func(got []types.UID, want ...types.UID) {
		t.Helper()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("want %v, got %v", want, got)
		}
	}
	a, b, c := clusterIdentity{uid: "a", cluster: "x"}, clusterIdentity{uid: "b", cluster: "x"}, clusterIdentity{uid: "c", cluster: "y"}
	expect(known.set(a))
	expect(known.set(b), "a")
	expect(known.set(b))
	expect(known.set(c))
	c.cluster = "x"
	expect(known.set(c), "a", "b")
	c.cluster = "z"
	expect(known.set(c), "a", "b")
	expect(known.delete("a"), "b")
	expect(known.delete("a"))
}

// A SyncTarget that the previous leader refused stays refused while the new hub has not observed the
// conflicting one yet.
func TestEffectiveConflict(t *testing.T) {
	older := &clusterIdentity{uid: "older"}
	for name, test := range map[string]struct {
		allowed bool
		unseen  bool
		other   *clusterIdentity
		seenFor time.Duration
		want    *clusterIdentity
	}{
		"alone":                       {},
		"an older one":                {other: older, seenFor: time.Hour, want: older},
		"an older one, allowed":       {other: older, allowed: true},
		"refused before, just begun":  {unseen: true, want: &clusterIdentity{}},
		"refused before, long ago":    {unseen: true, seenFor: identityGracePeriod},
		"refused before, allowed now": {unseen: true, allowed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := effectiveConflict(test.allowed, test.other, test.unseen, test.seenFor)
			if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}
