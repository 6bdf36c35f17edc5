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

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"

	"github.com/synchub-dev/synchub/provider/targets"
)

// syncTargetState is the controller's state of a SyncTarget between two reconciles. It is only a cache, which
// the hub may lose. Only the goroutine that reconciles the SyncTarget uses it, except for the fields that the
// lock of the store guards.
type syncTargetState struct {
	// since is when this replica first observed the SyncTarget, as its owner if it is the owner.
	since time.Time
	// owned is true once this replica has begun to work for the SyncTarget as its owner. The lock of the store guards it.
	owned bool
	// credentialsRefused is true from a refusal of the credentials by the target until the next read of the Secret. The
	// lock of the store guards it.
	credentialsRefused bool
	// secret is the trimmed Secret of the SyncTarget. It is valid while the cache shows its own version or supersededVersion, the
	// version that the cache showed when the Secret was read.
	secret            *corev1.Secret
	supersededVersion string
	// secretRead is true once this replica has tried to read the Secret. The lock of the store guards it.
	secretRead bool
	// renewal is the result of the last attempt to renew the token.
	renewal renewal
	// startupGrace is nil until the first reconcile.
	startupGrace *startupGrace
	// messageChangedAt is when throttleMessage last let a message change while status and reason stayed the same.
	messageChangedAt time.Time
	// earlyCounts limits the counts before a heartbeat is due; nil before the first one.
	earlyCounts *rate.Limiter
	// conflictSeen is true once this replica has observed an older SyncTarget of the same cluster. After that SyncTarget is gone, the
	// conflict that the ledger records does not count.
	conflictSeen bool
	// conditions are the conditions in the metric, with the hub's last values. The lock of the store guards
	// them.
	conditions []conditionState
	// formerHub is status.hub as this replica found it, nil until the first reconcile.
	formerHub *string
	// cleanedUpMissing is since when the ledger lacks that this replica has cleaned the target up; zero if it does not.
	cleanedUpMissing time.Time
}

// startupGrace is until when findings of the previous leader about a target count.
type startupGrace struct {
	// connection is the first connection to the target, nil if the first reconcile found none.
	connection  *targets.Connection
	initialized bool
	// until is zero if the findings do not count.
	until time.Time
}

// forConnection returns until when findings of the previous leader count for this connection. They count only for the first
// connection, because another one may lead to another cluster.
func (t *startupGrace) forConnection(connection *targets.Connection) time.Time {
	switch {
	case !t.initialized:
		t.connection, t.initialized = connection, true
	case t.connection != connection:
		t.until = time.Time{}
	}
	return t.until
}

// isForgedHub reports whether status.hub names neither this replica nor the replica that wrote the status
// before this one observed it. The former replica's name stays until the next write.
func (s *syncTargetState) isForgedHub(shown, own string) bool {
	if s.formerHub == nil {
		s.formerHub = &shown
	}
	return shown != own && shown != *s.formerHub
}
