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
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/rbac"
)

const (
	// namespaceDeletionTimeout is how long the end of the namespace is waited for, endInterval how often it is looked for.
	namespaceDeletionTimeout      = time.Minute
	namespaceDeletionPollInterval = 500 * time.Millisecond
)

// Target is the administrator's side of a registration: one identity on one target.
type Target struct {
	Identity
	// Client is the administrator's. One that only makes dry runs is told so by DryRun.
	Client client.Client
	DryRun bool
	// Report is told of every object that was made sure of. It may be nil.
	Report func(Change)
}

// CurrentGrants returns what the identity was last given, nil if it has no ClusterRole.
func (t *Target) CurrentGrants(ctx context.Context) (*Grants, error) {
	var role rbacv1.ClusterRole
	if err := t.Client.Get(ctx, types.NamespacedName{Name: t.Name()}, &role); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !t.isOurs(&role) {
		role.TypeMeta = rbacTypeMeta("ClusterRole")
		return nil, &NotOwnedError{Object: &role}
	}
	found := &Grants{clusterRules: role.Rules, namespaceRules: map[string][]rbacv1.PolicyRule{}}
	if text := role.Annotations[namespacesAnnotation]; text != "" {
		found.Namespaces = strings.Split(text, ",")
	}
	restrictions, err := t.listNamespacedRoles(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range restrictions {
		if own, ok := one.(*rbacv1.Role); ok {
			found.namespaceRules[own.Namespace] = own.Rules
		}
	}
	if text := role.Annotations[resourcesAnnotation]; text != "" {
		listed, err := rbac.ParseResources(strings.Split(text, ","))
		if err != nil {
			return nil, fmt.Errorf("the annotation %s of the ClusterRole %s: %w", resourcesAnnotation, role.Name, err)
		}
		found.Resources = slices.DeleteFunc(listed, func(one rbac.Resource) bool { return !found.allows(one) })
	}
	return found, nil
}

// listNamespacedRoles returns the identity's Roles and their bindings in all namespaces but its own, the bindings first.
func (t *Target) listNamespacedRoles(ctx context.Context) ([]client.Object, error) {
	var found []client.Object
	take := func(object client.Object, kind string) {
		if object.GetNamespace() != Namespace && object.GetName() == t.Name() && t.isOurs(object) {
			object.GetObjectKind().SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
			found = append(found, object)
		}
	}
	var bindings rbacv1.RoleBindingList
	var roles rbacv1.RoleList
	for _, list := range []client.ObjectList{&bindings, &roles} {
		if err := t.Client.List(ctx, list, client.MatchingLabels{managedByLabel: managerName}); err != nil {
			return nil, err
		}
	}
	for i := range bindings.Items {
		take(&bindings.Items[i], "RoleBinding")
	}
	for i := range roles.Items {
		take(&roles.Items[i], "Role")
	}
	return found, nil
}

// Ensure makes the identity on the target what it must be. A namespace that is on its way out, such as after the end of the
// last identity in it, is waited for, and made again.
// What was given in other namespaces is taken away first.
func (t *Target) Ensure(ctx context.Context, resources []rbac.Resource, options rbac.Options) error {
	if err := t.deleteNamespacedRolesExcept(ctx, options.Namespaces); err != nil {
		return err
	}
	for {
		err := t.ensureAll(ctx, t.Objects(resources, options))
		if t.DryRun || !isNamespaceMissing(err) {
			return describeTargetError(err)
		}
		if ended := t.waitForNamespaceDeletion(ctx); ended != nil {
			return errors.Join(describeTargetError(err), ended)
		}
	}
}

// deleteNamespacedRolesExcept takes the rights away in all namespaces but the given.
func (t *Target) deleteNamespacedRolesExcept(ctx context.Context, except []string) error {
	restrictions, err := t.listNamespacedRoles(ctx)
	if err != nil {
		return describeTargetError(err)
	}
	for _, one := range restrictions {
		if slices.Contains(except, one.GetNamespace()) {
			continue
		}
		if err := t.remove(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func (t *Target) ensureAll(ctx context.Context, objects []client.Object) error {
	for _, wanted := range objects {
		var change Change
		var err error
		if wanted.GetName() == Namespace {
			change, err = t.ensureNamespace(ctx, wanted)
		} else {
			change, err = createOrPatch(ctx, t.Client, wanted, t.isOurs, copyContent)
		}
		if t.DryRun && wanted.GetNamespace() == Namespace && apierrors.IsNotFound(err) {
			// Its namespace was made by a dry run only.
			change, err = Change{Object: wanted, Result: Created}, nil
		}
		if err != nil {
			return err
		}
		t.report(change)
	}
	return nil
}

// isNamespaceMissing reports whether nothing can be made in the namespace since it is on its way out, or ended after it was looked at.
func isNamespaceMissing(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	missing, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(missing) && missing.ErrStatus.Details != nil && missing.ErrStatus.Details.Kind == "namespaces"
}

// waitForNamespaceDeletion returns when the namespace is not on its way out any more.
func (t *Target) waitForNamespaceDeletion(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, namespaceDeletionPollInterval, namespaceDeletionTimeout, true, func(ctx context.Context) (bool, error) {
		var found corev1.Namespace
		err := t.Client.Get(ctx, types.NamespacedName{Name: Namespace}, &found)
		return apierrors.IsNotFound(err) || err == nil && found.DeletionTimestamp == nil, client.IgnoreNotFound(err)
	})
}

func (t *Target) report(change Change) {
	if t.Report != nil {
		t.Report(change)
	}
}

// ensureNamespace creates the namespace, or takes the one that there is as it is.
func (t *Target) ensureNamespace(ctx context.Context, wanted client.Object) (Change, error) {
	var found corev1.Namespace
	err := t.Client.Get(ctx, client.ObjectKeyFromObject(wanted), &found)
	if apierrors.IsNotFound(err) {
		err = t.Client.Create(ctx, wanted)
		if !apierrors.IsAlreadyExists(err) {
			return Change{Object: wanted, Result: Created}, err
		}
		err = nil
	}
	return Change{Object: wanted, Result: Unchanged}, err
}

// copyContent makes an object say what another one of its kind says beyond its metadata.
func copyContent(from, to client.Object) {
	switch to := to.(type) {
	case *rbacv1.ClusterRole:
		to.Rules = from.(*rbacv1.ClusterRole).Rules
		to.AggregationRule = nil
		if _, isBound := from.GetAnnotations()[namespacesAnnotation]; !isBound {
			delete(to.Annotations, namespacesAnnotation)
		}
	case *rbacv1.Role:
		to.Rules = from.(*rbacv1.Role).Rules
	case *rbacv1.ClusterRoleBinding:
		to.Subjects, to.RoleRef = from.(*rbacv1.ClusterRoleBinding).Subjects, from.(*rbacv1.ClusterRoleBinding).RoleRef
	case *rbacv1.RoleBinding:
		to.Subjects, to.RoleRef = from.(*rbacv1.RoleBinding).Subjects, from.(*rbacv1.RoleBinding).RoleRef
	}
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

// requestToken asks for a token of the identity. The target may give it a shorter life.
func (t *Target) requestToken(ctx context.Context, account *corev1.ServiceAccount, lifetime time.Duration) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(lifetime.Seconds()))}}
	if err := t.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("cannot get a token for the ServiceAccount %s: %w", account.Name, describeTargetError(err))
	}
	return request.Status.Token, nil
}

// Kubeconfig returns what the hub is to have: the kubeconfig that it has, if that is good for more than half of the life of
// its token, else one with a new token.
func (t *Target) Kubeconfig(ctx context.Context, admin *AdminConfig, has []byte, lifetime time.Duration, now time.Time) ([]byte, error) {
	account, err := t.getServiceAccount(ctx)
	if err != nil {
		return nil, err
	}
	if has != nil && admin.isKubeconfigCurrent(has, account, now) {
		return has, nil
	}
	token, err := t.requestToken(ctx, account, lifetime)
	if err != nil {
		return nil, err
	}
	return admin.kubeconfig(token)
}

// RevokeTokens replaces the identity's ServiceAccount, so that all its tokens end.
func (t *Target) RevokeTokens(ctx context.Context) error {
	account, err := t.getServiceAccount(ctx)
	if err != nil {
		return err
	}
	if err := t.remove(ctx, account); err != nil {
		return err
	}
	change, err := createOrPatch(ctx, t.Client, t.serviceAccount(), t.isOurs, copyContent)
	if t.DryRun {
		return nil
	}
	if err != nil {
		return describeTargetError(err)
	}
	t.report(change)
	return nil
}

// Remove takes everything from the target that was made for the identity, and the namespace if a registration made it and
// nothing is left there.
func (t *Target) Remove(ctx context.Context) error {
	// The order is that of making it, backwards: rights end before the identity does.
	if err := t.deleteNamespacedRolesExcept(ctx, nil); err != nil {
		return err
	}
	objects := t.Objects(nil, rbac.Options{})
	for i := len(objects) - 1; i > 0; i-- {
		if err := t.remove(ctx, objects[i]); err != nil {
			return err
		}
	}
	return t.removeNamespace(ctx)
}

func (t *Target) remove(ctx context.Context, object client.Object) error {
	err := t.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return describeTargetError(err)
	}
	if !t.isOurs(object) {
		return describeTargetError(&NotOwnedError{Object: object})
	}
	uid := object.GetUID()
	if err := t.Client.Delete(ctx, object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return describeTargetError(err)
	}
	t.report(Change{Object: object, Result: Deleted})
	return nil
}

func (t *Target) removeNamespace(ctx context.Context) error {
	var found corev1.Namespace
	if err := t.Client.Get(ctx, types.NamespacedName{Name: Namespace}, &found); err != nil {
		return describeTargetError(client.IgnoreNotFound(err))
	}
	found.TypeMeta = newNamespace().TypeMeta
	if found.Labels[managedByLabel] != managerName || found.DeletionTimestamp != nil || t.DryRun {
		return nil
	}
	inUse, err := t.isNamespaceInUse(ctx)
	if inUse || err != nil {
		return describeTargetError(err)
	}
	if err := t.Client.Delete(ctx, &found, client.Preconditions{UID: &found.UID}); client.IgnoreNotFound(err) != nil {
		return describeTargetError(err)
	}
	t.report(Change{Object: &found, Result: Deleted})
	return nil
}

// isNamespaceInUse reports whether anything is in the namespace that no cluster puts there by itself. Of what a namespace can hold it
// looks at what everything else needs to run.
func (t *Target) isNamespaceInUse(ctx context.Context) (bool, error) {
	for _, kind := range []string{"ServiceAccount", "Pod", "Secret", "ConfigMap", "Service", "PersistentVolumeClaim"} {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		err := t.Client.List(ctx, &list, client.InNamespace(Namespace))
		if apierrors.IsNotFound(err) {
			// A target need not have all of them.
			continue
		}
		if err != nil {
			return false, err
		}
		for _, item := range list.Items {
			isDefault := kind == "ServiceAccount" && item.Name == "default" || kind == "ConfigMap" && item.Name == "kube-root-ca.crt"
			if !isDefault && item.DeletionTimestamp == nil {
				return true, nil
			}
		}
	}
	return false, nil
}

// describeTargetError says where an error comes from, and for the most frequent one what to do.
func describeTargetError(err error) error {
	if err == nil {
		return nil
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("on the target the namespace %s is still being removed: try again in a moment: %w", Namespace, err)
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the target does not allow it: %w (use a kubeconfig of an administrator, since nobody can grant more than he has himself)", err)
	}
	if _, notOwned := errors.AsType[*NotOwnedError](err); notOwned {
		return fmt.Errorf("on the target %w", err)
	}
	return fmt.Errorf("on the target: %w", err)
}
