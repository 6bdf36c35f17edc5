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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/utils/clock"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// bindingPrefix starts the names of the ClusterRoleBindings that grant users access to a mailbox.
const bindingPrefix = "synchub:"

const (
	// slowAccess is after which time the hub reports that a mailbox has not accepted its bindings.
	slowAccess = 3 * time.Second
	// RequestTimeout bounds one request to a mailbox. It is longer than the 30 seconds that an admission webhook may take.
	RequestTimeout = 40 * time.Second
)

// reconcileAccess grants access to a mailbox by spec.mailboxAccess, and sets the condition UndeclaredAccess. It
// uses the hub's own rights as the creator of the workspace, because most mailboxes have no claim on bindings,
// so the export does not suffice. It returns the condition MailboxReady unless the access is in effect, and the
// SyncTarget as it is now stored: a slow mailbox is reported before it has responded.
func (c *Controller) reconcileAccess(
	ctx context.Context, inventory cluster.Cluster, syncTarget, stored *edgev2alpha1.SyncTarget, mailbox *edgev2alpha1.MailboxStatus,
) (*edgev2alpha1.SyncTarget, *metav1.Condition) {
	if !c.Ledger.Get(syncTarget.UID).MailboxBindings && len(syncTarget.Spec.MailboxAccess) == 0 {
		// The ledger records that the mailbox has no bindings. So the hub needs no request to such mailboxes when it starts.
		meta.RemoveStatusCondition(&syncTarget.Status.Conditions, edgev2alpha1.ConditionUndeclaredAccess)
		return stored, nil
	}
	spec, done := syncTarget.DeepCopy(), make(chan accessOutcome, 1)
	go func() {
		undeclared, err := c.updateAccess(ctx, spec, mailbox)
		done <- accessOutcome{undeclared, err}
	}()
	var outcome accessOutcome
	for isReported, isDone := false, false; !isDone; {
		wait := c.Clock.After(slowAccess)
		if isReported {
			wait = nil
		}
		select {
		case outcome = <-done:
			isDone = true
		case <-wait:
			stored, isReported = c.reportSlowAccess(ctx, inventory, syncTarget, mailbox)
		}
	}
	if outcome.err != nil {
		return stored, new(notReady(ReasonAccessFailed, "spec.mailboxAccess cannot be put into effect: %v.", outcome.err))
	}
	setUndeclaredAccess(syncTarget, outcome.undeclared)
	return stored, nil
}

// reportSlowAccess writes the condition MailboxReady of a mailbox that has not responded yet. It returns the
// SyncTarget as it is now stored; ok is false if another writer was faster.
func (c *Controller) reportSlowAccess(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, mailbox *edgev2alpha1.MailboxStatus) (stored *edgev2alpha1.SyncTarget, ok bool) {
	// The SyncTarget may have changed since the reconcile began.
	if err := inventory.GetClient().Get(ctx, crclient.ObjectKeyFromObject(syncTarget), syncTarget); err != nil {
		return syncTarget.DeepCopy(), false
	}
	condition := notReady(ReasonAccessPending, "The mailbox %s exists, but spec.mailboxAccess is not in effect yet: the mailbox has not accepted the bindings within %s. An admission webhook in the mailbox may be slow.", mailbox.Workspace, slowAccess)
	result, err := c.updateStatus(ctx, inventory, syncTarget, syncTarget.DeepCopy(), condition, mailbox)
	return syncTarget.DeepCopy(), err == nil && result.RequeueAfter == 0
}

// accessOutcome is the result of updateAccess.
type accessOutcome struct {
	undeclared []string
	err        error
}

// updateAccess makes the bindings in the mailbox equal to spec.mailboxAccess, and returns the other bindings there. It records in the
// ledger that the mailbox may have bindings before it creates the first, and clears the record when there are none.
func (c *Controller) updateAccess(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, mailbox *edgev2alpha1.MailboxStatus) (undeclared []string, err error) {
	record := func(bindings bool) error {
		return c.Ledger.Update(ctx, syncTarget.UID, func(entry *ledger.Entry) { entry.MailboxBindings = bindings })
	}
	if !c.Ledger.Get(syncTarget.UID).MailboxBindings {
		if err := record(true); err != nil {
			return nil, err
		}
	}
	client := c.Workspaces.RBAC.Cluster(logicalcluster.NewPath(mailbox.Cluster))
	grants := syncTarget.Spec.MailboxAccess
	if err := reconcileBindings(ctx, c.Clock, client.ClusterRoleBindings(), grants); err != nil {
		return nil, err
	}
	owner, err := c.mailboxOwner(ctx, syncTarget)
	if err != nil {
		return nil, err
	}
	undeclared, err = undeclaredBindings(ctx, client, grants, owner)
	if err != nil || len(grants) > 0 || len(undeclared) > 0 {
		return undeclared, err
	}
	return nil, record(false)
}

// mailboxOwner returns the kcp user who made the mailbox, which is the hub.
func (c *Controller) mailboxOwner(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) (string, error) {
	var workspace tenancyv1alpha1.Workspace
	if err := c.Provider.GetClient().Get(ctx, types.NamespacedName{Name: Name(logicalcluster.From(syncTarget), syncTarget.UID)}, &workspace); err != nil {
		return "", fmt.Errorf("cannot get the mailbox workspace: %w", err)
	}
	return workspaceOwner(&workspace), nil
}

// reconcileBindings deletes, creates and updates the bindings with our label, so that they equal the grants. It
// revokes rights first. After a failure that took long it sends no further request: each may take as long.
func reconcileBindings(ctx context.Context, clock clock.PassiveClock, client rbacclient.ClusterRoleBindingInterface, grants []edgev2alpha1.MailboxAccess) error {
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: edgev2alpha1.LabelMailboxAccess})
	if err != nil {
		return fmt.Errorf("cannot list the ClusterRoleBindings of the mailbox: %w", err)
	}
	found := map[string]*rbacv1.ClusterRoleBinding{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	var writes []func() error
	for _, grant := range grants {
		wanted := newBinding(grant)
		current := found[wanted.Name]
		delete(found, wanted.Name)
		writes = append(writes, func() error { return ensureBinding(ctx, client, current, wanted) })
	}
	deletes := make([]func() error, 0, len(found)+len(writes))
	for _, rest := range found {
		deletes = append(deletes, func() error { return deleteBinding(ctx, client, rest) })
	}
	var errs []error
	for _, write := range append(deletes, writes...) {
		startedAt := clock.Now()
		err := write()
		errs = append(errs, err)
		if err != nil && clock.Since(startedAt) >= slowAccess {
			break
		}
	}
	return errors.Join(errs...)
}

// ensureBinding makes a binding as wanted; current is nil if it does not exist.
func ensureBinding(ctx context.Context, client rbacclient.ClusterRoleBindingInterface, current, wanted *rbacv1.ClusterRoleBinding) (err error) {
	switch {
	case current == nil:
		_, err = client.Create(ctx, wanted, metav1.CreateOptions{})
	case current.RoleRef != wanted.RoleRef:
		// roleRef is immutable; the next reconcile creates the binding again.
		err = errors.Join(deleteBinding(ctx, client, current), fmt.Errorf("the ClusterRoleBinding %s names another role", wanted.Name))
	case !apiequality.Semantic.DeepEqual(current.Subjects, wanted.Subjects):
		changed := current.DeepCopy()
		changed.Subjects = wanted.Subjects
		_, err = client.Update(ctx, changed, metav1.UpdateOptions{})
	}
	return err
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
