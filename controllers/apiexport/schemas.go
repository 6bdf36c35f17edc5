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

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
)

// schemas holds the schemas that the hub exports to mailboxes, by resource.
type schemas map[schema.GroupResource]schemacheck.Schema

// updateSchemas passes the schemas of the synced resources to the sync manager, which compares them with the APIs of
// targets.
func (c *Controller) updateSchemas(ctx context.Context, plan *exportPlan) error {
	next := schemas{}
	for _, resource := range plan.resources {
		if !resource.isInForce() || resource.isUnpublishing() || resource.entry.schema == "" {
			continue
		}
		schema := schemacheck.Schema{
			Name: resource.entry.schema, Version: resource.synced.Version,
			WarnOnly: resource.published.Spec.Compatibility == synchubv1alpha1.CompatibilityWarn,
		}
		previous := c.schemas[resource.group]
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
			next[resource.group] = schema
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
				// A schema that cannot be parsed must not block the others.
				log.FromContext(ctx).Error(err, "a schema cannot be compared with those of targets", "schema", name)
				return nil, nil
			}
			return read, nil
		}
	}
	return nil, nil
}
