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

package fleetcache

import (
	"context"
	"errors"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/location"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/provider/inventories"
)

// newSyncTarget returns the view of a SyncTarget as the inventory cache holds it, without its mailbox.
func newSyncTarget(inventory logicalcluster.Name, object *edgev2alpha1.SyncTarget) fleet.SyncTarget {
	view := fleet.NewSyncTarget(inventory, object)
	view.LabelsUnknown = inventories.TooLarge(object) != ""
	return view
}

// newLocation returns the view of a Location as the inventory cache holds it.
func newLocation(inventory logicalcluster.Name, object *edgev2alpha1.Location) fleet.Location {
	view := fleet.NewLocation(inventory, object)
	_, view.Unusable = location.UnusableReason(object)
	return view
}

// readInventory reads an inventory from kcp itself. It takes the mailboxes from the known view, since inventory
// workspaces do not contain them. It returns errBehind as soon as kcp returns more objects than the known view
// has.
func readInventory(ctx context.Context, reader *inventories.Reader, known *fleet.Inventory) (*fleet.Inventory, error) {
	mailboxes := map[types.UID]logicalcluster.Name{}
	for i := range known.SyncTargets {
		mailboxes[known.SyncTargets[i].UID] = known.SyncTargets[i].Mailbox
	}
	read := &fleet.Inventory{Name: known.Name}
	for object, err := range reader.SyncTargets(ctx) {
		if err != nil {
			return nil, err
		}
		syncTarget := newSyncTarget(known.Name, object)
		syncTarget.Mailbox = mailboxes[syncTarget.UID]
		if read.SyncTargets = append(read.SyncTargets, syncTarget); len(read.SyncTargets) > len(known.SyncTargets) {
			return nil, fmt.Errorf("kcp has more SyncTargets: %w", errBehind)
		}
	}
	for object, err := range reader.Locations(ctx) {
		if err != nil {
			return nil, err
		}
		if read.Locations = append(read.Locations, newLocation(known.Name, object)); len(read.Locations) > len(known.Locations) {
			return nil, fmt.Errorf("kcp has more Locations: %w", errBehind)
		}
	}
	return read.Sorted(), nil
}

// readBound reads an inventory that is bound before and after, so that no object is missing because of its binding.
func readBound(ctx context.Context, reader *inventories.Reader, known *fleet.Inventory) (*fleet.Inventory, error) {
	before, err := reader.BoundVersion(ctx)
	if err != nil {
		return nil, err
	}
	read, err := readInventory(ctx, reader, known)
	if err != nil {
		return nil, err
	}
	after, err := reader.BoundVersion(ctx)
	if err == nil && after != before {
		err = errors.New("the APIBinding of the inventory workspace changed during the read")
	}
	return read, err
}
