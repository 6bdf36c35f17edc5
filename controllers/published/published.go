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

package published

import (
	"cmp"
	"fmt"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/sync"
)

// native is an API that every kcp workspace serves by itself and that an export can claim.
type native struct {
	version, kind string
	namespaced    bool
}

// natives are the claimable APIs of kcp v0.31 (pkg/schemas/builtin) that mean on a target what they mean in a mailbox.
var natives = map[schema.GroupResource]native{
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

// acting are the APIs that act inside kcp itself, with their kinds. Under their own group they are never published: kcp
// would obey what is meant for a target.
var acting = map[schema.GroupResource]string{
	{Resource: "resourcequotas"}: "ResourceQuota",
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:     "MutatingWebhookConfiguration",
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}:   "ValidatingWebhookConfiguration",
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}:       "ValidatingAdmissionPolicy",
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}: "ValidatingAdmissionPolicyBinding",
}

// retained are the APIs whose objects take others with them when they go.
var retained = map[schema.GroupResource]struct{}{
	{Resource: "namespaces"}: {},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: {},
}

// IsClaim tells whether mailboxes get the API by a claim. The error says why the PublishedResource cannot work.
func IsClaim(spec *synchubv1alpha1.PublishedResourceSpec) (bool, error) {
	if acts(spec.Resource) {
		return false, fmt.Errorf("spec.resource: %s acts inside kcp itself: it could only be published under a projected group, which this version does not do", nameOf(spec.Resource))
	}
	group, known := findNative(spec.Resource)
	claim := spec.API.Source == synchubv1alpha1.APISourceClaim || spec.API.Source != synchubv1alpha1.APISourceSchema && known
	if !claim {
		return false, nil
	}
	if !known {
		return false, fmt.Errorf("spec.api.source: kcp does not serve %s by itself, so it cannot be claimed: use Schema", nameOf(spec.Resource))
	}
	if spec.Resource.Version != "" && spec.Resource.Version != natives[group].version {
		return false, fmt.Errorf("spec.resource.version: kcp serves %s in version %s only", group, natives[group].version)
	}
	return true, nil
}

func acts(resource synchubv1alpha1.ResourceDescriptor) bool {
	for group, kind := range acting {
		if group.Group == resource.Group && (resource.Resource == group.Resource || resource.Kind == kind) {
			return true
		}
	}
	return false
}

// nameOf names the resource, or if need be its kind, for messages.
func nameOf(resource synchubv1alpha1.ResourceDescriptor) schema.GroupResource {
	return schema.GroupResource{Group: resource.Group, Resource: cmp.Or(resource.Resource, resource.Kind)}
}

func findNative(resource synchubv1alpha1.ResourceDescriptor) (schema.GroupResource, bool) {
	for group, native := range natives {
		if group.Group == resource.Group && (resource.Resource == "" || resource.Resource == group.Resource) &&
			(resource.Kind == "" || resource.Kind == native.kind) {
			return group, true
		}
	}
	return schema.GroupResource{}, false
}

// Claimed returns the resource to be synced for a PublishedResource that is a claim.
func Claimed(spec *synchubv1alpha1.PublishedResourceSpec) sync.Resource {
	group, _ := findNative(spec.Resource)
	native := natives[group]
	return withPolicies(spec, sync.Resource{
		GroupVersionResource: group.WithVersion(native.version),
		Kind:                 native.kind,
		Namespaced:           native.namespaced,
		Native:               true,
	})
}

// Exported returns the resource to be synced for a PublishedResource with a schema.
func Exported(spec *synchubv1alpha1.PublishedResourceSpec, exported *apisv1alpha1.APIResourceSchema) (sync.Resource, error) {
	for _, version := range exported.Spec.Versions {
		if !version.Served || spec.Resource.Version != "" && spec.Resource.Version != version.Name {
			continue
		}
		return withPolicies(spec, sync.Resource{
			GroupVersionResource: schema.GroupVersionResource{Group: exported.Spec.Group, Version: version.Name, Resource: exported.Spec.Names.Plural},
			Kind:                 exported.Spec.Names.Kind,
			Namespaced:           exported.Spec.Scope == apiextensionsv1.NamespaceScoped,
			StatusSubresource:    version.Subresources.Status != nil,
			StatusReturn:         spec.StatusReturn == nil || *spec.StatusReturn,
		}), nil
	}
	return sync.Resource{}, fmt.Errorf("spec.resource.version: the schema %s serves no version %q", exported.Name, spec.Resource.Version)
}

func withPolicies(spec *synchubv1alpha1.PublishedResourceSpec, resource sync.Resource) sync.Resource {
	_, retain := retained[resource.GroupResource()]
	resource.Container = retain
	resource.Replace, resource.Adoption = spec.Replace, spec.Adoption
	resource.Retain = retain && (spec.Deletion == nil || !spec.Deletion.Cascade)
	resource.Orphan = spec.Deletion != nil && spec.Deletion.Policy == synchubv1alpha1.DeletionPolicyOrphan
	return resource
}
