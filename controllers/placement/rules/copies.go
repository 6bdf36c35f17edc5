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

package rules

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

var namespacesResource = schema.GroupResource{Resource: "namespaces"}

// AtDestination returns an object of a workload workspace as a cluster with these settings gets it: where each workspace has
// namespaces of its own, references to namespaces have the names on the cluster. resource is the resource of the copy. The mark is
// for a Namespace of the workspace, and zero for other objects. The object keeps its own name and namespace.
func (w Workspace) AtDestination(settings *tenancy.Settings, resource *plan.Resource, source *unstructured.Unstructured) (*unstructured.Unstructured, transform.WorkspaceMark, error) {
	switch {
	case settings.Naming.IsShared():
		return source, transform.WorkspaceMark{}, nil
	case resource.GroupResource() == namespacesResource:
		moved := source.DeepCopy()
		moved.SetLabels(settings.Labels(source.GetLabels()))
		moved.SetAnnotations(settings.Annotations(source.GetAnnotations()))
		return moved, transform.WorkspaceMark{Hash: tenancy.WorkspaceHash(w.Cluster), Path: w.Path}, nil
	default:
		moved, err := settings.Naming.Rewrite(w.Cluster, source, resource.GetRules().NamespaceReferences)
		return moved, transform.WorkspaceMark{}, err
	}
}

// SelectedResource is a resource whose copies a config selects.
type SelectedResource struct {
	edgev2alpha1.GroupResource
	Namespaced bool
}

// OwnedBy returns the selector of an owner's copies.
func OwnedBy(owner ownership.Owner) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{ownership.OwnerLabel: owner.LabelValue()}}
}

// CopiesSpec returns the spec, with all defaults, of the config of a mailbox that selects the owner's copies of resources.
func CopiesSpec(resources []SelectedResource, owner ownership.Owner) edgev2alpha1.SyncerConfigSpec {
	slices.SortFunc(resources, func(a, b SelectedResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	selector := OwnedBy(owner)
	spec := edgev2alpha1.SyncerConfigSpec{StatusReturn: new(true), DeletionPolicy: edgev2alpha1.DeletionPolicyDelete}
	for _, one := range resources {
		if one.Namespaced {
			spec.NamespaceScope.Namespaces = []string{edgev2alpha1.Wildcard}
			spec.NamespaceScope.Resources = append(spec.NamespaceScope.Resources, edgev2alpha1.NamespaceScopeDownsyncResource{GroupResource: one.GroupResource, LabelSelector: selector})
			continue
		}
		spec.ClusterScope = append(spec.ClusterScope, edgev2alpha1.ClusterScopeDownsyncResource{
			GroupResource: one.GroupResource, Objects: []string{edgev2alpha1.Wildcard}, LabelSelector: selector,
		})
	}
	return spec
}
