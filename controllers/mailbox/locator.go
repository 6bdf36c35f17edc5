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
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// Locator finds the mailbox of a SyncTarget. It relies on the workspace that the hub created, never on the status of the
// SyncTarget, which users of the inventory workspace can write.
type Locator struct {
	// Provider is the provider workspace, and Workspace is its path.
	Provider     cluster.Cluster
	Workspace    string
	OwnerChecker *OwnerChecker
	// Quota limits the number of mailboxes.
	Quota *Quota
}

// Locate returns the logical cluster of a SyncTarget's mailbox, or an empty name while the mailbox is not ready or is
// terminating. inventory is the logical cluster in which kcp shows the SyncTarget.
func (l Locator) Locate(ctx context.Context, inventory logicalcluster.Name, syncTarget *edgev2alpha1.SyncTarget) (logicalcluster.Name, error) {
	name := Name(inventory, syncTarget.UID)
	var workspace tenancyv1alpha1.Workspace
	err := l.Provider.GetClient().Get(ctx, types.NamespacedName{Name: name}, &workspace)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot get the mailbox workspace %s: %w", name, err)
	case workspace.DeletionTimestamp != nil, workspace.Status.Phase != corev1alpha1.LogicalClusterPhaseReady:
		return "", nil
	}
	if why, err := l.foreignReason(ctx, &workspace, syncTarget); why != "" || err != nil {
		return "", err
	}
	return logicalcluster.Name(workspace.Spec.Cluster), nil
}

// Path returns the path of a SyncTarget's mailbox workspace.
func (l Locator) Path(inventory logicalcluster.Name, syncTarget types.UID) string {
	return l.workspacePath(Name(inventory, syncTarget))
}

// workspacePath returns the path of a mailbox workspace.
func (l Locator) workspacePath(name string) string { return l.Workspace + ":" + name }

// foreignReason returns why the workspace is not the mailbox of the SyncTarget, or an empty string if it is.
func (l Locator) foreignReason(ctx context.Context, workspace *tenancyv1alpha1.Workspace, syncTarget *edgev2alpha1.SyncTarget) (string, error) {
	kind := workspace.Spec.Type
	if kind == nil || string(kind.Name) != WorkspaceType || kind.Path != l.Workspace {
		return fmt.Sprintf("is not of type %s:%s", l.Workspace, WorkspaceType), nil
	}
	if annotated := workspace.Annotations[edgev2alpha1.AnnotationSyncTargetName]; annotated != syncTarget.Name {
		return fmt.Sprintf("is annotated for the SyncTarget %q", annotated), nil
	}
	return l.OwnerChecker.notOwnedReason(ctx, workspace, syncTarget.UID)
}
