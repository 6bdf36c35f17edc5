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
	"slices"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"

	"github.com/synchub-dev/synchub/controllers/sync"
)

// entry is a published resource with what the export needs of it.
type entry struct {
	resource sync.Resource
	// schema is the name of the APIResourceSchema; empty for a claim.
	schema string
}

// merge adds the entries to the export's spec; a resource that is exported already moves to the entry's schema.
func merge(spec *apisv1alpha2.APIExportSpec, entries []entry) {
	for _, entry := range entries {
		if entry.schema == "" {
			addClaim(spec, entry)
		} else {
			setSchema(spec, entry)
		}
	}
}

func addClaim(spec *apisv1alpha2.APIExportSpec, entry entry) {
	claimed := slices.ContainsFunc(spec.PermissionClaims, func(claim apisv1alpha2.PermissionClaim) bool {
		return claim.Group == entry.resource.Group && claim.Resource == entry.resource.Resource
	})
	if claimed {
		return
	}
	spec.PermissionClaims = append(spec.PermissionClaims, apisv1alpha2.PermissionClaim{
		GroupResource: apisv1alpha2.GroupResource{Group: entry.resource.Group, Resource: entry.resource.Resource},
		// kcp intersects the verbs of both sides as plain strings, and its own tools accept "*".
		Verbs: []string{"*"},
	})
}

func setSchema(spec *apisv1alpha2.APIExportSpec, entry entry) {
	for i := range spec.Resources {
		exported := &spec.Resources[i]
		if exported.Group == entry.resource.Group && exported.Name == entry.resource.Resource {
			exported.Schema = entry.schema
			return
		}
	}
	spec.Resources = append(spec.Resources, apisv1alpha2.ResourceSchema{
		Group:   entry.resource.Group,
		Name:    entry.resource.Resource,
		Schema:  entry.schema,
		Storage: apisv1alpha2.ResourceSchemaStorage{CRD: &apisv1alpha2.ResourceSchemaStorageCRD{}},
	})
}
