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

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
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

// Reader reads the objects that the caches hold.
type Reader interface {
	// Get returns a cached object and its state. The caller must not change the object.
	Get(resource schema.GroupVersionResource, mailbox logicalcluster.Name, key types.NamespacedName) (*unstructured.Unstructured, State)
	// List returns all cached objects of a resource in a mailbox; known is false if their state is Unknown.
	List(resource schema.GroupVersionResource, mailbox logicalcluster.Name) (objects []*unstructured.Unstructured, known bool)
}

// Mailboxes caches the objects of all mailboxes. Its parts do the work; the ones that nearly every caller uses are embedded. Create it with [New] and run it with [Mailboxes.Start].
type Mailboxes struct {
	*Endpoints
	*Bindings
	*Caches
	*Subscriptions

	Limits    *CacheLimits
	Reviews   *Reviews
	Absences  *Absences
	Versions  *Versions
	Ownership *Ownership

	parts *parts
}

// parts are the parts of the Mailboxes that endpoints and informers use. Each part uses only parts that stand before it.
type parts struct {
	options       *Options
	endpoints     *Endpoints
	owned         *ownedMailboxes
	relists       *relists
	usages        *usages
	caches        *Caches
	subscriptions *Subscriptions
	reviews       *Reviews
	limits        *CacheLimits
	absences      *Absences
	versions      *Versions
	evictions     *evictions
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
	// Owns reports whether the replica needs the objects of a mailbox; nil means that all are. [Ownership.RecheckOwned] calls it
	// again; until then a result holds. Owns is called when a mailbox is observed first, also by the goroutines that read
	// watches: it must be quick, and must not call the Mailboxes. Bindings and Resources are cached of all mailboxes.
	Owns func(mailbox logicalcluster.Name) bool
	// History gets a report when kcp went back to an earlier state. It may be nil.
	History *storehistory.Guard
	Clock   clock.WithTicker
	Log     logr.Logger
}

// alwaysWatched returns the resources that are watched at each endpoint: bindings and configs.
func (o *Options) alwaysWatched() []schema.GroupVersionResource {
	return append([]schema.GroupVersionResource{bindingsResource}, o.Resources...)
}

func (o *Options) isAlwaysWatched(resource schema.GroupVersionResource) bool {
	return resource == bindingsResource || slices.Contains(o.Resources, resource)
}

// isConfig reports whether the objects of a resource are configs. Without a policy the hub caches configs whole, like all
// other objects.
func (o *Options) isConfig(resource schema.GroupVersionResource) bool {
	return o.Policy != nil && resource != bindingsResource && slices.Contains(o.Resources, resource)
}

// dropsUnowned reports whether the caches of a resource drop the objects of unowned mailboxes.
func (o *Options) dropsUnowned(resource schema.GroupVersionResource) bool {
	return o.Owns != nil && !o.isAlwaysWatched(resource)
}

// New returns the mailboxes of an export, which are idle until [Mailboxes.Start].
func New(options Options) *Mailboxes {
	p := &parts{options: &options, endpoints: newEndpoints(&options), owned: newOwnedMailboxes(options.Owns), relists: &relists{}}
	p.usages = &usages{endpoints: p.endpoints, owned: p.owned}
	p.caches = &Caches{options: &options, endpoints: p.endpoints, owned: p.owned, usages: p.usages, relists: p.relists}
	p.subscriptions = &Subscriptions{endpoints: p.endpoints}
	p.reviews = newReviews(&options, p.usages)
	p.limits = newCacheLimits(&options, p.caches, p.usages, p.reviews)
	p.absences = newAbsences(&options, p.caches, p.subscriptions)
	p.versions = &Versions{options: &options, endpoints: p.endpoints, absences: p.absences}
	p.evictions = &evictions{p, newSignal()}
	return &Mailboxes{
		Endpoints: p.endpoints, Bindings: &Bindings{p.endpoints}, Caches: p.caches, Limits: p.limits, Reviews: p.reviews,
		Subscriptions: p.subscriptions, Absences: p.absences, Versions: p.versions, Ownership: &Ownership{p}, parts: p,
	}
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable] of controller-runtime.
func (m *Mailboxes) NeedLeaderElection() bool { return m.parts.options.LeaderOnly }

// Start watches the export's endpoints, and through them all mailboxes, until ctx ends.
func (m *Mailboxes) Start(ctx context.Context) error {
	client, err := dynamic.NewForConfig(m.parts.options.Access.WorkspaceConfig(m.parts.options.Workspace))
	if err != nil {
		return fmt.Errorf("cannot make a client for the provider workspace %s: %w", m.parts.options.Workspace, err)
	}
	m.parts.endpoints.begin(ctx)
	defer runningMailboxes.Add(m)()
	defer m.stopEndpoints()
	var running sync.WaitGroup
	defer running.Wait()
	if m.parts.options.Policy != nil {
		running.Go(func() { (&reviewer{m.parts}).run(ctx) })
		running.Go(func() { (&fairShareUpdater{m.parts}).run(ctx) })
		running.Go(func() { m.parts.evictions.run(ctx, m.parts.release) })
	}
	if m.parts.options.Owns != nil {
		running.Go(func() { (&Ownership{m.parts}).run(ctx) })
	}
	return m.runEndpointSliceInformer(ctx, client)
}

// SetResources sets the watched resources, besides those that are always watched. The export may serve a new one only later. Objects of a
// resource that is not watched any more become Unknown, and its absence candidates are dropped. Subscribers stay, and are reset if the resource
// is watched again. SetResources waits for handlers, so a subscriber must not call it.
func (m *Mailboxes) SetResources(all []schema.GroupVersionResource) {
	stopWildcardInformers(m.parts.endpoints.setResources(all, m.parts.absences.verifier.ForgetResource))
}
