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
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
)

// Namespace is the namespace of the ServiceAccounts on a target.
const Namespace = "synchub"

const (
	// managedByLabel has the value managerName on all objects that a registration creates, on the target and in the inventory
	// workspace.
	managedByLabel = "app.kubernetes.io/managed-by"
	managerName    = "kubectl-synchub"
	// ownerAnnotation is the SyncTarget of an object, as <logical cluster>/<name>.
	ownerAnnotation = "synchub.dev/sync-target"
	// resourcesAnnotation lists the resources of a ClusterRole, or of a tunnel on its Secret. namespacesAnnotation lists the
	// namespaces to which the permissions are restricted. tenancyAnnotation describes what the hub keeps for workload workspaces.
	resourcesAnnotation  = "synchub.dev/resources"
	namespacesAnnotation = "synchub.dev/namespaces"
	tenancyAnnotation    = "synchub.dev/tenancy"
	// lastServiceAccountAnnotation of the namespace is the UID of the ServiceAccount that was created last in it.
	lastServiceAccountAnnotation = "synchub.dev/last-service-account"

	namePrefix    = "synchub-"
	hashLength    = 10
	maxNameLength = 200
)

// Identity is the hub's ServiceAccount on one target, with its roles, for one SyncTarget.
type Identity struct {
	// SyncTarget is the name of the SyncTarget, and Inventory its logical cluster.
	SyncTarget, Inventory string
}

// Name returns the name of all objects on the target. It is unique among the inventories of all hubs.
func (i Identity) Name() string {
	sum := sha256.Sum256([]byte(i.owner()))
	name := i.SyncTarget
	if len(name) > maxNameLength {
		name = strings.TrimRight(name[:maxNameLength], "-.")
	}
	return namePrefix + name + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

func (i Identity) owner() string { return i.Inventory + "/" + i.SyncTarget }

func (i Identity) objectMeta(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:   namespace,
		Name:        i.Name(),
		Labels:      map[string]string{managedByLabel: managerName},
		Annotations: map[string]string{ownerAnnotation: i.owner()},
	}
}

// isOurs reports whether a registration created the object for the identity.
func (i Identity) isOurs(object client.Object) bool {
	return object.GetLabels()[managedByLabel] == managerName && object.GetAnnotations()[ownerAnnotation] == i.owner()
}

// Objects returns the objects on the target, in the order of their creation.
func (i Identity) Objects(resources []rbac.Resource, options rbac.Options) []client.Object {
	own := []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{i.Name()}, Verbs: []string{"create"},
	}}
	account := i.serviceAccount()
	roles := rolesFor(account, i.objectMeta, resources, options)
	roles[0].SetAnnotations(grantAnnotations(resources, options))
	roles[0].GetAnnotations()[ownerAnnotation] = i.owner()
	return slices.Concat([]client.Object{newNamespace(Namespace), account}, roles, roleWithBinding(account, i.objectMeta(Namespace), own))
}

// rolesFor returns the roles with the permissions for the resources, and their bindings to a ServiceAccount: first the
// ClusterRole and its binding, then those in the namespaces of the options, and in the namespace of tenants. objectMeta returns their metadata in a
// namespace, or without a namespace for the ClusterRole.
func rolesFor(account client.Object, objectMeta func(namespace string) metav1.ObjectMeta, resources []rbac.Resource, options rbac.Options) []client.Object {
	objects := roleWithBinding(account, objectMeta(metav1.NamespaceNone), rbac.ClusterRoleRules(resources, options))
	for _, namespace := range options.Namespaces {
		objects = append(objects, roleWithBinding(account, objectMeta(namespace), rbac.RoleRules(resources, options))...)
	}
	if rules := options.Tenancy.AccountRules(); len(rules) > 0 {
		objects = append(objects, newNamespace(edgev2alpha1.TenantsNamespace))
		objects = append(objects, roleWithBinding(account, objectMeta(edgev2alpha1.TenantsNamespace), rules)...)
	}
	return objects
}

// roleWithBinding returns a role and its binding to a ServiceAccount.
func roleWithBinding(account client.Object, metadata metav1.ObjectMeta, rules []rbacv1.PolicyRule) []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.GetNamespace(), Name: account.GetName()}}
	reference := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: metadata.Name}
	}
	if metadata.Namespace == metav1.NamespaceNone {
		return []client.Object{
			&rbacv1.ClusterRole{TypeMeta: rbacTypeMeta("ClusterRole"), ObjectMeta: metadata, Rules: rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: rbacTypeMeta("ClusterRoleBinding"), ObjectMeta: metadata, Subjects: subjects, RoleRef: reference("ClusterRole")},
		}
	}
	return []client.Object{
		&rbacv1.Role{TypeMeta: rbacTypeMeta("Role"), ObjectMeta: metadata, Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: rbacTypeMeta("RoleBinding"), ObjectMeta: metadata, Subjects: subjects, RoleRef: reference("Role")},
	}
}

func newNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{managedByLabel: managerName}},
	}
}

func (i Identity) serviceAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: i.objectMeta(Namespace)}
}

func rbacTypeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// InventoryID returns an ID of the inventory workspace: its logical cluster, from the annotation that kcp sets on each
// object. In a cluster that is no workspace, it returns the UID of the namespace kube-system.
func InventoryID(ctx context.Context, inventory client.Client) (string, error) {
	var namespace metav1.PartialObjectMetadata
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := inventory.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &namespace); err != nil {
		return "", fmt.Errorf("cannot determine the workspace of the current context: %w", err)
	}
	if cluster := namespace.GetAnnotations()[logicalcluster.AnnotationKey]; cluster != "" {
		return cluster, nil
	}
	return string(namespace.UID), nil
}
