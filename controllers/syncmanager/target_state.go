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
	"context"
	gosync "sync"
	"sync/atomic"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/targets"
)

// targetState is the state of a SyncTarget that is synced or prepared.
type targetState struct {
	// unsubscribeConfigs end the subscriptions of configEvents.
	unsubscribeConfigs []func()
	configEvents       configEvents
	apiEvents          apiEvents
	rules              rules
	// registry contains the relations between objects.
	registry *related.Registry
	// emptinessChecks are the checks of resources that are no longer selected.
	emptinessChecks emptinessChecks
	// crdController is nil until the target needs a CRD. Only a pass stores it.
	crdController atomic.Pointer[crdController]
	// tenants is nil until the target has tenants. Only a pass stores it.
	tenants atomic.Pointer[tenantsController]
	// writesAllowed is closed once this replica leads, and may write to the target.
	writesAllowed chan struct{}

	// reconcileMutex serializes the passes, which start and stop controllers. It is held over requests, too. It guards the fields
	// below.
	reconcileMutex   gosync.Mutex
	stopped          bool
	writtenResources WrittenResources
	// tenantResources are recorded, see [Target.TenantResources]. Only passes use them.
	tenantResources []string
	configs         configs
	// primaries are the PublishedResources that contribute to the registry.
	primaries map[string]bool
	// schemaCheck has no controller until a schema is compared.
	schemaCheck schemaCheck
	// nameClearing is the state of resolving naming conflicts.
	nameClearing nameClearing
	// rebound is true if the mailbox was bound again, so that nothing is removed from the target.
	rebound bool
	// reportedStates are the last reported compatibility states.
	reportedStates map[schema.GroupResource]schemacheck.State

	// lock guards the fields below, and is never held over a request. Its holder may take the manager's lock. A pass may read
	// matcher, configsKnown, syncControllers, chosenVersions and compatibilityStates without lock, because only a pass writes them.
	lock         gosync.Mutex
	target       Target
	matcher      *selection.Matcher
	configsKnown bool
	// syncStartedAt is when the sync of the SyncTarget started.
	syncStartedAt time.Time
	// appliedMatcher and appliedPublication are the matcher and the publication that the running controllers
	// were chosen by. unstarted are the resources whose controllers cannot start before the target has
	// responded.
	appliedMatcher     *selection.Matcher
	appliedPublication int
	unstarted          []schema.GroupResource
	syncControllers    map[schema.GroupResource]*syncController
	// completenessRequests are the related resources for which a controller has requested completeness.
	completenessRequests map[schema.GroupResource]plan.Resource
	// chosenVersions are the versions that objects are written to the target in, by mailbox resource, for
	// resources that are published in several.
	chosenVersions map[schema.GroupResource]string
	// compatibilityStates are the known states by resource of the target.
	compatibilityStates map[schema.GroupResource]schemacheck.State
	// unsubscribeConnection ends the subscription to the connection.
	unsubscribeConnection func()
	// stopAwaitingAPIs is set while the hub observes which APIs the target serves, because one of a conversion is missing.
	stopAwaitingAPIs func()
	// missingAPIs are the APIs that the mailbox lacks. They are valid only if missingAPIsKnown is true.
	missingAPIs      MissingAPIs
	missingAPIsKnown bool
	// cancelRequests cancels the requests of the pass. stopping is true once no more may be made.
	cancelRequests context.CancelFunc
	stopping       bool
	// resumedEpoch is the epoch in which all objects were last reconciled because the target had come up.
	resumedEpoch connectionEpoch
}

// connectionEpoch identifies one time that a connection to the target came up.
type connectionEpoch struct {
	connection *targets.Connection
	number     uint64
}

// setConnection stores the connection and subscribes listener to it. It reports whether the connection is another one.
func (t *targetState) setConnection(connection *targets.Connection, listener targets.Listener) (isOther bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.unsubscribeConnection != nil && t.target.Connection == connection {
		return false
	}
	if t.unsubscribeConnection != nil {
		t.unsubscribeConnection()
		t.awaitAPIsLocked(false)
		t.target.TrustedUntil = time.Time{}
	}
	t.target.Connection, t.unsubscribeConnection = connection, connection.Watches.Subscribe(listener)
	return true
}

// updateRules stores the fields of the SyncTarget that decide about its objects, and enqueues the objects that a change concerns. It
// reports whether the status of the configs shows the change.
func (t *targetState) updateRules(target Target, protected policy.NamespacePatterns) (isShown bool) {
	forEach := func(notify func(*objectsync.Controller)) {
		for _, controller := range t.controllers() {
			notify(controller)
		}
	}
	if t.rules.cordoned.Swap(target.Cordoned) && !target.Cordoned {
		forEach((*objectsync.Controller).Uncordon)
	}
	wasHeld := t.rules.held.Swap(target.Held)
	if wasHeld && !target.Held {
		forEach((*objectsync.Controller).Release)
	}
	if t.rules.adoption.Swap(target.Adoption) != target.Adoption {
		forEach((*objectsync.Controller).RetryConflicts)
	}
	if t.rules.setMutationInput(target) {
		forEach((*objectsync.Controller).SyncTargetChanged)
	}
	changesNamespaces := t.rules.setNamespaces(target, protected)
	if changesNamespaces {
		forEach((*objectsync.Controller).NamespacesChanged)
	}
	return changesNamespaces || wasHeld != target.Held
}

// setBounds sets the namespaces in which the hub may have written, and the limits of the mailbox. It reports whether the limits changed.
func (t *targetState) setBounds(target Target) (hasOtherLimits bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	hasOtherLimits = t.target.Limits != target.Limits
	t.target.WrittenNamespaces, t.target.Limits = target.WrittenNamespaces, target.Limits
	return hasOtherLimits
}

// setTenancy sets how workload workspaces share the target, and reports whether that changed.
func (t *targetState) setTenancy(tenancy *edgev2alpha1.Tenancy) (changed bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	changed = !apiequality.Semantic.DeepEqual(t.target.Tenancy, tenancy)
	t.target.Tenancy = tenancy
	return changed
}

// setMissingAPIs stores the APIs that the mailbox lacks, and reports whether they changed.
func (t *targetState) setMissingAPIs(missing MissingAPIs) (changed bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	changed = !t.missingAPIsKnown || !t.missingAPIs.equal(missing)
	t.missingAPIs, t.missingAPIsKnown = missing, true
	return changed
}

// takeReconnect reports whether the target came up since the last call.
func (t *targetState) takeReconnect() bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	now := connectionEpoch{t.target.Connection, t.target.Connection.Health.Epoch()}
	if now == t.resumedEpoch || !t.target.Connection.Health.IsUp() {
		return false
	}
	t.resumedEpoch = now
	return true
}

// awaitAPIs begins or ends to observe which APIs the target serves.
func (t *targetState) awaitAPIs(await bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.awaitAPIsLocked(await)
}

func (t *targetState) awaitAPIsLocked(await bool) {
	switch {
	case await && t.stopAwaitingAPIs == nil:
		t.stopAwaitingAPIs = t.target.Connection.APIPoll.Await()
	case !await && t.stopAwaitingAPIs != nil:
		t.stopAwaitingAPIs()
		t.stopAwaitingAPIs = nil
	}
}

// markApplied records that the controllers run that the matcher and the publication need. It reports whether either is new.
func (t *targetState) markApplied(publication int, unstarted []schema.GroupResource) (changed bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	changed = t.appliedMatcher != t.matcher || t.appliedPublication != publication
	t.appliedMatcher, t.appliedPublication, t.unstarted = t.matcher, publication, unstarted
	return changed
}

// isAppliedLocked reports whether the controllers run that the configs and the current publication need. Before the first publication
// none are known to be needed. The caller holds the lock.
func (t *targetState) isAppliedLocked(publication int) bool {
	return publication > 0 && t.appliedPublication == publication && t.configsKnown && t.appliedMatcher == t.matcher
}

func (t *targetState) currentTarget() Target {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.target
}

func (t *targetState) controllers() []*objectsync.Controller {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.controllersLocked()
}

// controllersLocked is controllers for a caller that holds the lock.
func (t *targetState) controllersLocked() []*objectsync.Controller {
	controllers := make([]*objectsync.Controller, 0, len(t.syncControllers))
	for _, running := range t.syncControllers {
		controllers = append(controllers, running.controller)
	}
	return controllers
}

// stopController stops the controller of one resource. The caller holds reconcileMutex.
func (t *targetState) stopController(resource schema.GroupResource) {
	t.lock.Lock()
	stopping := t.syncControllers[resource]
	delete(t.syncControllers, resource)
	t.lock.Unlock()
	stopping.stop()
}

// stoppableContext returns a context for a pass that ends when the target is stopped. Otherwise a hanging server would delay the
// stop.
func (t *targetState) stoppableContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	t.lock.Lock()
	defer t.lock.Unlock()
	t.cancelRequests = cancel
	if t.stopping {
		cancel()
	}
	return ctx, cancel
}

// stop stops all sync controllers of the target together, and returns when they have ended.
func (t *targetState) stop() {
	t.lock.Lock()
	t.stopping = true
	if t.cancelRequests != nil {
		t.cancelRequests()
	}
	t.lock.Unlock()
	for _, unsubscribe := range t.unsubscribeConfigs {
		unsubscribe()
	}
	t.reconcileMutex.Lock()
	defer t.reconcileMutex.Unlock()
	t.lock.Lock()
	stopping := t.syncControllers
	t.syncControllers = nil
	if t.unsubscribeConnection != nil {
		t.unsubscribeConnection()
	}
	t.awaitAPIsLocked(false)
	t.lock.Unlock()
	t.stopped = true
	for _, controller := range stopping {
		controller.cancel()
	}
	for _, controller := range stopping {
		controller.stop()
	}
	if running := t.crdController.Swap(nil); running != nil {
		running.stop()
	}
	if running := t.tenants.Swap(nil); running != nil {
		running.stop()
	}
	t.schemaCheck.stop()
}
