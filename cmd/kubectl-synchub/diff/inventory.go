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

package diff

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
)

// inventory is an inventory workspace, as far as the user may read it.
type inventory struct {
	name   logicalcluster.Name
	client client.Client
	// overrides replace Locations of their names.
	overrides []edgev2alpha1.Location
	// openErr is why the workspace cannot be read.
	openErr error

	once sync.Once
	// syncTargets are all, if the user may list them.
	syncTargets map[string]*edgev2alpha1.SyncTarget
	locations   []edgev2alpha1.Location
	// syncTargetsErr and locationsErr are why they cannot be listed.
	syncTargetsErr, locationsErr error
}

// inventories opens inventory workspaces.
type inventories struct {
	options *options
	// overrides are Locations as they would be after the change.
	overrides map[logicalcluster.Name][]edgev2alpha1.Location

	lock sync.Mutex
	open map[logicalcluster.Name]*inventory
}

// of returns an inventory workspace by its logical cluster. It sends no requests.
func (i *inventories) of(name logicalcluster.Name) *inventory {
	i.lock.Lock()
	defer i.lock.Unlock()
	if found, ok := i.open[name]; ok {
		return found
	}
	found := &inventory{name: name, overrides: i.overrides[name]}
	if reader, err := i.options.ReaderIn(name.String()); err != nil {
		found.openErr = err
	} else {
		found.client = reader.Client
	}
	if i.open == nil {
		i.open = map[logicalcluster.Name]*inventory{}
	}
	i.open[name] = found
	return found
}

// read lists the workspace once.
func (i *inventory) read(ctx context.Context) {
	i.once.Do(func() {
		if i.openErr != nil {
			i.syncTargetsErr, i.locationsErr = i.openErr, i.openErr
			return
		}
		var syncTargets edgev2alpha1.SyncTargetList
		i.syncTargetsErr = i.client.List(ctx, &syncTargets)
		i.syncTargets = map[string]*edgev2alpha1.SyncTarget{}
		for j := range syncTargets.Items {
			i.syncTargets[syncTargets.Items[j].Name] = &syncTargets.Items[j]
		}
		var locations edgev2alpha1.LocationList
		i.locationsErr = i.client.List(ctx, &locations)
		i.locations = slices.DeleteFunc(locations.Items, func(one edgev2alpha1.Location) bool {
			return slices.ContainsFunc(i.overrides, func(other edgev2alpha1.Location) bool { return other.Name == one.Name })
		})
		i.locations = append(i.locations, i.overrides...)
	})
}

// syncTarget returns a SyncTarget.
func (i *inventory) syncTarget(ctx context.Context, name string) (*edgev2alpha1.SyncTarget, error) {
	i.read(ctx)
	switch {
	case i.openErr != nil:
		return nil, i.openErr
	case i.syncTargetsErr == nil && i.syncTargets[name] != nil:
		return i.syncTargets[name], nil
	}
	found := &edgev2alpha1.SyncTarget{}
	if err := i.client.Get(ctx, types.NamespacedName{Name: name}, found); err != nil {
		return nil, fmt.Errorf("its SyncTarget cannot be read: %w", err)
	}
	return found, nil
}

// location returns the view of a Location; nil if it cannot be read.
func (i *inventory) location(ctx context.Context, name string) *fleet.Location {
	i.read(ctx)
	for j := range i.locations {
		if i.locations[j].Name == name {
			return new(fleet.NewLocation(i.name, &i.locations[j]))
		}
	}
	return nil
}

// view returns the view that placements resolve their destinations by. The error is the reason why there is none.
func (i *inventory) view(ctx context.Context) (*fleet.Inventory, error) {
	i.read(ctx)
	for _, err := range []error{i.syncTargetsErr, i.locationsErr} {
		if err != nil {
			return nil, fmt.Errorf("the inventory %s cannot be read: %w", i.name, err)
		}
	}
	view := &fleet.Inventory{Name: i.name}
	for _, syncTarget := range i.syncTargets {
		view.SyncTargets = append(view.SyncTargets, fleet.NewSyncTarget(i.name, syncTarget))
	}
	for j := range i.locations {
		view.Locations = append(view.Locations, fleet.NewLocation(i.name, &i.locations[j]))
	}
	return view.Sorted(), nil
}
