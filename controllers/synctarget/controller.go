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

package synctarget

import (
	"context"
	"slices"
	gosync "sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/departure"
	"github.com/synchub-dev/synchub/controllers/heartbeat"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/patch"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// heartbeatInterval is how often a healthy target's heartbeat is written, and so how often a quiet SyncTarget's status.
const heartbeatInterval = time.Minute

// workers is how many SyncTargets are looked after at once: one that answers slowly must not hold up the others, and a look at
// one that has come up waits until it has said which cluster it is.
const workers = 32

// Options are what a controller needs.
type Options struct {
	Manager  mcmanager.Manager
	Registry *targets.Registry
	Sync     *syncmanager.Manager
	// Ledger is what the hub remembers, and Mailboxes finds the mailboxes that it made: the status of SyncTargets tells
	// neither, since others may write it.
	Ledger    *ledger.Ledger
	Mailboxes mailbox.Locator
	Clock     clock.Clock
	Log       logr.Logger
}

// Controller connects SyncTargets.
type Controller struct {
	manager   mcmanager.Manager
	registry  *targets.Registry
	sync      *syncmanager.Manager
	ledger    *ledger.Ledger
	mailboxes mailbox.Locator
	clock     clock.Clock
	log       logr.Logger
	// readSecret reads from kcp itself.
	readSecret func(ctx context.Context, inventory cluster.Cluster, key types.NamespacedName) (*corev1.Secret, error)

	lock  gosync.Mutex
	queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]
	// running is the owner of all departures, set when the controller starts.
	running context.Context //nolint:containedctx // departures outlive the reconciles that begin them
	// departures are those that are under way or at their end, departed the SyncTargets that may go.
	departures map[types.UID]*departing
	departed   map[types.UID]bool
	claims     claims
	referrers  referrers
	// requests holds the SyncTargets seen, by UID, and uids the other way round.
	requests map[types.UID]mcreconcile.Request
	uids     map[mcreconcile.Request]types.UID
	// memories holds what is remembered of those SyncTargets.
	memories map[types.UID]*memory
}

// NewController returns a controller that connects SyncTargets through the registry and has them synced by the manager.
func NewController(options Options) *Controller {
	return &Controller{
		manager:    options.Manager,
		registry:   options.Registry,
		sync:       options.Sync,
		ledger:     options.Ledger,
		mailboxes:  options.Mailboxes,
		clock:      options.Clock,
		log:        options.Log,
		readSecret: readSecret,
		requests:   map[types.UID]mcreconcile.Request{},
		uids:       map[mcreconcile.Request]types.UID{},
		memories:   map[types.UID]*memory{},
		departures: map[types.UID]*departing{},
		departed:   map[types.UID]bool{},
	}
}

// Register adds the controller to the manager.
func (c *Controller) Register() error {
	return mcbuilder.ControllerManagedBy(c.manager).
		Named("synctarget").
		For(&edgev2alpha1.SyncTarget{}, mcbuilder.WithPredicates(heartbeat.Ignored())).
		Watches(inventories.Secret(), func(name multicluster.ClusterName, inventory cluster.Cluster) mchandler.EventHandler {
			return mchandler.EnqueueRequestsFromMapFunc(func(_ context.Context, secret client.Object) []reconcile.Request {
				return c.referTo(secretName{name, client.ObjectKeyFromObject(secret)})
			})(name, inventory)
		}).
		WatchesRawSource(source.TypedKind(c.mailboxes.Provider.GetCache(), &tenancyv1alpha1.Workspace{},
			handler.TypedEnqueueRequestsFromMapFunc(mailbox.SyncTargetOf))).
		WithOptions(controller.TypedOptions[mcreconcile.Request]{
			MaxConcurrentReconciles: workers,
			ReconciliationTimeout:   reconcileTimeout,
			// The manager's own option does not reach it.
			UsePriorityQueue: new(false),
		}).
		WatchesRawSource(source.TypedFunc[mcreconcile.Request](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
			c.lock.Lock()
			defer c.lock.Unlock()
			c.queue, c.running = queue, ctx
			return nil
		})).
		Complete(c)
}

// referTo returns the SyncTargets that refer to a Secret of their workspace.
func (c *Controller) referTo(secret secretName) []reconcile.Request {
	c.lock.Lock()
	defer c.lock.Unlock()
	all := c.referrers.from[secret]
	requests := make([]reconcile.Request, 0, len(all))
	for _, syncTarget := range all {
		requests = append(requests, syncTarget.Request)
	}
	return requests
}

// refer notes to which Secret a SyncTarget refers. That comes before the Secret is looked at, so that no change of it is missed.
func (c *Controller) refer(request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if reference := credentialsOf(syncTarget); reference != nil {
		c.referrers.set(request, secretName{request.ClusterName, types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}})
	} else {
		c.referrers.drop(request)
	}
}

// TargetChanged is called when a connection's health changed.
func (c *Controller) TargetChanged(syncTarget types.UID) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if request, ok := c.requests[syncTarget]; ok && c.queue != nil {
		c.queue.Add(request)
	}
}

// Reconcile brings the connection and the conditions of one SyncTarget in step.
func (c *Controller) Reconcile(ctx context.Context, request mcreconcile.Request) (reconcile.Result, error) {
	if err := c.ledger.Wait(ctx); err != nil {
		return reconcile.Result{}, err
	}
	inventory, err := c.manager.GetCluster(ctx, request.ClusterName)
	if err != nil {
		return reconcile.Result{}, err
	}
	var syncTarget edgev2alpha1.SyncTarget
	if err := inventory.GetClient().Get(ctx, request.NamespacedName, &syncTarget); err != nil {
		if apierrors.IsNotFound(err) {
			c.lose(request)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	if inventories.TooLarge(&syncTarget) != "" {
		// Its mailbox's controller says so. Nothing is stopped by what the hub does not know.
		return reconcile.Result{}, nil
	}
	if syncTarget.DeletionTimestamp != nil {
		c.refer(request, &syncTarget)
		return c.leave(ctx, request, inventory, &syncTarget)
	}
	// Neither a connection nor anything else is spent on a SyncTarget that gets no mailbox.
	switch c.place(request, syncTarget.UID) {
	case mailbox.PlaceUndecided:
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case mailbox.PlaceRefused:
		return c.refuse(ctx, inventory, &syncTarget)
	case mailbox.PlaceTaken:
	}
	c.refer(request, &syncTarget)
	c.see(request, syncTarget.UID)
	return c.tend(ctx, request, inventory, &syncTarget)
}

// tend has a SyncTarget's target synced, or drained, and says how it is.
func (c *Controller) tend(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	memory := c.remember(syncTarget.UID)
	inventoryName := logicalcluster.Name(request.ClusterName)
	found := circumstances{path: c.mailboxes.Path(inventoryName, syncTarget.UID)}
	var err error
	if found.mailbox, err = c.mailboxes.Locate(ctx, inventoryName, syncTarget); err != nil {
		return reconcile.Result{}, err
	}
	trusted := c.expect(syncTarget, memory)
	if found.connection, found.problem, err = c.connect(ctx, inventory, syncTarget, memory); err != nil {
		return reconcile.Result{}, err
	}
	found.trusted = trusted.by(found.connection)
	if err := c.identify(ctx, request, syncTarget, &found, memory); err != nil {
		return reconcile.Result{}, err
	}
	c.engage(request, syncTarget, found)
	drains := syncTarget.Spec.Drain && !syncTarget.Spec.Suspend && found.connection != nil
	if drains {
		found.drain, err = c.depart(ctx, request, inventory, syncTarget, found.connection, departure.Drain)
	} else {
		c.endDeparture(syncTarget.UID)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	c.renew(ctx, inventory, syncTarget, found.connection, memory)
	result, err := c.report(ctx, inventory, syncTarget, found, memory)
	if err == nil && (drains && found.drain == nil || found.rival != nil && found.rival.uid == "") {
		// What the hub has just begun to learn tells no one when it is known.
		result.RequeueAfter = time.Second
	}
	return result, err
}

// place tells whether a SyncTarget gets a mailbox. One that had one does.
func (c *Controller) place(request mcreconcile.Request, syncTarget types.UID) mailbox.Place {
	if c.ledger.Get(syncTarget).Mailbox != "" {
		return mailbox.PlaceTaken
	}
	return c.mailboxes.Places.Of(request, syncTarget)
}

// refuse says that a SyncTarget gets no mailbox.
func (c *Controller) refuse(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	stored := syncTarget.DeepCopy()
	refused := view{now: c.clock.Now()}
	refused.problem = &credentialsError{mailbox.ReasonTooManyMailboxes, c.mailboxes.Places.Refusal()}
	refused.describe(syncTarget, &memory{since: refused.now})
	if apiequality.Semantic.DeepEqual(stored.Status, syncTarget.Status) {
		return reconcile.Result{}, nil
	}
	return patch.Status(ctx, inventory.GetClient(), stored, syncTarget)
}

// engage has a SyncTarget synced, or not. Nothing is written to a cluster before the ledger says which one that is.
func (c *Controller) engage(request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, found circumstances) {
	if found.connection == nil || !found.identified || found.rival != nil || syncTarget.Spec.Suspend || syncTarget.Spec.Drain || found.mailbox == "" {
		c.sync.Unassign(syncTarget.UID)
		return
	}
	// Nothing is to be made while something is still being taken away.
	c.endDeparture(syncTarget.UID)
	c.sync.Assign(assignment(logicalcluster.Name(request.ClusterName), syncTarget, found, c.ledger.Get(syncTarget.UID)))
	c.sync.Resume(syncTarget.UID)
}

// Stop ends everything the hub does for a SyncTarget, and returns when nothing is written to its target any more.
func (c *Controller) Stop(syncTarget types.UID) {
	c.endDeparture(syncTarget)
	c.sync.Unassign(syncTarget)
	c.sync.SetHalt(syncTarget, syncmanager.Halt{})
	c.registry.Disconnect(syncTarget)
	c.lock.Lock()
	delete(c.departed, syncTarget)
	freed := c.claims.drop(syncTarget)
	c.lock.Unlock()
	c.wake(freed)
}

// wake makes the controller look at SyncTargets again.
func (c *Controller) wake(syncTargets []types.UID) {
	for _, syncTarget := range syncTargets {
		c.TargetChanged(syncTarget)
	}
}

// see notes which SyncTarget goes by a name now; another one of that name before it is stopped.
func (c *Controller) see(request mcreconcile.Request, uid types.UID) {
	c.lock.Lock()
	before, ok := c.uids[request]
	c.requests[uid], c.uids[request] = request, uid
	if ok && before != uid {
		delete(c.requests, before)
		delete(c.memories, before)
		forgetInfo(before)
	}
	setInfo(uid, request)
	if c.memories[uid] == nil {
		c.memories[uid] = &memory{since: c.clock.Now()}
	}
	c.lock.Unlock()
	if ok && before != uid {
		c.Stop(before)
	}
}

// lose stops what went by a name that is not seen any more. Nothing is deleted anywhere because of that.
func (c *Controller) lose(request mcreconcile.Request) {
	c.lock.Lock()
	c.referrers.drop(request)
	uid, ok := c.uids[request]
	delete(c.uids, request)
	delete(c.requests, uid)
	delete(c.memories, uid)
	forgetInfo(uid)
	c.lock.Unlock()
	if ok {
		c.Stop(uid)
	}
}

func assignment(inventory logicalcluster.Name, syncTarget *edgev2alpha1.SyncTarget, found circumstances, known ledger.Entry) syncmanager.Target {
	return syncmanager.Target{
		UID:        syncTarget.UID,
		Name:       syncTarget.Name,
		Inventory:  inventory,
		Mailbox:    found.mailbox,
		Connection: found.connection,
		Cordoned:   syncTarget.Spec.Unschedulable,
		Recorded:   syncmanager.FromLedger(known.Resources),
		Adoption:   synchubv1alpha1.AdoptionPolicy(syncTarget.Spec.Adoption),
		Namespaces: syncTarget.Spec.Namespaces,
		Placed:     placedIn(known),
		Limits:     mailboxLimitsOf(syncTarget),
		Trusted:    found.trusted,
	}
}

// credentialsOf returns the reference with its defaults.
func credentialsOf(syncTarget *edgev2alpha1.SyncTarget) *edgev2alpha1.SecretReference {
	if syncTarget.Spec.KubeconfigSecretRef == nil {
		return nil
	}
	reference := *syncTarget.Spec.KubeconfigSecretRef
	if reference.Namespace == "" {
		reference.Namespace = edgev2alpha1.DefaultCredentialNamespace
	}
	if reference.Key == "" {
		reference.Key = edgev2alpha1.DefaultCredentialKey
	}
	return &reference
}

func limitsOf(syncTarget *edgev2alpha1.SyncTarget) kcp.Limits {
	var limits kcp.Limits
	if set := syncTarget.Spec.Limits; set != nil {
		if set.QPS != nil {
			limits.QPS = float32(*set.QPS)
		}
		if set.Burst != nil {
			limits.Burst = int(*set.Burst)
		}
	}
	return limits
}

// namespacesOf returns the namespaces of the target that the SyncTarget binds the hub to, none if it may use any.
func namespacesOf(syncTarget *edgev2alpha1.SyncTarget) []string {
	if syncTarget.Spec.Namespaces == nil {
		return nil
	}
	return syncTarget.Spec.Namespaces.Only
}

// placedIn returns the namespaces in which the hub may have written, the empty one for the whole cluster.
func placedIn(known ledger.Entry) []string {
	placed := slices.Clone(known.Namespaces)
	for i := range placed {
		if placed[i] == ledger.Everywhere {
			placed[i] = metav1.NamespaceAll
		}
	}
	return placed
}

// mailboxLimitsOf returns what the SyncTarget says of how much is held of its mailbox.
func mailboxLimitsOf(syncTarget *edgev2alpha1.SyncTarget) mailboxes.Limits {
	set := syncTarget.Spec.Limits
	if set == nil {
		return mailboxes.Limits{}
	}
	return mailboxes.Limits{Objects: ptr.Deref(set.MailboxObjects, 0), Bytes: ptr.Deref(set.MailboxBytes, 0)}
}
