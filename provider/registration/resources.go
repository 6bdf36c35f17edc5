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
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
)

// defaultResources are the resources that the chart publishes unless told otherwise.
var defaultResources = []string{
	"configmaps", "namespaces", "pods:up", "secrets", "serviceaccounts", "services",
	"customresourcedefinitions.apiextensions.k8s.io",
	"daemonsets.apps", "deployments.apps", "statefulsets.apps",
	"cronjobs.batch", "jobs.batch",
	"ingresses.networking.k8s.io",
	"clusterrolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
	"rolebindings.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io",
}

// ResourceRequest is what an operator asks for.
type ResourceRequest struct {
	// Resources are those to grant rights for, and no others; More are added to whatever is granted.
	Resources, Additional []rbac.Resource
	// Published are those of the hosting cluster's PublishedResources, nil if nobody looked there.
	Published []rbac.Resource
}

// SelectResources returns the resources to grant rights for, and says where they are from: those asked for; or else those that
// operators publish, with what was granted before; or else what was granted before; or else what the chart publishes by
// default. What a SyncTarget's status says is no source of rights: whoever may write it is not who grants them.
func SelectResources(request ResourceRequest, granted []rbac.Resource) (resources []rbac.Resource, source string, err error) {
	switch {
	case len(request.Resources) > 0:
		resources, source = request.Resources, "from --resources"
	case len(request.Published) > 0:
		resources, source = rbac.MergeResources(request.Published, granted), "from the PublishedResources of the hosting cluster"
		if len(resources) > len(rbac.MergeResources(request.Published)) {
			source += ", and granted before"
		}
	case len(granted) > 0:
		resources, source = granted, "as granted before"
	default:
		if resources, err = rbac.ParseResources(defaultResources); err != nil {
			return nil, "", err
		}
		source = "which the chart publishes by default"
	}
	if len(request.Additional) > 0 {
		resources, source = rbac.MergeResources(resources, request.Additional), source+", and from --add-resources"
	}
	return rbac.MergeResources(resources), source, nil
}

// PublishedResources returns the resources that PublishedResources send to targets, or bring up from there, and the names of those
// whose resource cannot be told since the target does not serve the kind. Pods, which the chart publishes for coming up, are
// not written to.
func PublishedResources(published []synchubv1alpha1.PublishedResource, mapper meta.RESTMapper) (resources []rbac.Resource, unresolved []string, err error) {
	defaults, err := rbac.ParseResources(defaultResources)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range published {
		spec := one.Spec
		resource := rbac.Resource{Group: spec.Resource.Group, Resource: spec.Resource.Resource, Down: true, Up: true, InstallsCRD: spec.InstallCRD}
		if resource.Resource == "" {
			mapping, err := mapper.RESTMapping(schema.GroupKind{Group: resource.Group, Kind: spec.Resource.Kind})
			if meta.IsNoMatchError(err) {
				unresolved = append(unresolved, one.Name)
				continue
			}
			if err != nil {
				return nil, nil, fmt.Errorf("cannot find out which resource the PublishedResource %s means: %w", one.Name, err)
			}
			resource.Resource = mapping.Resource.Resource
		}
		for _, usual := range defaults {
			if usual.GroupResource() == resource.GroupResource() {
				resource.Down = usual.Down
			}
		}
		resources = append(resources, resource)
		for _, related := range spec.Related {
			resources = append(resources, rbac.Resource{
				Group: related.Resource.Group, Resource: related.Resource.Resource, Up: true, Down: related.Origin == synchubv1alpha1.RelatedOriginMailbox,
			})
		}
	}
	for _, resource := range resources {
		if err := resource.Validate(); err != nil {
			return nil, nil, fmt.Errorf("in the hosting cluster's PublishedResources: %w", err)
		}
	}
	return rbac.MergeResources(resources), unresolved, nil
}
