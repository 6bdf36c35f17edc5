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
	"sync"
	"sync/atomic"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/topic"
)

// verifyTimeout is the timeout of one verification.
const verifyTimeout = time.Minute

// errBehind means that kcp itself returned another content of an inventory than the view. The event of the
// change updates the view; verify again after that.
var errBehind = errors.New("the hub's view of the inventory workspace differs from kcp")

// Options are the dependencies of a [Fleet].
type Options struct {
	Manager mcmanager.Manager
	// Mailboxes locates the mailboxes that the hub created. The status of SyncTargets proves nothing, because
	// users may write it.
	Mailboxes mailbox.Locator
	// InventoryConfigFor returns a client config for the virtual workspace of an inventory. Its transport
	// bounds the pages of lists.
	InventoryConfigFor func(host string) *rest.Config
	// Scheme contains SyncTargets and Locations.
	Scheme *runtime.Scheme
}

// Fleet keeps the view of all inventory workspaces. All methods may be called concurrently.
type Fleet struct {
	Options

	current   atomic.Pointer[fleet.Snapshot]
	changes   topic.Topic[logicalcluster.Name]
	verifying singleflight.Group

	// lock serializes changes of current, and guards the fields below.
	lock sync.Mutex
	// located are the known mailboxes of each inventory, by SyncTarget. changedMailboxes are SyncTargets whose
	// mailbox workspace changed since the last reconcile of the inventory.
	located          map[logicalcluster.Name]map[types.UID]logicalcluster.Name
	changedMailboxes map[logicalcluster.Name]map[types.UID]bool
}

// New returns a fleet without inventories. Call Register to fill it.
func New(options Options) *Fleet {
	cache := &Fleet{
		Options: options,
		located: map[logicalcluster.Name]map[types.UID]logicalcluster.Name{}, changedMailboxes: map[logicalcluster.Name]map[types.UID]bool{},
	}
	cache.current.Store(fleet.NewSnapshot())
	return cache
}

// Snapshot returns the current view.
func (f *Fleet) Snapshot() *fleet.Snapshot { return f.current.Load() }

// Changes carries the inventories whose view changed. A change of Verified to true is not published.
func (f *Fleet) Changes() *topic.Topic[logicalcluster.Name] { return &f.changes }

// Verify reads the Locations and SyncTargets of an inventory from kcp itself, after it has checked that the workspace is
// bound and not being deleted. If both agree, the inventory is Verified from the next snapshot on, until its view changes.
// The error is errBehind if they differ. Concurrent calls for an inventory share one verification, and a verified
// inventory causes no request.
func (f *Fleet) Verify(ctx context.Context, inventory logicalcluster.Name) error {
	if known := f.Snapshot().Inventory(inventory); known != nil && known.Verified {
		return nil
	}
	result := f.verifying.DoChan(inventory.String(), func() (any, error) {
		// A caller that is canceled must not fail concurrent callers.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyTimeout)
		defer cancel()
		return nil, f.verify(requestclass.With(ctx, requestclass.Extra), inventory)
	})
	var err error
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case verified := <-result:
		err = verified.Err
	}
	if err != nil {
		return fmt.Errorf("cannot verify the inventory workspace %s: %w", inventory, err)
	}
	return nil
}

func (f *Fleet) verify(ctx context.Context, name logicalcluster.Name) error {
	known := f.Snapshot().Inventory(name)
	if known == nil {
		return errors.New("the hub does not know it, or has not read it yet")
	}
	if unusable := known.UnusableLocation(); unusable != nil {
		return fmt.Errorf("its Location %s is unusable: %s", unusable.Name, unusable.Unusable)
	}
	inventory, err := f.Manager.GetCluster(ctx, multicluster.ClusterName(name))
	if err != nil {
		return err
	}
	reader, err := inventories.NewReader(f.InventoryConfigFor(inventory.GetConfig().Host), f.Scheme)
	if err != nil {
		return err
	}
	read, err := readBound(ctx, reader, known)
	if err != nil {
		return err
	}
	return f.markVerified(read)
}

// markVerified marks an inventory as verified if its view equals what was read.
func (f *Fleet) markVerified(read *fleet.Inventory) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	snapshot := f.Snapshot()
	known := snapshot.Inventory(read.Name)
	if !known.Equal(read) {
		return errBehind
	}
	verified := *known
	verified.Verified = true
	f.current.Store(snapshot.With(read.Name, &verified))
	return nil
}

// set replaces the view of an inventory, and publishes the change if there is one.
func (f *Fleet) set(view *fleet.Inventory) {
	f.lock.Lock()
	snapshot := f.Snapshot()
	if snapshot.Inventory(view.Name).Equal(view) {
		f.lock.Unlock()
		return
	}
	f.current.Store(snapshot.With(view.Name, view))
	f.lock.Unlock()
	f.changes.Publish(view.Name)
}

// remove removes the view of an inventory that the hub has lost, and publishes the change if there was one.
func (f *Fleet) remove(name logicalcluster.Name) {
	f.lock.Lock()
	delete(f.located, name)
	delete(f.changedMailboxes, name)
	snapshot := f.Snapshot()
	known := snapshot.Inventory(name)
	if known != nil {
		f.current.Store(snapshot.With(name, nil))
	}
	f.lock.Unlock()
	if known != nil {
		f.changes.Publish(name)
	}
}
