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
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/provider/wording"
)

const (
	// ReasonUndeclaredBindings: the mailbox has bindings for subjects and roles that spec.mailboxAccess does not name.
	ReasonUndeclaredBindings = "UndeclaredBindings"
	// clusterAdmin is the role that includes all other roles.
	clusterAdmin = "cluster-admin"
	// maxNamedBindings is how many bindings a message names.
	maxNamedBindings = 5
	// maxReadBindings bounds how many bindings of a kind the hub reads in a mailbox.
	maxReadBindings = 2000
	bindingsPage    = 500
)

// setUndeclaredAccess sets or removes the condition UndeclaredAccess. undeclared describes the bindings.
func setUndeclaredAccess(syncTarget *edgev2alpha1.SyncTarget, undeclared []string) {
	message := fmt.Sprintf("%d role bindings of the mailbox are not declared by spec.mailboxAccess, and stay when it changes. Delete those that must not exist, or declare them: %s",
		len(undeclared), wording.FirstClauses(maxNamedBindings, undeclared))
	status.SetConditionIf(len(undeclared) > 0, &syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionUndeclaredAccess, Reason: ReasonUndeclaredBindings, ObservedGeneration: syncTarget.Generation, Message: status.Truncate(message + "."),
	})
}

// undeclaredBindings describes the bindings of a mailbox that give a subject other rights than the grants. owner is the hub's own user.
func undeclaredBindings(ctx context.Context, client rbacclient.RbacV1Interface, grants []edgev2alpha1.MailboxAccess, owner string) (undeclared []string, err error) {
	declared := declaredAccess(grants, owner)
	err = forEachPage(ctx, func(options metav1.ListOptions) (next string, count int, err error) {
		list, err := client.ClusterRoleBindings().List(ctx, options)
		if err != nil {
			return "", 0, fmt.Errorf("cannot list the ClusterRoleBindings of the mailbox: %w", err)
		}
		for i := range list.Items {
			one := &list.Items[i]
			undeclared = declared.appendOthers(undeclared, "ClusterRoleBinding "+one.Name, one.RoleRef, one.Subjects)
		}
		return list.Continue, len(list.Items), nil
	})
	if err != nil {
		return nil, err
	}
	err = forEachPage(ctx, func(options metav1.ListOptions) (next string, count int, err error) {
		list, err := client.RoleBindings(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return "", 0, fmt.Errorf("cannot list the RoleBindings of the mailbox: %w", err)
		}
		for i := range list.Items {
			one := &list.Items[i]
			undeclared = declared.appendOthers(undeclared, "RoleBinding "+one.Namespace+"/"+one.Name, one.RoleRef, one.Subjects)
		}
		return list.Continue, len(list.Items), nil
	})
	slices.Sort(undeclared)
	return undeclared, err
}

// forEachPage lists in pages, up to maxReadBindings objects.
func forEachPage(ctx context.Context, list func(metav1.ListOptions) (next string, count int, err error)) error {
	options, read := metav1.ListOptions{Limit: bindingsPage}, 0
	for read < maxReadBindings && ctx.Err() == nil {
		next, count, err := list(options)
		if err != nil || next == "" {
			return err
		}
		options.Continue, read = next, read+count
	}
	return ctx.Err()
}

// access is a role of a subject.
type access struct {
	kind, namespace, name string
	role                  string
}

// declared is the access that the SyncTarget declares.
type declared map[access]struct{}

func declaredAccess(grants []edgev2alpha1.MailboxAccess, owner string) declared {
	all := declared{}
	// kcp makes the owner of a workspace its administrator.
	all[access{kind: rbacv1.UserKind, name: owner, role: clusterAdmin}] = struct{}{}
	for _, grant := range grants {
		for _, subject := range grant.Subjects {
			all[access{subject.Kind, subject.Namespace, subject.Name, grant.ClusterRole}] = struct{}{}
		}
	}
	return all
}

// has reports whether the subject has the role by declaration, or all rights.
func (d declared) has(subject rbacv1.Subject, role string) bool {
	of := access{subject.Kind, subject.Namespace, subject.Name, clusterAdmin}
	if _, ok := d[of]; ok {
		return true
	}
	of.role = role
	_, ok := d[of]
	return ok && role != ""
}

// appendOthers appends a description of a binding if it gives a subject undeclared rights.
func (d declared) appendOthers(undeclared []string, name string, role rbacv1.RoleRef, subjects []rbacv1.Subject) []string {
	clusterRole := ""
	if role.Kind == "ClusterRole" {
		clusterRole = role.Name
	}
	var others []string
	for _, subject := range subjects {
		if d.has(subject, clusterRole) {
			continue
		}
		others = append(others, subject.Kind+" "+strings.TrimPrefix(subject.Namespace+"/"+subject.Name, "/"))
	}
	if len(others) == 0 {
		return undeclared
	}
	return append(undeclared, fmt.Sprintf("%s (%s %s for %s)", name, role.Kind, role.Name, wording.First(maxNamedBindings, others)))
}
