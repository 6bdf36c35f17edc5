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
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// prepare starts, on a replica that is not the leader, the controllers of the resources that the leader syncs.
// They fill their caches and wait until writes are allowed. It writes nothing, neither to the target nor into the ledger.
func (p *pass) prepare() (requeueAfter time.Duration, err error) {
	requeueAfter, versionsErr := p.chooseVersions()
	resolved, kindsErr := p.resolveTargetAPIs()
	if unanswered := errors.Join(versionsErr, kindsErr); unanswered != nil {
		p.manager.Log.V(1).Info("cannot resolve all versions and kinds while preparing", "syncTarget", p.target.Name, "error", unanswered.Error())
	}
	// Only the leader checks whether unselected resources have objects left.
	wanted, err := desiredResources(p.state, p.published, resolved, func(plan.Resource) (bool, error) { return false, nil })
	if err != nil {
		return 0, err
	}
	wanted = slices.DeleteFunc(wanted, func(resource plan.Resource) bool {
		return !p.state.writtenResources.contain(resource, resolved[resource.GroupResource()].apis) || !p.isKnownToFit(resource)
	})
	p.stopControllers(wanted, resolved)
	p.state.updatePrimaries(wanted)
	p.state.markApplied(p.publication, p.startControllers(wanted, resolved))
	return requeueAfter, nil
}

// canContinueWith reports whether the conclusions of the state still apply to the target. They do not if the
// mailbox was created again, or if the leader has recorded other written resources since the preparation.
func (t *targetState) canContinueWith(target Target) bool {
	before := t.currentTarget()
	return before.Mailbox == target.Mailbox &&
		(!t.isPreparing() || maps.EqualFunc(before.WrittenResources, target.WrittenResources, WrittenResource.equal) && slices.Equal(before.TenantResources, target.TenantResources))
}

// isPreparing reports whether the replica is not the leader, so that nothing may be written.
func (t *targetState) isPreparing() bool {
	select {
	case <-t.writesAllowed:
		return false
	default:
		return true
	}
}

// startPrepared starts the work of the prepared controllers, since this replica leads now.
func (t *targetState) startPrepared(trustedUntil, now time.Time) {
	t.lock.Lock()
	t.target.Prepare, t.target.TrustedUntil = false, trustedUntil
	// The leader runs controllers that are not prepared. Until its first pass, their resources would seem to have no objects.
	t.appliedPublication = 0
	// Counts may be unknown for a time from now on, as for controllers that have just started.
	t.syncStartedAt = now
	for _, running := range t.syncControllers {
		running.startedAt = now
	}
	t.lock.Unlock()
	close(t.writesAllowed)
}
