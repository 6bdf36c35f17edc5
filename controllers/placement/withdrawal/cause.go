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

package withdrawal

import edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"

// Cause is why copies were withdrawn, for events and the log.
type Cause string

const (
	// ObjectDeleted: somebody deleted the objects in the workspace.
	ObjectDeleted Cause = "ObjectDeleted"
	// Deselected: the placement no longer selects the objects.
	Deselected Cause = "Deselected"
	// PlacementDeleted: somebody deleted the placement.
	PlacementDeleted Cause = "PlacementDeleted"
	// PlacementChanged: the placement no longer requests the destination.
	PlacementChanged Cause = "PlacementChanged"
	// InventoryChanged: the inventory no longer offers the destination, which the placement still requests.
	InventoryChanged Cause = edgev2alpha1.ReasonInventoryChanged
	// DestinationLost: the SyncTarget is no longer a destination, and the hub has not seen why.
	DestinationLost Cause = "DestinationLost"
	// WorkspaceUnbound: somebody deletes the workspace, or its APIBinding.
	WorkspaceUnbound Cause = "WorkspaceUnbound"
	// Replaced: somebody deleted the objects, and created other ones with their names, which get copies of their own.
	Replaced Cause = "Replaced"
)

// sentences describe the causes to the users of the workspace.
var sentences = map[Cause]string{
	ObjectDeleted:    "the objects were deleted in this workspace",
	Deselected:       "spec.downsync of the EdgePlacement no longer selects the objects",
	PlacementDeleted: "the EdgePlacement was deleted",
	PlacementChanged: "the EdgePlacement no longer requests these SyncTargets, or has chosen other ones",
	InventoryChanged: "the inventory no longer offers these SyncTargets to the EdgePlacement: a Location, or a label of a SyncTarget, changed",
	DestinationLost:  "these SyncTargets are no longer destinations",
	WorkspaceUnbound: "the workspace, or its APIBinding, is being deleted",
	Replaced:         "the objects were deleted and created again in this workspace",
}

// String returns a part of a sentence for the users of the workspace.
func (c Cause) String() string { return sentences[c] }

// IsDeliberate reports whether the users of the workspace caused the withdrawal themselves.
func (c Cause) IsDeliberate() bool { return c != InventoryChanged && c != DestinationLost }
