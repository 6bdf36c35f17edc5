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

package placement

import (
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/waves"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// A CustomResourceDefinition of an API that is published with installCRD gets no copy in the mailbox, where it
// would take effect. The hub's SyncerConfig names the CustomResourceDefinition in the mailbox instead, and the
// sync manager installs the published CRD on the target.

// maxCRDWait is how long an object waits at a destination for the CRDs of its workspace, which it may need.
const maxCRDWait = 10 * time.Second

var crdGroupResource = objectsync.CRDResource.GroupResource()

// installsCRD reports whether the hub installs a CRD on targets itself.
func (p *CachePolicy) installsCRD(key objectKey) bool {
	if key.resource.GroupResource() != crdGroupResource {
		return false
	}
	names := p.installedCRDs.Load()
	return names != nil && slices.Contains(*names, key.name.Name)
}

// isInstalled reports whether the hub installs the object of a pair on the target, instead of making a copy. An
// existing copy stays a copy.
func (w *workspace) isInstalled(key pairKey) bool {
	if !w.CachePolicy.installsCRD(key.objectKey) {
		return false
	}
	cached, state := w.Mailboxes.Get(key.resource, key.mailbox, key.name)
	inMailbox, _ := w.writes.Current(key, cached)
	if state == mailboxes.Unknown || inMailbox == nil {
		return true
	}
	cluster, isCopy := w.workspaceOf(inMailbox)
	return !isCopy || cluster != w.cluster
}

// passInstalled makes a pass for a CRD that the hub installs: it records the sync status. ensureConfig makes
// the write.
func (w *workspace) passInstalled(key pairKey) (decided bool) {
	syncTarget, known := w.Fleet.Snapshot().SyncTargetOf(key.mailbox)
	if !known || syncTarget.Terminating {
		return false
	}
	w.lock.Lock()
	_, found := w.pairAt(key)
	isDesired := found != nil && found.desired
	w.lock.Unlock()
	var syncStatus *syncStatus
	if isDesired && w.Sync != nil {
		if state, known := w.Sync.ObjectState(syncTarget.UID, crdGroupResource, key.name, objectsync.InstalledCRD); known {
			syncStatus = newSyncStatus(state)
		}
	}
	// The target's installer has a status for the CRD as soon as it has read the config that names the CRD.
	w.recordResult(key, passResult{placed: syncStatus != nil, syncStatus: syncStatus})
	return true
}

// crdWait is how long a new copy waits for the CRDs of its workspace at the destination; zero if it may be created. An operator that
// starts before its CRDs are served fails.
func (w *workspace) crdWait(key pairKey, planned plan.UpPlan) time.Duration {
	if planned.Decision.Action != plan.Create || waves.Of(key.resource.GroupResource()) < waves.Workloads {
		return 0
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	_, found := w.pairAt(key)
	if found == nil || !w.awaitsCRDs(key.mailbox) {
		return 0
	}
	if found.heldSince.IsZero() {
		found.heldSince = w.Clock.Now()
	}
	return max(0, maxCRDWait-w.Clock.Since(found.heldSince))
}

// awaitsCRDs reports whether a CRD of the workspace is still on its way to a destination: neither synced there
// nor failed. It requires the lock.
func (w *workspace) awaitsCRDs(mailbox logicalcluster.Name) bool {
	for key := range w.crds {
		found := w.objects[key].pairs[mailbox]
		if found != nil && found.desired && found.failure == nil && !found.syncStatus.hasArrived(false) {
			return true
		}
	}
	return false
}

// releaseHeld enqueues the pairs at a destination that waited for CRDs. It requires the lock.
func (w *workspace) releaseHeld(key pairKey) {
	if key.resource.GroupResource() == crdGroupResource && !w.awaitsCRDs(key.mailbox) {
		w.enqueue(task{mailbox: key.mailbox})
	}
}

// onCRDState enqueues the pairs of a CRD without a copy in the mailbox, after its state on a target changed.
func (c *Controller) onCRDState(ref objectsync.ObjectRef) {
	key := pairKey{objectKey{ref.Resource, ref.Key}, ref.Mailbox}
	for _, w := range c.allWorkspaces() {
		w.lock.Lock()
		if _, found := w.pairAt(key); found != nil {
			w.enqueue(key.task())
		}
		w.lock.Unlock()
	}
}
