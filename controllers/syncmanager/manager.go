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
	"fmt"
	"maps"
	"slices"
	gosync "sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/crd"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/policy"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/related"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// workers is how many SyncTargets are looked at together. A look waits for kcp, never for its target: that is asked beside
	// it, and the SyncTarget is looked at again when it has answered.
	workers = 32
	// requeueDelay is how soon a pair that is being emptied is looked at after something happened to it.
	requeueDelay = 500 * time.Millisecond
	// crdEventTimeout is for how long after a definition was announced its kind is asked for.
	crdEventTimeout = 10 * time.Second
)

// ConfigResources are the resources of a mailbox that select what is synced.
var ConfigResources = []schema.GroupVersionResource{
	edgev2alpha1.SchemeGroupVersion.WithResource("syncerconfigs"),
	edgev2alpha1.SchemeGroupVersion.WithResource("edgesyncconfigs"),
}

// Target is what the manager must know of a SyncTarget to sync it.
type Target struct {
	// UID and Name are the SyncTarget's, Inventory is the logical cluster it lives in.
	UID                types.UID
	Name               string
	InventoryWorkspace logicalcluster.Name
	// Mailbox is the logical cluster of its mailbox.
	Mailbox    logicalcluster.Name
	Connection *targets.Connection
	// Cordoned is true if nothing new may be made on the target.
	Cordoned bool
	// Adoption is what may be adopted on the target, beside what a PublishedResource says; empty stands for nothing.
	Adoption synchubv1alpha1.AdoptionPolicy
	// Namespaces are those of the target that may be used, beside what the hub protects.
	Namespaces *edgev2alpha1.TargetNamespaces
	// WrittenNamespaces are the namespaces in which the hub may have written, the empty one for the whole cluster; none stands for that, too.
	WrittenNamespaces []string
	// Limits bound what is held of the mailbox, where they are lower than the hub's. Zero stands for the hub's.
	Limits mailboxes.Limits
	// ResourceInventory is what the hub may have written, by the resources of the target.
	ResourceInventory map[schema.GroupResource]InventoryEntry
	// Trusted is for how long what Recorded says of whether objects fit counts without asking the target by its first
	// connection.
	Trusted Trust
}

// Trust says that what the hub before knew counts until it is to be asked again. The zero value says that nothing does.
type Trust struct {
	Until time.Time
}

// InventoryStore writes down the pairs of a SyncTarget.
type InventoryStore interface {
	// StoreInventory makes the pairs of the SyncTarget exactly these. It returns after the write has been accepted.
	StoreInventory(ctx context.Context, target Target, resources map[schema.GroupResource]InventoryEntry) error
}

// Observer is told of what concerns the configs of a SyncTarget's mailbox: they, or the objects they select, changed.
type Observer interface {
	Changed(syncTarget types.UID)
}

// Options are what a manager needs.
type Options struct {
	Mailboxes      *mailboxes.Mailboxes
	InventoryStore InventoryStore
	// KnownSyncTargets returns the SyncTargets that the hub before knew, and whether they are known. Without it there are none.
	KnownSyncTargets func() (syncTargets []types.UID, known bool)
	// Hub is the UID of the provider workspace's LogicalCluster.
	Hub    types.UID
	Hasher ownership.Hasher
	// ProtectedNamespaces are the namespaces that are used only where that is allowed.
	ProtectedNamespaces policy.NamespacePatterns
	// Sealer has the hub's key, too: marks are sealed with it.
	Sealer *ownership.Sealer
	// OnConfigsKnown is called when the configs of a SyncTarget's mailbox have become known. It must return at once.
	OnConfigsKnown func(syncTarget types.UID)
	// Checker compares schemas; without one nothing is compared.
	Checker *schemacheck.Checker
	// NameClearer frees names of APIs in mailboxes; without it none is freed.
	NameClearer NameClearer
	// OnStatesChanged is called when the pairs of a SyncTarget, the states of its resources, or the APIs that its mailbox lacks, have
	// changed. It must return at once.
	OnStatesChanged func(syncTarget types.UID)
	// MailboxLimits bound what is held of one mailbox.
	MailboxLimits mailboxes.Limits
	Clock         clock.Clock
	Log           logr.Logger
}

// Owner returns the hub acting for a SyncTarget.
func (o Options) Owner(syncTarget types.UID) ownership.Owner {
	return ownership.Owner{Hub: o.Hub, SyncTarget: syncTarget, Sealer: o.Sealer}
}

// Manager runs the sync controllers of all SyncTargets.
type Manager struct {
	Options
	observer    Observer
	cachePolicy *cachePolicy

	lock      gosync.Mutex
	queue     priorityqueue.PriorityQueue[types.UID]
	ctx       context.Context // set by Start; the owner of all sync controllers
	published []objectsync.Resource
	// publicationNumber counts how often published was set.
	publicationNumber int
	// crds are those that targets are given.
	crds    []crd.Installation
	schemas map[schema.GroupResource]schemacheck.Schema
	targets map[types.UID]*targetState
	// notSynced are the SyncTargets that are not synced, as far as somebody has said so.
	notSynced map[types.UID]NotSynced
	// startedAt is when the manager was started. Observed are the SyncTargets of which it has been decided since whether they are synced;
	// it is dropped once that is all of them.
	startedAt   time.Time
	observed    map[types.UID]bool
	observedAll bool
}

// New returns a manager without any target.
func New(options Options) *Manager {
	m := &Manager{Options: options, targets: map[types.UID]*targetState{}, notSynced: map[types.UID]NotSynced{}, observed: map[types.UID]bool{}}
	m.cachePolicy = &cachePolicy{manager: m, limits: options.MailboxLimits}
	return m
}

// Policy says how much is held of the objects of mailboxes.
func (m *Manager) Policy() mailboxes.CachePolicy { return m.cachePolicy }

// SetObserver sets who is told of changes. It must be called before Start.
func (m *Manager) SetObserver(observer Observer) { m.observer = observer }

// NeedLeaderElection makes the manager run on the leader only.
func (m *Manager) NeedLeaderElection() bool { return true }

// Start works until ctx ends, and then until all sync controllers have ended.
func (m *Manager) Start(ctx context.Context) error {
	m.lock.Lock()
	m.ctx, m.startedAt = ctx, m.Clock.Now()
	m.lock.Unlock()
	defer m.stopAll()
	worker, err := controller.NewTypedUnmanaged("syncmanager", controller.TypedOptions[types.UID]{
		SkipNameValidation:      new(true),
		MaxConcurrentReconciles: workers,
		Reconciler:              m,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](100*time.Millisecond, time.Minute),
		LogConstructor: func(syncTarget *types.UID) logr.Logger {
			if syncTarget == nil {
				return m.Log.V(2)
			}
			return m.Log.WithValues("syncTargetUID", *syncTarget)
		},
	})
	if err != nil {
		return fmt.Errorf("cannot make the sync manager: %w", err)
	}
	if err := worker.Watch(source.TypedFunc[types.UID](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[types.UID]) error {
		m.lock.Lock()
		m.queue = queue.(priorityqueue.PriorityQueue[types.UID])
		m.lock.Unlock()
		m.enqueueAll()
		return nil
	})); err != nil {
		return fmt.Errorf("cannot start the sync manager: %w", err)
	}
	return worker.Start(ctx)
}

func (m *Manager) stopAll() {
	m.lock.Lock()
	all := m.targets
	m.targets = map[types.UID]*targetState{}
	m.lock.Unlock()
	var stopping gosync.WaitGroup
	for _, state := range all {
		stopping.Go(state.stop)
	}
	stopping.Wait()
}

// Publish sets the resources that mailboxes have by now.
func (m *Manager) Publish(resources []objectsync.Resource) {
	m.lock.Lock()
	m.published = resources
	m.publicationNumber++
	m.lock.Unlock()
	m.cachePolicy.publish(resources)
	m.enqueueAll()
}

// HasPublished tells whether it is known what mailboxes have.
func (m *Manager) HasPublished() bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.publicationNumber > 0
}

// Published returns the resources that mailboxes have by now.
func (m *Manager) Published() []objectsync.Resource {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.published
}

// Assign makes the manager sync a target, or takes over what changed about it.
func (m *Manager) Assign(target Target) {
	if found, ok := m.get(target.UID); ok && found.currentTarget().Mailbox != target.Mailbox {
		// The mailbox was made anew: nothing that was concluded from the former one holds.
		m.Unassign(target.UID)
	}
	m.lock.Lock()
	m.markObserved(target.UID)
	found, ok := m.targets[target.UID]
	if !ok {
		found = &targetState{
			target:               target,
			assignedAt:           m.Clock.Now(),
			configsStale:         true,
			syncControllers:      map[schema.GroupResource]*syncController{},
			register:             related.NewRegistry(),
			completenessRequests: map[schema.GroupResource]objectsync.Resource{},
			resourceInventory:    maps.Clone(target.ResourceInventory),
			compatibilityStates:  compatibilityStatesOf(target.ResourceInventory),
		}
		subscriber := &configSubscriber{manager: m, state: found, syncTarget: target.UID}
		for _, resource := range ConfigResources {
			found.unsubscribeConfigs = append(found.unsubscribeConfigs, m.Mailboxes.Subscribe(resource, target.Mailbox, subscriber))
		}
		found.adoption.Store(target.Adoption)
		m.targets[target.UID] = found
	}
	m.lock.Unlock()
	if found.cordoned.Swap(target.Cordoned) && !target.Cordoned {
		for _, controller := range found.controllers() {
			controller.Uncordon()
		}
	}
	if found.adoption.Swap(target.Adoption) != target.Adoption {
		for _, controller := range found.controllers() {
			controller.RetryConflicts()
		}
	}
	m.updateNamespaces(found, target)
	found.setWrittenNamespaces(target.WrittenNamespaces)
	isOther := found.setConnection(target.Connection, targets.Listener{
		OnCRD: func(defined schema.GroupResource) {
			now := m.Clock.Now()
			found.lastCRDEvent.Store(&now)
			isRedefined := found.isMultiVersion(defined)
			if isRedefined {
				found.lastVersionEvent.Store(&now)
			}
			if isRedefined || found.hasUnresolved.Load() {
				m.enqueue(target.UID)
			}
		},
		OnLookup: func() { m.enqueue(target.UID) },
	})
	if isOther {
		m.enqueue(target.UID)
	}
	if found.setLimits(target.Limits) {
		m.updateCachePolicy(found)
	}
}

// updateCachePolicy has as much held of a mailbox as its configs and its limits say.
func (m *Manager) updateCachePolicy(state *targetState) {
	state.lock.Lock()
	mailbox, limits, matcher, known := state.target.Mailbox, state.target.Limits, state.matcher, state.configsKnown
	state.lock.Unlock()
	if known {
		m.cachePolicy.set(mailbox, matcher, limits)
	}
}

// updateNamespaces takes over which namespaces of a target may be used.
func (m *Manager) updateNamespaces(state *targetState, target Target) {
	next := &policy.NamespacePolicy{Protected: m.ProtectedNamespaces}
	if bounds := target.Namespaces; bounds != nil {
		next.Only, next.Allowed = bounds.Only, policy.NamespacePatterns(bounds.AllowProtected)
	}
	if before := state.namespaces.Swap(next); before == nil || before.Equal(next) {
		return
	}
	for _, controller := range state.controllers() {
		controller.NamespacesChanged()
	}
	m.observer.Changed(target.UID)
}

// Unassign stops syncing a target, and returns when nothing is written to it any more.
func (m *Manager) Unassign(syncTarget types.UID) {
	m.lock.Lock()
	m.markObserved(syncTarget)
	found, ok := m.targets[syncTarget]
	delete(m.targets, syncTarget)
	m.lock.Unlock()
	if ok {
		m.cachePolicy.forget(found.currentTarget().Mailbox)
		found.stop()
	}
}

// Resume is called when a target may have come up: if it has, all its objects are looked at again.
func (m *Manager) Resume(syncTarget types.UID) {
	found, ok := m.get(syncTarget)
	if !ok || !found.observeReconnect() {
		return
	}
	for _, controller := range found.controllers() {
		controller.Resume()
	}
	m.enqueue(syncTarget)
}

// View is what the configs of one mailbox are reported by.
type View struct {
	Mailbox     logicalcluster.Name
	Matcher     *selection.Matcher
	Controllers []*objectsync.Controller
	// Published are the resources that mailboxes have, each in the version in which it is written to the target.
	Published []objectsync.Resource
	// CRDs are those that the hub gives the target, by what they define.
	CRDs map[schema.GroupResource]crd.State
	// Namespaces says which namespaces of the target may be used.
	Namespaces *policy.NamespacePolicy
	// Unstarted are those of which nothing is synced before the target has answered.
	Unstarted []schema.GroupResource
	// Incompatible are the resources of mailboxes that are not synced because objects do not fit into the target.
	Incompatible map[schema.GroupResource]schemacheck.State
	// MissingAPIs are the APIs that the mailbox does not have although they are published.
	MissingAPIs MissingAPIs
	// Compatibility tells of resources of the target whether objects of the mailbox fit, as far as that was compared.
	Compatibility map[schema.GroupResource]schemacheck.State
}

// View returns a SyncTarget's view; ok is false if it is not synced or its configs have not taken effect yet.
func (m *Manager) View(syncTarget types.UID) (view View, ok bool) {
	found, ok := m.get(syncTarget)
	if !ok {
		return View{}, false
	}
	view = View{Controllers: found.controllers(), Namespaces: found.namespaces.Load()}
	published := m.Published()
	found.lock.Lock()
	defer found.lock.Unlock()
	view.Published = found.withChosenVersions(published)
	view.Mailbox, view.Matcher, view.CRDs = found.target.Mailbox, found.matcher, found.crdStates()
	view.Unstarted = slices.Clone(found.unstarted)
	view.Incompatible, view.MissingAPIs, view.Compatibility = m.incompatibleResources(found, view.Published), found.missingAPIs, maps.Clone(found.compatibilityStates)
	return view, found.configsKnown && found.appliedMatcher == found.matcher
}

// ConfigsKnown tells whether the configs of a SyncTarget's mailbox are known, so that it is being synced.
func (m *Manager) ConfigsKnown(syncTarget types.UID) bool {
	found, ok := m.get(syncTarget)
	if !ok {
		return false
	}
	found.lock.Lock()
	defer found.lock.Unlock()
	return found.configsKnown
}

func (m *Manager) get(syncTarget types.UID) (*targetState, bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	found, ok := m.targets[syncTarget]
	return found, ok
}

func (m *Manager) enqueue(syncTargets ...types.UID) {
	m.enqueueAfter(0, syncTargets...)
}

func (m *Manager) enqueueAfter(delay time.Duration, syncTargets ...types.UID) {
	m.lock.Lock()
	queue := m.queue
	m.lock.Unlock()
	if queue != nil {
		queue.AddWithOpts(priorityqueue.AddOpts{After: delay}, syncTargets...)
	}
}

func (m *Manager) enqueueAll() {
	m.lock.Lock()
	all := make([]types.UID, 0, len(m.targets))
	for syncTarget := range m.targets {
		all = append(all, syncTarget)
	}
	m.lock.Unlock()
	m.enqueue(all...)
}
