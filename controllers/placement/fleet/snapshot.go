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
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/location/selection"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/provider/inventories/parameters"
)

// SyncTarget is a cluster in an inventory workspace.
type SyncTarget struct {
	// Inventory is the logical cluster of the SyncTarget.
	Inventory logicalcluster.Name
	Name      string
	UID       types.UID
	Labels    map[string]string
	// Annotations are the result of [parameters.Of].
	Annotations map[string]string
	// LabelsUnknown is true if the SyncTarget is larger than the hub reads. No Location selects it, but its
	// copies stay.
	LabelsUnknown bool
	// Mailbox is the logical cluster of the mailbox. It is empty while the mailbox is not ready or is terminating.
	Mailbox logicalcluster.Name
	// Tenancy determines how workspaces share the cluster.
	Tenancy tenancy.Settings
	// Unschedulable is true if spec.unschedulable or spec.drain requests that the cluster gets no new objects.
	Unschedulable bool
	// Terminating is true after the SyncTarget was deleted, until the hub has removed its finalizer.
	Terminating bool
}

// Location is a Location in an inventory workspace.
type Location struct {
	// Inventory is the logical cluster of the Location.
	Inventory logicalcluster.Name
	Name      string
	UID       types.UID
	Labels    map[string]string
	// Annotations are the result of [parameters.Of].
	Annotations map[string]string
	// Spec has instanceSelector and availableTo only. It is zero if the Location is larger than the hub reads.
	Spec edgev2alpha1.LocationSpec
	// Unusable is why the Location selects nothing: it is too large, or its selector is invalid. It is empty
	// for usable Locations.
	Unusable string
	// Terminating is true if the Location has been deleted, but a finalizer keeps it. It then selects nothing.
	Terminating bool
}

// NewSyncTarget returns the view of a SyncTarget, without its mailbox.
func NewSyncTarget(inventory logicalcluster.Name, object *edgev2alpha1.SyncTarget) SyncTarget {
	return SyncTarget{
		Inventory: inventory, Name: object.Name, UID: object.UID, Labels: object.Labels, Annotations: parameters.Of(object),
		Tenancy:       tenancy.SettingsOf(object.Spec.Tenancy),
		Unschedulable: selection.IsUnschedulable(&object.Spec), Terminating: object.DeletionTimestamp != nil,
	}
}

// NewLocation returns the view of a Location that the hub can use.
func NewLocation(inventory logicalcluster.Name, object *edgev2alpha1.Location) Location {
	return Location{
		Inventory: inventory, Name: object.Name, UID: object.UID, Labels: object.Labels, Annotations: parameters.Of(object),
		Spec:        edgev2alpha1.LocationSpec{InstanceSelector: object.Spec.InstanceSelector, AvailableTo: object.Spec.AvailableTo},
		Terminating: object.DeletionTimestamp != nil,
	}
}

// Selector returns the compiled selector of the Location's instances. It selects nothing if the Location is Unusable or
// Terminating.
func (l *Location) Selector() labels.Selector {
	selector, err := selection.Selector(&l.Spec)
	if l.Unusable != "" || l.Terminating || err != nil {
		return labels.Nothing()
	}
	return selector
}

// Inventory is the view of one inventory workspace. It is immutable.
type Inventory struct {
	Name logicalcluster.Name
	// SyncTargets and Locations are sorted by name.
	SyncTargets []SyncTarget
	Locations   []Location
	// Verified is true if kcp itself returned these Locations and SyncTargets, from a bound workspace, since
	// they last changed in the view. Only then copies may be withdrawn from a SyncTarget that no Location
	// selects. Verified is never true while a Location is Unusable: its owner made a mistake and did not
	// request a withdrawal.
	Verified bool
}

// Snapshot is an immutable view of all inventory workspaces. It lacks a workspace until the hub has synced its
// SyncTargets and Locations, and after the workspace has unbound the export.
type Snapshot struct {
	inventories map[logicalcluster.Name]*Inventory
	// mailboxes maps mailboxes to their SyncTargets.
	mailboxes map[logicalcluster.Name]*SyncTarget
}

// NewSnapshot returns a snapshot of the given inventories.
func NewSnapshot(inventories ...*Inventory) *Snapshot {
	snapshot := &Snapshot{inventories: map[logicalcluster.Name]*Inventory{}}
	for _, inventory := range inventories {
		snapshot.inventories[inventory.Name] = inventory
	}
	snapshot.indexMailboxes()
	return snapshot
}

// Inventory returns an inventory by its logical cluster, or nil if the hub does not know it.
func (s *Snapshot) Inventory(name logicalcluster.Name) *Inventory { return s.inventories[name] }

// Inventories yields all inventories, in no particular order.
func (s *Snapshot) Inventories() iter.Seq[*Inventory] { return maps.Values(s.inventories) }

// Mailboxes yields the mailboxes of all known SyncTargets, in no particular order.
func (s *Snapshot) Mailboxes() iter.Seq[logicalcluster.Name] { return maps.Keys(s.mailboxes) }

// SyncTargetOf returns the SyncTarget of a mailbox; ok is false if no known inventory has it.
func (s *Snapshot) SyncTargetOf(mailbox logicalcluster.Name) (syncTarget SyncTarget, ok bool) {
	found := s.mailboxes[mailbox]
	if found == nil {
		return SyncTarget{}, false
	}
	return *found, true
}

// IsVerified reports whether objects may be withdrawn from a mailbox if no Location selects its SyncTarget in
// this snapshot. If it returns false, verify the inventory and take a new snapshot. It never returns true for a
// SyncTarget that is terminating, because its deletionPolicy decides then, or whose labels are unknown.
func (s *Snapshot) IsVerified(mailbox logicalcluster.Name) bool {
	syncTarget := s.mailboxes[mailbox]
	return syncTarget != nil && !syncTarget.LabelsUnknown && !syncTarget.Terminating && s.inventories[syncTarget.Inventory].Verified
}

// With returns a snapshot with another view of one inventory. Nil removes the inventory.
func (s *Snapshot) With(name logicalcluster.Name, inventory *Inventory) *Snapshot {
	changed := &Snapshot{inventories: maps.Clone(s.inventories)}
	if inventory == nil {
		delete(changed.inventories, name)
	} else {
		changed.inventories[name] = inventory
	}
	changed.indexMailboxes()
	return changed
}

// indexMailboxes maps the mailboxes to their SyncTargets.
func (s *Snapshot) indexMailboxes() {
	s.mailboxes = map[logicalcluster.Name]*SyncTarget{}
	for _, inventory := range s.inventories {
		for i := range inventory.SyncTargets {
			if syncTarget := &inventory.SyncTargets[i]; syncTarget.Mailbox != "" {
				s.mailboxes[syncTarget.Mailbox] = syncTarget
			}
		}
	}
}

// Sorted sorts the SyncTargets and Locations, and returns the inventory.
func (i *Inventory) Sorted() *Inventory {
	slices.SortFunc(i.SyncTargets, func(a, b SyncTarget) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(i.Locations, func(a, b Location) int { return cmp.Compare(a.Name, b.Name) })
	return i
}

// Equal reports whether two views of an inventory are equal, apart from Verified.
func (i *Inventory) Equal(other *Inventory) bool {
	return i != nil && other != nil && apiequality.Semantic.DeepEqual(i.SyncTargets, other.SyncTargets) &&
		apiequality.Semantic.DeepEqual(i.Locations, other.Locations)
}

// UnusableLocation returns a Location that is unusable, or nil if all are usable.
func (i *Inventory) UnusableLocation() *Location {
	index := slices.IndexFunc(i.Locations, func(l Location) bool { return l.Unusable != "" })
	if index < 0 {
		return nil
	}
	return &i.Locations[index]
}
