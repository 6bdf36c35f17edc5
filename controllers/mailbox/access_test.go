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
	"reflect"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// Bindings with our label become equal to the grants. Other bindings are left alone, even if they have the name of a
// granted one.
func TestReconcileBindings(t *testing.T) { //nolint:gocyclo // one step after the other
	alice := rbacv1.Subject{Kind: rbacv1.UserKind, Name: "alice"}
	robot := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "shop", Name: "robot"}
	plain := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}}
	taken := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "synchub:taken"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}}
	client := fake.NewClientset(plain, taken)
	bindings := client.RbacV1().ClusterRoleBindings()
	names := func() (all []string) {
		list, err := bindings.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, binding := range list.Items {
			all = append(all, binding.Name)
		}
		slices.Sort(all)
		return all
	}
	grants := []edgev2alpha1.MailboxAccess{{ClusterRole: "view", Subjects: []rbacv1.Subject{alice, robot}}, {ClusterRole: "edit", Subjects: []rbacv1.Subject{alice}}}
	if err := reconcileBindings(t.Context(), clock.RealClock{}, bindings, grants); err != nil {
		t.Fatal(err)
	}
	view, err := bindings.Get(t.Context(), "synchub:view", metav1.GetOptions{})
	if err != nil || view.RoleRef.Name != "view" || view.Subjects[0].APIGroup != rbacv1.GroupName || view.Subjects[1].APIGroup != "" {
		t.Errorf("%+v, %v", view, err)
	}
	writes := func() (count int) {
		for _, action := range client.Actions() {
			if action.GetVerb() != "list" && action.GetVerb() != "get" {
				count++
			}
		}
		return count
	}
	before := writes()
	if err := reconcileBindings(t.Context(), clock.RealClock{}, bindings, grants); err != nil || writes() != before {
		t.Errorf("the same again: %v, %d writes", err, writes()-before)
	}
	grants = []edgev2alpha1.MailboxAccess{{ClusterRole: "view", Subjects: []rbacv1.Subject{robot}}}
	if err := reconcileBindings(t.Context(), clock.RealClock{}, bindings, grants); err != nil {
		t.Fatal(err)
	}
	if view, _ = bindings.Get(t.Context(), "synchub:view", metav1.GetOptions{}); len(view.Subjects) != 1 || view.Subjects[0] != robot {
		t.Errorf("after the change: %v", view.Subjects)
	}
	if got := names(); !reflect.DeepEqual(got, []string{"plain", "synchub:taken", "synchub:view"}) {
		t.Errorf("there are %v", got)
	}
	if err := reconcileBindings(t.Context(), clock.RealClock{}, bindings, []edgev2alpha1.MailboxAccess{{ClusterRole: "taken", Subjects: []rbacv1.Subject{alice}}}); err == nil {
		t.Error("a foreign binding was taken over")
	}
	if err := reconcileBindings(t.Context(), clock.RealClock{}, bindings, nil); err != nil {
		t.Fatal(err)
	}
	if got := names(); !reflect.DeepEqual(got, []string{"plain", "synchub:taken"}) {
		t.Errorf("in the end there are %v", got)
	}
}
