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
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/placement/withdrawal"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// A thousand withdrawn copies are one event for each placement and cause, once no more follow.
func TestWithdrawnCopiesAreOneEvent(t *testing.T) {
	t.Parallel()
	w, start := &withdrawn{}, time.Unix(1000, 0)
	if due, again := w.take(start); due != nil || again != 0 {
		t.Fatalf("at rest: %v, %v", due, again)
	}
	shop := []placementRef{{"shop", "u"}}
	for i := range 1000 {
		w.add(shop, ReasonWithdrawn, withdrawal.InventoryChanged, &fleet.SyncTarget{Name: []string{"florin", "guilder"}[i%2]}, fmt.Sprintf("configmaps shop/%d", i/2), start)
	}
	w.add(shop, ReasonReleased, withdrawal.PlacementDeleted, &fleet.SyncTarget{Name: "florin"}, "configmaps shop/a", start.Add(time.Second))
	if due, again := w.take(start.Add(time.Second)); due != nil || again != withdrawnDelay {
		t.Fatalf("further copies may follow: %v, %v", due, again)
	}
	due, _ := w.take(start.Add(time.Second + withdrawnDelay))
	if len(due) != 2 {
		t.Fatalf("%d events", len(due))
	}
	for key, copies := range due {
		event := copies.event(key, []string{"guilder"})
		want := map[string][3]string{
			ReasonWithdrawn: {"Warning", "1000 copies were withdrawn from florin (500), guilder (500), because the inventory no longer offers", " Not Ready, so that their clusters remove them later: guilder. Objects: configmaps shop/0, configmaps shop/1, configmaps shop/2, configmaps shop/3, configmaps shop/4, configmaps shop/5, configmaps shop/6, configmaps shop/7, configmaps shop/8, configmaps shop/9."},
			ReasonReleased:  {"Normal", "1 copy was released, and stays on florin (1), because the EdgePlacement was deleted. Objects: ", "configmaps shop/a."},
		}[event.Reason]
		if event.Type != want[0] || !strings.HasPrefix(event.Message, want[1]) || !strings.HasSuffix(event.Message, want[2]) {
			t.Errorf("want %q, got %+v", want, event)
		}
	}
	if due, again := w.take(start.Add(time.Hour)); due != nil || again != 0 {
		t.Errorf("the events are written again: %v, %v", due, again)
	}
}

// A steady stream of withdrawals does not delay the event for ever.
func TestWithdrawnCopiesDoNotWaitForEver(t *testing.T) {
	t.Parallel()
	w, start := &withdrawn{}, time.Unix(1000, 0)
	for i := range 100 {
		now := start.Add(time.Duration(i) * time.Second)
		if due, _ := w.take(now); due != nil {
			if passed := now.Sub(start); passed < maxWithdrawnDelay || passed > maxWithdrawnDelay+time.Second {
				t.Errorf("after %v", passed)
			}
			return
		}
		w.add([]placementRef{{"shop", "u"}}, ReasonWithdrawn, withdrawal.Deselected, &fleet.SyncTarget{Name: "florin"}, "configmaps a", now)
	}
	t.Error("no event")
}

func TestWithdrawalCause(t *testing.T) {
	t.Parallel()
	key := pairAt(objectKey{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, types.NamespacedName{Namespace: "shop", Name: "a"}}, "mailbox")
	shop := &resolvedPlacement{Placement: &rules.Placement{Name: "shop", UID: "shop-uid"}}
	known := map[types.UID]outcome{"shop-uid": {lost: map[types.UID]lostDestination{"florin": {Cause: withdrawal.InventoryChanged}}}}
	for name, c := range map[string]struct {
		object   object
		decision plan.Decision
		active   *placements
		want     withdrawal.Cause
		of       int
	}{
		"the object is deleted":      {object{absence: plan.SourceNotFound}, plan.Decision{}, &placements{outcomes: known}, withdrawal.ObjectDeleted, 1},
		"it is being deleted":        {object{absence: plan.Terminating}, plan.Decision{}, &placements{outcomes: known}, withdrawal.ObjectDeleted, 1},
		"it is replaced":             {object{selectedBy: []*resolvedPlacement{shop}}, plan.Decision{Cause: plan.Superseded}, &placements{outcomes: known}, withdrawal.Replaced, 0},
		"it is deselected":           {object{absence: plan.Deselected}, plan.Decision{}, &placements{outcomes: known}, withdrawal.Deselected, 1},
		"the placement is gone":      {object{absence: plan.Deselected}, plan.Decision{}, &placements{}, withdrawal.PlacementDeleted, 1},
		"the workspace is unbound":   {object{absence: plan.Deselected}, plan.Decision{}, &placements{withdrawAll: true}, withdrawal.WorkspaceUnbound, 1},
		"the inventory has changed":  {object{selectedBy: []*resolvedPlacement{shop}}, plan.Decision{}, &placements{outcomes: known}, withdrawal.InventoryChanged, 1},
		"nobody knows why it is so":  {object{selectedBy: []*resolvedPlacement{shop}}, plan.Decision{}, &placements{}, withdrawal.DestinationLost, 1},
		"the placements are unknown": {object{absence: plan.Deselected}, plan.Decision{}, nil, withdrawal.DestinationLost, 1},
	} {
		w := newTestWorkspace()
		entry := c.object
		entry.pairs = map[site]*pair{key.site: {hasCopy: true}}
		w.pairs.objects[key.objectKey] = &entry
		w.pairs.formerly[key.objectKey] = refsOf([]*resolvedPlacement{shop})
		cause, of := w.pairs.withdrawalCause(key, "florin", c.decision, c.active)
		if cause != c.want || len(of) != c.of || cause.String() == "" {
			t.Errorf("%s: %s of %v", name, cause, of)
		}
	}
}
