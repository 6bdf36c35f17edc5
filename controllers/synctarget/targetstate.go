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

package synctarget

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/targets"
)

// targetState is what the controller remembers of a SyncTarget between two looks at it. Nothing is lost with it. All but doubted
// belongs to the one that reconciles the SyncTarget.
type targetState struct {
	// since is when this hub first saw the SyncTarget.
	since time.Time
	// credentialsRefused is true after the target refused the credentials, until their Secret was read from kcp. The controller's lock
	// guards it.
	credentialsRefused bool
	// secret is what the SyncTarget needs of its Secret. It counts as long as the cache still has passed, the version of the Secret
	// when it was read.
	secret            *corev1.Secret
	supersededVersion string
	// renewal is how the last attempt to renew the token went.
	renewal renewal
	// restartTrust is nil until the SyncTarget was looked at.
	restartTrust *restartTrust
	// messageChangedAt is when the words of a condition were last changed while it stayed the same.
	messageChangedAt time.Time
	// conflictSeen is true once this hub has seen an older SyncTarget of the same cluster: when that is gone, it is not awaited.
	conflictSeen bool
}

// restartTrust is what counts of what the hub before has found out about a target.
type restartTrust struct {
	// connection is the first to the target, nil if there was none when the SyncTarget was first reconciled.
	connection  *targets.Connection
	initialized bool
	syncmanager.Trust
}

// forConnection returns for how long what the hub before has found out counts. With another connection than the first, which may lead
// elsewhere, it does not any more.
func (t *restartTrust) forConnection(connection *targets.Connection) syncmanager.Trust {
	switch {
	case !t.initialized:
		t.connection, t.initialized = connection, true
	case t.connection != connection:
		t.Trust = syncmanager.Trust{}
	}
	return t.Trust
}

// stateOf returns what is remembered of a SyncTarget that was seen.
func (c *Controller) stateOf(syncTarget types.UID) *targetState {
	c.lock.Lock()
	defer c.lock.Unlock()
	if found := c.states[syncTarget]; found != nil {
		return found
	}
	// It was lost meanwhile; whoever still works on it is about to end.
	return &targetState{since: c.clock.Now()}
}

// Unauthorized is called after each probe whose credentials a target did not accept: they may have been replaced by others
// that the cache does not show yet.
func (c *Controller) Unauthorized(syncTarget types.UID) {
	c.lock.Lock()
	if found := c.states[syncTarget]; found != nil {
		found.credentialsRefused = true
	}
	c.lock.Unlock()
	c.TargetChanged(syncTarget)
}

// takeCredentialsRefused tells whether the credentials were refused since it was last asked.
func (c *Controller) takeCredentialsRefused(of *targetState) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	doubted := of.credentialsRefused
	of.credentialsRefused = false
	return doubted
}
