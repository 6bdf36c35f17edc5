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
	"sync/atomic"

	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/synchub-dev/synchub/provider/ledger"
)

// OwnerChecker checks that the hub created a workspace. The creator of a workspace is its administrator: in a mailbox that
// another user created, that user would control the target.
type OwnerChecker struct {
	// Ledger knows the mailboxes that the hub created earlier, perhaps as another kcp user.
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
