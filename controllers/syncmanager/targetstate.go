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

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/policy"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/related"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// targetState is a SyncTarget with its sync controllers.
type targetState struct {
	// reconcileMutex is held, over requests too, by the one that starts and stops controllers.
	reconcileMutex    gosync.Mutex
	stopped           bool
	resourceInventory map[schema.GroupResource]InventoryEntry
	configs           configs
	// register knows what travels because it is related; contributors are those that have begun to say so.
	register           *related.Registry
	primaries          map[string]bool
	unsubscribeConfigs []func()
	// hasUnresolved is true if a conversion speaks of a kind that the target does not serve, and announced is when the target
	// last told of a definition.
	hasUnresolved atomic.Bool
	lastCRDEvent  atomic.Pointer[time.Time]
	// multiVersion are the resources of the target of which several versions are published, and redefined is when the target last told
	// of a definition of one of them.
	multiVersion     atomic.Pointer[map[schema.GroupResource]bool]
	lastVersionEvent atomic.Pointer[time.Time]
	// emptinessChecks are of what nothing selects any more.
	emptinessChecks emptinessChecks
	// cordoned is true if nothing new may be made on the target.
	cordoned atomic.Bool
	// adoption is the [synchubv1alpha1.AdoptionPolicy] of the SyncTarget.
	adoption atomic.Value
	// namespaces says which namespaces of the target may be used.
	namespaces atomic.Pointer[policy.NamespacePolicy]

	// nameClearing is what is done about names in conflict. It is written by the holder of turn.
	nameClearing nameClearing
	// rebound is true if nothing is removed from the target since the mailbox was bound again. It is written by the holder of
	// turn.
	rebound bool

	// configsStale is true when the configs must be looked at anew, ask if what is missing must be proven to be gone. Both are
	// guarded by the manager's lock.
	configsStale, verifyMissing bool

	// lock guards what follows, and is never held over a request. The holder of turn may read pairs, matcher and known
	// without it, since only he writes them.
	lock         gosync.Mutex
	target       Target
	matcher      *selection.Matcher
	configsKnown bool
	// assignedAt is when the SyncTarget was assigned.
	assignedAt time.Time
	// appliedMatcher is the matcher by which the pairs that run were chosen, settledFor the number of the publication. Unstarted are the
	// resources whose pairs cannot be started before the target has answered.
	appliedMatcher     *selection.Matcher
	appliedPublication int
	unstarted          []schema.GroupResource
	syncControllers    map[schema.GroupResource]*syncController
	// completenessRequests are the resources of which it was asked whether anybody wants what is left.
	completenessRequests map[schema.GroupResource]objectsync.Resource
	// crdController is nil until the target is to be given a definition. Like pairs it is written by the holder of turn.
	crdController *crdController
	// schemaCheck is nil until something is compared. It is written by the holder of turn.
	schemaCheck *schemaCheck
	// chosenVersions are those in which objects are written to the target, by their resource in the mailbox, where several are
	// published. They are written by the holder of turn.
	chosenVersions map[schema.GroupResource]string
	// compatibilityStates is what is known of the resources of the target, told what was reported of them last. Both are written by the
	// holder of turn.
	compatibilityStates, reportedStates map[schema.GroupResource]schemacheck.State
	// unsubscribeConnection ends the listening to the connection.
	unsubscribeConnection func()
	// missingAPIs are the APIs that the mailbox does not have; missingKnown is false until that was looked at.
	missingAPIs      MissingAPIs
	missingAPIsKnown bool
	// cancelRequests ends the requests of the holder of turn, and stopping is true once nobody may make any more.
	cancelRequests context.CancelFunc
	stopping       bool
	// resumedEpoch is when all objects were looked at last because the target had come up.
	resumedEpoch connectionEpoch
}

// connectionEpoch is one time that a target came up, by one connection.
type connectionEpoch struct {
	connection *targets.Connection
	number     uint64
}

// setConnection takes over a connection, and listens to it, and tells whether it is another one.
func (t *targetState) setConnection(connection *targets.Connection, listener targets.Listener) (isOther bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.unsubscribeConnection != nil && t.target.Connection == connection {
		return false
	}
	if t.unsubscribeConnection != nil {
		t.unsubscribeConnection()
		t.target.Trusted = Trust{}
	}
	t.target.Connection, t.unsubscribeConnection = connection, connection.Subscribe(listener)
	return true
}

// setWrittenNamespaces takes over in which namespaces something may have been written.
func (t *targetState) setWrittenNamespaces(namespaces []string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.target.WrittenNamespaces = namespaces
}

// setLimits takes over the limits of the mailbox, and tells whether they are others.
func (t *targetState) setLimits(limits mailboxes.Limits) (changed bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	changed = t.target.Limits != limits
	t.target.Limits = limits
	return changed
}

// observeReconnect tells, once, that the target has come up.
func (t *targetState) observeReconnect() bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	now := connectionEpoch{t.target.Connection, t.target.Connection.ConnectionEpoch()}
	if now == t.resumedEpoch || !t.target.Connection.IsUp() {
		return false
	}
	t.resumedEpoch = now
	return true
}

// awaitsCRD tells whether a kind that a conversion speaks of, or another version, may be served soon: a definition is announced a
// little before discovery shows it.
func (t *targetState) awaitsCRD(now time.Time) bool {
	isRecent := func(told *time.Time) bool { return told != nil && now.Sub(*told) < crdEventTimeout }
	return t.hasUnresolved.Load() && isRecent(t.lastCRDEvent.Load()) || isRecent(t.lastVersionEvent.Load())
}

// markApplied notes that the pairs run that the matcher asks for of a publication, and tells whether the matcher is another one.
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
	for _, pair := range t.syncControllers {
		controllers = append(controllers, pair.controller)
	}
	return controllers
}

// syncController is a running sync controller.
type syncController struct {
	controller *objectsync.Controller
	startedAt  time.Time
	cancel     context.CancelFunc
	done       chan struct{}
}

// stopController stops the controller of one resource. The caller holds turn.
func (t *targetState) stopController(resource schema.GroupResource) {
	t.lock.Lock()
	stopping := t.syncControllers[resource]
	delete(t.syncControllers, resource)
	t.lock.Unlock()
	stopping.cancel()
	<-stopping.done
}

// stoppableContext returns a context for the holder of turn that ends when the target is to be stopped: a server that does not answer
// would hold that up.
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

// stop ends all sync controllers of the target together.
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
	t.lock.Unlock()
	t.stopped = true
	for _, pair := range stopping {
		pair.cancel()
	}
	for _, pair := range stopping {
		<-pair.done
	}
	t.setCRDController(nil)
	t.setSchemaCheck(nil)
}
