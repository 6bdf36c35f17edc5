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
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// resourcesAnnotation lists the resources of a ClusterRole. namespacesAnnotation lists the namespaces to which the
	// permissions are restricted, if they are.
	resourcesAnnotation  = "synchub.dev/resources"
	namespacesAnnotation = "synchub.dev/namespaces"
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
	role := &rbacv1.ClusterRole{TypeMeta: rbacTypeMeta("ClusterRole"), ObjectMeta: i.objectMeta(""), Rules: rbac.ClusterRoleRules(resources, options)}
	role.Annotations[resourcesAnnotation] = formatResources(rbac.MergeResources(resources))
	if len(options.Namespaces) > 0 {
		role.Annotations[namespacesAnnotation] = strings.Join(options.Namespaces, ",")
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: i.Name()}}
	objects := []client.Object{
		newNamespace(),
		i.serviceAccount(),
		role,
		&rbacv1.ClusterRoleBinding{
			TypeMeta: rbacTypeMeta("ClusterRoleBinding"), ObjectMeta: i.objectMeta(""), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: i.Name()},
		},
	}
	objects = append(objects, i.roleAndBinding(Namespace, []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{i.Name()}, Verbs: []string{"create"},
	}})...)
	for _, namespace := range options.Namespaces {
		objects = append(objects, i.roleAndBinding(namespace, rbac.RoleRules(resources, options))...)
	}
	return objects
}

// roleAndBinding returns a Role in a namespace, and the RoleBinding of the identity.
func (i Identity) roleAndBinding(namespace string, rules []rbacv1.PolicyRule) []client.Object {
	return []client.Object{
		&rbacv1.Role{TypeMeta: rbacTypeMeta("Role"), ObjectMeta: i.objectMeta(namespace), Rules: rules},
		&rbacv1.RoleBinding{
			TypeMeta: rbacTypeMeta("RoleBinding"), ObjectMeta: i.objectMeta(namespace),
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: i.Name()}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: i.Name()},
		},
	}
}

func newNamespace() *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: Namespace, Labels: map[string]string{managedByLabel: managerName}},
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
