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

package publish

import (
	"errors"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// Publication is the plan for one resource: the existing PublishedResource, the desired one if there is none, or both if
// the existing one must change.
type Publication struct {
	Resource          schema.GroupResource
	Existing, Desired *synchubv1alpha1.PublishedResource
}

// Name returns the name of the PublishedResource.
func (p *Publication) Name() string {
	if p.Existing != nil {
		return p.Existing.Name
	}
	return p.Desired.Name
}

// HasOtherSchema reports whether mailboxes already have the API with a schema from another source.
func (p *Publication) HasOtherSchema(source synchubv1alpha1.SchemaFrom) bool {
	if p.Existing == nil {
		return false
	}
	if apiSource, err := publishedresource.APISourceOf(&p.Existing.Spec); err == nil && apiSource == publishedresource.NativeClaim {
		return false
	}
	from := p.Existing.Spec.API.SchemaFrom
	return from == nil || !apiequality.Semantic.DeepEqual(*from, source)
}

// Plan returns a publication for each resource, with the schema from the SyncTarget. The mapper is the REST mapper of the
// target. The error names every resource that the target does not serve, or that mailboxes cannot have.
func Plan(resources []schema.GroupResource, source synchubv1alpha1.SyncTargetSchema, mapper meta.RESTMapper, existing []synchubv1alpha1.PublishedResource) ([]Publication, error) {
	var imports []Publication
	var errs []error
	for _, resource := range resources {
		found, err := planPublication(resource, source, mapper, existing)
		if err != nil {
			errs = append(errs, err)
		} else if !slices.ContainsFunc(imports, func(other Publication) bool { return other.Resource == found.Resource }) {
			imports = append(imports, found)
		}
	}
	return imports, errors.Join(errs...)
}

func planPublication(resource schema.GroupResource, source synchubv1alpha1.SyncTargetSchema, mapper meta.RESTMapper, existing []synchubv1alpha1.PublishedResource) (Publication, error) {
	resource, kind, err := servedResource(resource, mapper)
	if err != nil && !meta.IsNoMatchError(err) {
		return Publication{}, fmt.Errorf("cannot find out whether the target serves %s: %w", resource, err)
	}
	if known := publishedresource.FindOldest(existing, publishedresource.OnTarget, resource, kind); known != nil {
		return Publication{Resource: resource, Existing: known}, nil
	}
	if err != nil {
		return Publication{}, fmt.Errorf("the target does not serve %s, so mailboxes cannot get it from there", resource)
	}
	made, err := desiredPublishedResource(resource, kind, synchubv1alpha1.SchemaFrom{SyncTarget: &source})
	return Publication{Resource: resource, Desired: made}, err
}

// servedResource returns the full name and the kind of a resource that the target serves.
func servedResource(resource schema.GroupResource, mapper meta.RESTMapper) (schema.GroupResource, string, error) {
	found, err := mapper.ResourceFor(resource.WithVersion(""))
	if err != nil {
		return resource, "", err
	}
	kind, err := mapper.KindFor(found)
	return found.GroupResource(), kind.Kind, err
}

// desiredPublishedResource returns the PublishedResource for a resource: a claim if kcp itself serves the API, otherwise
// with the schema of the source. Of an API that acts inside kcp mailboxes get a twin.
func desiredPublishedResource(resource schema.GroupResource, kind string, source synchubv1alpha1.SchemaFrom) (*synchubv1alpha1.PublishedResource, error) {
	spec := synchubv1alpha1.PublishedResourceSpec{Resource: synchubv1alpha1.ResourceDescriptor{Group: resource.Group, Resource: resource.Resource, Kind: kind}}
	_, native := publishedresource.NativeAPI(spec.Resource)
	_, hasTwin := policy.FindTwinned(resource.Group, resource.Resource, kind)
	switch {
	case native:
		spec.API.Source = synchubv1alpha1.APISourceClaim
	case hasTwin:
		spec.API = synchubv1alpha1.APISource{Source: synchubv1alpha1.APISourceAuto, SchemaFrom: &source}
	default:
		spec.API = synchubv1alpha1.APISource{Source: synchubv1alpha1.APISourceSchema, SchemaFrom: &source}
	}
	if _, err := publishedresource.APISourceOf(&spec); err != nil {
		return nil, fmt.Errorf("%s cannot be brought to mailboxes: %w", resource, err)
	}
	return &synchubv1alpha1.PublishedResource{
		TypeMeta:   metav1.TypeMeta{APIVersion: synchubv1alpha1.GroupVersion.String(), Kind: "PublishedResource"},
		ObjectMeta: metav1.ObjectMeta{Name: resource.String()},
		Spec:       spec,
	}, nil
}
