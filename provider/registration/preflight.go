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
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/synchub-dev/synchub/provider/rbac"
)

// accessReviewClient is a client that asks whether it may, in the place of each write. An error is what the write would have met, as
// far as questions can tell: no admission and no schema is asked.
type accessReviewClient struct {
	client.Client
	// role is the last one that was to be written; bindings to it grant what it does.
	role client.Object
}

func newAccessReviewClient(about client.Client) client.Client {
	return &accessReviewClient{Client: about}
}

func (q *accessReviewClient) Create(ctx context.Context, object client.Object, _ ...client.CreateOption) error {
	if problems := validation.ValidateObjectMetaAccessor(object, object.GetNamespace() != "", validation.NameIsDNSSubdomain, field.NewPath("metadata")); len(problems) > 0 {
		return apierrors.NewInvalid(object.GetObjectKind().GroupVersionKind().GroupKind(), object.GetName(), problems)
	}
	// Others refer to it, as to one that a server has made.
	object.SetUID("none-yet")
	if err := q.checkWrite(ctx, "create", object); err != nil || object.GetNamespace() == "" {
		return err
	}
	return q.Get(ctx, types.NamespacedName{Name: object.GetNamespace()}, &corev1.Namespace{})
}

func (q *accessReviewClient) Patch(ctx context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return q.checkWrite(ctx, "patch", object)
}

func (q *accessReviewClient) checkWrite(ctx context.Context, verb string, object client.Object) error {
	resource, err := q.resourceOf(object)
	if err != nil {
		return err
	}
	if err := q.checkAccess(ctx, resourceAttributes(resource, verb, object)); err != nil {
		return err
	}
	switch object.(type) {
	case *rbacv1.ClusterRole, *rbacv1.Role:
		q.role = object
		return q.checkGrant(ctx, "escalate")
	case *rbacv1.ClusterRoleBinding, *rbacv1.RoleBinding:
		// A role that is as it must be is not written, and need not be granted anew.
		if q.role != nil && q.role.GetNamespace() == object.GetNamespace() {
			return q.checkGrant(ctx, "bind")
		}
	}
	return nil
}

func (q *accessReviewClient) Delete(ctx context.Context, object client.Object, _ ...client.DeleteOption) error {
	resource, err := q.resourceOf(object)
	if err != nil {
		return err
	}
	return q.checkAccess(ctx, resourceAttributes(resource, "delete", object))
}

func (q *accessReviewClient) resourceOf(object client.Object) (schema.GroupVersionResource, error) {
	kind, err := apiutil.GVKForObject(object, q.Scheme())
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	mapping, err := q.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return mapping.Resource, nil
}

func resourceAttributes(resource schema.GroupVersionResource, verb string, object client.Object) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Group: resource.Group, Resource: resource.Resource, Verb: verb, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// checkGrant asks for the verb that lets somebody grant by the role what he does not have, or else for all that it grants.
func (q *accessReviewClient) checkGrant(ctx context.Context, verb string) error {
	about := schema.GroupVersionResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
	var rules []rbacv1.PolicyRule
	switch role := q.role.(type) {
	case *rbacv1.ClusterRole:
		rules = role.Rules
	case *rbacv1.Role:
		about.Resource, rules = "roles", role.Rules
	}
	err := q.checkAccess(ctx, resourceAttributes(about, verb, q.role))
	if !apierrors.IsForbidden(err) {
		return err
	}
	for _, one := range rbac.AddedAttributes(nil, rules) {
		one.Namespace = q.role.GetNamespace()
		if err := q.checkAccess(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// checkAccess returns the error of a server that forbids something.
func (q *accessReviewClient) checkAccess(ctx context.Context, about authorizationv1.ResourceAttributes) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &about}}
	if err := q.Client.Create(ctx, review); err != nil {
		return fmt.Errorf("cannot ask whether it is allowed to %s %s: %w", about.Verb, about.Resource, err)
	}
	if review.Status.Allowed {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: about.Group, Resource: about.Resource}, about.Name, fmt.Errorf("you may not %s it%s", about.Verb, inNamespace(about.Namespace)))
}

func inNamespace(namespace string) string {
	if namespace == metav1.NamespaceNone {
		return ""
	}
	return " in the namespace " + namespace
}
