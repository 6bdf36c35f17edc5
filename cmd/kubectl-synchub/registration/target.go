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
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/notfound"
	"github.com/synchub-dev/synchub/provider/rbac"
)

// Target manages one identity on one target.
type Target struct {
	Identity
	// Client has the administrator's credentials. DryRun is true if the client only sends dry runs.
	Client client.Client
	DryRun bool
	// Report is called for each object with the effect on it. It may be nil.
	Report func(Change)
}

// CurrentGrants returns the present permissions of the identity, or nil if it has no ClusterRole.
func (t *Target) CurrentGrants(ctx context.Context) (*Grants, error) {
	var role rbacv1.ClusterRole
	if err := t.Client.Get(ctx, types.NamespacedName{Name: t.Name()}, &role); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	role.TypeMeta = rbacTypeMeta("ClusterRole")
	if !t.isOurs(&role) {
		return nil, &NotOwnedError{Object: &role}
	}
	listed, options, err := parseGrant(&role)
	if err != nil {
		return nil, err
	}
	found := &Grants{Namespaces: options.Namespaces, Tenancy: options.Tenancy, clusterRules: role.Rules, namespaceRules: map[string][]rbacv1.PolicyRule{}}
	objects, err := t.listNamespacedRoles(ctx)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if role, ok := object.(*rbacv1.Role); ok {
			found.namespaceRules[role.Namespace] = role.Rules
		}
	}
	if len(options.Tenancy.AddedBinding(role.Rules)) > 0 {
		// The annotation records more than the rules allow.
		found.Tenancy = rbac.Tenancy{}
	}
	found.Resources = slices.DeleteFunc(listed, func(one rbac.Resource) bool { return !found.allows(one) })
	return found, nil
}

// listNamespacedRoles returns the identity's RoleBindings and then its Roles, in all namespaces but [Namespace].
func (t *Target) listNamespacedRoles(ctx context.Context) (found []client.Object, err error) {
	for _, list := range []client.ObjectList{&rbacv1.RoleBindingList{}, &rbacv1.RoleList{}} {
		if err := t.Client.List(ctx, list, client.MatchingLabels{managedByLabel: managerName}); err != nil {
			return nil, err
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if object := item.(client.Object); object.GetNamespace() != Namespace && object.GetName() == t.Name() && t.isOurs(object) {
				found = append(found, object)
			}
			return nil
		})
	}
	return found, nil
}

// Ensure creates or updates the identity on the target. It first deletes the permissions in other namespaces. If [Namespace]
// is terminating, for example because its last identity was removed, Ensure waits for its deletion and creates it again. A
// dry run does not wait, and reports the objects that Ensure would create.
func (t *Target) Ensure(ctx context.Context, resources []rbac.Resource, options rbac.Options) error {
	namespaces := options.Namespaces
	if len(options.Tenancy.AccountRules()) > 0 {
		namespaces = append(slices.Clone(namespaces), edgev2alpha1.TenantsNamespace)
	}
	if err := t.deleteNamespacedRolesExcept(ctx, namespaces); err != nil {
		return err
	}
	for {
		err := t.ensureAll(ctx, t.Objects(resources, options))
		if t.DryRun || !isNamespaceMissing(err) {
			return describeTargetError(err)
		}
		if waitErr := t.waitForNamespaceDeletion(ctx); waitErr != nil {
			return errors.Join(describeTargetError(err), waitErr)
		}
	}
}

// deleteNamespacedRolesExcept deletes the identity's Roles and RoleBindings in all namespaces but the given ones.
func (t *Target) deleteNamespacedRolesExcept(ctx context.Context, except []string) error {
	objects, err := t.listNamespacedRoles(ctx)
	if err != nil {
		return describeTargetError(err)
	}
	for _, object := range objects {
		if slices.Contains(except, object.GetNamespace()) {
			continue
		}
		if err := t.remove(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (t *Target) ensureAll(ctx context.Context, objects []client.Object) error {
	for _, desired := range objects {
		change, err := t.ensure(ctx, desired)
		if t.DryRun && desired.GetNamespace() == Namespace && isNamespaceMissing(err) {
			// The dry run did not create the namespace.
			change, err = Change{Object: desired, Result: Created}, nil
		}
		if err != nil {
			return err
		}
		t.report(change)
	}
	return nil
}

func (t *Target) report(change Change) {
	if t.Report != nil {
		t.Report(change)
	}
}

// ensure creates or updates one object of the identity.
func (t *Target) ensure(ctx context.Context, desired client.Object) (Change, error) {
	if _, isNamespace := desired.(*corev1.Namespace); isNamespace {
		return t.ensureNamespace(ctx, desired)
	}
	change, err := apply(ctx, t.Client, desired, t.isOurs)
	if _, isAccount := desired.(*corev1.ServiceAccount); isAccount && err == nil && change.Result == Created && !t.DryRun {
		err = t.markNamespace(ctx, change.Object.GetUID())
	}
	return change, err
}

// getServiceAccount returns the identity's ServiceAccount.
func (t *Target) getServiceAccount(ctx context.Context) (*corev1.ServiceAccount, error) {
	var account corev1.ServiceAccount
	err := t.Client.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: t.Name()}, &account)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the target has no ServiceAccount %s/%s: register the cluster first", Namespace, t.Name())
	}
	if err != nil {
		return nil, describeTargetError(err)
	}
	return &account, nil
}

// requestToken returns a new token of the identity. The target may limit its lifetime.
func (t *Target) requestToken(ctx context.Context, account *corev1.ServiceAccount, lifetime time.Duration) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(lifetime.Seconds()))}}
	if err := t.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("cannot get a token for the ServiceAccount %s: %w", account.Name, describeTargetError(err))
	}
	return request.Status.Token, nil
}

// Kubeconfig returns a kubeconfig for the hub: the current one, if more than half of the lifetime of its token is left,
// or one with a new token.
func (t *Target) Kubeconfig(ctx context.Context, admin *AdminConfig, current []byte, lifetime time.Duration, now time.Time) ([]byte, error) {
	account, err := t.getServiceAccount(ctx)
	if err != nil {
		return nil, err
	}
	if current != nil && admin.isKubeconfigCurrent(current, account, now) {
		return current, nil
	}
	token, err := t.requestToken(ctx, account, lifetime)
	if err != nil {
		return nil, err
	}
	return admin.kubeconfig(token)
}

// RevokeTokens deletes the identity's ServiceAccount, which invalidates all its tokens, and creates it again.
func (t *Target) RevokeTokens(ctx context.Context) error {
	account, err := t.getServiceAccount(ctx)
	if err != nil {
		return err
	}
	if err := t.remove(ctx, account); err != nil {
		return err
	}
	if t.DryRun {
		return nil
	}
	change, err := t.ensure(ctx, t.serviceAccount())
	if err != nil {
		return describeTargetError(err)
	}
	t.report(change)
	return nil
}

// Remove deletes all objects of the identity from the target. It deletes [Namespace], and the namespace of tenants, if a registration or
// the hub created them and they are empty.
func (t *Target) Remove(ctx context.Context) error {
	// In reverse order of creation, so that the permissions are deleted before the ServiceAccount.
	if err := t.deleteNamespacedRolesExcept(ctx, nil); err != nil {
		return err
	}
	objects := t.Objects(nil, rbac.Options{})
	for i := len(objects) - 1; i > 0; i-- {
		if err := t.remove(ctx, objects[i]); err != nil {
			return err
		}
	}
	if err := t.removeNamespace(ctx, edgev2alpha1.TenantsNamespace); err != nil {
		return err
	}
	return t.removeNamespace(ctx, Namespace)
}

// remove deletes an object of the identity, if it exists.
func (t *Target) remove(ctx context.Context, object client.Object) error {
	err := t.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if t.isGone(err, object) {
		return nil
	}
	if err != nil {
		return describeTargetError(err)
	}
	if !t.isOurs(object) {
		return describeTargetError(&NotOwnedError{Object: object})
	}
	uid := object.GetUID()
	if err := t.Client.Delete(ctx, object, client.Preconditions{UID: &uid}); err != nil && !t.isGone(err, object) {
		return describeTargetError(err)
	}
	t.report(Change{Object: object, Result: Deleted})
	return nil
}

// isGone reports whether a target answered that it does not have the object. It is false for a proxy's answer 404.
func (t *Target) isGone(err error, object client.Object) bool {
	kind, unknown := t.Client.GroupVersionKindFor(object)
	if unknown != nil {
		return false
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return notfound.Proves(err, resource.GroupResource(), object.GetName())
}

// describeTargetError wraps an error of the target, and adds advice about a missing permission.
func describeTargetError(err error) error {
	if err == nil {
		return nil
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("on the target the namespace %s is still being removed: try again in a moment: %w", Namespace, err)
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the target does not allow it: %w (use a kubeconfig of an administrator, since users cannot grant permissions that they do not have)", err)
	}
	if _, notOwned := errors.AsType[*NotOwnedError](err); notOwned {
		return fmt.Errorf("on the target %w", err)
	}
	return fmt.Errorf("on the target: %w", err)
}
