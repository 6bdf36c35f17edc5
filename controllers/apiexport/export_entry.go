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
	"errors"
	"fmt"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// exportEntry is a resource schema or a permission claim in the export.
type exportEntry struct {
	schema.GroupResource
	// schema is the name of the APIResourceSchema; empty for a claim.
	schema string
	// identity is the identity hash of the export that provides the claimed API; empty for an API that kcp itself serves.
	identity string
}

// String returns the entry in words, as messages name the entry.
func (e exportEntry) String() string {
	if e.schema != "" {
		return "the schema " + e.schema
	}
	return "the claim on " + e.GroupResource.String()
}

// conflictMessage returns why the export cannot contain the entry in addition to its current entries, or an empty string.
func conflictMessage(spec *apisv1alpha2.APIExportSpec, entry exportEntry) string {
	exported, claimed := findResourceSchema(spec, entry.GroupResource), findClaim(spec, entry.GroupResource)
	switch {
	case entry.schema == "" && exported != nil:
		return fmt.Sprintf("The mailbox export provides %s by itself (schema %s), so it cannot claim it.", entry.GroupResource, exported.Schema)
	case entry.schema != "" && exported == nil && claimed != nil:
		return fmt.Sprintf("The mailbox export claims %s, and a schema would hide the objects that mailboxes have. If the claim is not needed, remove it from the export manually.", entry.GroupResource)
	case entry.schema == "" && claimed != nil && claimed.IdentityHash != entry.identity:
		return fmt.Sprintf("The mailbox export claims %s of the export with the identity %q already, and can claim it from one export only.", entry.GroupResource, claimed.IdentityHash)
	default:
		return ""
	}
}

// addEntry adds the entry to the export's spec. A resource that the export already has changes to the entry's schema.
func addEntry(spec *apisv1alpha2.APIExportSpec, entry exportEntry) {
	switch exported := findResourceSchema(spec, entry.GroupResource); {
	case entry.schema != "" && exported != nil:
		exported.Schema = entry.schema
	case entry.schema != "":
		spec.Resources = append(spec.Resources, apisv1alpha2.ResourceSchema{
			Group:   entry.Group,
			Name:    entry.Resource,
			Schema:  entry.schema,
			Storage: apisv1alpha2.ResourceSchemaStorage{CRD: &apisv1alpha2.ResourceSchemaStorageCRD{}},
		})
	case findClaim(spec, entry.GroupResource) == nil:
		spec.PermissionClaims = append(spec.PermissionClaims, apisv1alpha2.PermissionClaim{
			GroupResource: apisv1alpha2.GroupResource{Group: entry.Group, Resource: entry.Resource},
			// kcp intersects the verbs of both sides as plain strings, and its own tools accept "*".
			Verbs:        []string{"*"},
			IdentityHash: entry.identity,
		})
	}
}

// errNotExported is why a replica that is not the leader omits an entry.
var errNotExported = errors.New("the leader has not exported it")

// missingEntries returns the entries that the export does not have.
func missingEntries(spec *apisv1alpha2.APIExportSpec, entries []exportEntry) map[exportEntry]error {
	missing := map[exportEntry]error{}
	for _, entry := range entries {
		if !hasEntry(spec, entry) {
			missing[entry] = errNotExported
		}
	}
	return missing
}

// hasEntry reports whether the export has the entry, so that addEntry would change nothing.
func hasEntry(spec *apisv1alpha2.APIExportSpec, entry exportEntry) bool {
	if entry.schema == "" {
		return findClaim(spec, entry.GroupResource) != nil
	}
	exported := findResourceSchema(spec, entry.GroupResource)
	return exported != nil && exported.Schema == entry.schema
}

func findResourceSchema(spec *apisv1alpha2.APIExportSpec, resource schema.GroupResource) *apisv1alpha2.ResourceSchema {
	for i := range spec.Resources {
		if exported := &spec.Resources[i]; exported.Group == resource.Group && exported.Name == resource.Resource {
			return exported
		}
	}
	return nil
}

func findClaim(spec *apisv1alpha2.APIExportSpec, resource schema.GroupResource) *apisv1alpha2.PermissionClaim {
	for i := range spec.PermissionClaims {
		if claim := &spec.PermissionClaims[i]; claim.Group == resource.Group && claim.Resource == resource.Resource {
			return claim
		}
	}
	return nil
}
