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

package fence

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ErrNotHeld is returned instead of a release when the fence is closed. client-go also releases after a failed renewal, with
// an outdated record. That could free the next holder's lock, or free the lock before work here has stopped. The lock expires
// instead.
var ErrNotHeld = errors.New("the Lease is not released, since another replica may hold it: it expires")

// Lock returns the lock of a leader election that opens the fence while this replica holds the lock: for the given time from the
// beginning of each successful write of the lock's record. Another replica waits for the lease duration from a later moment, so a
// shorter time leaves the difference for running requests.
func (f *Fence) Lock(lock resourcelock.Interface, hold time.Duration) resourcelock.Interface {
	return &fencedLock{lock, f, hold}
}

type fencedLock struct {
	resourcelock.Interface
	fence *Fence
	hold  time.Duration
}

// Get implements [resourcelock.Interface]. If another replica holds the lock, because another client has deleted or changed the
// Lease, this replica stops writing at once, and not only when the leader election gives up.
func (l *fencedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.fence.Close()
	}
	return record, raw, err
}

// Create implements [resourcelock.Interface].
func (l *fencedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements [resourcelock.Interface].
func (l *fencedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *fencedLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	holds := record.HolderIdentity == l.Identity()
	if !holds {
		if !l.fence.IsOpen() {
			return ErrNotHeld
		}
		// The leader releases the lock, so the next one may begin as soon as the write arrives.
		l.fence.Close()
	}
	began := l.fence.clock.Now()
	err := write(ctx, record)
	if err == nil && holds {
		l.fence.OpenUntil(began.Add(l.hold))
	}
	return err
}
