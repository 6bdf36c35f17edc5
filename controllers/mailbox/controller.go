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

package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/watch"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/ledger"
)

const (
	// Finalizer keeps a terminating SyncTarget until the hub has deleted its mailbox, or decided to keep it.
	Finalizer = "synchub.dev/mailbox"
	// WorkspaceType is the name of the workspace type of mailboxes, which is in the provider workspace.
	WorkspaceType = "mailbox"
	// initializationTimeout is how long a mailbox may stay not ready before the condition reports it. kcp takes
	// about a second.
	initializationTimeout = time.Minute
	// requeueInterval is how soon to reconcile a mailbox again that is being deleted or that could not be reconciled.
	requeueInterval = 5 * time.Second
	// accessResyncInterval is how often to compare the bindings in a mailbox with spec.mailboxAccess: bindings are not
	// watched.
	accessResyncInterval = 10 * time.Minute
	// reconcileTimeout is the timeout of one reconcile.
	reconcileTimeout = 2 * time.Minute
	// workers is the number of concurrent reconciles.
	workers = 8
)

// Reasons of the condition MailboxReady.
const (
	ReasonReady        = "Ready"
	ReasonInitializing = "Initializing"
	// ReasonQueued: kcp is initializing as many mailboxes as the hub allows at a time, and this mailbox waits.
	ReasonQueued              = "Queued"
	ReasonInitializationStuck = "InitializationStuck"
	ReasonForeignWorkspace    = "ForeignWorkspace"
	// ReasonWorkspaceDeleted: a user is deleting the mailbox. The hub creates it again afterwards.
	ReasonWorkspaceDeleted = "WorkspaceDeleted"
	// ReasonWorkspaceLost: the mailbox was deleted, and the hub is creating a new one.
	ReasonWorkspaceLost = "WorkspaceLost"
	// ReasonStateLost: the mailbox exists, but the ledger has no entry for the SyncTarget.
	ReasonStateLost = "StateLost"
	// ReasonRemovalBlocked: the SyncTarget is terminating, but the hub cannot delete its mailbox now.
	ReasonRemovalBlocked = "RemovalBlocked"
	// ReasonNamespaceFailed: the mailbox exists, but the hub cannot create its default namespace.
	ReasonNamespaceFailed = "NamespaceFailed"
	// ReasonTooManyMailboxes: the inventory workspace has reached its quota of mailboxes.
	ReasonTooManyMailboxes = "TooManyMailboxes"
	// ReasonTooLarge: the SyncTarget is larger than the hub reads, so the hub ignores it.
	ReasonTooLarge = "TooLarge"
	// ReasonAccessFailed: the hub cannot grant the access in spec.mailboxAccess.
	ReasonAccessFailed = "AccessFailed"
	// ReasonAccessPending: the mailbox exists, but takes long to accept the bindings of spec.mailboxAccess.
	ReasonAccessPending = "AccessPending"
)

// Controller reconciles the mailbox workspaces of SyncTargets.
type Controller struct {
	Options
	creationLimiter *creationLimiter
	// initializationRetries is when to have kcp try again to initialize mailboxes.
	initializationRetries *initializationRetries
	// lanes continue the reconciles of slow mailboxes without one of the shared workers.
	lanes *queue.Lanes[mcreconcile.Request, mcreconcile.Request]
	// accessRetries delays the attempts to grant access by SyncTarget.
	accessRetries workqueue.TypedRateLimiter[types.UID]
}

// Options are the dependencies of a [Controller].
type Options struct {
	// Locator locates the mailboxes in the provider workspace, in which the controller creates them, and has their Quota.
	Locator
	// Export is the name of the APIExport that mailboxes bind, in the provider workspace.
	Export string
	// Inventories is the manager of the inventory workspaces.
	Inventories mcmanager.Manager
	// Ledger records the mailboxes.
	Ledger *ledger.Store
	// StopSync stops all sync controllers of a SyncTarget, and returns after they stopped.
	StopSync func(syncTarget types.UID)
	// IsCleanedUp reports whether the cleanup of a terminating SyncTarget on its target is done.
	IsCleanedUp func(syncTarget types.UID) bool
	// RemoveFinalizers removes the hub's finalizers from the objects in a mailbox.
	RemoveFinalizers func(ctx context.Context, mailbox logicalcluster.Name) error
	// Workspaces are clients for workspaces with the hub's own rights, not through an export.
	Workspaces kcp.WorkspaceClients
	Clock      clock.Clock
}

// New returns a controller that creates mailboxes and records them in the ledger.
func New(options Options) *Controller {
	c := &Controller{
		Options: options, creationLimiter: newCreationLimiter(options.Clock), initializationRetries: newInitializationRetries(options.Clock),
		accessRetries: workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](requeueInterval, accessResyncInterval),
	}
	c.lanes = queue.LanePerKey(inventories.RetryUntilSynced(mcreconcile.NewClusterNotFoundWrapper(c)), reconcileTimeout, options.Clock)
	return c
}

// Register adds the controller and the quota to the manager of the hosting cluster, and the controller to the manager of the inventory
// workspaces.
func (c *Controller) Register(hosting manager.Manager) error {
	return errors.Join(hosting.Add(c.Quota), hosting.Add(c.lanes), mcbuilder.ControllerManagedBy(c.Inventories).
		Named("mailbox").
		For(&edgev2alpha1.SyncTarget{}, mcbuilder.WithPredicates(watch.IgnoreHeartbeats())).
		WatchesRawSource(source.TypedKind(c.Provider.GetCache(), &tenancyv1alpha1.Workspace{},
			handler.TypedEnqueueRequestsFromMapFunc(RequestsForWorkspace))).
		WatchesRawSource(source.TypedFunc[mcreconcile.Request](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
			context.AfterFunc(ctx, activeLimiters.Add(c.creationLimiter))
			c.creationLimiter.setQueue(queue)
			c.Quota.setQueue(queue)
			return nil
		})).
		WithOptions(controller.TypedOptions[mcreconcile.Request]{
			MaxConcurrentReconciles: workers,
			// The priority queue option of the manager has no effect on multicluster controllers.
			UsePriorityQueue: new(false),
		}).
		WatchesRawSource(c.lanes.Source()).
		Complete(c.lanes))
}

// RequestsForWorkspace returns a request for the SyncTarget of a mailbox workspace; none for other workspaces.
func RequestsForWorkspace(_ context.Context, workspace *tenancyv1alpha1.Workspace) []mcreconcile.Request {
	inventory, _, ok := ParseName(workspace.Name)
	name := workspace.Annotations[edgev2alpha1.AnnotationSyncTargetName]
	if !ok || name == "" {
		return nil
	}
	request := mcreconcile.Request{ClusterName: multicluster.ClusterName(inventory)}
	request.Name = name
	return []mcreconcile.Request{request}
}

// Reconcile reconciles the mailbox of one SyncTarget.
func (c *Controller) Reconcile(ctx context.Context, request mcreconcile.Request) (reconcile.Result, error) {
	result, reason, err := c.reconcile(ctx, request)
	if err != nil || !slices.Contains([]string{ReasonQueued, ReasonInitializing, ReasonNamespaceFailed, ReasonWorkspaceLost}, reason) {
		c.endCreation(request, err == nil && reason == ReasonReady)
	}
	if err == nil && reason != ReasonInitializing && reason != ReasonInitializationStuck {
		c.initializationRetries.forget(request)
	}
	return result, err
}

// endCreation ends the creation of a mailbox, so that another one can be created.
func (c *Controller) endCreation(request mcreconcile.Request, isReady bool) {
	if waited, ok := c.creationLimiter.done(request); ok && isReady {
		creationSeconds.Observe(waited.Seconds())
	}
}

// reconcile also returns the reason of the condition MailboxReady, or an empty string if there is none.
func (c *Controller) reconcile(ctx context.Context, request mcreconcile.Request) (result reconcile.Result, reason string, err error) {
	if err := errors.Join(c.Ledger.WaitForLoad(ctx), c.Quota.Wait(ctx)); err != nil {
		return reconcile.Result{}, "", err
	}
	inventory, syncTarget, err := c.get(ctx, request)
	if err != nil || syncTarget == nil {
		return reconcile.Result{}, "", err
	}
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("syncTarget", request.String()))
	if what := inventories.TooLarge(syncTarget); what != "" {
		result, err := c.reportTooLarge(ctx, inventory, syncTarget, what)
		return result, ReasonTooLarge, err
	}
	if syncTarget.DeletionTimestamp != nil {
		c.Quota.cancelReservation(request)
		result, err := c.reconcileDelete(ctx, inventory, syncTarget)
		return result, "", err
	}
	stored := syncTarget.DeepCopy()
	if controllerutil.AddFinalizer(syncTarget, Finalizer) {
		// The update event causes the next reconcile.
		result, err := status.PatchObject(ctx, inventory.GetClient(), stored, syncTarget)
		return result, "", err
	}
	condition, mailbox, err := c.ensureWorkspace(ctx, request, syncTarget)
	if err != nil {
		return reconcile.Result{}, "", err
	}
	if mailbox != nil {
		if err := c.warnStateLost(ctx, inventory.GetClient(), request, syncTarget); err != nil {
			return reconcile.Result{}, "", err
		}
		c.endCreation(request, true)
		var accessCondition *metav1.Condition
		if stored, accessCondition = c.reconcileAccess(ctx, inventory, syncTarget, stored, mailbox); accessCondition != nil {
			condition = *accessCondition
		}
	}
	written, err := c.updateStatus(ctx, inventory, syncTarget, stored, condition, mailbox)
	if err != nil || written.RequeueAfter > 0 {
		return written, condition.Reason, err
	}
	if condition.Reason == ReasonAccessFailed {
		return reconcile.Result{RequeueAfter: c.accessRetries.When(syncTarget.UID)}, condition.Reason, nil
	}
	c.accessRetries.Forget(syncTarget.UID)
	return reconcile.Result{RequeueAfter: c.requeueDelay(condition.Reason, request, syncTarget)}, condition.Reason, nil
}

// requeueDelay returns the delay until the next reconcile without an event, by the reason of the condition;
// zero for none.
func (c *Controller) requeueDelay(reason string, request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget) time.Duration {
	switch reason {
	case ReasonInitializing, ReasonInitializationStuck:
		return c.initializationRetries.next(request)
	case ReasonWorkspaceDeleted, ReasonWorkspaceLost, ReasonNamespaceFailed:
		return requeueInterval
	}
	if len(syncTarget.Spec.MailboxAccess) > 0 || c.Ledger.Get(syncTarget.UID).MailboxBindings {
		return accessResyncInterval
	}
	return 0
}

// get returns the inventory and the SyncTarget of a request. The SyncTarget is nil if it does not exist.
func (c *Controller) get(ctx context.Context, request mcreconcile.Request) (cluster.Cluster, *edgev2alpha1.SyncTarget, error) {
	inventory, err := c.Inventories.GetCluster(ctx, request.ClusterName)
	if err != nil {
		c.Quota.cancelReservation(request)
		return nil, nil, err
	}
	syncTarget := &edgev2alpha1.SyncTarget{}
	err = inventory.GetClient().Get(ctx, request.NamespacedName, syncTarget)
	if apierrors.IsNotFound(err) {
		c.Quota.cancelReservation(request)
		return inventory, nil, nil
	}
	return inventory, syncTarget, err
}

// reportTooLarge sets the condition MailboxReady: the hub ignores the SyncTarget.
func (c *Controller) reportTooLarge(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, what string) (reconcile.Result, error) {
	return c.updateCondition(ctx, inventory, syncTarget, notReady(ReasonTooLarge, "The hub ignores changes of this SyncTarget, and does not remove its finalizer, while %s.", what))
}

// updateCondition sets the condition MailboxReady, and writes the status if that changed the condition.
func (c *Controller) updateCondition(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, condition metav1.Condition) (reconcile.Result, error) {
	stored := syncTarget.DeepCopy()
	condition.Type, condition.ObservedGeneration = edgev2alpha1.ConditionMailboxReady, syncTarget.Generation
	if !meta.SetStatusCondition(&syncTarget.Status.Conditions, condition) {
		return reconcile.Result{}, nil
	}
	return status.Patch(ctx, inventory.GetClient(), stored, syncTarget)
}

// notReady returns the condition MailboxReady with the status False.
func notReady(reason, format string, values ...any) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, values...)}
}

// updateStatus writes the status if it differs from the stored one, with the condition MailboxReady and status.mailbox. It first records an event if a
// mailbox was lost, and updates the ledger.
func (c *Controller) updateStatus(ctx context.Context, inventory cluster.Cluster, syncTarget, stored *edgev2alpha1.SyncTarget, condition metav1.Condition, mailbox *edgev2alpha1.MailboxStatus) (reconcile.Result, error) {
	condition.Type, condition.ObservedGeneration = edgev2alpha1.ConditionMailboxReady, syncTarget.Generation
	meta.SetStatusCondition(&syncTarget.Status.Conditions, condition)
	former := c.Ledger.Get(syncTarget.UID).Mailbox
	if former != "" && (condition.Reason == ReasonWorkspaceLost || mailbox != nil && former != mailbox.Cluster) {
		if err := c.warnWorkspaceLost(ctx, inventory.GetClient(), syncTarget, former); err != nil {
			return reconcile.Result{}, err
		}
	}
	if condition.Reason == ReasonWorkspaceLost || mailbox != nil {
		if err := c.updateLedger(ctx, syncTarget, mailbox); err != nil {
			return reconcile.Result{}, err
		}
	}
	syncTarget.Status.Mailbox = mailbox
	if apiequality.Semantic.DeepEqual(stored.Status, syncTarget.Status) {
		return reconcile.Result{}, nil
	}
	return status.Patch(ctx, inventory.GetClient(), stored, syncTarget)
}

// updateLedger records the mailbox of a SyncTarget in the ledger; nil for none.
func (c *Controller) updateLedger(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, mailbox *edgev2alpha1.MailboxStatus) error {
	return c.Ledger.Update(ctx, syncTarget.UID, func(entry *ledger.Entry) {
		entry.Name, entry.Inventory, entry.Mailbox = syncTarget.Name, logicalcluster.From(syncTarget).String(), ""
		if mailbox != nil {
			entry.Mailbox = mailbox.Cluster
		}
	})
}

// ensureWorkspace creates the mailbox unless it exists. It returns the condition MailboxReady and, once the mailbox is
// ready, its status.
func (c *Controller) ensureWorkspace(ctx context.Context, request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget) (metav1.Condition, *edgev2alpha1.MailboxStatus, error) {
	name := Name(logicalcluster.Name(request.ClusterName), syncTarget.UID)
	var workspace tenancyv1alpha1.Workspace
	err := c.Provider.GetClient().Get(ctx, types.NamespacedName{Name: name}, &workspace)
	if apierrors.IsNotFound(err) {
		if !c.Quota.reserve(request, name, c.Ledger.Get(syncTarget.UID).Mailbox != "") {
			return notReady(ReasonTooManyMailboxes, "%s", c.Quota.ExceededMessage()), nil, nil
		}
		if !c.creationLimiter.acquire(request) {
			return notReady(ReasonQueued, "The hub has kcp prepare at most %d mailboxes at a time; this one waits for its turn.", maxConcurrentCreations), nil, nil
		}
		workspace = c.desiredWorkspace(name, syncTarget.Name)
		err = c.Provider.GetClient().Create(ctx, &workspace)
		if apierrors.IsAlreadyExists(err) {
			// The cache is stale; its event causes the next reconcile.
			return initializingCondition(name), nil, nil
		}
		if err == nil && c.Ledger.Get(syncTarget.UID).Mailbox != "" {
			return notReady(ReasonWorkspaceLost, "The workspace %s was deleted; kcp is preparing a new one.", name), nil, nil
		}
	}
	if err != nil {
		return metav1.Condition{}, nil, fmt.Errorf("cannot ensure the mailbox workspace %s: %w", name, err)
	}
	return c.observeWorkspace(ctx, request, syncTarget, &workspace)
}

// observeWorkspace returns the condition MailboxReady of an existing workspace and, if the mailbox is ready, its status.
func (c *Controller) observeWorkspace(
	ctx context.Context, request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, workspace *tenancyv1alpha1.Workspace,
) (metav1.Condition, *edgev2alpha1.MailboxStatus, error) {
	name := workspace.Name
	why, err := c.foreignReason(ctx, workspace, syncTarget)
	if err != nil {
		return metav1.Condition{}, nil, err
	}
	if why != "" {
		return notReady(ReasonForeignWorkspace, "The workspace %s:%s exists and %s: remove it.", c.Workspace, name, why), nil, nil
	}
	if workspace.DeletionTimestamp != nil {
		if err := c.RemoveFinalizers(ctx, logicalcluster.Name(workspace.Spec.Cluster)); err != nil {
			log.FromContext(ctx).Info("cannot free the objects of a mailbox that is being deleted", "error", err.Error())
		}
		return notReady(ReasonWorkspaceDeleted, "The workspace %s:%s is being deleted. Its objects stay on the target; the hub creates a new workspace afterwards.", c.Workspace, name), nil, nil
	}
	if workspace.Status.Phase == corev1alpha1.LogicalClusterPhaseReady && workspace.Spec.Cluster != "" {
		if err := c.ensureDefaultNamespace(ctx, syncTarget.UID, workspace.Spec.Cluster); err != nil {
			return notReady(ReasonNamespaceFailed, "The namespace default cannot be made in the mailbox %s: %v.", c.workspacePath(name), err), nil, nil
		}
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonReady, Message: fmt.Sprintf("The mailbox is %s.", c.workspacePath(name))},
			&edgev2alpha1.MailboxStatus{Workspace: c.workspacePath(name), Cluster: workspace.Spec.Cluster}, nil
	}
	if workspace.Status.Phase == corev1alpha1.LogicalClusterPhaseInitializing && c.initializationRetries.take(request) {
		c.retryInitialization(ctx, request, logicalcluster.Name(workspace.Spec.Cluster))
	}
	before := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionMailboxReady)
	if c.Clock.Since(c.creationLimiter.markCreating(request)) >= initializationTimeout || before != nil && before.Reason == ReasonInitializationStuck {
		return stuckCondition(c.Workspace+":"+name, workspace.Status.Phase, c.initializationRetries.missing(request)), nil, nil
	}
	return initializingCondition(name), nil, nil
}

// ensureDefaultNamespace creates the namespace default, which users expect, in a new mailbox: kcp creates it only in universal
// workspaces. The ledger has the mailbox after that, so a start of the hub and an older mailbox need no request.
func (c *Controller) ensureDefaultNamespace(ctx context.Context, syncTarget types.UID, mailbox string) error {
	if c.Ledger.Get(syncTarget).Mailbox == mailbox {
		return nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}
	_, err := c.Workspaces.Core.Cluster(logicalcluster.NewPath(mailbox)).Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (c *Controller) desiredWorkspace(name, syncTarget string) tenancyv1alpha1.Workspace {
	return tenancyv1alpha1.Workspace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{edgev2alpha1.AnnotationSyncTargetName: syncTarget}},
		Spec:       tenancyv1alpha1.WorkspaceSpec{Type: &tenancyv1alpha1.WorkspaceTypeReference{Name: WorkspaceType, Path: c.Workspace}},
	}
}

// warnWorkspaceLost records an event that a mailbox was deleted by hand.
func (c *Controller) warnWorkspaceLost(ctx context.Context, inventory client.Client, syncTarget *edgev2alpha1.SyncTarget, former string) error {
	return status.WarnSyncTarget(ctx, inventory, c.Clock.Now(), syncTarget, ReasonWorkspaceLost, fmt.Sprintf(
		"The mailbox %s (%s) was deleted, and the hub creates it again, empty. Objects from it stay on the target until the new mailbox selects them again or the target is drained.",
		c.workspacePath(Name(logicalcluster.From(syncTarget), syncTarget.UID)), former))
}

// warnStateLost records an event if the mailbox of a SyncTarget exists but the ledger has no entry. The hub then cannot
// know whether the cluster behind the kubeconfig is still the same.
func (c *Controller) warnStateLost(ctx context.Context, inventory client.Client, request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget) error {
	if c.Ledger.Get(syncTarget.UID).Mailbox != "" || c.creationLimiter.isCreating(request) {
		return nil
	}
	return status.WarnSyncTarget(ctx, inventory, c.Clock.Now(), syncTarget, ReasonStateLost, fmt.Sprintf(
		"The ledger in the provider workspace has no entry for this SyncTarget, although its mailbox %s exists: the entry was deleted, or not written yet. The hub accepts the cluster that answers now, "+
			"and does not know resources there that nothing selects any more. Check that status.clusterID is the intended cluster, and run `kubectl synchub stale-objects` on other clusters.",
		c.workspacePath(Name(logicalcluster.From(syncTarget), syncTarget.UID))))
}
