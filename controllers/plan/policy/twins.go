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

package policy

import "k8s.io/apimachinery/pkg/runtime/schema"

// TwinGroup is the API group of the inert twins that mailboxes have of APIs that act inside kcp. A twin has the resource name, the
// kind and the versions of the API itself.
const TwinGroup = "denatured.synchub.dev"

// twin is an API that acts inside kcp, and that can have a twin in mailboxes.
type twin struct {
	kind string
	// servedByKCP is true if every kcp workspace serves the API itself. The hub can claim it, and cannot export it.
	servedByKCP bool
}

// twins are the APIs that can have a twin. Definitions of APIs have none: the hub installs them.
var twins = map[schema.GroupResource]twin{
	{Resource: "limitranges"}:    {kind: "LimitRange"},
	{Resource: "resourcequotas"}: {kind: "ResourceQuota", servedByKCP: true},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}:         {kind: "MutatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"}:   {kind: "MutatingAdmissionPolicyBinding"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:     {kind: "MutatingWebhookConfiguration", servedByKCP: true},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}:       {kind: "ValidatingAdmissionPolicy", servedByKCP: true},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}: {kind: "ValidatingAdmissionPolicyBinding", servedByKCP: true},
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}:   {kind: "ValidatingWebhookConfiguration", servedByKCP: true},
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:                             {kind: "APIService"},
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}:                       {kind: "FlowSchema"},
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"}:       {kind: "PriorityLevelConfiguration"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}:                  {kind: "ClusterRoleBinding", servedByKCP: true},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}:                         {kind: "ClusterRole", servedByKCP: true},
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}:                         {kind: "RoleBinding", servedByKCP: true},
	{Group: "rbac.authorization.k8s.io", Resource: "roles"}:                                {kind: "Role", servedByKCP: true},
}

// originals are the APIs that can have a twin, by the name of their resource. No two of them have the same.
var originals = func() map[string]schema.GroupResource {
	byName := map[string]schema.GroupResource{}
	for original := range twins {
		byName[original.Resource] = original
	}
	return byName
}()

// FindTwinned returns the API of a group that can have a twin, by its resource or its kind. Of these one may be empty.
func FindTwinned(group, resource, kind string) (original schema.GroupResource, ok bool) {
	for candidate, twin := range twins {
		if candidate.Group == group && (resource == candidate.Resource || resource == "" && kind == twin.kind) {
			return candidate, kind == "" || kind == twin.kind
		}
	}
	return schema.GroupResource{}, false
}

// OriginalOf returns the API that a resource of a mailbox is the twin of; ok is false if it is no twin.
func OriginalOf(inMailbox schema.GroupResource) (original schema.GroupResource, ok bool) {
	if inMailbox.Group != TwinGroup {
		return schema.GroupResource{}, false
	}
	original, ok = originals[inMailbox.Resource]
	return original, ok
}

// IsServedByKCP reports whether every kcp workspace serves an API that can have a twin.
func IsServedByKCP(original schema.GroupResource) bool { return twins[original].servedByKCP }

// InWorkload returns the resource of workload workspaces whose copies a resource of mailboxes has: of a twin the API itself, and
// of any other resource the same one.
func InWorkload(inMailbox schema.GroupVersionResource) schema.GroupVersionResource {
	if original, ok := OriginalOf(inMailbox.GroupResource()); ok {
		return original.WithVersion(inMailbox.Version)
	}
	return inMailbox
}
