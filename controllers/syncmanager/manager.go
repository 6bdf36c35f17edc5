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
	"github.com/synchub-dev/synchub/controllers/compatibility"
	"github.com/synchub-dev/synchub/controllers/definition"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/boundary"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// workers is how many SyncTargets are looked at together. A look waits for kcp, never for its target: that is asked beside
	// it, and the SyncTarget is looked at again when it has answered.
	workers = 32
	// lookAgain is how soon a pair that is being emptied is looked at after something happened to it.
	lookAgain = 500 * time.Millisecond
	// announcedLimit is for how long after a definition was announced its kind is asked for.
	announcedLimit = 10 * time.Second
)

// ConfigResources are the resources of a mailbox that select what is synced.
var ConfigResources = []schema.GroupVersionResource{
	edgev2alpha1.SchemeGroupVersion.WithResource("syncerconfigs"),
	edgev2alpha1.SchemeGroupVersion.WithResource("edgesyncconfigs"),
}

// Target is what the manager must know of a SyncTarget to sync it.
type Target struct {
	// UID and Name are the SyncTarget's, Inventory is the logical cluster it lives in.
	UID       types.UID
	Name      string
	Inventory logicalcluster.Name
	// Mailbox is the logical cluster of its mailbox.
	Mailbox    logicalcluster.Name
	Connection *targets.Connection
	// Cordoned is true if nothing new may be made on the target.
	Cordoned bool
	// Adoption is what may be adopted on the target, beside what a PublishedResource says; empty stands for nothing.
	Adoption synchubv1alpha1.AdoptionPolicy
	// Namespaces are those of the target that may be used, beside what the hub protects.
	Namespaces *edgev2alpha1.TargetNamespaces
	// Placed are the namespaces in which the hub may have written, the empty one for the whole cluster; none stands for that, too.
	Placed []string
	// Limits bound what is held of the mailbox, where they are lower than the hub's. Zero stands for the hub's.
	Limits mailboxes.Limits
	// Recorded is what the hub may have written, by the resources of the target.
	Recorded map[schema.GroupResource]Record
	// Trusted is for how long what Recorded says of whether objects fit counts without asking the target by its first
	// connection.
	Trusted Trust
}

// Trust says that what the hub before knew counts until it is to be asked again. The zero value says that nothing does.
type Trust struct {
	Until time.Time
}

// Recorder writes down the pairs of a SyncTarget.
type Recorder interface {
	// Record makes the pairs of the SyncTarget exactly these. It returns after the write has been accepted.
	Record(ctx context.Context, target Target, resources map[schema.GroupResource]Record) error
}

// Observer is told of what concerns the configs of a SyncTarget's mailbox: they, or the objects they select, changed.
type Observer interface {
	Changed(syncTarget types.UID)
}

// Options are what a manager needs.
type Options struct {
	Mailboxes *mailboxes.Mailboxes
	Recorder  Recorder
	// Remembered returns the SyncTargets that the hub before knew, and whether they are known. Without it there are none.
	Remembered func() (syncTargets []types.UID, known bool)
	// Hub is the UID of the provider workspace's LogicalCluster.
	Hub    types.UID
	Hasher ownership.Hasher
	// Protected are the namespaces that are used only where that is allowed.
	Protected boundary.Patterns
	// Sealer has the hub's key, too: marks are sealed with it.
	Sealer *ownership.Sealer
	// OnKnown is called when the configs of a SyncTarget's mailbox have become known. It must return at once.
	OnKnown func(syncTarget types.UID)
	// Checker compares schemas; without one nothing is compared.
	Checker *compatibility.Checker
	// Names frees names of APIs in mailboxes; without it none is freed.
	Names Names
	// OnStates is called when the pairs of a SyncTarget, the states of its resources, or the APIs that its mailbox lacks, have
	// changed. It must return at once.
	OnStates func(syncTarget types.UID)
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
	observer Observer
	holding  *holding

	lock      gosync.Mutex
	queue     priorityqueue.PriorityQueue[types.UID]
	ctx       context.Context // set by Start; the owner of all sync controllers
	published []sync.Resource
	// publications counts how often published was set.
	publications int
	// definitions are those that targets are given.
	definitions []definition.Wanted
	schemas     map[schema.GroupResource]compatibility.Schema
	targets     map[types.UID]*managed
	// halts are the SyncTargets that are not synced, as far as somebody has said so.
	halts map[types.UID]Halt
	// began is when the manager was started. Observed are the SyncTargets of which it has been decided since whether they are synced;
	// it is dropped once that is all of them.
	began       time.Time
	observed    map[types.UID]bool
	observedAll bool
}

// New returns a manager without any target.
func New(options Options) *Manager {
	m := &Manager{Options: options, targets: map[types.UID]*managed{}, halts: map[types.UID]Halt{}, observed: map[types.UID]bool{}}
	m.holding = &holding{manager: m, limits: options.MailboxLimits}
	return m
}

// Policy says how much is held of the objects of mailboxes.
func (m *Manager) Policy() mailboxes.Policy { return m.holding }

// SetObserver sets who is told of changes. It must be called before Start.
func (m *Manager) SetObserver(observer Observer) { m.observer = observer }

// NeedLeaderElection makes the manager run on the leader only.
func (m *Manager) NeedLeaderElection() bool { return true }

// Start works until ctx ends, and then until all sync controllers have ended.
func (m *Manager) Start(ctx context.Context) error {
	m.lock.Lock()
	m.ctx, m.began = ctx, m.Clock.Now()
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
	m.targets = map[types.UID]*managed{}
	m.lock.Unlock()
	var stopping gosync.WaitGroup
	for _, managed := range all {
		stopping.Go(managed.stop)
	}
	stopping.Wait()
}

// Publish sets the resources that mailboxes have by now.
func (m *Manager) Publish(resources []sync.Resource) {
	m.lock.Lock()
	m.published = resources
	m.publications++
	m.lock.Unlock()
	m.holding.publish(resources)
	m.enqueueAll()
}

// HasPublished tells whether it is known what mailboxes have.
func (m *Manager) HasPublished() bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.publications > 0
}

// Published returns the resources that mailboxes have by now.
func (m *Manager) Published() []sync.Resource {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.published
}

// Assign makes the manager sync a target, or takes over what changed about it.
func (m *Manager) Assign(target Target) {
	if found, ok := m.get(target.UID); ok && found.describe().Mailbox != target.Mailbox {
		// The mailbox was made anew: nothing that was concluded from the former one holds.
		m.Unassign(target.UID)
	}
	m.lock.Lock()
	m.noteObserved(target.UID)
	found, ok := m.targets[target.UID]
	if !ok {
		found = &managed{
			target:   target,
			since:    m.Clock.Now(),
			stale:    true,
			pairs:    map[schema.GroupResource]*pair{},
			register: relation.NewRegister(),
			demanded: map[schema.GroupResource]sync.Resource{},
			recorded: maps.Clone(target.Recorded),
			fits:     fitsOf(target.Recorded),
		}
		subscriber := &configSubscriber{manager: m, managed: found, syncTarget: target.UID}
		for _, resource := range ConfigResources {
			found.unsubscribe = append(found.unsubscribe, m.Mailboxes.Subscribe(resource, target.Mailbox, subscriber))
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
	m.bound(found, target)
	found.placed(target.Placed)
	isOther := found.connect(target.Connection, targets.Listener{
		CRD: func(defined schema.GroupResource) {
			now := m.Clock.Now()
			found.announced.Store(&now)
			isRedefined := found.hasSeveral(defined)
			if isRedefined {
				found.redefined.Store(&now)
			}
			if isRedefined || found.unresolved.Load() {
				m.enqueue(target.UID)
			}
		},
		Answered: func() { m.enqueue(target.UID) },
	})
	if isOther {
		m.enqueue(target.UID)
	}
	if found.limit(target.Limits) {
		m.hold(found)
	}
}

// hold has as much held of a mailbox as its configs and its limits say.
func (m *Manager) hold(managed *managed) {
	managed.lock.Lock()
	mailbox, limits, matcher, known := managed.target.Mailbox, managed.target.Limits, managed.matcher, managed.known
	managed.lock.Unlock()
	if known {
		m.holding.set(mailbox, matcher, limits)
	}
}

// bound takes over which namespaces of a target may be used.
func (m *Manager) bound(managed *managed, target Target) {
	next := &boundary.Namespaces{Protected: m.Protected}
	if bounds := target.Namespaces; bounds != nil {
		next.Only, next.Allowed = bounds.Only, boundary.Patterns(bounds.AllowProtected)
	}
	if before := managed.namespaces.Swap(next); before == nil || before.Equal(next) {
		return
	}
	for _, controller := range managed.controllers() {
		controller.NamespacesChanged()
	}
	m.observer.Changed(target.UID)
}

// Unassign stops syncing a target, and returns when nothing is written to it any more.
func (m *Manager) Unassign(syncTarget types.UID) {
	m.lock.Lock()
	m.noteObserved(syncTarget)
	found, ok := m.targets[syncTarget]
	delete(m.targets, syncTarget)
	m.lock.Unlock()
	if ok {
		m.holding.forget(found.describe().Mailbox)
		found.stop()
	}
}

// Resume is called when a target may have come up: if it has, all its objects are looked at again.
func (m *Manager) Resume(syncTarget types.UID) {
	found, ok := m.get(syncTarget)
	if !ok || !found.rose() {
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
	Controllers []*sync.Controller
	// Published are the resources that mailboxes have, each in the version in which it is written to the target.
	Published []sync.Resource
	// Definitions are those that the hub gives the target, by what they define.
	Definitions map[schema.GroupResource]definition.State
	// Namespaces says which namespaces of the target may be used.
	Namespaces *boundary.Namespaces
	// Unstarted are those of which nothing is synced before the target has answered.
	Unstarted []schema.GroupResource
	// Frozen are the resources of mailboxes that are not synced because objects do not fit into the target.
	Frozen map[schema.GroupResource]compatibility.State
	// Missing are the APIs that the mailbox does not have although they are published.
	Missing MissingAPIs
	// Fits tells of resources of the target whether objects of the mailbox fit, as far as that was compared.
	Fits map[schema.GroupResource]compatibility.State
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
	view.Published = found.inVersions(published)
	view.Mailbox, view.Matcher, view.Definitions = found.target.Mailbox, found.matcher, found.definitions()
	view.Unstarted = slices.Clone(found.unstarted)
	view.Frozen, view.Missing, view.Fits = m.frozen(found, view.Published), found.missing, maps.Clone(found.fits)
	return view, found.known && found.settled == found.matcher
}

// Known tells whether the configs of a SyncTarget's mailbox are known, so that it is being synced.
func (m *Manager) Known(syncTarget types.UID) bool {
	found, ok := m.get(syncTarget)
	if !ok {
		return false
	}
	found.lock.Lock()
	defer found.lock.Unlock()
	return found.known
}

func (m *Manager) get(syncTarget types.UID) (*managed, bool) {
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
