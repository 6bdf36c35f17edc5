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
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

const (
	// namespaceDeletionTimeout is the maximum time to wait for the deletion of the namespace, and
	// namespaceDeletionPollInterval the interval of the requests.
	namespaceDeletionTimeout      = time.Minute
	namespaceDeletionPollInterval = 500 * time.Millisecond
)

// ensureNamespace creates the namespace, or leaves an existing one unchanged.
func (t *Target) ensureNamespace(ctx context.Context, desired client.Object) (Change, error) {
	var found corev1.Namespace
	err := t.Client.Get(ctx, client.ObjectKeyFromObject(desired), &found)
	if t.DryRun && err == nil && found.DeletionTimestamp != nil {
		return Change{Object: desired, Result: Created}, nil
	}
	if apierrors.IsNotFound(err) {
		err = t.Client.Create(ctx, desired.DeepCopyObject().(client.Object))
		if !apierrors.IsAlreadyExists(err) {
			return Change{Object: desired, Result: Created}, err
		}
		err = nil
	}
	return Change{Object: desired, Result: Unchanged}, err
}

// isManagedNamespace reports whether a registration created the namespace, or the hub created the one of tenants. No other one is ever
// deleted.
func isManagedNamespace(namespace *corev1.Namespace) bool {
	_, isHubs := namespace.Annotations[ownership.EnsuredAnnotation]
	return namespace.Labels[managedByLabel] == managerName || isHubs && namespace.Name == edgev2alpha1.TenantsNamespace
}

// markNamespace records the ServiceAccount that was just created in the namespace, so that a removal that found the namespace empty
// before cannot delete it any more. If one has already deleted it, the error satisfies isNamespaceMissing.
func (t *Target) markNamespace(ctx context.Context, serviceAccount types.UID) error {
	var namespace corev1.Namespace
	if err := t.Client.Get(ctx, types.NamespacedName{Name: Namespace}, &namespace); err != nil {
		return err
	}
	if isManagedNamespace(&namespace) && namespace.DeletionTimestamp == nil {
		mark := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, lastServiceAccountAnnotation, serviceAccount))
		// An administrator may lack the permission to change namespaces. A registration needs it for nothing else.
		if err := t.Client.Patch(ctx, &namespace, mark); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	if namespace.DeletionTimestamp != nil {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), Namespace)
	}
	return nil
}

// isNamespaceMissing reports whether a create failed because the namespace is terminating, or was deleted before the create.
func isNamespaceMissing(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	missing, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(missing) && missing.ErrStatus.Details != nil && missing.ErrStatus.Details.Kind == "namespaces"
}

// waitForNamespaceDeletion waits until none of the namespaces is terminating.
func (t *Target) waitForNamespaceDeletion(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, namespaceDeletionPollInterval, namespaceDeletionTimeout, true, func(ctx context.Context) (bool, error) {
		for _, name := range []string{Namespace, edgev2alpha1.TenantsNamespace} {
			var found corev1.Namespace
			err := t.Client.Get(ctx, types.NamespacedName{Name: name}, &found)
			if !t.isGone(err, newNamespace(name)) && (err != nil || found.DeletionTimestamp != nil) {
				return false, err
			}
		}
		return true, nil
	})
}

// removeNamespace deletes a namespace, if a registration or the hub created it and it is empty. It does not delete a namespace that has
// changed since it was found empty: another identity may have been created in between (see markNamespace).
func (t *Target) removeNamespace(ctx context.Context, name string) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var found corev1.Namespace
		if err := t.Client.Get(ctx, types.NamespacedName{Name: name}, &found); t.isGone(err, newNamespace(name)) {
			return nil
		} else if err != nil {
			return err
		}
		found.TypeMeta = newNamespace(name).TypeMeta
		if !isManagedNamespace(&found) || found.DeletionTimestamp != nil || t.DryRun {
			return nil
		}
		if inUse, err := t.isNamespaceInUse(ctx, name); inUse || err != nil {
			return err
		}
		if err := t.Client.Delete(ctx, &found, client.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion}); t.isGone(err, newNamespace(name)) {
			return nil
		} else if err != nil {
			return err
		}
		t.report(Change{Object: &found, Result: Deleted})
		return nil
	})
	return describeTargetError(err)
}

// isNamespaceInUse reports whether the namespace contains objects that clusters do not create by themselves. It lists
// only the kinds that workloads and registrations need.
func (t *Target) isNamespaceInUse(ctx context.Context, name string) (bool, error) {
	kinds := []schema.GroupVersionKind{rbacv1.SchemeGroupVersion.WithKind("Role"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding")}
	for _, kind := range []string{"ServiceAccount", "Pod", "Secret", "ConfigMap", "Service", "PersistentVolumeClaim"} {
		kinds = append(kinds, corev1.SchemeGroupVersion.WithKind(kind))
	}
	for _, kind := range kinds {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := t.Client.List(ctx, &list, client.InNamespace(name))
		if apierrors.IsNotFound(err) {
			// A target may lack some of the kinds.
			continue
		}
		if err != nil {
			return false, err
		}
		for _, item := range list.Items {
			isDefault := kind.Kind == "ServiceAccount" && item.Name == "default" || kind.Kind == "ConfigMap" && item.Name == "kube-root-ca.crt"
			if !isDefault && item.DeletionTimestamp == nil {
				return true, nil
			}
		}
	}
	return false, nil
}
