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

package tenancy

import (
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// MailboxAccount is the name of the ServiceAccount for the objects of a mailbox that no placement made. No hash of a workspace is as
// short.
const MailboxAccount = "mailbox"

// userPrefix is the prefix of the users of the ServiceAccounts.
const userPrefix = "system:serviceaccount:" + edgev2alpha1.TenantsNamespace + ":"

// Identities determine who a cluster sees as the author of an object. The zero value is the hub for all objects.
type Identities struct {
	// Workspaces is true if each workload workspace has a ServiceAccount.
	Workspaces bool
	// Mailbox is true if the objects that no placement made have a ServiceAccount.
	Mailbox bool
}

// IdentitiesOf returns the identities of a cluster.
func IdentitiesOf(tenancy *edgev2alpha1.Tenancy) Identities {
	if tenancy == nil || tenancy.Identity != edgev2alpha1.TenantIdentityWorkspace || NamingOf(tenancy).IsShared() {
		return Identities{}
	}
	return Identities{Workspaces: true, Mailbox: tenancy.MailboxIdentity == edgev2alpha1.MailboxIdentityMailbox}
}

// namespaces are written by the hub itself: their labels decide what a workspace may do in them.
var namespaces = schema.GroupResource{Resource: "namespaces"}

// User returns the user that the hub impersonates for the objects of a resource on the cluster; empty for the hub itself. workspace is
// the one of the verified mark of the placement; empty if no placement made the object.
func (i Identities) User(resource schema.GroupResource, workspace logicalcluster.Name) string {
	switch {
	case resource == namespaces:
		return ""
	case workspace != "" && i.Workspaces:
		return userPrefix + WorkspaceHash(workspace)
	case workspace == "" && i.Mailbox:
		return userPrefix + MailboxAccount
	default:
		return ""
	}
}
