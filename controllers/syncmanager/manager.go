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
	"errors"
	"maps"
	"slices"
	gosync "sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/topic"
	"github.com/synchub-dev/synchub/provider/tracing"
)

const (
	// workers is how many SyncTargets are reconciled concurrently, in addition to the slow ones. A reconcile
	// waits for kcp, never for its target: requests to the target run in the background, and their responses
	// enqueue the SyncTarget.
	workers = 32
	// requeueDelay is the delay of a reconcile after a change of objects, and between polls for a kind that may be served soon.
	requeueDelay = 500 * time.Millisecond
	// A failed reconcile is retried after minRetryDelay. The delay doubles each time, up to maxRetryDelay.
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = time.Minute
)

// ConfigResources are the resources of a mailbox that select objects to sync.
var ConfigResources = []schema.GroupVersionResource{
	edgev2alpha1.SchemeGroupVersion.WithResource("syncerconfigs"),
	edgev2alpha1.SchemeGroupVersion.WithResource("edgesyncconfigs"),
}

// Dependencies are the dependencies of a [Manager].
type Dependencies struct {
	Mailboxes *mailboxes.Mailboxes
	// StoreWrittenResources replaces the written resources of a SyncTarget. It returns after the write has been accepted.
	StoreWrittenResources func(ctx context.Context, syncTarget types.UID, resources WrittenResources) error
	// StoreTenantResources replaces the resources of the objects that the hub keeps for workspaces on the cluster of a SyncTarget.
	StoreTenantResources func(ctx context.Context, syncTarget types.UID, resources []string) error
	// Hub is the UID of the provider workspace's LogicalCluster.
	Hub    types.UID
	Hasher ownership.Hasher
	// Sealer seals marks. Like Hasher it has the hub's key.
	Sealer *ownership.Sealer
	// History reports whether kcp went back to an earlier state; nil never does.
	History *storehistory.Guard
	// Checker compares schemas; with nil, none are compared.
	Checker *schemacheck.Checker
	// CRDs are the CRDs that targets must have; nil means none.
	CRDs *crd.Store
	// NameReleaser frees names of APIs in mailboxes; with nil, none are freed.
	NameReleaser NameReleaser
	// CachePolicy is the cache policy of the mailboxes.
	CachePolicy *CachePolicy
	// Role decides which SyncTargets this replica works for.
	Role leadership.Role
	// Journal logs removed objects and failures; nil logs none.
	Journal *status.Journal
	// Tracer records traces of changed objects; nil records none.
	Tracer *tracing.Tracer
	Clock  clock.Clock
	Log    logr.Logger
}

// Owner returns the owner of the objects that the hub syncs for a SyncTarget.
func (d Dependencies) Owner(syncTarget types.UID) ownership.Owner {
	return ownership.Owner{Hub: d.Hub, SyncTarget: syncTarget, Sealer: d.Sealer}
}

// Manager runs the sync controllers of all SyncTargets. What it does for one of them is a [pass].
type Manager struct {
	Dependencies
	settings *configv1alpha1.HubConfiguration
	// StateChanged carries SyncTargets whose configs became known, or whose written resources, resource states or missing APIs
	// changed. ObjectsChanged carries SyncTargets whose configs, or the objects that they select, changed.
	StateChanged, ObjectsChanged topic.Topic[types.UID]
	// SyncStatusChanged carries the copies of placements whose [Manager.SyncStatus] changed. A reference
	// without an object means all copies of a SyncTarget that is no longer synced.
	SyncStatusChanged topic.Topic[objectsync.ObjectRef]

	catalog catalog
	// requests carries the SyncTargets to reconcile to the controller.
	requests topic.Topic[request]
	// ctx is the parent context of the controllers that the manager runs. cancel ends it.
	ctx    context.Context
	cancel context.CancelFunc

	// lock guards the fields below. Its holder takes no lock of a [targetState]: the holder of such a lock may take this one.
	lock gosync.Mutex
	// decisions has the SyncTargets that this replica owns or prepares, from the first call of StartSync or
	// StopSync to the call of Forget.
	decisions map[types.UID]syncDecision
}

// syncDecision is whether a SyncTarget is synced.
type syncDecision struct {
	// state is nil if the SyncTarget is not synced.
	state *targetState
	// notSynced is the reason, as passed to SetNotSynced.
	notSynced NotSynced
}

type syncTargetQueue = workqueue.TypedRateLimitingInterface[types.UID]

// request requests a reconcile of a SyncTarget after a delay.
type request struct {
	syncTarget types.UID
	delay      time.Duration
}

// New returns a manager without any target.
func New(dependencies Dependencies, settings *configv1alpha1.HubConfiguration) *Manager {
	if dependencies.CachePolicy == nil {
		dependencies.CachePolicy = NewCachePolicy(mailboxes.Limits{}, dependencies.Log)
	}
	if dependencies.CRDs == nil {
		dependencies.CRDs = &crd.Store{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Manager{
		Dependencies: dependencies, settings: settings, catalog: catalog{comparesSchemas: dependencies.Checker != nil},
		ctx: ctx, cancel: cancel, decisions: map[types.UID]syncDecision{},
	}
}

// Register adds the sync manager and its controller to the manager of the hosting cluster.
func (m *Manager) Register(hosting manager.Manager) error {
	// The names of APIs are cleared in the mailbox, whose admission webhooks may be slow.
	slow := queue.LanePerKey[types.UID](m, 0, m.Clock)
	worker, err := controller.NewTyped("syncmanager", hosting, controller.TypedOptions[types.UID]{
		MaxConcurrentReconciles: workers,
		Reconciler:              slow,
		NeedLeaderElection:      new(m.NeedLeaderElection()),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](minRetryDelay, maxRetryDelay),
		LogConstructor:          targetlabels.LogConstructor(m.Log),
	})
	if err != nil {
		return err
	}
	// Requests before the start were lost.
	requested := topic.Source(&m.requests, func(queue syncTargetQueue, r request) { queue.AddAfter(r.syncTarget, r.delay) }, func(syncTargetQueue) { m.enqueueAll() })
	changedCRDs := topic.Source(m.CRDs.Changes(), func(syncTargetQueue, struct{}) { m.enqueueAll() })
	return errors.Join(hosting.Add(m), hosting.Add(slow), worker.Watch(slow.Source()), worker.Watch(changedCRDs), worker.Watch(requested))
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable]. A cold standby prepares nothing.
func (m *Manager) NeedLeaderElection() bool {
	return m.settings.LeaderElection.Standby == configv1alpha1.StandbyCold
}

// Start waits until ctx ends, and returns after all controllers that the manager runs have ended.
func (m *Manager) Start(ctx context.Context) error {
	<-ctx.Done()
	m.cancel()
	m.stopAll()
	return nil
}

func (m *Manager) stopAll() {
	m.lock.Lock()
	all := m.decisions
	m.decisions = map[types.UID]syncDecision{}
	m.lock.Unlock()
	var stopping gosync.WaitGroup
	for _, decided := range all {
		if decided.state != nil {
			stopping.Go(decided.state.stop)
		}
	}
	stopping.Wait()
}

// Publish sets the resources that mailboxes have, and enqueues all SyncTargets.
func (m *Manager) Publish(resources []plan.Resource) {
	m.catalog.publish(resources)
	m.CachePolicy.publish(resources)
	m.Mailboxes.Reviews.EnqueueAllCacheReviews()
	m.enqueueAll()
}

// HasPublished reports whether Publish has been called.
func (m *Manager) HasPublished() bool {
	_, publication := m.catalog.published()
	return publication > 0
}

// Published returns the resources that mailboxes have. The caller must not change them.
func (m *Manager) Published() []plan.Resource {
	published, _ := m.catalog.published()
	return published
}

// SetSchemas sets the schemas that the hub gives mailboxes, by mailbox resource.
func (m *Manager) SetSchemas(schemas map[schema.GroupResource]schemacheck.Schema) {
	m.catalog.setSchemas(schemas)
	m.enqueueAll()
}

// AllowsCascade reports whether a namespace or CRD that came from the mailbox resource may be deleted with its contents.
func (m *Manager) AllowsCascade(resource schema.GroupResource) bool {
	return slices.ContainsFunc(m.Published(), func(r plan.Resource) bool {
		return r.GroupResource() == resource && !r.RelatedOnly && r.DeletesContents && !r.Retain
	})
}

// StartSync starts to sync a target, or updates the description of a target that is synced already.
func (m *Manager) StartSync(target Target) {
	if found, ok := m.get(target.UID); ok && !found.canContinueWith(target) {
		m.StopSync(target.UID)
	}
	m.lock.Lock()
	decided := m.decisions[target.UID]
	if decided.state == nil {
		decided.state = m.newTargetState(target)
		m.decisions[target.UID] = decided
	}
	found := decided.state
	m.lock.Unlock()
	if found.updateRules(target, m.settings.Targets.ProtectedNamespaces) {
		m.ObjectsChanged.Publish(target.UID)
	}
	hasOtherLimits := found.setBounds(target)
	if found.setTenancy(target.Tenancy) {
		m.enqueue(target.UID)
	}
	if found.setConnection(target.Connection, m.listenerFor(target.UID, &found.apiEvents)) {
		m.enqueue(target.UID)
	}
	if !target.Prepare && found.isPreparing() {
		found.startPrepared(target.TrustedUntil, m.Clock.Now())
		m.enqueue(target.UID)
		m.ObjectsChanged.Publish(target.UID)
	}
	if hasOtherLimits {
		m.updateCachePolicy(found)
	}
}

// newTargetState returns the state of a target that is not synced yet. It observes the configs of the mailbox.
func (m *Manager) newTargetState(target Target) *targetState {
	state := &targetState{
		target:               target,
		syncStartedAt:        m.Clock.Now(),
		configEvents:         configEvents{enqueue: func() { m.enqueue(target.UID) }, stale: true},
		syncControllers:      map[schema.GroupResource]*syncController{},
		registry:             related.NewRegistry(),
		completenessRequests: map[schema.GroupResource]plan.Resource{},
		writtenResources:     maps.Clone(target.WrittenResources),
		tenantResources:      target.TenantResources,
		compatibilityStates:  compatibilityStatesOf(target.WrittenResources),
		writesAllowed:        make(chan struct{}),
	}
	if !target.Prepare {
		close(state.writesAllowed)
	}
	for _, resource := range ConfigResources {
		state.unsubscribeConfigs = append(state.unsubscribeConfigs, m.Mailboxes.Subscribe(resource, target.Mailbox, &state.configEvents))
	}
	state.rules.adoption.Store(target.Adoption)
	state.rules.setMutationInput(target)
	return state
}

// listenerFor returns the listener of a connection that enqueues its SyncTarget.
func (m *Manager) listenerFor(syncTarget types.UID, events *apiEvents) targets.Listener {
	return targets.Listener{
		OnCRD: func(defined schema.GroupResource) {
			if events.onCRD(defined, m.Clock.Now()) {
				m.enqueue(syncTarget)
			}
		},
		OnAPIs: func() {
			if events.concernAny() {
				m.enqueue(syncTarget)
			}
		},
		OnLookup: func() { m.enqueue(syncTarget) },
	}
}

// updateCachePolicy sets the configs and limits of a mailbox in the cache policy.
func (m *Manager) updateCachePolicy(state *targetState) {
	state.lock.Lock()
	mailbox, limits, matcher, known := state.target.Mailbox, state.target.Limits, state.matcher, state.configsKnown
	state.lock.Unlock()
	if known {
		m.CachePolicy.set(mailbox, matcher, limits)
		m.Mailboxes.Reviews.EnqueueCacheReview(mailbox)
	}
}

// StopSync stops syncing a target. It returns once the hub no longer writes to the target.
func (m *Manager) StopSync(syncTarget types.UID) {
	m.lock.Lock()
	decided := m.decisions[syncTarget]
	m.decisions[syncTarget] = syncDecision{notSynced: decided.notSynced}
	m.lock.Unlock()
	m.stop(syncTarget, decided.state)
}

// Forget does the same for a SyncTarget that was deleted or that this replica no longer owns, and drops its
// state.
func (m *Manager) Forget(syncTarget types.UID) {
	m.lock.Lock()
	decided := m.decisions[syncTarget]
	delete(m.decisions, syncTarget)
	m.lock.Unlock()
	m.stop(syncTarget, decided.state)
	if decided.notSynced != (NotSynced{}) {
		m.ObjectsChanged.Publish(syncTarget)
	}
}

func (m *Manager) stop(syncTarget types.UID, stopping *targetState) {
	if stopping == nil {
		return
	}
	m.CachePolicy.forget(stopping.currentTarget().Mailbox)
	stopping.stop()
	m.SyncStatusChanged.Publish(objectsync.ObjectRef{SyncTarget: syncTarget})
}

// Resume reconciles all objects of a target if the target came up since the last call.
func (m *Manager) Resume(syncTarget types.UID) {
	found, ok := m.get(syncTarget)
	if !ok || !found.takeReconnect() {
		return
	}
	for _, controller := range found.controllers() {
		controller.Resume()
	}
	m.enqueue(syncTarget)
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

// SyncTargets returns the SyncTargets that are synced.
func (m *Manager) SyncTargets() (synced []types.UID) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for syncTarget, decided := range m.decisions {
		if decided.state != nil {
			synced = append(synced, syncTarget)
		}
	}
	return synced
}

// IsSynced reports whether a SyncTarget is synced, or about to be.
func (m *Manager) IsSynced(syncTarget types.UID) bool {
	_, ok := m.get(syncTarget)
	return ok
}

func (m *Manager) get(syncTarget types.UID) (*targetState, bool) {
	state, _ := m.decision(syncTarget)
	return state, state != nil
}

// decision returns the state of a SyncTarget, which is nil if it is not synced. decided is false before the first call of StartSync or
// StopSync.
func (m *Manager) decision(syncTarget types.UID) (state *targetState, decided bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	found, decided := m.decisions[syncTarget]
	return found.state, decided
}

func (m *Manager) enqueue(syncTarget types.UID) { m.enqueueAfter(0, syncTarget) }

func (m *Manager) enqueueAfter(delay time.Duration, syncTarget types.UID) {
	m.requests.Publish(request{syncTarget, delay})
}

func (m *Manager) enqueueAll() {
	for _, syncTarget := range m.SyncTargets() {
		m.enqueue(syncTarget)
	}
}
