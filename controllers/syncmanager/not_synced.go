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

package syncmanager

import (
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"
)

// NotSynced is why a SyncTarget is not synced now. The zero value means that it is synced.
type NotSynced struct {
	// SyncTarget is its name, Mailbox the logical cluster of its mailbox.
	SyncTarget string
	Mailbox    logicalcluster.Name
	// Reason is the reason of its condition SyncerReady.
	Reason string
}

// SetNotSynced sets why a SyncTarget is not synced. It publishes a change, because the status of the configs
// must not report that all objects are in sync while they are not synced.
func (m *Manager) SetNotSynced(syncTarget types.UID, notSynced NotSynced) {
	m.lock.Lock()
	decided := m.decisions[syncTarget]
	changed := decided.notSynced != notSynced
	if changed {
		m.decisions[syncTarget] = syncDecision{decided.state, notSynced}
	}
	m.lock.Unlock()
	if changed {
		m.ObjectsChanged.Publish(syncTarget)
	}
}

// NotSynced returns why a SyncTarget is not synced.
func (m *Manager) NotSynced(syncTarget types.UID) NotSynced {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.decisions[syncTarget].notSynced
}
