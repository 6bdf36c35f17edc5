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

package mailboxes

import (
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Bindings read the APIBindings of mailboxes from the caches.
type Bindings struct{ endpoints *Endpoints }

// NamingConflict describes why kcp does not bind all APIs of the export in a mailbox.
type NamingConflict struct {
	// Binding is the name of the mailbox's APIBinding, and Message the message of its condition.
	Binding, Message string
}

// NamingConflict returns the conflict that kcp reports on the mailbox's APIBinding; nil if there is none. known is false unless
// exactly one endpoint shows the mailbox.
func (b *Bindings) NamingConflict(mailbox logicalcluster.Name) (conflict *NamingConflict, known bool) {
	binding := b.endpoints.binding(mailbox)
	if binding == nil {
		return nil, false
	}
	return conflictOf(binding), true
}

// conflictOf returns the conflict that kcp reports on a binding; nil if there is none.
func conflictOf(binding *unstructured.Unstructured) *NamingConflict {
	condition := findCondition(binding, string(apisv1alpha2.BindingUpToDate))
	if condition["status"] != "False" || condition["reason"] != apisv1alpha2.NamingConflictsReason {
		return nil
	}
	message, _ := condition["message"].(string)
	return &NamingConflict{Binding: binding.GetName(), Message: message}
}

// IsKnownNotServed reports whether the mailbox's binding is known, and a resource is neither bound there nor claimed and accepted.
func (b *Bindings) IsKnownNotServed(mailbox logicalcluster.Name, resource schema.GroupResource) bool {
	binding := b.endpoints.binding(mailbox)
	return binding != nil && !listsResource(binding, resource, "status", "boundResources") && !listsResource(binding, resource, "status", "appliedPermissionClaims")
}

// BindingState is the state of a workspace's binding according to the caches.
type BindingState int

const (
	// BindingUnknown: no endpoint shows the workspace, or more than one.
	BindingUnknown BindingState = iota
	// BindingPresent: the workspace is bound, or being bound.
	BindingPresent
	// BindingTerminating: a user deletes the binding, or the workspace.
	BindingTerminating
)

// BindingState returns the state of a workspace's binding.
func (b *Bindings) BindingState(mailbox logicalcluster.Name) BindingState {
	switch binding := b.endpoints.binding(mailbox); {
	case binding == nil:
		return BindingUnknown
	case binding.GetDeletionTimestamp() != nil:
		return BindingTerminating
	default:
		return BindingPresent
	}
}

// CountPendingClaims returns the number of mailboxes whose binding lists one of the claims neither as accepted nor as
// rejected.
func (b *Bindings) CountPendingClaims(claims []apisv1alpha2.PermissionClaim) (count int) {
	for _, binding := range b.endpoints.bindings() {
		if !listsClaims(binding, claims) {
			count++
		}
	}
	return count
}

// UnboundSchemas returns, for each workspace with a naming conflict, the schemas that kcp has not bound there, in their given
// order.
func (b *Bindings) UnboundSchemas(resources []apisv1alpha2.ResourceSchema) map[logicalcluster.Name][]schema.GroupResource {
	unbound := map[logicalcluster.Name][]schema.GroupResource{}
	for mailbox, binding := range b.endpoints.bindings() {
		if conflictOf(binding) == nil {
			continue
		}
		for _, resource := range resources {
			if !listsSchema(binding, resource) {
				unbound[mailbox] = append(unbound[mailbox], schema.GroupResource{Group: resource.Group, Resource: resource.Name})
			}
		}
	}
	return unbound
}

// Bound returns the mailboxes whose binding has bound a resource of the export, sorted. The resource need not be watched.
func (b *Bindings) Bound(resource schema.GroupResource) (bound []logicalcluster.Name) {
	for mailbox, binding := range b.endpoints.bindings() {
		if binding.GetDeletionTimestamp() == nil && listsResource(binding, resource, "status", "boundResources") {
			bound = append(bound, mailbox)
		}
	}
	slices.Sort(bound)
	return slices.Compact(bound)
}

// listsSchema reports whether a binding has bound a schema of its export.
func listsSchema(binding *unstructured.Unstructured, resource apisv1alpha2.ResourceSchema) bool {
	return slices.ContainsFunc(nestedMaps(binding, "status", "boundResources"), func(item map[string]any) bool {
		group, _ := item["group"].(string)
		name, _, _ := unstructured.NestedString(item, "schema", "name")
		return group == resource.Group && item["resource"] == resource.Name && name == resource.Schema
	})
}

// listsClaims reports whether a binding's spec lists all the claims.
func listsClaims(binding *unstructured.Unstructured, claims []apisv1alpha2.PermissionClaim) bool {
	listed := nestedMaps(binding, "spec", "permissionClaims")
	for _, claim := range claims {
		isListed := func(item map[string]any) bool {
			group, _ := item["group"].(string)
			identity, _ := item["identityHash"].(string)
			return group == claim.Group && item["resource"] == claim.Resource && identity == claim.IdentityHash
		}
		if !slices.ContainsFunc(listed, isListed) {
			return false
		}
	}
	return true
}

// listsResource reports whether a list in a binding has the resource.
func listsResource(binding *unstructured.Unstructured, resource schema.GroupResource, path ...string) bool {
	return slices.ContainsFunc(nestedMaps(binding, path...), func(item map[string]any) bool {
		group, _ := item["group"].(string)
		return item["resource"] == resource.Resource && group == resource.Group
	})
}

func findCondition(binding *unstructured.Unstructured, kind string) map[string]any {
	for _, condition := range nestedMaps(binding, "status", "conditions") {
		if condition["type"] == kind {
			return condition
		}
	}
	return nil
}

func nestedMaps(binding *unstructured.Unstructured, path ...string) (items []map[string]any) {
	found, _, _ := unstructured.NestedFieldNoCopy(binding.Object, path...)
	all, _ := found.([]any)
	for _, item := range all {
		if fields, ok := item.(map[string]any); ok {
			items = append(items, fields)
		}
	}
	return items
}
