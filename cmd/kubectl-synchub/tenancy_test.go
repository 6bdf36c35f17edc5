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

package main

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// tenants tests the rights of the hub on a cluster that workload workspaces share.
func (f *testFleet) tenants(t *testing.T) { //nolint:gocyclo // one registration, in its order
	t.Helper()
	suite.Apply(t, f.Config, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: team}, rules: []}")
	shared := func(more ...string) []string {
		return append(f.with("--tenancy", "PerWorkspace", "--tenant-role", "team"), more...)
	}
	binding := authorizationv1.ResourceAttributes{Group: rbacv1.GroupName, Resource: "clusterroles", Verb: "bind", Name: "team", Namespace: "shop"}
	impersonation := authorizationv1.ResourceAttributes{Resource: "serviceaccounts", Verb: "impersonate", Name: "any", Namespace: edgev2alpha1.TenantsNamespace}
	other := func(attributes authorizationv1.ResourceAttributes, change func(*authorizationv1.ResourceAttributes)) authorizationv1.ResourceAttributes {
		change(&attributes)
		return attributes
	}
	expect := func(when string, isShared bool) {
		t.Helper()
		hub, _ := f.hub(t)
		for name, test := range map[string]struct {
			attributes authorizationv1.ResourceAttributes
			want       bool
		}{
			"bind the ClusterRole":              {binding, isShared},
			"bind another one":                  {other(binding, func(a *authorizationv1.ResourceAttributes) { a.Name = "cluster-admin" }), false},
			"impersonate a workspace":           {impersonation, isShared},
			"impersonate another account":       {other(impersonation, func(a *authorizationv1.ResourceAttributes) { a.Namespace = "kube-system" }), false},
			"impersonate a group":               {authorizationv1.ResourceAttributes{Resource: "groups", Verb: "impersonate", Name: "system:masters"}, false},
			"create RoleBindings":               {authorizationv1.ResourceAttributes{Group: rbacv1.GroupName, Resource: "rolebindings", Verb: "create", Namespace: "shop"}, isShared},
			"create accounts for workspaces":    {authorizationv1.ResourceAttributes{Resource: "serviceaccounts", Verb: "create", Namespace: edgev2alpha1.TenantsNamespace}, isShared},
			"create other accounts":             {authorizationv1.ResourceAttributes{Resource: "serviceaccounts", Verb: "create", Namespace: "shop"}, false},
			"create quotas":                     {authorizationv1.ResourceAttributes{Resource: "resourcequotas", Verb: "create", Namespace: "shop"}, isShared},
			"create ConfigMaps":                 {authorizationv1.ResourceAttributes{Resource: "configmaps", Verb: "create", Namespace: "shop"}, !isShared},
			"read ConfigMaps":                   {authorizationv1.ResourceAttributes{Resource: "configmaps", Verb: "list"}, true},
			"create namespaces":                 {authorizationv1.ResourceAttributes{Resource: "namespaces", Verb: "create"}, true},
			"create Roles":                      {authorizationv1.ResourceAttributes{Group: rbacv1.GroupName, Resource: "roles", Verb: "create", Namespace: "shop"}, false},
			"create ClusterRoleBindings":        {authorizationv1.ResourceAttributes{Group: rbacv1.GroupName, Resource: "clusterrolebindings", Verb: "create"}, false},
			"change a Role of the own identity": {authorizationv1.ResourceAttributes{Group: rbacv1.GroupName, Resource: "roles", Verb: "patch", Namespace: edgev2alpha1.TenantsNamespace}, false},
		} {
			if got := allowed(t, hub, test.attributes); got != test.want {
				t.Errorf("%s: it may %s: %v", when, name, got)
			}
		}
		tenancy := f.syncTarget(t).Spec.Tenancy
		if (tenancy != nil) != isShared || isShared && (tenancy.Role != "team" || tenancy.Identity != edgev2alpha1.TenantIdentityWorkspace || tenancy.MailboxIdentity != edgev2alpha1.MailboxIdentityMailbox) {
			t.Errorf("%s: spec.tenancy is %+v", when, tenancy)
		}
	}
	fail(t, "--tenancy: it is Shared or PerWorkspace", f.with("--tenancy", "perworkspace")...)
	fail(t, "--tenant-role: it needs --tenancy=PerWorkspace", f.with("--tenant-role", "team")...)
	fail(t, "--tenant-role: it needs --tenancy=PerWorkspace", f.with("--tenant-role", "team", "--tenancy", "Shared")...)
	fail(t, "leave out --namespaces", shared("--namespaces", "shop")...)
	fail(t, `the target has no ClusterRole "missing"`, f.with("--tenancy", "PerWorkspace", "--tenant-role", "missing")...)

	succeed(t, f.with("--resources", "configmaps")...)
	expect("at first", false)
	fail(t, "would grow by: ", shared()...)
	expect("without a confirmation", false)
	if got := succeed(t, shared("--yes")...); !strings.Contains(got.errs, "Workspaces get the ClusterRole team in their own namespaces.") {
		t.Errorf("it prints\n%s", got.errs)
	}
	expect("shared", true)
	if got := succeed(t, f.with()...); strings.Contains(got.out, " configured\n") || strings.Contains(got.out, " created\n") {
		t.Errorf("a second run changes something:\n%s", got.out)
	}
	expect("as before", true)

	// Somebody who can annotate the ClusterRole gets nothing by that.
	var role rbacv1.ClusterRole
	if err := f.admin.Get(t.Context(), types.NamespacedName{Name: f.name}, &role); err != nil {
		t.Fatal(err)
	}
	role.Annotations["synchub.dev/tenancy"] = "PerWorkspace:cluster-admin"
	if err := f.admin.Update(t.Context(), &role); err != nil {
		t.Fatal(err)
	}
	fail(t, "would grow by: ", f.with()...)
	expect("with a changed annotation", true)

	succeed(t, shared("--resources", "configmaps", "--yes")...)
	expect("again", true)
	succeed(t, f.with("--tenancy", "Shared", "--yes")...)
	expect("not shared any more", false)
	succeed(t, shared("--yes")...)
	foreign := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: edgev2alpha1.TenantsNamespace, Name: "another-hub"}}
	if err := f.admin.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	isTerminating := func() bool {
		var namespace corev1.Namespace
		err := f.admin.Get(t.Context(), types.NamespacedName{Name: edgev2alpha1.TenantsNamespace}, &namespace)
		return apierrors.IsNotFound(err) || namespace.DeletionTimestamp != nil
	}
	succeed(t, "unregister", "florin", "--target-kubeconfig", f.Kubeconfig, "--yes")
	err := f.admin.Get(t.Context(), types.NamespacedName{Namespace: edgev2alpha1.TenantsNamespace, Name: f.name}, &rbacv1.Role{})
	if !apierrors.IsNotFound(err) || isTerminating() {
		t.Errorf("a Role is left, or the namespace with the Role of another hub is gone: %v", err)
	}
	// The target has no controllers, which would end the other namespace.
	f.endNamespace(t)
	f.awaitRefusal(t)
	succeed(t, shared("--yes")...)
	if err := f.admin.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	if succeed(t, "unregister", "florin", "--target-kubeconfig", f.Kubeconfig, "--yes"); !isTerminating() {
		t.Error("the empty namespace of tenants stays")
	}
}
