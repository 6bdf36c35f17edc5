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

package leases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// maxTryPeriod is the longest time between two attempts of an election to get a Lease. Most attempts send no request.
const maxTryPeriod = 250 * time.Millisecond

// errChanged is returned for a write that is based on an outdated record of the Lease. The election tries again soon.
var errChanged = errors.New("the Lease has changed since it was observed")

// Timing returns the renew deadline and the retry period for an election with a [Lock], which renews the Lease once in each renew period,
// and must have renewed it within the deadline. A skipped renewal looks like a successful one to the election, so its own deadline is
// shorter by the renew period.
func Timing(deadline, renewPeriod time.Duration) (electionDeadline, tryPeriod time.Duration) {
	electionDeadline = deadline - renewPeriod
	return electionDeadline, min(maxTryPeriod, electionDeadline/2)
}

// Lock is the lock of one election. Only the goroutine of the election may use it.
type Lock struct {
	// Interface reads and writes the Lease on the server.
	resourcelock.Interface
	watcher     *Watcher
	name        string
	renewPeriod time.Duration

	// isHolder is true since this replica's last write made it the holder, at writtenAt.
	isHolder  bool
	writtenAt time.Time
	// readAt is when the Lease was read from the server last. shown is the record that the watch has shown to the election since; nil if
	// the election got its record from the server.
	readAt time.Time
	shown  []byte
}

var _ resourcelock.Interface = &Lock{}

// Lock returns a lock of the Lease with the name. It forwards only the necessary requests to inner.
func (w *Watcher) Lock(inner resourcelock.Interface, name string, renewPeriod time.Duration) *Lock {
	return &Lock{Interface: inner, watcher: w, name: name, renewPeriod: renewPeriod}
}

// Get implements [resourcelock.Interface]. It returns the last observed record. It reads the record from the server if there
// is none, if this replica is the holder, or once in each renew period while the watch is silent for longer than a live
// holder would be.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	last, ok := l.watcher.get(l.name)
	now := l.watcher.Clock.Now()
	isSilent := now.Sub(last.at) >= 2*l.renewPeriod && now.Sub(l.readAt) >= l.renewPeriod
	if !ok || l.isHolder || isSilent {
		return l.read(ctx)
	}
	l.shown = last.raw
	return &last.record, last.raw, nil
}

// read returns the record on the server.
func (l *Lock) read(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		if apierrors.IsNotFound(err) {
			l.isHolder = false
			l.watcher.forget(l.name)
		}
		return record, raw, err
	}
	l.isHolder = l.isHolder && record.HolderIdentity == l.Identity()
	l.readAt, l.shown = l.watcher.Clock.Now(), nil
	l.watcher.set(l.name, *record, raw)
	return record, raw, nil
}

// Create implements [resourcelock.Interface].
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements [resourcelock.Interface]. It skips a renewal that is not due, unless the watch shows that another client has
// changed the Lease. A write that is based on the watch is sent only if the server returns the same record.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	isRenewal := l.isHolder && record.HolderIdentity == l.Identity()
	if isRenewal && l.watcher.Clock.Since(l.writtenAt) < l.renewPeriod && l.isShownAsHolder() {
		return nil
	}
	if shown := l.shown; shown != nil {
		_, raw, err := l.read(ctx)
		if err != nil {
			return err
		}
		if !bytes.Equal(raw, shown) {
			return errChanged
		}
	}
	return l.write(ctx, record, l.Interface.Update)
}

func (l *Lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	began := l.watcher.Clock.Now()
	if err := write(ctx, record); err != nil {
		return err
	}
	l.isHolder, l.writtenAt, l.shown = record.HolderIdentity == l.Identity(), began, nil
	if raw, err := json.Marshal(record); err == nil {
		l.watcher.set(l.name, record, raw)
	}
	return nil
}

func (l *Lock) isShownAsHolder() bool {
	last, ok := l.watcher.get(l.name)
	return ok && last.record.HolderIdentity == l.Identity()
}
