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
	"github.com/synchub-dev/synchub/controllers/compatibility"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

// schemas are what mailboxes have of each API from the hub, by its name there.
type schemas map[schema.GroupResource]compatibility.Schema

// setSchemas hands on what mailboxes have of what is in force, to be compared with what targets serve.
func (c *Controller) setSchemas(ctx context.Context, made *plan) error {
	next := schemas{}
	for _, candidate := range made.candidates {
		if !candidate.inForce() || candidate.isLeaving() || candidate.entry.schema == "" {
			continue
		}
		one := compatibility.Schema{
			Name: candidate.entry.schema, Version: candidate.synced.Version,
			Warn: candidate.published.Spec.Compatibility == synchubv1alpha1.CompatibilityWarn,
		}
		before := c.schemas[candidate.group]
		if before.Name == one.Name && before.Version == one.Version {
			one.OpenAPI, one.Kept = before.OpenAPI, before.Kept
		} else {
			var err error
			if one.OpenAPI, err = c.openAPIOf(ctx, one.Name, one.Version); err != nil {
				return err
			}
			if one.OpenAPI != nil {
				one.Kept = transform.KeptBy(one.OpenAPI)
			}
		}
		if one.OpenAPI != nil {
			next[candidate.group] = one
		}
	}
	if !maps.Equal(next, c.schemas) {
		c.schemas = next
		c.Sync.SetSchemas(next)
	}
	return nil
}

// openAPIOf returns the schema of one version, nil if there is none.
func (c *Controller) openAPIOf(ctx context.Context, name, version string) (*apiextensionsv1.JSONSchemaProps, error) {
	exported, err := c.planner.schemaOf(ctx, name)
	if err != nil || exported == nil {
		return nil, err
	}
	for i := range exported.Spec.Versions {
		if exported.Spec.Versions[i].Name == version {
			read, err := exported.Spec.Versions[i].GetSchema()
			if err != nil {
				// It must not keep the others out.
				log.FromContext(ctx).Error(err, "a schema cannot be compared with those of targets", "schema", name)
				return nil, nil
			}
			return read, nil
		}
	}
	return nil, nil
}
