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
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/watch"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/inventories/parameters"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/topic"
)

// heartbeatInterval is how often the hub writes the heartbeat of a healthy target. A quiet SyncTarget has no other status writes.
const heartbeatInterval = time.Minute

// quotaRetryInterval is how often the hub checks whether the quota has been decided.
const quotaRetryInterval = time.Second

// workers is how many SyncTargets are reconciled at once, in addition to the slow ones: a reconcile waits for
// kcp, for admission webhooks of the inventory and the mailbox, and for sync controllers that stop.
const workers = 32

// Options are the dependencies of a [Controller].
type Options struct {
	Manager  mcmanager.Manager
	Registry *targets.Registry
	Sync     *syncmanager.Manager
	// Ledger is the hub's own record of SyncTargets, and Mailboxes locates the mailboxes that the hub made. Neither is derived from
	// the status of SyncTargets, because users may write that status.
	Ledger    *ledger.Store
	Mailboxes mailbox.Locator

	// Readiness receives which SyncTargets are Ready; it may be nil.
	Readiness *findings.Readiness
	// History reports whether kcp went back to an earlier state; nil means that it did not.
	History *storehistory.Guard
	// Role is the part of the work that this replica does.
	Role leadership.Role
	// OtherOwners is true if replicas other than the leader own SyncTargets. Otherwise they only prepare the
	// SyncTargets, and only the leader needs the results.
	OtherOwners bool

	// Replica is the name of this replica, for status.hub, and Version its version.
	Replica, Version string

	// Tunnel is where clusters open their tunnels; nil if the hub takes none.
	Tunnel *edgev2alpha1.TunnelStatus

	// Journal logs the objects that are removed from targets; nil logs none.
	Journal *status.Journal

	Clock clock.Clock
	Log   logr.Logger
}

// Controller reconciles SyncTargets.
type Controller struct {
	Options
	store *store
	// readSecret reads a Secret from kcp, past the cache. Tests replace it.
	readSecret func(ctx context.Context, inventory cluster.Cluster, key types.NamespacedName) (*corev1.Secret, error)
	prefetch   *secretPrefetch
}

// New returns a controller that connects SyncTargets through options.Registry and assigns them to options.Sync.
func New(options Options) *Controller {
	c := &Controller{Options: options, store: newStore(options.Clock), readSecret: inventories.GetSecret}
	c.prefetch = newSecretPrefetch(options.Clock, c.unreadSecrets)
	return c
}

// Register adds the controller to the manager of the inventory workspaces.
func (c *Controller) Register(hosting manager.Manager) error {
	slow := queue.LanePerKey(inventories.RetryUntilSynced(mcreconcile.NewClusterNotFoundWrapper(c)), reconcileTimeout, c.Clock)
	return errors.Join(hosting.Add(slow), c.watchCounts(hosting), mcbuilder.ControllerManagedBy(c.Manager).
		Named("synctarget").
		For(&edgev2alpha1.SyncTarget{}, mcbuilder.WithPredicates(predicate.Or(watch.IgnoreHeartbeats(), predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(inventories.SecretMetadata(), func(name multicluster.ClusterName, inventory cluster.Cluster) mchandler.EventHandler {
			return mchandler.EnqueueRequestsFromMapFunc(func(_ context.Context, secret client.Object) []reconcile.Request {
				return c.store.requestsForSecret(secretKey{name, client.ObjectKeyFromObject(secret)})
			})(name, inventory)
		}).
		WatchesRawSource(source.TypedKind(c.Mailboxes.Provider.GetCache(), &tenancyv1alpha1.Workspace{},
			handler.TypedEnqueueRequestsFromMapFunc(mailbox.RequestsForWorkspace))).
		WithOptions(controller.TypedOptions[mcreconcile.Request]{
			MaxConcurrentReconciles: workers,
			// The option of the manager does not reach this controller.
			UsePriorityQueue: new(false),
		}).
		WatchesRawSource(source.TypedFunc[mcreconcile.Request](func(ctx context.Context, queue requestQueue) error {
			c.store.start(ctx, queue)
			context.AfterFunc(ctx, runningControllers.Add(c))
			return nil
		})).
		WatchesRawSource(topic.Source(&c.Registry.Changed, c.store.onChanged)).
		WatchesRawSource(topic.Source(&c.Sync.StateChanged, c.store.onChanged)).
		WatchesRawSource(topic.Source(&c.Registry.Unauthorized, c.store.onUnauthorized)).
		// The leader reports exceeded quotas.
		WatchesRawSource(leadership.Source(c.Role.Elected, func(requestQueue) { c.store.enqueueAll() })).
		WatchesRawSource(topic.Source(c.Role.Changed, func(_ requestQueue, changed shards.Set) { c.store.resetShards(changed, c.Role.Owns) })).
		WatchesRawSource(topic.Source(c.Ledger.Changes(), c.store.onChanged)).
		WatchesRawSource(topic.Source(c.History.Changes(), func(requestQueue, struct{}) { c.store.enqueueAll() })).
		WatchesRawSource(slow.Source()).
		Complete(slow))
}

// Reconcile connects one SyncTarget, syncs, drains or cleans up its target, and writes its status, if this replica owns it.
func (c *Controller) Reconcile(ctx context.Context, request mcreconcile.Request) (reconcile.Result, error) {
	inventory, err := c.Manager.GetCluster(ctx, request.ClusterName)
	if err != nil {
		return reconcile.Result{}, err
	}
	var syncTarget edgev2alpha1.SyncTarget
	if err := inventory.GetClient().Get(ctx, request.NamespacedName, &syncTarget); err != nil {
		if apierrors.IsNotFound(err) {
			c.untrack(request)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	if inventories.TooLarge(&syncTarget) != "" {
		// The mailbox controller reports this. The hub does not know the spec of such an object, and must not
		// stop anything because of it.
		return reconcile.Result{}, nil
	}
	// A SyncTarget that is tracked is reconciled again when its owner changes, so it is tracked before the owner is read.
	c.track(request, syncTarget.UID)
	owns := c.Role.Owns(syncTarget.UID)
	if (owns || c.OtherOwners) && !c.Ledger.IsLoaded() {
		if err := c.Ledger.WaitForLoad(ctx); err != nil {
			return reconcile.Result{}, err
		}
		// The SyncTarget may have changed since it was read.
		return c.Reconcile(ctx, request)
	}
	c.History.SetSyncTarget(syncTarget.UID, syncTarget.CreationTimestamp.Time, syncTarget.Annotations[edgev2alpha1.AnnotationConfirmedRestore])
	if !owns {
		return c.reconcileUnowned(ctx, request, inventory, &syncTarget)
	}
	ctx = c.Role.Context(ctx, syncTarget.UID)
	if err := c.takeOver(ctx, syncTarget.UID); err != nil {
		return reconcile.Result{}, err
	}
	if syncTarget.DeletionTimestamp != nil {
		c.store.indexSecret(request, &syncTarget)
		return c.reconcileDelete(ctx, request, inventory, &syncTarget)
	}
	return c.reconcileNormal(ctx, request, inventory, &syncTarget)
}

// reconcileNormal reconciles a SyncTarget that is not being deleted, once it has a mailbox. Without a mailbox
// it gets no connection either, so that it costs nothing.
func (c *Controller) reconcileNormal(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	if c.Ledger.Get(syncTarget.UID).CleanedUp {
		// The former owner has observed the deletion, which this replica's cache does not show yet.
		return reconcile.Result{}, nil
	}
	if granted, result, err := c.awaitQuota(ctx, request, inventory, syncTarget); !granted || err != nil {
		return result, err
	}
	c.store.indexSecret(request, syncTarget)
	return c.reconcileTarget(ctx, request, inventory, syncTarget)
}

// reconcileTarget reconciles a SyncTarget with a mailbox: it connects, identifies the cluster, syncs or drains the target, renews the token
// and writes the status.
func (c *Controller) reconcileTarget(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	state := c.store.stateOf(syncTarget.UID)
	inventoryName := logicalcluster.Name(request.ClusterName)
	observed := observedState{mailboxPath: c.Mailboxes.Path(inventoryName, syncTarget.UID)}
	var err error
	if observed.mailbox, err = c.Mailboxes.Locate(ctx, inventoryName, syncTarget); err != nil {
		return reconcile.Result{}, err
	}
	trusted := c.expectCluster(syncTarget, state)
	if observed.connection, observed.problem, err = c.connect(ctx, inventory, syncTarget, state); err != nil {
		return reconcile.Result{}, err
	}
	observed.trustedUntil = trusted.forConnection(observed.connection)
	if err := c.identifyCluster(ctx, request, syncTarget, &observed, state); err != nil {
		return reconcile.Result{}, err
	}
	c.startOrStopSync(syncTarget, observed)
	isDraining := syncTarget.Spec.Drain && !syncTarget.Spec.Suspend && observed.connection != nil
	if isDraining {
		observed.drain, err = c.startDrain(ctx, request, inventory, syncTarget, observed.connection, cleanup.ModeDrain)
	} else {
		c.store.stopDrain(syncTarget.UID)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	c.renewToken(ctx, inventory, syncTarget, observed.connection, state)
	result, err := c.updateStatus(ctx, inventory, syncTarget, observed, state)
	if err == nil && (isDraining && observed.drain == nil || observed.conflictingTarget != nil && observed.conflictingTarget.uid == "") {
		// No event reports the missing facts, so the SyncTarget is requeued.
		result.RequeueAfter = time.Second
	}
	return result, err
}

// quotaState returns whether the quota grants the SyncTarget a mailbox. A SyncTarget that has had a mailbox keeps it, also while the
// mailbox is created again: its target may have objects.
func (c *Controller) quotaState(request mcreconcile.Request, syncTarget types.UID) mailbox.QuotaState {
	entry := c.Ledger.Get(syncTarget)
	if entry.MayHaveObjects() {
		return mailbox.QuotaGranted
	}
	return c.Mailboxes.Quota.State(request, syncTarget)
}

// awaitQuota reports whether the quota grants the SyncTarget a mailbox. If it does not, it sets the condition.
// The leader requeues a SyncTarget until the quota has decided. The leader also creates the mailbox, and the
// ledger then enqueues the SyncTarget on another replica.
func (c *Controller) awaitQuota(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (granted bool, result reconcile.Result, err error) {
	switch c.quotaState(request, syncTarget.UID) {
	case mailbox.QuotaGranted:
		return true, reconcile.Result{}, nil
	case mailbox.QuotaUndecided:
		if c.Role.Leads() {
			result.RequeueAfter = quotaRetryInterval
		}
		return false, result, nil
	case mailbox.QuotaExceeded:
	}
	stored := syncTarget.DeepCopy()
	view := statusView{now: c.Clock.Now()}
	view.problem = &blocker{mailbox.ReasonTooManyMailboxes, c.Mailboxes.Quota.ExceededMessage()}
	view.apply(syncTarget, &syncTargetState{since: view.now})
	if !apiequality.Semantic.DeepEqual(stored.Status, syncTarget.Status) {
		result, err = c.patchStatus(ctx, inventory, stored, syncTarget)
	}
	return false, result, err
}

// patchStatus writes a status that has changed, and names this replica in it. A status that only names another replica is not written
// again: when replicas change, all SyncTargets would be written at once. Changes of conditions that people ask about later get events.
func (c *Controller) patchStatus(ctx context.Context, inventory cluster.Cluster, stored, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	syncTarget.Status.Hub, syncTarget.Status.HubVersion = c.Replica, c.Version
	// The events come first: after a crash the status still differs.
	c.recordTransitions(ctx, inventory.GetClient(), stored, syncTarget)
	return status.Patch(ctx, inventory.GetClient(), stored, syncTarget)
}

// startOrStopSync starts or stops the sync of the SyncTarget. It starts only for an identified cluster: the
// ledger must contain which cluster the hub writes to before the hub writes there.
func (c *Controller) startOrStopSync(syncTarget *edgev2alpha1.SyncTarget, observed observedState) {
	if observed.connection == nil || !observed.identified || observed.conflictingTarget != nil || syncTarget.Spec.Suspend || syncTarget.Spec.Drain || observed.mailbox == "" {
		c.Sync.StopSync(syncTarget.UID)
		return
	}
	// A drain must have ended before the sync controllers create objects.
	c.store.stopDrain(syncTarget.UID)
	target := targetFor(syncTarget, observed, c.Ledger.Get(syncTarget.UID))
	target.Held = c.History.Holds(syncTarget.UID)
	c.Sync.StartSync(target)
	c.Sync.Resume(syncTarget.UID)
}

// Stop ends all work of the hub for a SyncTarget, and closes its tunnel. It returns once the hub no longer writes to the target.
func (c *Controller) Stop(syncTarget types.UID) {
	c.stopWork(syncTarget)
	c.Registry.RemoveTunnel(syncTarget)
}

// stopWork ends all work of the hub for a SyncTarget, and leaves its tunnel open.
func (c *Controller) stopWork(syncTarget types.UID) {
	c.stopAndDisconnect(syncTarget)
	c.Readiness.Forget(syncTarget)
	c.store.endWork(syncTarget)
}

// stopAndDisconnect ends this replica's work for a SyncTarget. It returns once the replica no longer writes to
// the target.
func (c *Controller) stopAndDisconnect(syncTarget types.UID) {
	c.stopSync(syncTarget)
	c.Registry.Disconnect(syncTarget)
}

// stopSync does the same, except that it leaves the connection.
func (c *Controller) stopSync(syncTarget types.UID) {
	c.store.stopDrain(syncTarget)
	c.Sync.Forget(syncTarget)
}

// track stores the UID of the SyncTarget with the request's name. It drops the former SyncTarget of this name.
func (c *Controller) track(request mcreconcile.Request, syncTarget types.UID) {
	if replaced, ok := c.store.setUID(request, syncTarget); ok {
		c.forget(replaced)
	}
}

// untrack drops the SyncTarget of a name that the cache no longer shows.
func (c *Controller) untrack(request mcreconcile.Request) {
	if syncTarget, ok := c.store.deleteUID(request); ok {
		c.forget(syncTarget)
	}
}

// forget stops all work for a SyncTarget that was deleted, and drops its state. It deletes nothing on the
// target or in kcp.
func (c *Controller) forget(syncTarget types.UID) {
	c.Stop(syncTarget)
	c.store.delete(syncTarget)
	c.History.ForgetSyncTarget(syncTarget)
}

func targetFor(syncTarget *edgev2alpha1.SyncTarget, observed observedState, known ledger.Entry) syncmanager.Target {
	return syncmanager.Target{
		UID: syncTarget.UID, Name: syncTarget.Name, Labels: syncTarget.Labels, Annotations: parameters.Of(syncTarget),
		Mailbox: observed.mailbox, Connection: observed.connection, Cordoned: syncTarget.Spec.Unschedulable,
		Adoption: synchubv1alpha1.AdoptionPolicy(syncTarget.Spec.Adoption), Namespaces: syncTarget.Spec.Namespaces, Limits: mailboxLimitsOf(syncTarget),
		Tenancy:          syncTarget.Spec.Tenancy,
		TenantResources:  known.TenantResources,
		WrittenResources: syncmanager.WrittenResourcesFromLedger(known.Resources), WrittenNamespaces: writtenNamespaces(known), TrustedUntil: observed.trustedUntil,
	}
}

// secretReferenceOf returns the reference to the kubeconfig Secret with its defaults, nil if the SyncTarget has none.
func secretReferenceOf(syncTarget *edgev2alpha1.SyncTarget) *edgev2alpha1.SecretReference {
	if syncTarget.Spec.KubeconfigSecretRef == nil {
		return nil
	}
	reference := *syncTarget.Spec.KubeconfigSecretRef
	reference.Namespace = cmp.Or(reference.Namespace, edgev2alpha1.DefaultCredentialNamespace)
	reference.Key = cmp.Or(reference.Key, edgev2alpha1.DefaultCredentialKey)
	return &reference
}

func limitsOf(syncTarget *edgev2alpha1.SyncTarget) kcp.Limits {
	set := ptr.Deref(syncTarget.Spec.Limits, edgev2alpha1.TargetLimits{})
	return kcp.Limits{QPS: float32(ptr.Deref(set.QPS, 0)), Burst: int(ptr.Deref(set.Burst, 0))}
}

// namespacesOf returns the namespaces of the target to which the SyncTarget restricts the hub; nil without a restriction.
func namespacesOf(syncTarget *edgev2alpha1.SyncTarget) []string {
	if syncTarget.Spec.Namespaces == nil {
		return nil
	}
	return syncTarget.Spec.Namespaces.Only
}

// writtenNamespaces returns the namespaces in which the hub may have written. The empty namespace means the
// whole cluster.
func writtenNamespaces(known ledger.Entry) []string {
	namespaces := slices.Clone(known.Namespaces)
	for i := range namespaces {
		if namespaces[i] == ledger.AllNamespaces {
			namespaces[i] = metav1.NamespaceAll
		}
	}
	return namespaces
}

// mailboxLimitsOf returns the cache limits that the SyncTarget sets for its mailbox. Zero means unset.
func mailboxLimitsOf(syncTarget *edgev2alpha1.SyncTarget) mailboxes.Limits {
	set := ptr.Deref(syncTarget.Spec.Limits, edgev2alpha1.TargetLimits{})
	return mailboxes.Limits{Objects: ptr.Deref(set.MailboxObjects, 0), Bytes: ptr.Deref(set.MailboxBytes, 0)}
}
