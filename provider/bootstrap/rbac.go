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

package bootstrap

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// hubPolicyRules returns the rules for the hub in the provider workspace. In mailboxes and inventory workspaces the hub uses
// the virtual workspaces of the exports, which the rule on apiexports/content allows.
func hubPolicyRules() []rbacv1.PolicyRule {
	exports := []string{synchubv1alpha1.InventoryExport, synchubv1alpha1.MailboxExport, synchubv1alpha1.WorkloadExport}
	// kcp binds the mailbox export in the name of the hub's user, who owns the mailboxes.
	bound := []string{synchubv1alpha1.InventoryExport, synchubv1alpha1.MailboxExport}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apis.kcp.io"}, Resources: []string{"apiexports"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"apis.kcp.io"}, Resources: []string{"apiexports"}, ResourceNames: exports, Verbs: []string{"update", "patch"}},
		{APIGroups: []string{"apis.kcp.io"}, Resources: []string{"apiexports"}, ResourceNames: bound, Verbs: []string{"bind"}},
		{APIGroups: []string{"apis.kcp.io"}, Resources: []string{"apiexports/content"}, ResourceNames: exports, Verbs: []string{"*"}},
		{APIGroups: []string{"apis.kcp.io"}, Resources: []string{"apiexportendpointslices"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"apis.kcp.io"}, Resources: []string{"apiresourceschemas"}, Verbs: []string{"create", "get", "list", "watch"}},
		{APIGroups: []string{"tenancy.kcp.io"}, Resources: []string{"workspaces"}, Verbs: []string{"create", "get", "list", "watch", "delete"}},
		{APIGroups: []string{"tenancy.kcp.io"}, Resources: []string{"workspacetypes"}, ResourceNames: []string{synchubv1alpha1.WorkspaceType}, Verbs: []string{"use"}},
		{APIGroups: []string{"core.kcp.io"}, Resources: []string{"logicalclusters"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{HashKeySecret}, Verbs: []string{"get"}},
	}
}

func (s *bootstrapper) ensureHubRBAC(ctx context.Context) error {
	if s.HubUser == "" {
		return nil
	}
	if err := s.ensureClusterRole(ctx, hubRole, hubPolicyRules()); err != nil {
		return err
	}
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: s.HubUser}
	if err := s.ensureClusterRoleBinding(ctx, hubRole, hubRole, user); err != nil {
		return err
	}
	if err := s.ensureLedgerRBAC(ctx, user); err != nil {
		return err
	}
	return s.ensureClusterRoleBinding(ctx, hubRole+"-access", accessRole, user)
}

// ensureLedgerRBAC lets the hub's user read and write the ledger.
func (s *bootstrapper) ensureLedgerRBAC(ctx context.Context, user rbacv1.Subject) error {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ledger.Namespace, Name: hubRole}}
	err := createOrUpdate(ctx, s, "Role", role, func(role *rbacv1.Role) {
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get", "list", "watch", "update", "delete"}}}
	})
	if err != nil {
		return err
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ledger.Namespace, Name: hubRole}}
	return createOrUpdate(ctx, s, "RoleBinding", binding, func(binding *rbacv1.RoleBinding) {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: hubRole}
		binding.Subjects = appendIfMissing(binding.Subjects, user)
	})
}

func (s *bootstrapper) ensureInventoryRBAC(ctx context.Context) error {
	return s.ensureBindRBAC(ctx, inventoryRole, synchubv1alpha1.InventoryExport, s.InventoryGroups)
}

func (s *bootstrapper) ensureWorkloadRBAC(ctx context.Context) error {
	return s.ensureBindRBAC(ctx, workloadRole, synchubv1alpha1.WorkloadExport, s.WorkloadGroups)
}

// ensureBindRBAC lets the groups bind the export, by the role.
func (s *bootstrapper) ensureBindRBAC(ctx context.Context, role, export string, groups []string) error {
	if len(groups) == 0 {
		return nil
	}
	if err := s.ensureClusterRole(ctx, role, []rbacv1.PolicyRule{
		{APIGroups: []string{"apis.kcp.io"}, Resources: []string{"apiexports"}, ResourceNames: []string{export}, Verbs: []string{"bind"}},
	}); err != nil {
		return err
	}
	var subjects []rbacv1.Subject
	for _, group := range groups {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	return s.ensureClusterRoleBinding(ctx, role, role, subjects...)
}

func (s *bootstrapper) ensureClusterRole(ctx context.Context, name string, rules []rbacv1.PolicyRule) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return createOrUpdate(ctx, s, "ClusterRole", role, func(role *rbacv1.ClusterRole) { role.Rules = rules })
}

// ensureClusterRoleBinding adds the subjects to the binding; other subjects stay.
func (s *bootstrapper) ensureClusterRoleBinding(ctx context.Context, name, role string, subjects ...rbacv1.Subject) error {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return createOrUpdate(ctx, s, "ClusterRoleBinding", binding, func(binding *rbacv1.ClusterRoleBinding) {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		for _, subject := range subjects {
			binding.Subjects = appendIfMissing(binding.Subjects, subject)
		}
	})
}
