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
	"maps"
	gosync "sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// targetState is the state of an assigned SyncTarget, with its sync controllers.
type targetState struct {
	// reconcileMutex serializes reconciles, which start and stop controllers. It is held over requests, too.
	reconcileMutex   gosync.Mutex
	stopped          bool
	writtenResources WrittenResources
	configs          configs
	// registry contains the relations between objects. primaries are the PublishedResources that contribute to
	// it.
	registry           *related.Registry
	primaries          map[string]bool
	unsubscribeConfigs []func()
	// hasUnresolved is true if a conversion names a kind that the target does not serve. lastCRDEvent is the time of the
	// target's last event of a CRD.
	hasUnresolved atomic.Bool
	lastCRDEvent  atomic.Pointer[time.Time]
	// multiVersion are the resources of the target that are published in several versions. lastVersionEvent is the time of the
	// last event of one of their CRDs.
	multiVersion     atomic.Pointer[map[schema.GroupResource]bool]
	lastVersionEvent atomic.Pointer[time.Time]
	// emptinessChecks are the checks of resources that are no longer selected.
	emptinessChecks emptinessChecks
	// schemaCheck has no controller until a schema is compared. Guarded by reconcileMutex.
	schemaCheck schemaCheck
	// crdController is nil until the target needs a CRD. Only the owner of reconcileMutex stores it.
	crdController atomic.Pointer[crdController]
	// cordoned is true if the hub must not create objects on the target.
	cordoned atomic.Bool
	// held is true if the SyncTarget was held, because kcp went back, when it was last reconciled.
	held atomic.Bool
	// adoption is the [synchubv1alpha1.AdoptionPolicy] of the SyncTarget.
	adoption atomic.Value
	// mutationInput contains the fields of the SyncTarget that mutations read.
	mutationInput atomic.Pointer[mutationInput]
	// namespaces decides which namespaces of the target the hub may use.
	namespaces atomic.Pointer[policy.NamespacePolicy]

	// nameClearing is the state of resolving naming conflicts. Guarded by reconcileMutex.
	nameClearing nameClearing
	// rebound is true if the mailbox was bound again, so that nothing is removed from the target. Guarded by reconcileMutex.
	rebound bool

	// configsStale is true when the configs must be read again. verifyMissing is true if the absence of missing ones must be
	// verified. The manager's lock guards both.
	configsStale, verifyMissing bool

	// writesAllowed is closed once this replica leads, and may write to the target.
	writesAllowed chan struct{}

	// lock guards the fields below, and is never held over a request. Its holder may take the manager's lock. The holder of reconcileMutex may read syncControllers,
	// matcher and configsKnown without lock, because only that holder writes them.
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
	// resources that are published in several. Only the owner of reconcileMutex writes it.
	chosenVersions map[schema.GroupResource]string
	// compatibilityStates are the known states by resource of the target. reportedStates are the last reported
	// states. Only the owner of reconcileMutex writes them.
	compatibilityStates, reportedStates map[schema.GroupResource]schemacheck.State
	// unsubscribeConnection ends the subscription to the connection.
	unsubscribeConnection func()
	// stopAwaitingAPIs is set while the hub observes which APIs the target serves, because one of a conversion is missing.
	stopAwaitingAPIs func()
	// missingAPIs are the APIs that the mailbox lacks. They are valid only if missingAPIsKnown is true.
	missingAPIs      MissingAPIs
	missingAPIsKnown bool
	// cancelRequests cancels the requests of the owner of reconcileMutex. stopping is true once no more may be made.
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

// mutationInput contains the fields of a SyncTarget that mutations read, and the labels and annotations that
// they were made from.
type mutationInput struct {
	labels, annotations map[string]string
	value               map[string]any
}

// setMutationInput stores the fields of the SyncTarget that mutations read, and reports whether they changed.
func (t *targetState) setMutationInput(target Target) (changed bool) {
	before := t.mutationInput.Load()
	if before != nil && maps.Equal(before.labels, target.Labels) && maps.Equal(before.annotations, target.Annotations) {
		return false
	}
	t.mutationInput.Store(&mutationInput{target.Labels, target.Annotations, mutation.SyncTarget(target.Name, target.Labels, target.Annotations)})
	return before != nil
}

// updateRules stores the fields of the SyncTarget that decide about its objects, and enqueues the objects that a change concerns.
func (t *targetState) updateRules(target Target) {
	if t.cordoned.Swap(target.Cordoned) && !target.Cordoned {
		for _, controller := range t.controllers() {
			controller.Uncordon()
		}
	}
	if t.held.Swap(target.Held) && !target.Held {
		for _, controller := range t.controllers() {
			controller.Release()
		}
	}
	if t.adoption.Swap(target.Adoption) != target.Adoption {
		for _, controller := range t.controllers() {
			controller.RetryConflicts()
		}
	}
	if t.setMutationInput(target) {
		for _, controller := range t.controllers() {
			controller.SyncTargetChanged()
		}
	}
}

// setWrittenNamespaces sets the namespaces in which the hub may have written.
func (t *targetState) setWrittenNamespaces(namespaces []string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.target.WrittenNamespaces = namespaces
}

// setLimits sets the limits of the mailbox, and reports whether they changed.
func (t *targetState) setLimits(limits mailboxes.Limits) (changed bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	changed = t.target.Limits != limits
	t.target.Limits = limits
	return changed
}

// observeReconnect reports whether the target has come up since the last call.
func (t *targetState) observeReconnect() bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	now := connectionEpoch{t.target.Connection, t.target.Connection.Health.Epoch()}
	if now == t.resumedEpoch || !t.target.Connection.Health.IsUp() {
		return false
	}
	t.resumedEpoch = now
	return true
}

// awaitsCRD reports whether a missing kind, or another version, may be served soon: the event of a CRD precedes discovery by a
// moment.
func (t *targetState) awaitsCRD(now time.Time) bool {
	isRecent := func(event *time.Time) bool { return event != nil && now.Sub(*event) < crdEventTimeout }
	return t.hasUnresolved.Load() && isRecent(t.lastCRDEvent.Load()) || isRecent(t.lastVersionEvent.Load())
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

// markApplied records that the controllers run that the matcher and the publication need. It reports whether the matcher is new.
func (t *targetState) markApplied(publication int, unstarted []schema.GroupResource) (changed bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	changed = t.appliedMatcher != t.matcher
	t.appliedMatcher, t.appliedPublication, t.unstarted = t.matcher, publication, unstarted
	return changed
}

func (t *targetState) currentTarget() Target {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.target
}

func (t *targetState) controllers() []*objectsync.Controller {
	t.lock.Lock()
	defer t.lock.Unlock()
	controllers := make([]*objectsync.Controller, 0, len(t.syncControllers))
	for _, running := range t.syncControllers {
		controllers = append(controllers, running.controller)
	}
	return controllers
}

// runner is the goroutine of a controller. The zero value means none.
type runner struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// run runs a controller until [runner.stop], or until the manager ends.
func (m *Manager) run(syncTarget types.UID, controller func(context.Context) error, log logr.Logger) runner {
	ctx, cancel := context.WithCancel(m.Role.Context(m.ctx, syncTarget))
	started := runner{cancel, make(chan struct{})}
	go func() {
		defer close(started.done)
		if err := controller(ctx); err != nil {
			log.Error(err, "a controller ended")
		}
	}()
	return started
}

// stop returns when the controller has ended.
func (r runner) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.done
	}
}

// syncController is a running sync controller.
type syncController struct {
	controller *objectsync.Controller
	startedAt  time.Time
	runner
}

// stopController stops the controller of one resource. The caller holds reconcileMutex.
func (t *targetState) stopController(resource schema.GroupResource) {
	t.lock.Lock()
	stopping := t.syncControllers[resource]
	delete(t.syncControllers, resource)
	t.lock.Unlock()
	stopping.stop()
}

// stoppableContext returns a context for the owner of reconcileMutex that ends when the target is stopped. Otherwise a hanging server
// would delay the stop.
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
	t.schemaCheck.stop()
}
