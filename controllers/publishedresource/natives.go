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

package publishedresource

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// nativeKind is an API that every kcp workspace serves and that an export can claim.
type nativeKind struct {
	version, kind string
	namespaced    bool
}

// nativeKinds are the APIs of kcp v0.31 that exports can claim (kcp's package pkg/virtual/apiexport/schemas/builtin) and
// that mean the same in a mailbox and on a target.
var nativeKinds = map[schema.GroupResource]nativeKind{
	{Resource: "configmaps"}:                                               {"v1", "ConfigMap", true},
	{Resource: "secrets"}:                                                  {"v1", "Secret", true},
	{Resource: "serviceaccounts"}:                                          {"v1", "ServiceAccount", true},
	{Resource: "namespaces"}:                                               {"v1", "Namespace", false},
	{Group: "rbac.authorization.k8s.io", Resource: "roles"}:                {"v1", "Role", true},
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}:         {"v1", "RoleBinding", true},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}:         {"v1", "ClusterRole", false},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}:  {"v1", "ClusterRoleBinding", false},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: {"v1", "CustomResourceDefinition", false},
	{Group: "coordination.k8s.io", Resource: "leases"}:                     {"v1", "Lease", true},
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}: {"v1", "CertificateSigningRequest", false},
}

// kcpEnforcedAPIs are the APIs that kcp itself acts on, with their kinds. They are never published under their own group:
// kcp would obey an object that is meant for a target.
var kcpEnforcedAPIs = map[schema.GroupResource]string{
	{Resource: "resourcequotas"}: "ResourceQuota",
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:     "MutatingWebhookConfiguration",
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}:   "ValidatingWebhookConfiguration",
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}:       "ValidatingAdmissionPolicy",
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}: "ValidatingAdmissionPolicyBinding",
}

// unclaimableAPIs are the APIs that kcp serves in every workspace and that the hub neither claims nor exports: events,
// which the hub itself writes, and review requests to the API server.
var unclaimableAPIs = map[schema.GroupResource]string{
	{Resource: "events"}:                                                   "Event",
	{Group: "events.k8s.io", Resource: "events"}:                           "Event",
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:       "SelfSubjectReview",
	{Group: "authentication.k8s.io", Resource: "tokenreviews"}:             "TokenReview",
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}: "LocalSubjectAccessReview",
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}:  "SelfSubjectAccessReview",
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}:   "SelfSubjectRulesReview",
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:      "SubjectAccessReview",
}

// kcpGroupSuffix is the suffix of the groups of kcp's own APIs.
const kcpGroupSuffix = ".kcp.io"

// hubAPIs are the hub's own APIs in the mailbox export, with their kinds.
var hubAPIs = map[schema.GroupResource]string{
	edgev2alpha1.Resource("syncerconfigs"):   "SyncerConfig",
	edgev2alpha1.Resource("edgesyncconfigs"): "EdgeSyncConfig",
	edgev2alpha1.Resource("syncrules"):       "SyncRules",
}

// containers are the APIs whose objects contain other objects: deleting one deletes its contents.
var containers = map[schema.GroupResource]struct{}{
	{Resource: "namespaces"}: {},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: {},
}

// NativeAPI returns the API that kcp itself serves and that an export can claim; ok is false if there is none of that name.
func NativeAPI(resource synchubv1alpha1.ResourceDescriptor) (api API, ok bool) {
	for group, native := range nativeKinds {
		if group.Group == resource.Group && (resource.Resource == "" || resource.Resource == group.Resource) &&
			(resource.Kind == "" || resource.Kind == native.kind) {
			return API{
				GroupVersionResource: group.WithVersion(native.version),
				Kind:                 native.kind,
				Namespaced:           native.namespaced,
				Native:               true,
				Versions:             []string{native.version},
			}, true
		}
	}
	return API{}, false
}

// IsUnpublishable reports whether no PublishedResource can name a resource: it is one of kcp's own, or the hub only writes its objects.
func IsUnpublishable(resource schema.GroupResource) bool {
	_, unclaimable := unclaimableAPIs[resource]
	return unclaimable || strings.HasSuffix(resource.Group, kcpGroupSuffix)
}

// servedByKCP returns the API of every workspace that shares a name with the resource.
func servedByKCP(resource synchubv1alpha1.ResourceDescriptor) (schema.GroupResource, bool) {
	if strings.HasSuffix(resource.Group, kcpGroupSuffix) {
		return groupResourceOf(resource), true
	}
	for group, native := range nativeKinds {
		if namesAPI(resource, group, native.kind) {
			return group, true
		}
	}
	for _, known := range []map[schema.GroupResource]string{kcpEnforcedAPIs, unclaimableAPIs} {
		if group, ok := findAPI(known, resource); ok {
			return group, true
		}
	}
	return schema.GroupResource{}, false
}

// findAPI returns the known API that shares a name with the resource. The values of known are kinds.
func findAPI(known map[schema.GroupResource]string, resource synchubv1alpha1.ResourceDescriptor) (schema.GroupResource, bool) {
	for group, kind := range known {
		if namesAPI(resource, group, kind) {
			return group, true
		}
	}
	return schema.GroupResource{}, false
}

// namesAPI reports whether the resource has the plural name or the kind of an API.
func namesAPI(resource synchubv1alpha1.ResourceDescriptor, group schema.GroupResource, kind string) bool {
	return resource.Group == group.Group && (resource.Resource == group.Resource || resource.Kind == kind)
}

// groupResourceOf returns the resource with its plural name, or with its kind if the plural is not set.
func groupResourceOf(resource synchubv1alpha1.ResourceDescriptor) schema.GroupResource {
	return schema.GroupResource{Group: resource.Group, Resource: cmp.Or(resource.Resource, resource.Kind)}
}
