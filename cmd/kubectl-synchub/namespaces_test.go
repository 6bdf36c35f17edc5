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
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/test/framework/suite"
)

// bounds tests a registration for namespaces: from the whole cluster to one namespace, to another, back, and its
// removal.
func (f *testFleet) bounds(t *testing.T) {
	t.Helper()
	suite.Apply(t, f.Config, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: till}}")
	within := func(namespaces string, more ...string) []string {
		return append(f.with("--namespaces", namespaces), more...)
	}
	expect := func(when string, only []string, shop, till, everywhere bool) {
		t.Helper()
		hub, _ := f.hub(t)
		for namespace, want := range map[string]bool{"shop": shop, "till": till, "": everywhere} {
			for _, verb := range []string{"create", "list"} {
				if got := allowed(t, hub, authorizationv1.ResourceAttributes{Namespace: namespace, Resource: "configmaps", Verb: verb}); got != want {
					t.Errorf("%s: to %s ConfigMaps in %q is allowed: %v", when, verb, namespace, got)
				}
			}
			var role rbacv1.Role
			err := f.admin.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: f.name}, &role)
			if isThere := namespace != "" && want && !everywhere; namespace != "" && apierrors.IsNotFound(err) == isThere {
				t.Errorf("%s: the Role of %s: %v", when, namespace, err)
			}
		}
		var has []string
		if bounds := f.syncTarget(t).Spec.Namespaces; bounds != nil {
			has = bounds.Only
		}
		if !slices.Equal(has, only) {
			t.Errorf("%s: spec.namespaces.only is %v", when, has)
		}
	}
	fail(t, `--namespaces: the target has no namespace "none"`, within("shop,none")...)
	fail(t, "--namespaces: kube-system is protected", within("kube-system")...)
	fail(t, `--namespaces: "*" is not the name`, within("shop,*")...)
	fail(t, "namespaces: its objects are in no namespace", within("shop", "--resources", "namespaces")...)

	succeed(t, f.with("--resources", "configmaps")...)
	expect("as ever", nil, true, true, true)
	succeed(t, within("shop")...)
	expect("in one", []string{"shop"}, true, false, false)
	fail(t, "would grow by: configmaps (create, delete, get, list, patch, watch) in the namespace till", within("till")...)
	expect("in another that nobody confirmed", []string{"shop"}, true, false, false)
	fail(t, "widgets.example.com: the target does not serve it", f.with("--add-resources", "widgets.example.com")...)
	succeed(t, within("till", "--yes")...)
	expect("in another", []string{"till"}, false, true, false)
	succeed(t, f.with()...)
	expect("as before", []string{"till"}, false, true, false)
	succeed(t, within("shop,till", "--yes")...)
	if err := f.admin.Delete(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: f.name}}); err != nil {
		t.Fatal(err)
	}
	succeed(t, f.with("--yes")...)
	expect("after the rights in one were lost", []string{"shop", "till"}, true, true, false)
	if hub, _ := f.hub(t); allowed(t, hub, authorizationv1.ResourceAttributes{Namespace: "till", Resource: "secrets", Verb: "get"}) {
		t.Error("after the rights in one were lost there are others")
	}
	succeed(t, within("*", "--yes")...)
	expect("everywhere again", nil, true, true, true)
	succeed(t, within("till")...)
	succeed(t, "unregister", "florin", "--target-kubeconfig", f.Kubeconfig, "--yes")
	var role rbacv1.Role
	if err := f.admin.Get(t.Context(), types.NamespacedName{Namespace: "till", Name: f.name}, &role); !apierrors.IsNotFound(err) {
		t.Errorf("a Role is left: %v", err)
	}
	if versions := f.versions(t); len(versions) > 0 {
		t.Errorf("%d objects are left", len(versions))
	} // Other tests create the namespace of the identities again.
	f.endNamespace(t)
	f.awaitRefusal(t)
}
