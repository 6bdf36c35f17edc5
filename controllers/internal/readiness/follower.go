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

package readiness

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/ledger"
)

// repeatInterval is how often a Follower sets all SyncTargets again: a replica that has just lost one has forgotten it.
const repeatInterval = 10 * time.Second

// Follower tells a Registry of the leader what the owners of SyncTargets on other replicas have written into the ledger.
type Follower struct {
	Registry *Registry
	Ledger   *ledger.Store
	// Owns reports whether this replica holds a SyncTarget. Then it knows itself whether that is Ready.
	Owns  func(syncTarget types.UID) bool
	Clock clock.WithTicker
}

// NeedLeaderElection returns true: only the leader asks for SyncTargets that it does not hold.
func (f *Follower) NeedLeaderElection() bool { return true }

// Start follows the ledger until ctx ends.
func (f *Follower) Start(ctx context.Context) error {
	if f.Ledger.WaitForLoad(ctx) != nil {
		return nil
	}
	f.Ledger.Subscribe(ctx, f.follow)
	ticker := f.Clock.NewTicker(repeatInterval)
	defer ticker.Stop()
	for {
		all, _ := f.Ledger.SyncTargets()
		for _, syncTarget := range all {
			f.follow(syncTarget)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// follow records whether one SyncTarget is Ready.
func (f *Follower) follow(syncTarget types.UID) {
	if f.Owns(syncTarget) {
		return
	}
	entry := f.Ledger.Get(syncTarget)
	switch {
	case !f.Ledger.Has(syncTarget):
		f.Registry.Forget(syncTarget)
	case entry.Ready != nil:
		f.Registry.Set(syncTarget, *entry.Ready, f.Clock.Now())
	}
}
