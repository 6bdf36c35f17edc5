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

package apiexport

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/agent/assignment"
)

// agentRules returns the rules of the plan for agents, which compile them again. Their order does not depend on maps.
func (c *Controller) agentRules(made *exportPlan) assignment.Rules {
	rules := assignment.Rules{Watched: made.watchedResources()}
	for _, resource := range made.resources {
		if !resource.isInForce() {
			continue
		}
		source := resource.published
		if resource.compiledFrom != nil && !resource.isUnpublishing() {
			source = resource.compiledFrom
		}
		rules.Resources = append(rules.Resources, assignment.Resource{
			Published: &assignment.Published{Name: source.Name, Created: source.CreationTimestamp, Spec: source.Spec}, API: *resource.api, Unpublishing: resource.isUnpublishing(),
		})
	}
	for _, related := range made.relatedAPIs {
		if related.resource != nil {
			rules.Resources = append(rules.Resources, assignment.Resource{API: related.api})
		}
	}
	for resource, exported := range c.schemas {
		rules.Schemas = append(rules.Schemas, assignment.Schema{Resource: resource, Name: exported.Name, Version: exported.Version, OpenAPI: exported.OpenAPI, WarnOnly: exported.WarnOnly})
	}
	slices.SortFunc(rules.Schemas, func(a, b assignment.Schema) int { return strings.Compare(a.Resource.String(), b.Resource.String()) })
	limits := made.resourceLimits()
	for _, resource := range slices.SortedFunc(maps.Keys(limits), func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) }) {
		rules.Limits = append(rules.Limits, assignment.ResourceLimits{Resource: resource, Limits: limits[resource]})
	}
	return rules
}
