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
	"context"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// exportEntries returns the entries that the export must have.
func (p *exportPlan) exportEntries() []exportEntry {
	var entries []exportEntry
	for _, resource := range p.resources {
		if resource.entry != nil {
			entries = append(entries, *resource.entry)
		}
	}
	for _, related := range p.relatedAPIs {
		entries = append(entries, related.entry)
	}
	return entries
}

// markRefused records the refused entries as problems, and removes their resources from the plan.
func (p *exportPlan) markRefused(refused map[exportEntry]error) {
	for _, resource := range p.resources {
		if resource.entry == nil {
			continue
		}
		if err, ok := refused[*resource.entry]; ok {
			resource.setNotExported(ReasonRefused, "kcp refuses %s in the mailbox export: %s", resource.entry, inOneLine(err))
		}
	}
	for _, related := range p.relatedAPIs {
		err, ok := refused[related.entry]
		if !ok {
			continue
		}
		related.resource = nil
		for _, ref := range related.refs {
			ref.setProblem(ReasonRelatedInvalid, "%s.resource: kcp refuses %s in the mailbox export: %s", ref.field, related.entry, inOneLine(err))
		}
	}
}

// watchedResources returns the resources to watch in mailboxes. The resource of an invalid PublishedResource
// stays watched, so that fixing the PublishedResource causes no new list.
func (p *exportPlan) watchedResources() []schema.GroupVersionResource {
	watched := []schema.GroupVersionResource{namespaces}
	add := func(resource schema.GroupVersionResource) {
		if resource != namespaces {
			watched = append(watched, resource)
		}
	}
	for _, candidate := range p.resources {
		if candidate.notExported == nil && candidate.api != nil {
			add(candidate.api.GroupVersionResource)
		}
	}
	for _, related := range p.relatedAPIs {
		if related.resource != nil {
			add(related.resource.GroupVersionResource)
		}
	}
	return watched
}

// workloadResources returns the resources to watch in workload workspaces, which have the originals in place of twins.
func (p *exportPlan) workloadResources() []schema.GroupVersionResource {
	var watched []schema.GroupVersionResource
	for _, resource := range p.watchedResources() {
		if original := policy.InWorkload(resource); !slices.Contains(watched, original) {
			watched = append(watched, original)
		}
	}
	return watched
}

// resourceLimits returns the limits that PublishedResources set for the cache of each mailbox.
func (p *exportPlan) resourceLimits() map[schema.GroupVersionResource]mailboxes.Limits {
	limits := map[schema.GroupVersionResource]mailboxes.Limits{}
	for _, resource := range p.resources {
		set := resource.published.Spec.Limits
		if resource.notExported == nil && resource.api != nil && set != nil {
			limits[resource.api.GroupVersionResource] = mailboxes.Limits{Objects: ptr.Deref(set.MailboxObjects, 0), Bytes: ptr.Deref(set.MailboxBytes, 0)}
		}
	}
	return limits
}

// syncedResources returns the resources to sync.
func (p *exportPlan) syncedResources() []plan.Resource {
	var synced []plan.Resource
	for _, resource := range p.resources {
		if resource.isActive() {
			synced = append(synced, *resource.synced)
		}
	}
	for _, related := range p.relatedAPIs {
		if related.resource != nil {
			synced = append(synced, *related.resource)
		}
	}
	return synced
}

// publishedStates returns the states that the next plan needs, by the UID of the PublishedResource.
func (p *exportPlan) publishedStates() map[types.UID]publishedState {
	states := map[types.UID]publishedState{}
	for _, resource := range p.resources {
		if resource.notExported == nil && resource.entry != nil && resource.api != nil {
			states[resource.published.UID] = publishedState{resource.published.Name, resource.groupResource, *resource.entry, resource.api, resource.synced, resource.compiledFrom}
		}
	}
	return states
}

// schemas holds the schemas that the hub exports to mailboxes, by resource.
type schemas map[schema.GroupResource]schemacheck.Schema

// updateSchemas passes the schemas of the synced resources to the sync manager, which compares them with the APIs of
// targets.
func (c *Controller) updateSchemas(ctx context.Context, plan *exportPlan) error {
	next := schemas{}
	for _, resource := range plan.resources {
		if !resource.isActive() || resource.isUnpublishing() || resource.entry.schema == "" {
			continue
		}
		schema := schemacheck.Schema{
			Name: resource.entry.schema, Version: resource.synced.Version,
			WarnOnly: resource.published.Spec.Compatibility == synchubv1alpha1.CompatibilityWarn,
		}
		previous := c.schemas[resource.groupResource]
		if previous.Name == schema.Name && previous.Version == schema.Version {
			schema.OpenAPI, schema.Kept = previous.OpenAPI, previous.Kept
		} else {
			var err error
			if schema.OpenAPI, err = c.openAPISchema(ctx, schema.Name, schema.Version); err != nil {
				return err
			}
			if schema.OpenAPI != nil {
				schema.Kept = transform.NewPruner(schema.OpenAPI)
			}
		}
		if schema.OpenAPI != nil {
			next[resource.groupResource] = schema
		}
	}
	if !maps.Equal(next, c.schemas) {
		c.schemas = next
		c.Sync.SetSchemas(next)
	}
	return nil
}

// openAPISchema returns the schema of one version, or nil if there is none.
func (c *Controller) openAPISchema(ctx context.Context, name, version string) (*apiextensionsv1.JSONSchemaProps, error) {
	exported, err := c.planner.getSchema(ctx, name)
	if err != nil || exported == nil {
		return nil, err
	}
	for i := range exported.Spec.Versions {
		if exported.Spec.Versions[i].Name == version {
			read, err := exported.Spec.Versions[i].GetSchema()
			if err != nil {
				// A schema that cannot be parsed must not block other schemas.
				log.FromContext(ctx).Error(err, "a schema cannot be compared with the schemas of targets", "schema", name)
				return nil, nil
			}
			return read, nil
		}
	}
	return nil, nil
}
