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

package mailboxes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/storehistory"
)

// State is the state of an object according to the caches.
type State int

const (
	// Unknown: the cache of the resource is not filled, or no endpoint shows the mailbox. This proves nothing about the object.
	Unknown State = iota
	// Present: the object is in the mailbox.
	Present
	// Absent: the object is not in the cache. Its absence must still be verified.
	Absent
)

// Event is a change of an object in a mailbox.
type Event struct {
	Key types.NamespacedName
	// Old and New are the object before and after the change; one of them may be nil.
	Old, New *unstructured.Unstructured
	// Initial is true for objects of the initial list. [Subscriber.OnReset] is called after the last of them.
	Initial bool
	// ProjectionOnly is true if the object is the same, but the cache holds more or less of it.
	ProjectionOnly bool
}

// Mailboxes caches the objects of all mailboxes. Create it with [New] and run it with [Mailboxes.Start].
type Mailboxes struct {
	kcpConfig *kcp.ConfigProvider
	// workspace is the provider workspace's path, export the name of the mailbox export.
	workspace, export string
	log               logr.Logger
	clock             clock.Clock
	absence           absenceVerifier
	// policy is nil if all objects are cached whole.
	policy CachePolicy
	// usages contains a *usage by mailbox, and configUsages the *usage of the mailbox's configs.
	usages, configUsages sync.Map
	// resourceLimits are the limits of resources; nil before [Mailboxes.SetResourceLimits].
	resourceLimits atomic.Pointer[map[schema.GroupVersionResource]Limits]
	memory         memoryLimit
	// evictedCount is the number of evicted usages; evictionSignal wakes runEvictions.
	evictedCount   atomic.Int64
	evictionSignal signal
	// awaitingRelist is the number of pairs of a readmitted or gained mailbox and a resource that was not listed since. relistCount is
	// the number of the last such list.
	awaitingRelist atomic.Int64
	relistCount    atomic.Uint64
	reviewQueue    workqueue.TypedRateLimitingInterface[logicalcluster.Name]

	needs needs

	history *storehistory.Guard
	// checkedVersions has the mailboxes for which [Mailboxes.VerifyVersion] makes a request.
	checkedVersions sync.Map

	// alwaysWatched are the resources that are watched at each endpoint: bindings and configs.
	alwaysWatched []schema.GroupVersionResource
	subscribers   subscribers
	// observer is nil before [Mailboxes.Observe]. bindLater and leaderOnly come from the options.
	observer              atomic.Pointer[observer]
	bindLater, leaderOnly bool

	lock           sync.RWMutex
	ctx            context.Context // set by Start; the owner of all endpoints
	resources      []schema.GroupVersionResource
	endpoints      map[string]*endpoint
	endpointsKnown bool
}

// Options configure the mailboxes of an export.
type Options struct {
	Access *kcp.ConfigProvider
	// Workspace is the path of the provider workspace, and Export the name of its APIExport that mailboxes bind.
	Workspace, Export string
	// Resources are always watched; all other resources follow [Mailboxes.SetResources].
	Resources []schema.GroupVersionResource
	// LeaderOnly is true if a replica that does not lead caches nothing.
	LeaderOnly bool
	// Policy decides how much of a mailbox is cached; nil caches everything.
	Policy CachePolicy
	// MaxBytes bounds the caches of all mailboxes together; zero means no limit.
	MaxBytes int64
	// AbsenceDelays are [absence.DefaultDelays] if they are zero.
	AbsenceDelays absence.Delays
	// BindLater is true if workspaces bind the export after their creation, as workload workspaces do. A mailbox is bound when it is
	// created, so a later binding shows that its objects were lost (see package absence).
	BindLater bool
	// Needs reports whether the objects of a mailbox are needed; nil means that all are. [Mailboxes.RecheckNeeds] calls it
	// again; until then a result holds. Needs is called when a mailbox is observed first, also by the goroutines that read
	// watches: it must be quick, and must not call the Mailboxes. Bindings and Resources are cached of all mailboxes.
	Needs func(mailbox logicalcluster.Name) bool
	// History gets a report when kcp went back to an earlier state. It may be nil.
	History *storehistory.Guard
	Clock   clock.WithTicker
	Log     logr.Logger
}

// New returns the mailboxes of an export, which are idle until [Mailboxes.Start].
func New(options Options) *Mailboxes {
	always := append([]schema.GroupVersionResource{bindingsResource}, options.Resources...)
	mailboxes := &Mailboxes{
		kcpConfig:      options.Access,
		workspace:      options.Workspace,
		export:         options.Export,
		log:            options.Log,
		clock:          options.Clock,
		policy:         options.Policy,
		alwaysWatched:  always,
		bindLater:      options.BindLater,
		leaderOnly:     options.LeaderOnly,
		resources:      slices.Clone(always),
		endpoints:      map[string]*endpoint{},
		memory:         memoryLimit{limit: options.MaxBytes, wake: newSignal()},
		evictionSignal: newSignal(),
		needs:          newNeeds(options.Needs),
		history:        options.History,
	}
	if options.Policy != nil {
		mailboxes.reviewQueue = newReviewQueue(options.Clock)
	}
	mailboxes.absence = absence.New(absenceCache{mailboxes}, options.AbsenceDelays, options.Clock, options.Log)
	return mailboxes
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable] of controller-runtime.
func (m *Mailboxes) NeedLeaderElection() bool { return m.leaderOnly }

// Start watches the export's endpoints, and through them all mailboxes, until ctx ends.
func (m *Mailboxes) Start(ctx context.Context) error {
	client, err := dynamic.NewForConfig(m.kcpConfig.WorkspaceConfig(m.workspace))
	if err != nil {
		return fmt.Errorf("cannot make a client for the provider workspace %s: %w", m.workspace, err)
	}
	m.lock.Lock()
	m.ctx = ctx
	m.lock.Unlock()
	defer runningMailboxes.Add(m)()
	defer m.stopEndpoints()
	var reviewing sync.WaitGroup
	defer reviewing.Wait()
	if m.policy != nil {
		reviewing.Go(func() { m.runReviews(ctx) })
		reviewing.Go(func() { m.runFairShare(ctx) })
		reviewing.Go(func() { m.runEvictions(ctx) })
	}
	if m.needs.decide != nil {
		reviewing.Go(func() { m.runNeeds(ctx) })
	}
	return m.runEndpointSliceInformer(ctx, client)
}

// HasSynced reports whether the hub can work: the endpoints are known, and each cache is filled or has failed to. It ignores
// resources that are not served and endpoints that do not answer, but if there are endpoints, one must show its mailboxes.
func (m *Mailboxes) HasSynced() bool {
	m.lock.RLock()
	defer m.lock.RUnlock()
	if !m.endpointsKnown {
		return false
	}
	usable := len(m.endpoints) == 0
	for _, endpoint := range m.endpoints {
		if endpoint.isSyncing() {
			return false
		}
		usable = usable || endpoint.hasSyncedBindings()
	}
	return usable
}

// Get returns a cached object and its state. The caller must not change the object.
func (m *Mailboxes) Get(resource schema.GroupVersionResource, mailbox logicalcluster.Name, key types.NamespacedName) (*unstructured.Unstructured, State) {
	informer, ok := m.informer(resource, mailbox)
	if !ok {
		return nil, Unknown
	}
	found, exists, err := informer.GetIndexer().GetByKey(kcpcache.ToClusterAwareKey(mailbox.String(), key.Namespace, key.Name))
	if err != nil || !exists {
		return nil, Absent
	}
	return toObject(found), Present
}

// List returns all cached objects of a resource in a mailbox; known is false if their state is Unknown.
func (m *Mailboxes) List(resource schema.GroupVersionResource, mailbox logicalcluster.Name) (objects []*unstructured.Unstructured, known bool) {
	informer, ok := m.informer(resource, mailbox)
	if !ok {
		return nil, false
	}
	found, err := informer.GetIndexer().ByIndex(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(mailbox))
	if err != nil {
		return nil, false
	}
	objects = make([]*unstructured.Unstructured, 0, len(found))
	for _, object := range found {
		if !isPlaceholder(object) {
			objects = append(objects, toObject(object))
		}
	}
	return objects, true
}

// Client returns a client for a mailbox; ok is false unless exactly one endpoint shows the mailbox.
func (m *Mailboxes) Client(mailbox logicalcluster.Name) (client dynamic.Interface, ok bool) {
	endpoint := m.endpointFor(mailbox)
	if endpoint == nil {
		return nil, false
	}
	if endpoint.workspaces == nil {
		return endpoint.clientFor(mailbox), true
	}
	return mailboxClient{endpoint.clientFor(mailbox), endpoint.workspaces.ClusterOrDie(mailbox.Path())}, true
}

// informer returns the filled cache of a resource at the endpoint that shows the mailbox; ok is false if a look-up would be
// Unknown.
func (m *Mailboxes) informer(resource schema.GroupVersionResource, mailbox logicalcluster.Name) (kcpcache.ScopeableSharedIndexInformer, bool) {
	endpoint := m.endpointFor(mailbox)
	if endpoint == nil || resource != bindingsResource && m.isEvicted(mailbox, m.isConfig(resource)) {
		return nil, false
	}
	if m.dropsForeign(resource) && m.needs.isUnknown(mailbox) {
		return nil, false
	}
	if m.awaitingRelist.Load() > 0 && endpoint.isAwaitingRelist(resource, mailbox) {
		return nil, false
	}
	return endpoint.informer(resource)
}

// endpointFor returns the endpoint that shows a binding of the mailbox. It returns nil if there is none, or more than one: then
// the valid one is unknown.
func (m *Mailboxes) endpointFor(mailbox logicalcluster.Name) (located *endpoint) {
	m.lock.RLock()
	defer m.lock.RUnlock()
	for _, endpoint := range m.endpoints {
		if endpoint.binding(mailbox) == nil {
			continue
		}
		if located != nil {
			return nil
		}
		located = endpoint
	}
	return located
}
