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

// accessReviewClient creates an access review instead of each write, and returns a Forbidden error if the review denies
// the write. Admission and schemas are not checked.
type accessReviewClient struct {
	client.Client
	// role is the role of the last write. A binding to it grants its permissions.
	role client.Object
}

func newAccessReviewClient(c client.Client) client.Client {
	return &accessReviewClient{Client: c}
}

func (c *accessReviewClient) Create(ctx context.Context, object client.Object, _ ...client.CreateOption) error {
	if problems := validation.ValidateObjectMetaAccessor(object, object.GetNamespace() != "", validation.NameIsDNSSubdomain, field.NewPath("metadata")); len(problems) > 0 {
		return apierrors.NewInvalid(object.GetObjectKind().GroupVersionKind().GroupKind(), object.GetName(), problems)
	}
	// Later objects refer to the UID.
	object.SetUID("none-yet")
	if err := c.checkWrite(ctx, "create", object); err != nil || object.GetNamespace() == "" {
		return err
	}
	return c.Get(ctx, types.NamespacedName{Name: object.GetNamespace()}, &corev1.Namespace{})
}

func (c *accessReviewClient) Patch(ctx context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return c.checkWrite(ctx, "patch", object)
}

func (c *accessReviewClient) checkWrite(ctx context.Context, verb string, object client.Object) error {
	resource, err := c.resourceOf(object)
	if err != nil {
		return err
	}
	if err := c.checkAccess(ctx, resourceAttributes(resource, verb, object)); err != nil {
		return err
	}
	switch object.(type) {
	case *rbacv1.ClusterRole, *rbacv1.Role:
		c.role = object
		return c.checkGrant(ctx, "escalate")
	case *rbacv1.ClusterRoleBinding, *rbacv1.RoleBinding:
		// A role that needs no write grants nothing new.
		if c.role != nil && c.role.GetNamespace() == object.GetNamespace() {
			return c.checkGrant(ctx, "bind")
		}
	}
	return nil
}

func (c *accessReviewClient) Delete(ctx context.Context, object client.Object, _ ...client.DeleteOption) error {
	resource, err := c.resourceOf(object)
	if err != nil {
		return err
	}
	return c.checkAccess(ctx, resourceAttributes(resource, "delete", object))
}

func (c *accessReviewClient) resourceOf(object client.Object) (schema.GroupVersionResource, error) {
	kind, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return mapping.Resource, nil
}

func resourceAttributes(resource schema.GroupVersionResource, verb string, object client.Object) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Group: resource.Group, Resource: resource.Resource, Verb: verb, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// checkGrant checks the permission for verb, which is escalate or bind, on the role. If it is denied, checkGrant checks
// that the user has all permissions of the role.
func (c *accessReviewClient) checkGrant(ctx context.Context, verb string) error {
	resource := schema.GroupVersionResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
	var rules []rbacv1.PolicyRule
	switch role := c.role.(type) {
	case *rbacv1.ClusterRole:
		rules = role.Rules
	case *rbacv1.Role:
		resource.Resource, rules = "roles", role.Rules
	}
	err := c.checkAccess(ctx, resourceAttributes(resource, verb, c.role))
	if !apierrors.IsForbidden(err) {
		return err
	}
	for _, one := range rbac.AddedAttributes(nil, rules) {
		one.Namespace = c.role.GetNamespace()
		if err := c.checkAccess(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// checkAccess returns a Forbidden error if an access review denies the attributes.
func (c *accessReviewClient) checkAccess(ctx context.Context, attributes authorizationv1.ResourceAttributes) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	if err := c.Client.Create(ctx, review); err != nil {
		return fmt.Errorf("cannot ask whether it is allowed to %s %s: %w", attributes.Verb, attributes.Resource, err)
	}
	if review.Status.Allowed {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: attributes.Group, Resource: attributes.Resource}, attributes.Name, fmt.Errorf("you may not %s it%s", attributes.Verb, inNamespace(attributes.Namespace)))
}

func inNamespace(namespace string) string {
	if namespace == metav1.NamespaceNone {
		return ""
	}
	return " in the namespace " + namespace
}
