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

package assignment

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/crd"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// Compile compiles the resources as the hub does. Resources that do not compile, because the agent is of another version than the
// hub, are left out and named by the error.
func (r Rules) Compile(compiler *publishedresource.Compiler) (resources []plan.Resource, err error) {
	var errs []error
	names := map[string]bool{}
	for _, one := range r.Resources {
		switch {
		case one.unknown != nil:
			// A field that is ignored, such as a filter, would let more go down than is meant to.
			errs = append(errs, fmt.Errorf("the rule for %s: %w", one.API.GroupResource(), one.unknown))
		case one.Published == nil:
			resources = append(resources, publishedresource.RelatedAPI(one.API))
		case one.Unpublishing:
			resources = append(resources, publishedresource.UnpublishingAPI(one.Published.Name, one.API))
		default:
			names[one.Published.Name] = true
			published := &synchubv1alpha1.PublishedResource{Spec: one.Published.Spec}
			published.Name, published.CreationTimestamp = one.Published.Name, one.Published.Created
			compiled, err := compiler.Compile(published, one.API)
			if err != nil {
				errs = append(errs, fmt.Errorf("PublishedResource %s: %w", published.Name, err))
				continue
			}
			resources = append(resources, compiled)
		}
	}
	compiler.RetainOnly(func(name string) bool { return names[name] })
	return resources, errors.Join(errs...)
}

// CheckedSchemas returns the schemas to compare with those of the target.
func (r Rules) CheckedSchemas() map[schema.GroupResource]schemacheck.Schema {
	schemas := map[schema.GroupResource]schemacheck.Schema{}
	for _, one := range r.Schemas {
		checked := schemacheck.Schema{Name: one.Name, Version: one.Version, OpenAPI: one.OpenAPI, WarnOnly: one.WarnOnly}
		if one.OpenAPI != nil {
			checked.Kept = transform.NewPruner(one.OpenAPI)
		}
		schemas[one.Resource] = checked
	}
	return schemas
}

// Installations returns the CRDs that the target must have.
func (r Rules) Installations() []crd.Installation {
	all := make([]crd.Installation, 0, len(r.CRDs))
	for _, one := range r.CRDs {
		all = append(all, crd.Installation{PublishedResource: one.PublishedResource, UID: one.UID, CRD: one.CRD, Version: one.Version})
	}
	return all
}

// CacheLimits returns the limits of resources for the cache of the mailbox.
func (r Rules) CacheLimits() map[schema.GroupVersionResource]mailboxes.Limits {
	limits := map[schema.GroupVersionResource]mailboxes.Limits{}
	for _, one := range r.Limits {
		limits[one.Resource] = one.Limits
	}
	return limits
}
