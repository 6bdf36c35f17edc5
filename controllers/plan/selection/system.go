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

package selection

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bootstrapLabel is on objects that the API server creates and repairs, such as its default ClusterRoles.
const bootstrapLabel = "kubernetes.io/bootstrapping"

// ownersBinding is the ClusterRoleBinding that kcp creates in each workspace for the workspace's owner.
const ownersBinding = "workspace-admin"

// systemObjects report whether an object of the resource is created by Kubernetes or kcp itself.
var systemObjects = map[schema.GroupResource]func(Object) bool{
	{Resource: "namespaces"}: func(o Object) bool {
		return isSystemNamespace(o.Name) || o.Name == corev1.NamespaceDefault
	},
	{Resource: "configmaps"}:      isSystemConfigMap,
	{Resource: "serviceaccounts"}: func(o Object) bool { return o.Name == "default" },
	{Resource: "secrets"}: func(o Object) bool {
		return o.SecretType == string(corev1.SecretTypeServiceAccountToken) || o.SecretType == string(corev1.SecretTypeBootstrapToken)
	},
	{Resource: "services"}:  isAPIServerService,
	{Resource: "endpoints"}: isAPIServerService,
	{Group: discoveryv1.GroupName, Resource: "endpointslices"}:   isAPIServerService,
	{Group: rbacv1.GroupName, Resource: "roles"}:                 isSystemRBAC,
	{Group: rbacv1.GroupName, Resource: "rolebindings"}:          isSystemRBAC,
	{Group: rbacv1.GroupName, Resource: "clusterroles"}:          isSystemRBAC,
	{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}:   func(o Object) bool { return isSystemRBAC(o) || o.Name == ownersBinding },
	{Group: schedulingv1.GroupName, Resource: "priorityclasses"}: func(o Object) bool { return strings.HasPrefix(o.Name, "system-") },
}

// IsSystem reports whether Kubernetes or kcp itself creates the object in every cluster, workspace or namespace. Such an object
// has a counterpart on the other side, managed by that side's own controllers. So a wildcard never selects it, but a config that
// contains its name does.
func IsSystem(object Object) bool {
	if IsBootstrapped(object) {
		return true
	}
	isOwn, ok := systemObjects[object.Resource.GroupResource()]
	return ok && isOwn(object)
}

// IsBootstrapped reports whether the API server creates and repairs an object.
func IsBootstrapped(object Object) bool { return object.Labels.Has(bootstrapLabel) }

// IsUserObject reports whether "all objects" includes an object: it is neither Kubernetes' own nor in one of its namespaces.
func IsUserObject(object Object) bool { return !IsSystem(object) && !inSystemNamespace(object) }

// isSystemConfigMap reports whether a ConfigMap is the root certificate of a namespace, or one that API servers share.
func isSystemConfigMap(object Object) bool {
	switch object.Name {
	case "kube-root-ca.crt":
		return true
	case "extension-apiserver-authentication", "kube-apiserver-legacy-service-account-token-tracking":
		return object.Namespace == metav1.NamespaceSystem
	default:
		return false
	}
}

func isSystemRBAC(object Object) bool { return strings.HasPrefix(object.Name, "system:") }

// isAPIServerService reports whether an object is, or belongs to, the Service through which pods reach the API server.
func isAPIServerService(object Object) bool {
	return object.Namespace == corev1.NamespaceDefault && object.Name == "kubernetes"
}

func isSystemNamespace(name string) bool { return strings.HasPrefix(name, "kube-") }

// inSystemNamespace reports whether the object is in a namespace of Kubernetes itself. Events and Leases do not count: in these
// namespaces they contain the cluster's health, and a config for all namespaces should select them.
func inSystemNamespace(object Object) bool {
	if !isSystemNamespace(object.Namespace) {
		return false
	}
	switch object.Resource.GroupResource() {
	case schema.GroupResource{Group: corev1.GroupName, Resource: "events"},
		schema.GroupResource{Group: eventsv1.GroupName, Resource: "events"},
		schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}:
		return false
	default:
		return true
	}
}
