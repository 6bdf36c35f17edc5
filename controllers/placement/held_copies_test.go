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

package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/placement/withdrawal"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// formerOf returns a former destination; until is when its copies go, in minutes after the epoch, and zero before the wait.
func formerOf(syncTarget string, until int64) withdrawal.Former {
	found := withdrawal.Former{Destination: rules.Destination{
		SyncTarget: fleet.SyncTarget{Inventory: "inventory", Name: syncTarget, UID: types.UID(syncTarget + "-uid")}, Location: "prod",
	}}
	if until > 0 {
		found.Until = time.Unix(60*until, 0)
	}
	return found
}

func formersOf(all ...withdrawal.Former) formerDestinations {
	found := formerDestinations{}
	for _, one := range all {
		found[one.UID] = one
	}
	return found
}

// After a restart the hub finds the former destinations whose wait had begun. Users may have changed the text.
func TestFormerDestinationsInTheSlice(t *testing.T) {
	text := formersOf(formerOf("guilder", 2), formerOf("florin", 1), formerOf("uncertain", 0)).format()
	if text != "inventory/prod/florin/florin-uid,inventory/prod/guilder/guilder-uid" {
		t.Fatalf("got %q", text)
	}
	want := []edgev2alpha1.SinglePlacement{
		{Cluster: "inventory", LocationName: "prod", SyncTargetName: "florin", SyncTargetUID: "florin-uid"},
		{Cluster: "inventory", LocationName: "prod", SyncTargetName: "guilder", SyncTargetUID: "guilder-uid"},
	}
	for _, text := range []string{text, ",x/y," + text + ",a/b/c/d/e"} {
		if got := parseFormer(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %v", text, got)
		}
	}
	if got := parseFormer(""); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	if text := (formerDestinations)(nil).format(); text != "" {
		t.Errorf("got %q", text)
	}
}

// The copies of an object stay while one of the placements that select it makes them wait.
func TestHolds(t *testing.T) {
	placementOf := func(uid types.UID) *resolvedPlacement {
		return &resolvedPlacement{Placement: &rules.Placement{UID: uid}}
	}
	waiting, other := placementOf("waiting"), placementOf("other")
	active := &placements{outcomes: map[types.UID]outcome{"waiting": {former: formersOf(formerOf("florin", 1), formerOf("uncertain", 0))}, "other": {}}}
	for name, c := range map[string]struct {
		placements *placements
		syncTarget types.UID
		selectedBy []*resolvedPlacement
		want       bool
	}{
		"it waits":             {active, "florin-uid", []*resolvedPlacement{other, waiting}, true},
		"it is uncertain":      {active, "uncertain-uid", []*resolvedPlacement{waiting}, true},
		"another SyncTarget":   {active, "guilder-uid", []*resolvedPlacement{waiting}, false},
		"another placement":    {active, "florin-uid", []*resolvedPlacement{other}, false},
		"a placement is gone":  {active, "florin-uid", []*resolvedPlacement{placementOf("gone")}, false},
		"no placement selects": {active, "florin-uid", nil, false},
		"nothing is known":     {nil, "florin-uid", []*resolvedPlacement{waiting}, false},
	} {
		if got := c.placements.holds(c.syncTarget, c.selectedBy); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The status counts only copies that the mailboxes have: a user may have written any SyncTarget into the slice.
func TestHeldCopiesAreCounted(t *testing.T) {
	inventory := &fleet.Inventory{Name: "inventory"}
	for _, name := range []string{"florin", "guilder", "uncertain", "stays"} {
		inventory.SyncTargets = append(inventory.SyncTargets, fleet.SyncTarget{Inventory: "inventory", Name: name, UID: types.UID(name + "-uid"), Mailbox: logicalcluster.Name(name)})
	}
	view := fleet.NewSnapshot(inventory)
	shop, annex := &resolvedPlacement{Placement: &rules.Placement{UID: "shop"}}, &resolvedPlacement{Placement: &rules.Placement{UID: "annex"}}
	summed := summary{
		counts: map[types.UID]*placementCounts{}, pendingWithdrawals: map[findings.PendingWithdrawal]int{},
		outcomes: map[types.UID]outcome{
			"shop":  {former: formersOf(formerOf("florin", 2), formerOf("guilder", 1), formerOf("uncertain", 0), formerOf("forged", 1))},
			"annex": {former: formersOf(formerOf("florin", 2))},
		},
	}
	for i, selectedBy := range [][]*resolvedPlacement{{shop, annex}, {shop}, {annex}} {
		summed.add(objectKey{name: types.NamespacedName{Name: fmt.Sprint(i)}}, &object{selectedBy: selectedBy, pairs: map[site]*pair{
			at("florin"): {hasCopy: true}, at("guilder"): {hasCopy: true}, at("uncertain"): {hasCopy: true}, at("stays"): {desired: true, hasCopy: true}, at("unknown"): {hasCopy: true},
		}}, view, nil)
	}
	condition := withdrawalCondition(summed.counts["shop"])
	if condition.Status != metav1.ConditionTrue || condition.Reason != edgev2alpha1.ReasonInventoryChanged || !strings.Contains(condition.Message, "withdraws 4 copies at 1970-01-01T00:01:00Z: florin (2), guilder (2).") {
		t.Errorf("got %+v", condition)
	}
	if counted := summed.counts["annex"].held; counted.count != 2 {
		t.Errorf("got %+v", counted)
	}
	pending := func(syncTarget string, at int64) findings.PendingWithdrawal {
		return findings.PendingWithdrawal{Inventory: "inventory", Location: "prod", SyncTarget: syncTarget, At: time.Unix(60*at, 0)}
	}
	if got := summed.pendingWithdrawals; len(got) != 2 || got[pending("florin", 2)] != 3 || got[pending("guilder", 1)] != 2 {
		t.Errorf("each copy counts once for the inventory: got %v", got)
	}
	if condition := withdrawalCondition(&placementCounts{}); condition.Reason != "" {
		t.Errorf("got %+v", condition)
	}
}

// The cache of a workspace keeps the annotation: otherwise a restart would forget the wait, and each report would write the slice.
func TestTheCacheKeepsFormerDestinations(t *testing.T) {
	if !slices.Contains(NewCachePolicy(mailboxes.Limits{}).RetainedAnnotations(), edgev2alpha1.AnnotationFormerDestinations) {
		t.Error("the cache drops the annotation")
	}
}
