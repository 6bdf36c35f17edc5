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

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// bindingPrefix starts the names of the ClusterRoleBindings that grant users access to a mailbox.
const bindingPrefix = "synchub:"

// reconcileAccess grants access to a mailbox by spec.mailboxAccess. It uses the hub's own rights, which the hub has as the creator of the workspace. The export does not suffice:
// most mailboxes have no claim on bindings.
func (c *Controller) reconcileAccess(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, mailbox *edgev2alpha1.MailboxStatus) error {
	granted, grants := c.ledger.Get(syncTarget.UID).MailboxBindings, len(syncTarget.Spec.MailboxAccess) > 0
	if !granted && !grants {
		// The ledger knows that the mailbox has no bindings. A start of the hub therefore needs no request to such
		// mailboxes.
		return nil
	}
	return c.updateAccess(ctx, syncTarget, mailbox, granted, grants)
}

// updateAccess makes the bindings in the mailbox equal to spec.mailboxAccess. It records in the ledger that the mailbox may
// have bindings before it creates the first, and clears the record after it deleted the last.
func (c *Controller) updateAccess(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, mailbox *edgev2alpha1.MailboxStatus, granted, grants bool) error {
	record := func(bindings bool) error {
		return c.ledger.Update(ctx, syncTarget.UID, func(entry *ledger.Entry) { entry.MailboxBindings = bindings })
	}
	if !granted {
		if err := record(true); err != nil {
			return err
		}
	}
	client, err := rbacclient.NewForConfig(c.dependencies.WorkspaceConfig(mailbox.Cluster))
	if err != nil {
		return err
	}
	if err := reconcileBindings(ctx, client.ClusterRoleBindings(), syncTarget.Spec.MailboxAccess); err != nil || grants {
		return err
	}
	return record(false)
}

// reconcileBindings creates, updates and deletes the bindings with our label, so that they equal the grants.
func reconcileBindings(ctx context.Context, client rbacclient.ClusterRoleBindingInterface, grants []edgev2alpha1.MailboxAccess) error {
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: edgev2alpha1.LabelMailboxAccess})
	if err != nil {
		return fmt.Errorf("cannot list the ClusterRoleBindings of the mailbox: %w", err)
	}
	found := map[string]*rbacv1.ClusterRoleBinding{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	var errs []error
	for _, grant := range grants {
		wanted := newBinding(grant)
		current, ok := found[wanted.Name]
		delete(found, wanted.Name)
		switch {
		case !ok:
			_, err = client.Create(ctx, wanted, metav1.CreateOptions{})
		case current.RoleRef != wanted.RoleRef:
			// roleRef is immutable; the next reconcile creates the binding again.
			err = errors.Join(deleteBinding(ctx, client, current), fmt.Errorf("the ClusterRoleBinding %s names another role", wanted.Name))
		case !apiequality.Semantic.DeepEqual(current.Subjects, wanted.Subjects):
			current.Subjects = wanted.Subjects
			_, err = client.Update(ctx, current, metav1.UpdateOptions{})
		default:
			err = nil
		}
		errs = append(errs, err)
	}
	for _, rest := range found {
		errs = append(errs, deleteBinding(ctx, client, rest))
	}
	return errors.Join(errs...)
}

func deleteBinding(ctx context.Context, client rbacclient.ClusterRoleBindingInterface, binding *rbacv1.ClusterRoleBinding) error {
	return crclient.IgnoreNotFound(client.Delete(ctx, binding.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &binding.UID}}))
}

// newBinding returns the desired binding of a grant.
func newBinding(grant edgev2alpha1.MailboxAccess) *rbacv1.ClusterRoleBinding {
	result := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: bindingPrefix + grant.ClusterRole, Labels: map[string]string{edgev2alpha1.LabelMailboxAccess: "true"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: grant.ClusterRole},
	}
	for _, subject := range grant.Subjects {
		if subject.APIGroup == "" && subject.Kind != rbacv1.ServiceAccountKind {
			// The API server defaults the field to this value.
			subject.APIGroup = rbacv1.GroupName
		}
		result.Subjects = append(result.Subjects, subject)
	}
	return result
}
