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

package tenants

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	gosync "sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// maxConcurrentReconciles is how many namespaces and ServiceAccounts of one cluster are reconciled concurrently.
	maxConcurrentReconciles = 2
	// reconcileTimeout bounds all requests of one reconcile together.
	reconcileTimeout = 2 * time.Minute
	// A failed reconcile is retried after minRetryDelay. The delay doubles each time, up to maxRetryDelay.
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 5 * time.Minute
	// idleTimeout is how long the queue must have been empty before the workers stop.
	idleTimeout = time.Minute
	// settlingTime is how long an API server may take to authorize by a new RoleBinding, and to compute the usage of a new quota.
	settlingTime = 10 * time.Second
)

var namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")

// Options are the dependencies of a [Controller].
type Options struct {
	Connection *targets.Connection
	Mailboxes  *mailboxes.Mailboxes
	// Mailbox is the logical cluster of the mailbox.
	Mailbox logicalcluster.Name
	Owner   ownership.Owner
	Hasher  ownership.Hasher
	// OnPrepared is called when requests for objects in a namespace that the cluster has denied may be allowed now. It must not block.
	OnPrepared func(namespace string)
	// Written are the names of the resources that the hub may have written for an earlier tenancy.
	Written []string
	// OnProblem is called when [Controller.Problem] has changed. It must not block.
	OnProblem func()
	Clock     clock.Clock
	Log       logr.Logger
}

// key is the name of a namespace of a workspace, or of a ServiceAccount.
type key struct{ namespace, account string }

// Controller keeps the objects of one SyncTarget on its cluster. A nil Controller has no tenants. Create it with [New] and run it with
// [Controller.Run].
type Controller struct {
	Options
	queue   *queue.Queue[key]
	members members
	// writing has the namespaces and ServiceAccounts whose objects are being brought in sync.
	writing singleflight.Group
	state   atomic.Pointer[state]

	lock gosync.Mutex
	// prepared are the namespaces that have all objects that the settings need, with the time of the last write for them.
	prepared map[string]time.Time
	// problems are the errors of the last writes, by namespace.
	problems map[string]string
	// runCache runs a cache; nil before and after [Controller.Run].
	runCache func(*store)
}

// state are the settings, and the stores of the kinds that they need, or needed before. It is replaced, never changed.
type state struct {
	settings
	stores map[kind]*store
}

// New returns a controller for a SyncTarget with these settings.
func New(options Options, of *edgev2alpha1.Tenancy) *Controller {
	c := &Controller{Options: options, prepared: map[string]time.Time{}, problems: map[string]string{}}
	c.state.Store(&state{stores: c.newStores(func(kind kind) bool { return slices.Contains(options.Written, kind.Resource) }, nil)})
	c.members.owner = options.Owner
	c.members.workspaces, c.members.prepared = map[string]logicalcluster.Name{}, map[string]logicalcluster.Name{}
	c.queue = queue.New(queue.Options[key]{
		Name:                    "tenants",
		Reconciler:              c,
		MaxConcurrentReconciles: maxConcurrentReconciles,
		ReconciliationTimeout:   reconcileTimeout,
		MinRetryDelay:           minRetryDelay,
		MaxRetryDelay:           maxRetryDelay,
		IdleTimeout:             idleTimeout,
		Log: func(k key) logr.Logger {
			return c.Log.WithValues("namespace", k.namespace, "serviceAccount", k.account)
		},
		Clock: options.Clock,
	})
	c.SetTenancy(of)
	return c
}

// Run keeps the objects in sync until ctx ends. It returns after the last write has ended.
func (c *Controller) Run(ctx context.Context) error {
	var running gosync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.lock.Lock()
	c.runCache = func(started *store) {
		running.Go(func() { started.cache.Run(ctx) })
		running.Go(func() { started.cache.OnProgress(ctx, c.enqueueAll) })
	}
	for _, store := range c.state.Load().stores {
		c.runCache(store)
	}
	c.lock.Unlock()
	defer func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		c.runCache = nil
	}()
	defer c.Connection.Watches.Subscribe(targets.Listener{OnNamespace: c.onNamespace, OnSynced: c.enqueueAll, OnUp: c.enqueueAll})()
	defer c.Mailboxes.Subscribe(namespacesResource, c.Mailbox, c)()
	c.OnReset()
	return c.queue.Run(ctx)
}

// SetTenancy changes the settings, and reports whether they differ.
func (c *Controller) SetTenancy(of *edgev2alpha1.Tenancy) (changed bool) {
	next := &state{settings: settingsOf(of)}
	c.lock.Lock()
	before := c.state.Load()
	if reflect.DeepEqual(before.settings, next.settings) {
		c.lock.Unlock()
		return false
	}
	next.stores = c.newStores(next.needs, before.stores)
	clear(c.prepared)
	clear(c.problems)
	c.state.Store(next)
	c.lock.Unlock()
	c.enqueueAll()
	return true
}

// newStores returns the stores that exist, and new ones of the needed kinds. After [Controller.Run] has started it requires the lock.
func (c *Controller) newStores(needs func(kind) bool, existing map[kind]*store) map[kind]*store {
	stores := make(map[kind]*store, len(allKinds))
	maps.Copy(stores, existing)
	for _, kind := range allKinds {
		if stores[kind] != nil || !needs(kind) {
			continue
		}
		added := newStore(kind, &c.Options, c.onChange, c.enqueueAll)
		stores[kind] = added
		if c.runCache != nil {
			c.runCache(added)
		}
	}
	return stores
}

// LeftResources returns the names of the resources whose objects the cluster may still have, sorted.
func (c *Controller) LeftResources() (names []string) {
	for kind, store := range c.state.Load().stores {
		if store.check() != nil || len(store.cache.List()) > 0 {
			names = append(names, kind.Resource)
		}
	}
	slices.Sort(names)
	return names
}

// enqueueAll enqueues all namespaces and ServiceAccounts that need objects, or have some.
func (c *Controller) enqueueAll() {
	state := c.state.Load()
	keys := map[key]struct{}{}
	for _, namespace := range c.members.namespaces() {
		workspace, _ := c.members.get(namespace)
		keys[key{namespace: namespace}], keys[key{account: tenancy.WorkspaceHash(workspace)}] = struct{}{}, struct{}{}
	}
	if state.Mailbox {
		keys[key{account: tenancy.MailboxAccount}] = struct{}{}
	}
	for kind, store := range state.stores {
		for _, object := range store.cache.List() {
			keys[keyFor(kind, object.(*unstructured.Unstructured))] = struct{}{}
		}
	}
	for one := range keys {
		c.queue.Add(one)
	}
}

// keyFor returns the key that reconciles an object.
func keyFor(kind kind, object *unstructured.Unstructured) key {
	if kind == serviceAccounts {
		return key{account: object.GetName()}
	}
	return key{namespace: object.GetNamespace()}
}

// onChange is called when an object on the cluster was created, changed or deleted.
func (c *Controller) onChange(kind kind, object *unstructured.Unstructured) {
	c.queue.Add(keyFor(kind, object))
	if hash := object.GetLabels()[edgev2alpha1.LabelWorkspace]; hash != "" && kind == roleBindings {
		// The ServiceAccount goes after the last RoleBinding.
		c.queue.Add(key{account: hash})
	}
}

// onNamespace is called when a namespace of the cluster was created or deleted.
func (c *Controller) onNamespace(name string, gone bool) {
	if gone {
		c.forgetPrepared(name)
		if workspace := c.members.forgetPrepared(name); workspace != "" {
			c.queue.Add(key{account: tenancy.WorkspaceHash(workspace)})
		}
	}
	if workspace, _ := c.members.get(name); workspace != "" {
		c.queue.Add(key{namespace: name})
	}
}

// OnEvent is called for each change of a Namespace in the mailbox.
func (c *Controller) OnEvent(event mailboxes.Event) {
	before, now := c.members.update(event.Key.Name, event.New)
	if event.Initial || before == now {
		return
	}
	c.queue.Add(key{namespace: event.Key.Name})
	for _, workspace := range []logicalcluster.Name{before, now} {
		if workspace != "" {
			c.queue.Add(key{account: tenancy.WorkspaceHash(workspace)})
		}
	}
}

// OnReset is called when the Namespaces of the mailbox were listed.
func (c *Controller) OnReset() {
	c.members.replace(c.Mailboxes.List(namespacesResource, c.Mailbox))
	c.enqueueAll()
}

// OnAbsenceDecided does nothing: the absence of a Namespace alone removes nothing.
func (c *Controller) OnAbsenceDecided(types.NamespacedName) {}

// Reconcile brings the objects of one namespace, or one ServiceAccount, in sync. While the target is down it does nothing; OnUp enqueues
// all keys again.
func (c *Controller) Reconcile(ctx context.Context, k key) (reconcile.Result, error) {
	if !c.Connection.Health.IsUp() {
		return reconcile.Result{}, nil
	}
	ctx = requestclass.With(ctx, requestclass.Object)
	var wait time.Duration
	var err error
	if k.account != "" {
		wait, err = c.reconcileAccount(ctx, k.account)
	} else {
		wait, err = c.reconcileNamespace(ctx, k.namespace)
	}
	switch {
	case ctx.Err() != nil, errors.Is(err, ErrNotReady):
		return reconcile.Result{}, nil //nolint:nilerr // the cache enqueues all keys when it has synced, and a stopped controller has none
	case err != nil && k.namespace != "" && isRefusal(err):
		// setProblem has reported it.
		return reconcile.Result{}, &queue.ReportedError{Err: errors.New(c.Connection.RedactError(err))}
	case err != nil:
		return reconcile.Result{}, errors.New(c.Connection.RedactError(err))
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// reconcileNamespace brings the objects of a namespace in sync. A namespace that does not belong to a workspace any more keeps them
// until it goes: objects of the workspace that are still there can be removed only with its RoleBinding.
func (c *Controller) reconcileNamespace(ctx context.Context, namespace string) (time.Duration, error) {
	state := c.state.Load()
	workspace, _ := c.members.get(namespace)
	if _, exists := c.Connection.Watches.NamespaceLabels(namespace); exists && workspace != "" {
		result := c.prepare(ctx, namespace, workspace)
		if IsForeignNamespace(result.err) {
			// The objects that the workspace wants there report it. The namespace is not the hub's to change.
			return 0, nil
		}
		return result.wait, result.err
	}
	var errs []error
	for kind, store := range state.stores {
		if kind != serviceAccounts && !state.needs(kind) && store.check() == nil {
			errs = append(errs, store.ensure(ctx, types.NamespacedName{Namespace: namespace, Name: ObjectName}, nil).err)
		}
	}
	return 0, errors.Join(errs...)
}

// reconcileAccount creates a ServiceAccount that the settings need, or deletes it after the last RoleBinding for it.
func (c *Controller) reconcileAccount(ctx context.Context, name string) (time.Duration, error) {
	state := c.state.Load()
	accounts := state.stores[serviceAccounts]
	if accounts == nil {
		return 0, nil
	}
	needed := state.Mailbox
	if name != tenancy.MailboxAccount {
		var known bool
		if needed, known = c.members.hasWorkspace(name); !known {
			return 0, nil
		}
		needed = needed && state.Workspaces
	}
	if !needed && hasRoleBinding(state.stores[roleBindings], name) {
		return 0, nil
	}
	result := c.ensureAccount(ctx, accounts, name, needed)
	return result.wait, result.err
}

// hasRoleBinding reports whether a RoleBinding of the hub is for the ServiceAccount.
func hasRoleBinding(bindings *store, account string) bool {
	if bindings == nil {
		return false
	}
	if bindings.check() != nil {
		return true
	}
	for _, object := range bindings.cache.List() {
		if object.GetLabels()[edgev2alpha1.LabelWorkspace] == account {
			return true
		}
	}
	return false
}

// ensureAccount creates a ServiceAccount, or deletes it if it is not needed.
func (c *Controller) ensureAccount(ctx context.Context, accounts *store, name string, needed bool) written {
	return c.writeOnce("account/"+name, func() written {
		if err := accounts.check(); err != nil {
			return written{err: err}
		}
		var desired *unstructured.Unstructured
		if needed {
			desired = newObject(serviceAccounts, edgev2alpha1.TenantsNamespace, name, name)
		}
		at := types.NamespacedName{Namespace: edgev2alpha1.TenantsNamespace, Name: name}
		result := c.ensureIn(ctx, accounts, at, desired)
		if writes.IsMissingNamespace(result.err, at.Namespace) {
			if _, err := createNamespace(ctx, &c.Options, at.Namespace, nil); err != nil {
				return written{err: err}
			}
			result = c.ensureIn(ctx, accounts, at, desired)
		}
		return result
	})
}

// writeOnce returns the result of a function; concurrent callers for one name share one call.
func (c *Controller) writeOnce(name string, write func() written) written {
	result, _, _ := c.writing.Do(name, func() (any, error) { return write(), nil })
	return result.(written)
}
