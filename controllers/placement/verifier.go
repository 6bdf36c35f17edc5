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
	"context"
	"fmt"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// verifier finds out from kcp itself which SyncTargets placements no longer select.
type verifier struct{ fleet *fleetcache.Fleet }

// isUnwanted reports whether none of the placements wants the copy of a pair any more: no Location selects the SyncTarget, or the
// copy has another site because the cluster is shared in another way. The error is why that is unknown.
func (v verifier) isUnwanted(ctx context.Context, key pairKey, selection selectionResult) (bool, error) {
	syncTarget, inventory, err := v.syncTargetOf(ctx, key.mailbox)
	if inventory == nil || err != nil {
		return false, err
	}
	wants := func(one *resolvedPlacement) bool {
		selected, _ := one.verifiedSelects(inventory, &syncTarget)
		return selected && one.siteAt(key.objectKey, &syncTarget) == key.site
	}
	return !slices.ContainsFunc(selection.selectedBy, wants) &&
		(syncTarget.Tenancy.Naming.IsShared() || !slices.ContainsFunc(selection.containerFor, wants)), nil
}

// mayNotUpsync reports whether no further entry of the placements applies to the cluster of a mailbox than the cached ones. The error is
// why that is unknown.
func (v verifier) mayNotUpsync(ctx context.Context, mailbox logicalcluster.Name, placements []*resolvedPlacement) (bool, error) {
	syncTarget, inventory, err := v.syncTargetOf(ctx, mailbox)
	if inventory == nil || err != nil {
		return false, err
	}
	return !slices.ContainsFunc(placements, func(one *resolvedPlacement) bool {
		selected, mayUpsync := one.verifiedSelects(inventory, &syncTarget)
		cached, isDestination := one.mailboxes[mailbox]
		return selected && slices.ContainsFunc(one.Upsync, func(entry edgev2alpha1.PlacementUpsync) bool {
			return rules.MayUpsync(entry.To, mayUpsync, syncTarget.Tenancy.Naming) && (!isDestination || !cached.MayUpsyncTo(entry.To))
		})
	}), nil
}

// mayNotUpsyncToWorkspace reports whether none of the placements brings objects of a SyncTarget into the workspace any more, or the
// SyncTarget is gone. The error is why that is unknown.
func (v verifier) mayNotUpsyncToWorkspace(ctx context.Context, inventory logicalcluster.Name, uid types.UID, placements []*resolvedPlacement) (bool, error) {
	if found := v.fleet.Snapshot().Inventory(inventory); found == nil || !found.Verified {
		if err := v.fleet.Verify(requestclass.With(ctx, requestclass.Extra), inventory); err != nil {
			return false, fmt.Errorf("cannot remove the objects of a SyncTarget now, because it is not certain which Locations select it: %w", err)
		}
	}
	verified := v.fleet.Snapshot().Inventory(inventory)
	if verified == nil || !verified.Verified {
		return false, nil
	}
	position := slices.IndexFunc(verified.SyncTargets, func(one fleet.SyncTarget) bool { return one.UID == uid })
	if position < 0 {
		return true, nil
	}
	syncTarget := &verified.SyncTargets[position]
	return !syncTarget.LabelsUnknown && !slices.ContainsFunc(placements, func(one *resolvedPlacement) bool {
		selected, mayUpsync := one.verifiedSelects(verified, syncTarget)
		return selected && rules.MayUpsync(edgev2alpha1.UpsyncToWorkspace, mayUpsync, syncTarget.Tenancy.Naming)
	}), nil
}

// syncTargetOf returns the SyncTarget of a mailbox with its verified inventory; the inventory is nil if
// the hub does not know it.
func (v verifier) syncTargetOf(ctx context.Context, mailbox logicalcluster.Name) (fleet.SyncTarget, *fleet.Inventory, error) {
	view := v.fleet.Snapshot()
	if syncTarget, ok := view.SyncTargetOf(mailbox); ok && !view.IsVerified(mailbox) {
		if err := v.fleet.Verify(requestclass.With(ctx, requestclass.Extra), syncTarget.Inventory); err != nil {
			return syncTarget, nil, fmt.Errorf("cannot withdraw anything from the mailbox of %s now, because it is not certain which Locations select it: %w", syncTarget.Name, err)
		}
		view = v.fleet.Snapshot()
	}
	syncTarget, ok := view.SyncTargetOf(mailbox)
	if !ok || !view.IsVerified(mailbox) {
		return syncTarget, nil, nil
	}
	return syncTarget, view.Inventory(syncTarget.Inventory), nil
}

// isUnmatched reports whether a placement does not match a SyncTarget of an inventory.
func (v verifier) isUnmatched(ctx context.Context, one *resolvedPlacement, inventory logicalcluster.Name, syncTarget types.UID) bool {
	if err := v.fleet.Verify(requestclass.With(ctx, requestclass.Extra), inventory); err != nil {
		return false
	}
	verified := v.fleet.Snapshot().Inventory(inventory)
	if verified == nil || !verified.Verified {
		return false
	}
	position := slices.IndexFunc(verified.SyncTargets, func(other fleet.SyncTarget) bool { return other.UID == syncTarget })
	if position < 0 {
		return true
	}
	found := &verified.SyncTargets[position]
	matches, _ := one.SelectsSyncTarget(verified, found, one.workspace, one.inventories)
	return !matches && !found.LabelsUnknown
}
