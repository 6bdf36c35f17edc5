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
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
)

// reconcileDelete deletes the mailbox of a terminating SyncTarget after the cleanup of the target, and removes
// the finalizer as soon as kcp has accepted the deletion. The SyncTarget does not wait for the end of the
// deletion: while a workspace still has namespaces, kcp doubles its delay each time, up to minutes. Nothing
// uses the name of the workspace again.
func (c *Controller) reconcileDelete(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(syncTarget, Finalizer) {
		return reconcile.Result{}, nil
	}
	terminatingReason, err := InventoryTerminating(ctx, inventory)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot find out whether the inventory workspace itself is being deleted: %w", err)
	}
	switch {
	case terminatingReason != "":
		c.StopSync(syncTarget.UID)
		log.FromContext(ctx).Info("keeping the mailbox of a SyncTarget that goes only because "+terminatingReason, "mailbox", c.Ledger.Get(syncTarget.UID).Mailbox)
	case !c.IsCleanedUp(syncTarget.UID):
		// The status event of the cleanup causes a reconcile, unless the status was written before this hub became the
		// leader.
		return reconcile.Result{RequeueAfter: requeueInterval}, nil
	default:
		name := Name(logicalcluster.From(syncTarget), syncTarget.UID)
		if err := c.deleteWorkspace(ctx, name, syncTarget, syncTarget.Annotations[edgev2alpha1.AnnotationForceRemoval] == "true"); err != nil {
			return c.reportRemovalBlocked(ctx, inventory, syncTarget, name, err)
		}
		if err := c.Ledger.Delete(ctx, syncTarget.UID); err != nil {
			return reconcile.Result{}, err
		}
	}
	stored := syncTarget.DeepCopy()
	controllerutil.RemoveFinalizer(syncTarget, Finalizer)
	return status.PatchObject(ctx, inventory.GetClient(), stored, syncTarget)
}

// reportRemovalBlocked sets the condition MailboxReady: the hub cannot delete the mailbox yet. It returns a requeue.
func (c *Controller) reportRemovalBlocked(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, name string, reason error) (reconcile.Result, error) {
	log.FromContext(ctx).Info("cannot remove a mailbox, will retry", "workspace", name, "error", reason.Error())
	result, err := c.updateCondition(ctx, inventory, syncTarget, notReady(ReasonRemovalBlocked,
		"The SyncTarget waits for its mailbox %s, which cannot be removed: %v. The hub tries again. The annotation %s=true removes both regardless.",
		c.workspacePath(name), reason, edgev2alpha1.AnnotationForceRemoval))
	if err != nil || result.RequeueAfter > 0 {
		return result, err
	}
	return reconcile.Result{RequeueAfter: requeueInterval}, nil
}

// deleteWorkspace removes the hub's finalizers from the objects in the mailbox and deletes the workspace. With forced, it
// deletes the workspace even if the finalizers cannot be removed. It keeps a foreign workspace of the same name.
func (c *Controller) deleteWorkspace(ctx context.Context, name string, syncTarget *edgev2alpha1.SyncTarget, forced bool) error {
	var workspace tenancyv1alpha1.Workspace
	err := c.Provider.GetClient().Get(ctx, types.NamespacedName{Name: name}, &workspace)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot get the mailbox workspace %s: %w", name, err)
	}
	why, err := c.foreignReason(ctx, &workspace, syncTarget)
	if err != nil {
		return err
	}
	if why != "" {
		log.FromContext(ctx).Info("keeping a workspace that has the name of the mailbox of a deleted SyncTarget and "+why, "workspace", name)
		return nil
	}
	if workspace.Spec.Cluster != "" {
		// kcp could never delete objects that still have our finalizer.
		err := c.RemoveFinalizers(ctx, logicalcluster.Name(workspace.Spec.Cluster))
		if err != nil && !forced {
			return fmt.Errorf("cannot free the objects of the mailbox %s: %w", name, err)
		}
		if err != nil {
			log.FromContext(ctx).Info("removing a mailbox by force although its objects were not freed", "workspace", name, "error", err.Error())
		}
	}
	if workspace.DeletionTimestamp != nil {
		return nil
	}
	err = c.Provider.GetClient().Delete(ctx, &workspace, client.Preconditions{UID: &workspace.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete the mailbox workspace %s: %w", name, err)
	}
	return nil
}

// InventoryTerminating returns why the SyncTargets of an inventory workspace are terminating although no user deleted them, or an
// empty string. It reads from kcp, not from a cache: the deletion of a binding makes its SyncTargets terminate, so it precedes
// every event that the hub acts on.
func InventoryTerminating(ctx context.Context, inventory cluster.Cluster) (why string, err error) {
	direct, err := dynamic.NewForConfigAndClient(inventory.GetConfig(), inventory.GetHTTPClient())
	if err != nil {
		return "", err
	}
	logicalClusters := corev1alpha1.SchemeGroupVersion.WithResource("logicalclusters")
	logicalCluster, err := direct.Resource(logicalClusters).Get(ctx, corev1alpha1.LogicalClusterName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot get the inventory's LogicalCluster (is its claim accepted?): %w", err)
	}
	if logicalCluster.GetDeletionTimestamp() != nil {
		return "its workspace is being deleted", nil
	}
	// The virtual workspace shows only bindings of our own export.
	bindings, err := direct.Resource(apisv1alpha2.SchemeGroupVersion.WithResource("apibindings")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot list the inventory's APIBindings: %w", err)
	}
	for i := range bindings.Items {
		if bindings.Items[i].GetDeletionTimestamp() == nil {
			return "", nil
		}
	}
	return "the APIBinding of its workspace is being deleted", nil
}
