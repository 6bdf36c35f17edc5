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

// OwnerChecker tells which workspaces the hub made. Whoever made a workspace is its administrator: a mailbox of somebody else would
// give him the target.
type OwnerChecker struct {
	// Ledger knows the mailboxes of former times, whichever kcp user the hub was then.
	Ledger *ledger.Store
	// WhoAmI asks kcp which user the hub is.
	WhoAmI func(ctx context.Context) (authenticationv1.UserInfo, error)

	// lastUser is which user that was last.
	lastUser atomic.Pointer[authenticationv1.UserInfo]
}

// notOwnedReason tells why a workspace is not one that the hub made for the SyncTarget, empty if it is.
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

// currentUser returns the hub's user, and asks again if the workspace is not his: the hub's credentials may have been replaced.
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

// isOwnedBy tells whether a user made the workspace. kcp notes that, but for those whom it lets do anything.
func isOwnedBy(workspace *tenancyv1alpha1.Workspace, self authenticationv1.UserInfo) bool {
	owner := workspaceOwner(workspace)
	return owner != "" && owner == self.Username || owner == "" && slices.Contains(self.Groups, user.SystemPrivilegedGroup)
}

// workspaceOwner returns the name of the user who made a workspace, empty if kcp does not tell.
func workspaceOwner(workspace *tenancyv1alpha1.Workspace) string {
	var owner authenticationv1.UserInfo
	if err := json.Unmarshal([]byte(workspace.Annotations[tenancyv1alpha1.ExperimentalWorkspaceOwnerAnnotationKey]), &owner); err != nil {
		return ""
	}
	return owner.Username
}
