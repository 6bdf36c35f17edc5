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
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
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

// separator is between the logical cluster and the UID of the SyncTarget in the name of a mailbox, as in KubeStellar.
const separator = "-mb-"

// Name returns the name of a SyncTarget's mailbox workspace.
func Name(inventory logicalcluster.Name, syncTarget types.UID) string {
	return inventory.String() + separator + string(syncTarget)
}

// ParseName returns the parts of the name of a mailbox workspace; ok is false for other workspaces.
func ParseName(name string) (inventory logicalcluster.Name, syncTarget types.UID, ok bool) {
	before, after, found := strings.Cut(name, separator)
	if !found || before == "" || after == "" || strings.Contains(after, separator) {
		return "", "", false
	}
	return logicalcluster.Name(before), types.UID(after), true
}

// OwnerChecker checks that the hub created a workspace. The creator of a workspace is its administrator: in a mailbox that
// another user created, that user would control the target.
type OwnerChecker struct {
	// Ledger has the mailboxes that the hub created earlier, perhaps as another kcp user.
	Ledger *ledger.Store
	// WhoAmI returns the hub's user from kcp.
	WhoAmI func(ctx context.Context) (authenticationv1.UserInfo, error)

	// lastUser is the last result of WhoAmI.
	lastUser atomic.Pointer[authenticationv1.UserInfo]
}

// notOwnedReason returns why the workspace is not one that the hub created for the SyncTarget, or an empty string if it is.
func (m *OwnerChecker) notOwnedReason(ctx context.Context, workspace *tenancyv1alpha1.Workspace, syncTarget types.UID) (string, error) {
	if cluster := workspace.Spec.Cluster; cluster != "" && cluster == m.Ledger.Get(syncTarget).Mailbox {
		return "", nil
	}
	self, err := m.currentUser(ctx, workspace)
	if err != nil || isOwnedBy(workspace, self) {
		return "", err
	}
	return fmt.Sprintf("was made by the user %q, not by the hub, which is %q", workspaceOwner(workspace), self.Username), nil
}

// currentUser returns the hub's user. It calls WhoAmI again if that user does not own the workspace: the hub's credentials
// may have been replaced.
func (m *OwnerChecker) currentUser(ctx context.Context, workspace *tenancyv1alpha1.Workspace) (authenticationv1.UserInfo, error) {
	if self := m.lastUser.Load(); self != nil && isOwnedBy(workspace, *self) {
		return *self, nil
	}
	self, err := m.WhoAmI(ctx)
	if err != nil {
		return self, fmt.Errorf("cannot find out which kcp user the hub is: %w", err)
	}
	m.lastUser.Store(&self)
	return self, nil
}

// isOwnedBy reports whether the user created the workspace. kcp records the owner, except for members of system:masters.
func isOwnedBy(workspace *tenancyv1alpha1.Workspace, self authenticationv1.UserInfo) bool {
	owner := workspaceOwner(workspace)
	return owner != "" && owner == self.Username || owner == "" && slices.Contains(self.Groups, user.SystemPrivilegedGroup)
}

// workspaceOwner returns the name of the user who created the workspace, or an empty string if kcp did not record the
// owner.
func workspaceOwner(workspace *tenancyv1alpha1.Workspace) string {
	var owner authenticationv1.UserInfo
	if err := json.Unmarshal([]byte(workspace.Annotations[tenancyv1alpha1.ExperimentalWorkspaceOwnerAnnotationKey]), &owner); err != nil {
		return ""
	}
	return owner.Username
}
