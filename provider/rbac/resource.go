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

package rbac

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Resource is a resource of a target that the hub reads or writes.
type Resource struct {
	// Group and Resource are the group and the plural name on the target. Group is empty for the core group.
	Group, Resource string
	// Down is true if the hub writes objects of the resource. Up is true if the hub reads objects that the target's users and
	// controllers write.
	Down, Up bool
	// InstallsCRD is true if the hub installs the CRD.
	InstallsCRD bool
	// ClusterScoped is true if the resource is known to be cluster-scoped.
	ClusterScoped bool
}

const (
	upOnlySuffix = "up"
	crdSuffix    = "crd"
)

// ParseResource parses the format of [Resource.String]: the plural name, the group after a dot, ":up" if objects only go
// up, and ":crd" if the hub installs the CRD.
func ParseResource(text string) (Resource, error) {
	parts := strings.Split(strings.TrimSpace(text), ":")
	name := schema.ParseGroupResource(parts[0])
	resource := Resource{Group: name.Group, Resource: name.Resource, Down: true, Up: true}
	if err := resource.Validate(); err != nil {
		return Resource{}, err
	}
	for _, part := range parts[1:] {
		switch part {
		case upOnlySuffix:
			resource.Down = false
		case crdSuffix:
			resource.InstallsCRD = true
		default:
			return Resource{}, fmt.Errorf("%q: only :%s and :%s may follow a resource", text, upOnlySuffix, crdSuffix)
		}
	}
	return resource, nil
}

// Validate returns an error if the group or the name is not valid in the Kubernetes API. A wildcard or a subresource is not
// valid: the hub gets permissions only for resources that were named explicitly.
func (r Resource) Validate() error {
	problems := validation.IsDNS1123Label(r.Resource)
	if r.Group != "" {
		problems = append(problems, validation.IsDNS1123Subdomain(r.Group)...)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%q is not a resource: write its plural name and its group, for example deployments.apps", r.GroupResource())
	}
	return nil
}

// ParseResources parses several resources, and merges entries for the same resource.
func ParseResources(texts []string) ([]Resource, error) {
	var resources []Resource
	for _, text := range texts {
		resource, err := ParseResource(text)
		if err != nil {
			return nil, err
		}
		resources = append(resources, resource)
	}
	return MergeResources(resources), nil
}

// GroupResource returns the group and the name of the resource.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

// String returns the resource in the format that [ParseResource] parses.
func (r Resource) String() string {
	text := r.GroupResource().String()
	if !r.Down {
		text += ":" + upOnlySuffix
	}
	if r.InstallsCRD {
		text += ":" + crdSuffix
	}
	return text
}

// MergeResources returns each resource once, sorted by group and name. A flag is set if it is set in any of its entries.
func MergeResources(lists ...[]Resource) []Resource {
	byName := map[schema.GroupResource]Resource{}
	for _, resource := range slices.Concat(lists...) {
		merged := byName[resource.GroupResource()]
		merged.Group, merged.Resource = resource.Group, resource.Resource
		merged.Down, merged.Up = merged.Down || resource.Down, merged.Up || resource.Up
		merged.InstallsCRD = merged.InstallsCRD || resource.InstallsCRD
		merged.ClusterScoped = merged.ClusterScoped || resource.ClusterScoped
		byName[resource.GroupResource()] = merged
	}
	merged := make([]Resource, 0, len(byName))
	for _, resource := range byName {
		merged = append(merged, resource)
	}
	slices.SortFunc(merged, func(a, b Resource) int { return compareGroupResources(a.GroupResource(), b.GroupResource()) })
	return merged
}

func compareGroupResources(a, b schema.GroupResource) int {
	if order := strings.Compare(a.Group, b.Group); order != 0 {
		return order
	}
	return strings.Compare(a.Resource, b.Resource)
}
