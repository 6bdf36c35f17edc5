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

// defaultResources are the resources that the chart publishes by default.
var defaultResources = []string{
	"configmaps", "limitranges", "namespaces", "persistentvolumeclaims", "pods:up", "resourcequotas", "secrets", "serviceaccounts", "services",
	"mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingadmissionpolicies.admissionregistration.k8s.io",
	"validatingadmissionpolicybindings.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
	"customresourcedefinitions.apiextensions.k8s.io",
	"apiservices.apiregistration.k8s.io",
	"daemonsets.apps", "deployments.apps", "replicasets.apps:up", "statefulsets.apps",
	"horizontalpodautoscalers.autoscaling",
	"cronjobs.batch", "jobs.batch",
	"endpointslices.discovery.k8s.io:up",
	"ingressclasses.networking.k8s.io", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io",
	"poddisruptionbudgets.policy",
	"clusterrolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
	"rolebindings.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io",
	"priorityclasses.scheduling.k8s.io",
	"storageclasses.storage.k8s.io",
}

// ResourceRequest holds the resources that an operator requests.
type ResourceRequest struct {
	// Resources are the only resources to grant permissions for. Additional are added to the granted ones.
	Resources, Additional []rbac.Resource
	// Published are the resources of the hosting cluster's PublishedResources, or nil if the plugin did not read them.
	Published []rbac.Resource
}

// SelectResources returns the resources to grant permissions for, and a text that names their source. The sources are, in
// this order: the requested resources; the published ones together with the granted ones; the granted ones; the chart's
// default. The status of a SyncTarget is no source, since users who may write it may not grant permissions.
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

// PublishedResources returns the resources that PublishedResources sync, in either direction. unresolved are the names of
// PublishedResources with a kind that the target does not serve. Resources that the chart publishes only for upsync, such as
// Pods, are not writable.
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
		for _, byDefault := range defaults {
			if byDefault.GroupResource() == resource.GroupResource() {
				resource.Down = byDefault.Down
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
