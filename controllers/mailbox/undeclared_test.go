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
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func userNamed(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.UserKind, Name: name} }

func clusterBinding(name, role string, labels map[string]string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: subjects,
	}
}

func roleBinding(namespace, name, kind, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: rbacv1.RoleRef{Kind: kind, Name: role}, Subjects: subjects,
	}
}

// The condition names all rights that a subject has in the mailbox, unless the spec declares them.
func TestUndeclaredBindings(t *testing.T) {
	grants := []edgev2alpha1.MailboxAccess{
		{ClusterRole: "view", Subjects: []rbacv1.Subject{userNamed("alice")}}, {ClusterRole: clusterAdmin, Subjects: []rbacv1.Subject{userNamed("root")}},
	}
	for name, c := range map[string]struct {
		binding runtime.Object
		want    string
	}{
		"the hub's own binding":                {clusterBinding("workspace-admin", clusterAdmin, nil, userNamed("hub")), ""},
		"another in the binding of kcp":        {clusterBinding("workspace-admin", clusterAdmin, nil, userNamed("hub"), userNamed("eve")), "ClusterRoleBinding workspace-admin (ClusterRole cluster-admin for User eve)"},
		"declared":                             {clusterBinding("synchub:view", "view", nil, userNamed("alice")), ""},
		"the declared role in a namespace":     {roleBinding("shop", "view", "ClusterRole", "view", userNamed("alice")), ""},
		"a declared subject with another role": {clusterBinding("more", "edit", nil, userNamed("alice")), "ClusterRoleBinding more (ClusterRole edit for User alice)"},
		"a Role with the name of the role":     {roleBinding("shop", "own", "Role", "view", userNamed("alice")), "RoleBinding shop/own (Role view for User alice)"},
		"a role of one who has all":            {roleBinding("shop", "own", "Role", "any", userNamed("root")), ""},
		"a service account":                    {clusterBinding("robot", "edit", nil, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "shop", Name: "robot"}), "ClusterRoleBinding robot (ClusterRole edit for ServiceAccount shop/robot)"},
		"a group with the name of a user":      {clusterBinding("group", "view", nil, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "alice"}), "ClusterRoleBinding group (ClusterRole view for Group alice)"},
		"no subjects":                          {clusterBinding("empty", clusterAdmin, nil), ""},
	} {
		got, err := undeclaredBindings(t.Context(), fake.NewClientset(c.binding).RbacV1(), grants, "hub")
		want := []string{c.want}
		if c.want == "" {
			want = nil
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestUndeclaredAccessIsBounded(t *testing.T) {
	var all []string
	for i := range 500 {
		all = append(all, fmt.Sprintf("ClusterRoleBinding %d (ClusterRole edit for User eve)", i))
	}
	syncTarget := &edgev2alpha1.SyncTarget{}
	setUndeclaredAccess(syncTarget, all)
	condition := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionUndeclaredAccess)
	if condition == nil || condition.Status != metav1.ConditionTrue || len(condition.Message) > 1024 {
		t.Fatalf("%+v", condition)
	}
	setUndeclaredAccess(syncTarget, nil)
	if len(syncTarget.Status.Conditions) > 0 {
		t.Errorf("%+v", syncTarget.Status.Conditions)
	}
}

// A slow mailbox gets one request that fails, not one for each binding. Rights are revoked before new ones are
// granted.
func TestASlowMailboxGetsFewRequests(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	client := fake.NewClientset(clusterBinding("synchub:gone", "gone", map[string]string{edgev2alpha1.LabelMailboxAccess: "true"}, userNamed("eve")))
	var writes []string
	took := time.Duration(0)
	client.PrependReactor("*", "clusterrolebindings", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "list" {
			return false, nil, nil
		}
		writes = append(writes, action.GetVerb())
		clock.SetTime(clock.Now().Add(took))
		return true, nil, context.DeadlineExceeded
	})
	var grants []edgev2alpha1.MailboxAccess
	for i := range 32 {
		grants = append(grants, edgev2alpha1.MailboxAccess{ClusterRole: fmt.Sprint(i), Subjects: []rbacv1.Subject{userNamed("alice")}})
	}
	for name, c := range map[string]struct {
		took  time.Duration
		count int
	}{"slow": {time.Minute, 1}, "fast": {time.Millisecond, 33}} {
		writes, took = nil, c.took
		err := reconcileBindings(t.Context(), clock, client.RbacV1().ClusterRoleBindings(), grants)
		if !errors.Is(err, context.DeadlineExceeded) || len(writes) != c.count || writes[0] != "delete" {
			t.Errorf("%s: %v, %v", name, err, writes)
		}
	}
}
