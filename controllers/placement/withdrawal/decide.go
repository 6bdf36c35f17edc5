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

import (
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"

	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

const (
	// DefaultGrace is the default of [Decider.Grace].
	DefaultGrace = time.Minute
	// maxFew is the number of copies that a placement may lose at once without a wait, if it keeps other destinations.
	maxFew = 3
)

// Former is a former destination of a placement whose copies stay for now.
type Former struct {
	rules.Destination
	// Generation is a generation of the placement that had the destination.
	Generation int64
	// Until is when the wait ends. It is zero before the wait begins: until then it is not certain that the inventory no
	// longer offers the destination.
	Until time.Time
}

// Decider decides which former destinations of one placement keep their copies for now.
type Decider struct {
	Placement *rules.Placement
	Workspace rules.Workspace
	// Inventories are the logical clusters of the placement's inventory workspaces.
	Inventories []logicalcluster.Name
	View        *fleet.Snapshot
	// Settled is false while some placements of the workspace, or some inventories, are unknown. Nothing is withdrawn then, so
	// no wait begins.
	Settled bool
	// Copies returns how many copies of the placement's objects the mailboxes have; known is false while the number is unknown.
	Copies func(mailboxes map[logicalcluster.Name]bool) (copies int, known bool)
	// Grace is how long the copies stay. With zero, none does.
	Grace time.Duration
	Now   time.Time
}

// decision is the decision about one former destination.
type decision int

const (
	// released: the SyncTarget is being deleted, and its deletionPolicy decides about the copies.
	released decision = iota
	// unrequested: the placement no longer requests the destination, or has chosen other ones.
	unrequested
	// uncertain: the destination may come back without a change in the inventory.
	uncertain
	// lost: the inventory no longer offers the destination, which the placement still requests.
	lost
)

// Decide returns the former destinations whose copies stay for now. current are the destinations of the placement.
func (d *Decider) Decide(former []Former, current []rules.Destination) (held []Former) {
	if d.Grace == 0 {
		return nil
	}
	var begun []int
	mailboxes := map[logicalcluster.Name]bool{}
	for _, one := range former {
		if slices.ContainsFunc(current, func(other rules.Destination) bool { return other.UID == one.UID }) {
			continue
		}
		found, mailbox := d.decideOne(&one)
		isOver := !one.Until.IsZero() && !d.Now.Before(one.Until)
		if found == released || found == unrequested || found == lost && isOver {
			continue
		}
		if found == lost && one.Until.IsZero() {
			one.Until = d.Now.Add(d.Grace)
			begun, mailboxes[mailbox] = append(begun, len(held)), true
		}
		held = append(held, one)
	}
	if len(begun) > 0 && d.areFew(mailboxes, len(current)) {
		for _, i := range slices.Backward(begun) {
			held = slices.Delete(held, i, i+1)
		}
	}
	return held
}

// Cause returns why a former destination is none any more.
func (d *Decider) Cause(former *Former) Cause {
	switch found, _ := d.decideOne(former); found {
	case lost:
		return InventoryChanged
	case unrequested:
		return PlacementChanged
	default:
		return DestinationLost
	}
}

// areFew reports whether the copies in some mailboxes are too few for a wait.
func (d *Decider) areFew(mailboxes map[logicalcluster.Name]bool, destinations int) bool {
	copies, known := d.Copies(mailboxes)
	return known && (copies == 0 || copies <= maxFew && destinations > 0)
}

// decideOne decides about one former destination, and returns its mailbox.
func (d *Decider) decideOne(one *Former) (decision, logicalcluster.Name) {
	inventory := d.View.Inventory(one.Inventory)
	if !d.Settled || inventory == nil {
		return uncertain, ""
	}
	position := slices.IndexFunc(inventory.SyncTargets, func(other fleet.SyncTarget) bool { return other.UID == one.UID })
	if position < 0 || inventory.SyncTargets[position].Terminating {
		return released, ""
	}
	syncTarget := &inventory.SyncTargets[position]
	if syncTarget.LabelsUnknown || inventory.UnusableLocation() != nil {
		return uncertain, ""
	}
	if matches, _ := d.Placement.SelectsSyncTarget(inventory, syncTarget, d.Workspace, d.Inventories); matches {
		// The placement has chosen other SyncTargets.
		return unrequested, ""
	}
	if !d.isRequested(one, inventory) {
		return unrequested, ""
	}
	return lost, syncTarget.Mailbox
}

// isRequested reports whether the placement still selects the Location of a former destination: otherwise its workspace asked
// for the withdrawal.
func (d *Decider) isRequested(one *Former, inventory *fleet.Inventory) bool {
	if one.Generation == d.Placement.Generation {
		return true
	}
	if selects, known := d.Placement.SelectsLocationOf(&one.Destination, d.Inventories); known {
		return selects
	}
	// After a restart the former labels of the Location are unknown.
	position := slices.IndexFunc(inventory.Locations, func(other fleet.Location) bool { return other.Name == one.Location })
	return position < 0 || d.Placement.SelectsLocation(&inventory.Locations[position], d.Inventories)
}
