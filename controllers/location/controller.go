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

package location

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/watch"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/topic"
)

const (
	// reconcileTimeout is the timeout of one reconcile, which writes the status of all Locations of a workspace.
	reconcileTimeout = 2 * time.Minute
	// workers is the number of workspaces that are reconciled at once.
	workers = 8
)

// Controller reconciles the Locations of inventory workspaces, all of a workspace at once.
type Controller struct{ options Options }

// Options are the dependencies of a [Controller].
type Options struct {
	// Inventories runs the controller for each inventory workspace.
	Inventories mcmanager.Manager
	// Withdrawals are the pending withdrawals that Locations show; nil has none.
	Withdrawals *findings.Withdrawals
	Clock       clock.Clock
}

// New returns a controller of the Locations in inventory workspaces.
func New(options Options) *Controller { return &Controller{options} }

// Register adds the controller to the manager of the inventory workspaces.
func (c *Controller) Register(hosting manager.Manager) error {
	// A workspace's admission webhook can delay the hub's events.
	slow := queue.LanePerKey(mcreconcile.NewClusterNotFoundWrapper(c), reconcileTimeout, c.options.Clock)
	controller, err := mcbuilder.ControllerManagedBy(c.options.Inventories).
		Named("location").
		Watches(&edgev2alpha1.Location{}, watch.EnqueueInventory).
		Watches(&edgev2alpha1.SyncTarget{}, watch.EnqueueInventory, mcbuilder.WithPredicates(watch.PlacementChanges())).
		WithOptions(controller.TypedOptions[mcreconcile.Request]{
			MaxConcurrentReconciles: workers,
			// The options of the manager have no effect on multicluster controllers.
			UsePriorityQueue:   new(false),
			SkipNameValidation: c.options.Inventories.GetControllerOptions().SkipNameValidation,
		}).
		WatchesRawSource(slow.Source()).
		WatchesRawSource(topic.Source(c.options.Withdrawals.Changes(), func(requests workqueue.TypedRateLimitingInterface[mcreconcile.Request], inventory logicalcluster.Name) {
			requests.Add(watch.InventoryRequest(multicluster.ClusterName(inventory)))
		})).
		Build(slow)
	if err != nil {
		return err
	}
	return errors.Join(hosting.Add(slow), controller.MultiClusterWatch(watch.Engagement()))
}

// Reconcile creates the default Location of a workspace if it has none, and writes the status of all Locations that
// changed. It does nothing until the Locations are cached; [watch.Engagement] then causes another reconcile.
func (c *Controller) Reconcile(ctx context.Context, request mcreconcile.Request) (reconcile.Result, error) {
	inventory, err := c.options.Inventories.GetCluster(ctx, request.ClusterName)
	if err != nil {
		return reconcile.Result{}, err
	}
	var locations edgev2alpha1.LocationList
	var syncTargets edgev2alpha1.SyncTargetList
	err = errors.Join(
		inventory.GetClient().List(ctx, &locations, client.UnsafeDisableDeepCopy),
		inventory.GetClient().List(ctx, &syncTargets, client.UnsafeDisableDeepCopy),
	)
	if errors.Is(err, inventories.ErrNotSynced) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(locations.Items) == 0 {
		return reconcile.Result{}, ensureDefault(ctx, inventory, syncTargets.Items)
	}
	var result reconcile.Result
	var errs []error
	pending := c.options.Withdrawals.Of(logicalcluster.Name(request.ClusterName))
	for i := range locations.Items {
		written, err := c.updateStatus(ctx, inventory.GetClient(), &locations.Items[i], syncTargets.Items, pending[locations.Items[i].Name])
		errs = append(errs, err)
		if written.RequeueAfter > 0 {
			result = written
		}
	}
	return result, errors.Join(errs...)
}

// updateStatus writes the status of a Location if it differs. location belongs to the cache. A Location that
// becomes unusable, or whose copies begin to wait for their withdrawal, also gets an event. The event comes first: after a crash
// the status still differs.
func (c *Controller) updateStatus(ctx context.Context, inventory client.Client, location *edgev2alpha1.Location, syncTargets []edgev2alpha1.SyncTarget, pending []findings.PendingWithdrawal) (reconcile.Result, error) {
	if location.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	now := c.options.Clock.Now()
	changed := location.DeepCopy()
	applyStatus(changed, syncTargets, metav1.NewTime(now))
	applyPending(changed, pending, metav1.NewTime(now))
	if apiequality.Semantic.DeepEqual(location.Status, changed.Status) {
		return reconcile.Result{}, nil
	}
	before, after := readyCondition(location), readyCondition(changed)
	var warned error
	if after.Status == metav1.ConditionFalse && (before == nil || before.Reason != after.Reason || before.Message != after.Message) {
		warned = status.WarnLocation(ctx, inventory, now, location, after.Reason, after.Message)
	}
	if len(pending) > 0 && !meta.IsStatusConditionTrue(location.Status.Conditions, edgev2alpha1.ConditionWithdrawalPending) {
		warned = errors.Join(warned, status.WarnLocation(ctx, inventory, now, location, edgev2alpha1.ConditionWithdrawalPending, pendingMessage(pending)))
	}
	result, err := status.Patch(ctx, inventory, location.DeepCopy(), changed)
	if err != nil {
		err = fmt.Errorf("status of the Location %s: %w", location.Name, err)
	}
	return result, errors.Join(warned, err)
}

func readyCondition(location *edgev2alpha1.Location) *metav1.Condition {
	return meta.FindStatusCondition(location.Status.Conditions, edgev2alpha1.ConditionReady)
}

// ensureDefault creates the default Location in a workspace whose cache shows no Location, if the workspace has a
// SyncTarget. The default Location selects all SyncTargets, so kcp itself must confirm first that no other Location exists
// and that the workspace stays.
func ensureDefault(ctx context.Context, inventory cluster.Cluster, syncTargets []edgev2alpha1.SyncTarget) error {
	if !slices.ContainsFunc(syncTargets, func(s edgev2alpha1.SyncTarget) bool { return s.DeletionTimestamp == nil }) {
		return nil
	}
	terminatingReason, err := mailbox.InventoryTerminating(ctx, inventory)
	if err != nil {
		return fmt.Errorf("cannot find out whether the inventory workspace is being deleted, so it gets no default Location yet: %w", err)
	}
	if terminatingReason != "" {
		log.FromContext(ctx).V(1).Info("no default Location for an inventory workspace: " + terminatingReason)
		return nil
	}
	hasLocation, err := hasLocation(ctx, inventory)
	if err != nil || hasLocation {
		// The cache has not shown that Location yet; its event causes the next reconcile.
		return err
	}
	err = inventory.GetClient().Create(ctx, newDefault())
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create the Location %s: %w", edgev2alpha1.DefaultLocationName, err)
	}
	return nil
}

// newDefault returns the Location of all SyncTargets of a workspace.
func newDefault() *edgev2alpha1.Location {
	return &edgev2alpha1.Location{
		ObjectMeta: metav1.ObjectMeta{Name: edgev2alpha1.DefaultLocationName},
		Spec: edgev2alpha1.LocationSpec{
			Resource:    edgev2alpha1.GroupVersionResource{Group: edgev2alpha1.GroupVersion.Group, Version: edgev2alpha1.GroupVersion.Version, Resource: "synctargets"},
			Description: "All SyncTargets of this workspace. The hub created this Location, since the workspace had none.",
		},
	}
}

// hasLocation reports whether a workspace has a Location, according to kcp itself.
func hasLocation(ctx context.Context, inventory cluster.Cluster) (bool, error) {
	direct, err := dynamic.NewForConfigAndClient(inventory.GetConfig(), inventory.GetHTTPClient())
	if err != nil {
		return false, err
	}
	list, err := direct.Resource(edgev2alpha1.GroupVersion.WithResource("locations")).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, fmt.Errorf("cannot list the Locations of the inventory workspace: %w", err)
	}
	return len(list.Items) > 0, nil
}
