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

package publishedresource

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/schemas"
	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// API is an API as mailboxes serve it.
type API struct {
	// GroupVersionResource is the resource, with the version that the hub syncs.
	schema.GroupVersionResource
	Kind              string
	Namespaced        bool
	StatusSubresource bool
	// Native is true if kcp itself serves the API, and Exported if the hub's export provides it.
	Native, Exported bool
	// Versions are all served versions.
	Versions []string
}

// ParseDefinition returns the CRD in a manifest, YAML or JSON, as a ConfigMap holds it. Errors start with name.
func ParseDefinition(manifest, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	if err := structural.CheckJSON([]byte(manifest), structural.DefinitionBytes); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(manifest), definition); err != nil {
		return nil, fmt.Errorf("%s is not a CustomResourceDefinition: %w", name, err)
	}
	return definition, nil
}

// BuildSchema returns the schema for mailboxes from a CRD with the names that targets use. Parts of the CRD that a schema
// cannot express are listed in the annotation [schemas.NotesAnnotation]. The error names the invalid field.
func BuildSchema(ctx context.Context, spec *synchubv1alpha1.PublishedResourceSpec, definition *apiextensionsv1.CustomResourceDefinition) (*apisv1alpha1.APIResourceSchema, error) {
	names := definition.Spec.Names
	if wanted := spec.Resource; definition.Spec.Group != wanted.Group ||
		names.Plural != cmp.Or(wanted.Resource, names.Plural) || names.Kind != cmp.Or(wanted.Kind, names.Kind) {
		return nil, fmt.Errorf("spec.resource: the definition defines %s (%s), not the resource named here",
			schema.GroupResource{Group: definition.Spec.Group, Resource: names.Plural}, names.Kind)
	}
	projected, err := schemas.Project(ctx, definition, spec.Resource.Version, projectionOf(spec))
	if err != nil {
		return nil, err
	}
	exported, err := schemas.FromCRD(projected)
	if err != nil {
		return nil, err
	}
	if _, err := APIFromSchema(spec, exported); err != nil {
		return nil, err
	}
	if notes := projected.Annotations[schemas.NotesAnnotation]; notes != "" {
		metav1.SetMetaDataAnnotation(&exported.ObjectMeta, schemas.NotesAnnotation, notes)
	}
	return exported, nil
}

// APIFromSchema returns the API that mailboxes get from an APIResourceSchema.
func APIFromSchema(spec *synchubv1alpha1.PublishedResourceSpec, exported *apisv1alpha1.APIResourceSchema) (API, error) {
	api := API{
		GroupVersionResource: schema.GroupVersionResource{Group: exported.Spec.Group, Resource: exported.Spec.Names.Plural},
		Kind:                 exported.Spec.Names.Kind,
		Namespaced:           exported.Spec.Scope == apiextensionsv1.NamespaceScoped,
		Exported:             true,
	}
	withStatus := map[string]bool{}
	for _, served := range exported.Spec.Versions {
		if served.Served {
			api.Versions = append(api.Versions, served.Name)
			withStatus[served.Name] = served.Subresources.Status != nil
		}
	}
	if len(api.Versions) == 0 {
		return API{}, fmt.Errorf("spec.api: the schema %s serves no version", exported.Name)
	}
	// The preferred version comes first.
	slices.SortFunc(api.Versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	api.Version = cmp.Or(InMailbox(spec).Version, api.Versions[0])
	if !slices.Contains(api.Versions, api.Version) {
		return API{}, fmt.Errorf("spec.resource.version: the schema %s serves no version %q", exported.Name, api.Version)
	}
	api.StatusSubresource = withStatus[api.Version]
	return api, nil
}

// ForeignAPI returns the resource that a PublishedResource claims from another export. Discovery in mailboxes provides the
// other properties.
func ForeignAPI(spec *synchubv1alpha1.PublishedResourceSpec) schema.GroupVersionResource {
	there := InMailbox(spec)
	return schema.GroupVersionResource{Group: there.Group, Version: there.Version, Resource: there.Resource}
}
