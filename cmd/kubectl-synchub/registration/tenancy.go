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

package registration

import (
	"errors"
	"strings"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
)

// Tenancy is the requested tenancy of a cluster.
type Tenancy struct {
	Namespaces edgev2alpha1.NamespaceTenancy
	// Role is the ClusterRole of the workload workspaces in their namespaces. Without it, the hub writes their objects as itself.
	Role string
}

// Validate returns an error for a tenancy that no SyncTarget can have. namespaces are the requested namespaces of the hub.
func (t *Tenancy) Validate(namespaces []string) error {
	switch {
	case t.Namespaces != edgev2alpha1.NamespacesShared && t.Namespaces != edgev2alpha1.NamespacesPerWorkspace:
		return errors.New("--tenancy: it is Shared or PerWorkspace")
	case t.Namespaces == edgev2alpha1.NamespacesShared && t.Role != "":
		return errors.New("--tenant-role: it needs --tenancy=PerWorkspace")
	case t.Namespaces == edgev2alpha1.NamespacesPerWorkspace && len(namespaces) > 0 && namespaces[0] != AllNamespaces:
		return errors.New("--tenancy=PerWorkspace: the hub creates the namespaces of the workspaces, so it needs rights in the whole cluster: leave out --namespaces, or give '*'")
	default:
		return nil
	}
}

// grants returns what the hub needs permissions for.
func (t *Tenancy) grants() rbac.Tenancy {
	if t.Namespaces != edgev2alpha1.NamespacesPerWorkspace {
		return rbac.Tenancy{}
	}
	return rbac.Tenancy{Role: t.Role, ResourceQuotas: true, LimitRanges: true}
}

// setOn sets the tenancy of a SyncTarget, and keeps the settings that it does not name.
func (t *Tenancy) setOn(syncTarget *edgev2alpha1.SyncTarget) {
	if t.Namespaces != edgev2alpha1.NamespacesPerWorkspace {
		syncTarget.Spec.Tenancy = nil
		return
	}
	tenancy := syncTarget.Spec.Tenancy
	if tenancy == nil {
		tenancy = &edgev2alpha1.Tenancy{}
	}
	tenancy.Namespaces, tenancy.Role = t.Namespaces, t.Role
	switch {
	case t.Role == "":
		tenancy.Identity, tenancy.MailboxIdentity = edgev2alpha1.TenantIdentityHub, edgev2alpha1.MailboxIdentityHub
	case tenancy.Identity != edgev2alpha1.TenantIdentityWorkspace:
		// The hub loses the right to write the objects of the mailbox itself.
		tenancy.Identity, tenancy.MailboxIdentity = edgev2alpha1.TenantIdentityWorkspace, edgev2alpha1.MailboxIdentityMailbox
	}
	syncTarget.Spec.Tenancy = tenancy
}

// formatTenancy returns the value of [tenancyAnnotation]: the tenancy of namespaces, and the ClusterRole after a colon.
func formatTenancy(tenancy rbac.Tenancy) string {
	switch {
	case tenancy == rbac.Tenancy{}:
		return ""
	case tenancy.Role == "":
		return string(edgev2alpha1.NamespacesPerWorkspace)
	default:
		return string(edgev2alpha1.NamespacesPerWorkspace) + ":" + tenancy.Role
	}
}

// parseTenancy parses the format of formatTenancy.
func parseTenancy(text string) rbac.Tenancy {
	namespaces, role, _ := strings.Cut(text, ":")
	return (&Tenancy{edgev2alpha1.NamespaceTenancy(namespaces), role}).grants()
}
