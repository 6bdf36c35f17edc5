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

package render

import (
	"context"
	"errors"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/inventories/parameters"
)

// ErrNoCRD means that the API needs a schema from the hub, and that no CRD was given to make the schema from.
var ErrNoCRD = errors.New("the definition of the API is needed for its schema")

// Environment contains the facts, apart from the objects, that rules can refer to.
type Environment struct {
	// Mailbox is the logical cluster of the mailbox, and SyncTarget is the name of its SyncTarget.
	Mailbox, SyncTarget string
	// Labels and Annotations are the SyncTarget's.
	Labels, Annotations map[string]string
}

// Rendering is a PublishedResource with its compiled rules.
type Rendering struct {
	// APISource is how mailboxes get the API: by Schema or by Claim. The other one is nil.
	APISource publishedresource.APISource
	Schema    *apisv1alpha1.APIResourceSchema
	Claim     *apisv1alpha2.PermissionClaim

	environment Environment
	resource    plan.Resource
}

// New returns the rendering of a PublishedResource. The CRD has the names that targets use. It may be nil for a claim;
// otherwise the error is [ErrNoCRD]. Other errors name the invalid field.
func New(ctx context.Context, resource *synchubv1alpha1.PublishedResource, definition *apiextensionsv1.CustomResourceDefinition, environment Environment) (*Rendering, error) {
	source, err := publishedresource.APISourceOf(&resource.Spec)
	if err != nil {
		return nil, err
	}
	preview := &Rendering{APISource: source, environment: environment}
	api, err := preview.api(ctx, resource, definition)
	if err != nil {
		return nil, err
	}
	preview.resource, err = publishedresource.NewCompiler().Compile(resource, api)
	return preview, err
}

// Served returns the rendering of the effective PublishedResource for a resource that a mailbox serves, without
// the schema or the claim. It is nil if there is no PublishedResource.
func Served(all []synchubv1alpha1.PublishedResource, resource schema.GroupResource, served *publishedresource.API, environment Environment) (*Rendering, error) {
	published, compiled, err := publishedresource.CompileServed(all, resource, served)
	if published == nil || err != nil {
		return nil, err
	}
	return &Rendering{environment: environment, resource: compiled}, nil
}

// api returns the API in mailboxes, and sets Schema or Claim.
func (p *Rendering) api(ctx context.Context, resource *synchubv1alpha1.PublishedResource, definition *apiextensionsv1.CustomResourceDefinition) (publishedresource.API, error) {
	spec := &resource.Spec
	switch p.APISource {
	case publishedresource.NativeClaim:
		api, _ := publishedresource.NativeAPI(spec.Resource)
		p.setClaim(api.GroupVersionResource, "")
		return api, nil
	case publishedresource.ForeignClaim:
		claimed := publishedresource.ForeignAPI(spec)
		p.setClaim(claimed, spec.API.IdentityHash)
		// Only a mailbox knows the other properties. They matter only for the return of the status.
		return publishedresource.API{GroupVersionResource: claimed, Kind: publishedresource.InMailbox(spec).Kind, Namespaced: true, Versions: []string{claimed.Version}}, nil
	case publishedresource.OwnSchema:
	}
	if definition == nil {
		return publishedresource.API{}, fmt.Errorf("PublishedResource %s: %w", resource.Name, ErrNoCRD)
	}
	var err error
	if p.Schema, err = publishedresource.BuildSchema(ctx, spec, definition); err != nil {
		return publishedresource.API{}, err
	}
	return publishedresource.APIFromSchema(spec, p.Schema)
}

func (p *Rendering) setClaim(resource schema.GroupVersionResource, identityHash string) {
	p.Claim = &apisv1alpha2.PermissionClaim{
		GroupResource: apisv1alpha2.GroupResource{Group: resource.Group, Resource: resource.Resource},
		IdentityHash:  identityHash,
		Verbs:         []string{"*"},
	}
}

// TargetVersions returns the versions in which the hub can write objects to targets, the preferred one first.
func (p *Rendering) TargetVersions() []string { return p.resource.TargetVersions() }

// Result is the effect on one mailbox object.
type Result struct {
	// Object is the target object, without the hub's marks. It is nil if the filter rejects the mailbox object.
	Object *unstructured.Unstructured
	// Related are the queries for related objects in the mailbox, by the identifiers of the relations.
	Related map[string]related.Query
}

// Down returns the target object of a mailbox object. namespaceLabels are the labels of the object's namespace in the
// mailbox. The error names the rule that fails.
func (p *Rendering) Down(source *unstructured.Unstructured, namespaceLabels map[string]string) (Result, error) {
	if !p.Matches(source) {
		return Result{}, fmt.Errorf("%s %s is a %s; mailboxes have %s of the PublishedResource", source.GetKind(), source.GetName(),
			source.GroupVersionKind().GroupKind(), schema.GroupKind{Group: p.resource.Group, Kind: p.resource.Kind})
	}
	if rules := p.resource.Rules; rules != nil {
		passes, err := rules.Filter.Matches(source, namespaceLabels)
		if err != nil {
			return Result{}, fmt.Errorf("spec.filter: %w", err)
		}
		if !passes {
			return Result{}, nil
		}
	}
	planner := plan.NewPlanner(p.resource, ownership.Owner{}, ownership.NewHasher([]byte("preview")), logicalcluster.Name(p.environment.Mailbox), p.environment.SyncTarget)
	planner.Down.Namespaced = source.GetNamespace() != ""
	spec := p.resource.DownSpec(ownership.PolicyDelete, nil)
	spec.Inputs.SyncTarget = mutation.SyncTarget(p.environment.SyncTarget, p.environment.Labels, parameters.Of(&metav1.ObjectMeta{Annotations: p.environment.Annotations}))
	planned := planner.PlanDown(&plan.Snapshot{InMailbox: source, Readable: true, Down: &plan.DownSnapshot{State: plan.Selected, Spec: spec}})
	if planned.Err != nil {
		return Result{}, planned.Err
	}
	related, err := p.related(source)
	return Result{Object: withoutMarks(planned.Desired.ForCreate()), Related: related}, err
}

// Matches reports whether an object has the API that mailboxes have.
func (p *Rendering) Matches(source *unstructured.Unstructured) bool {
	kind := source.GroupVersionKind()
	return kind.Group == p.resource.Group && (kind.Kind == p.resource.Kind || p.resource.Kind == "")
}

func (p *Rendering) related(source *unstructured.Unstructured) (map[string]related.Query, error) {
	found := map[string]related.Query{}
	for _, relation := range p.resource.Related() {
		if relation.Origin != synchubv1alpha1.RelatedOriginMailbox {
			continue
		}
		wanted, err := relation.Resolve(source, related.Environment{Mailbox: p.environment.Mailbox, SyncTarget: p.environment.SyncTarget})
		if err != nil {
			return nil, err
		}
		found[relation.Identifier] = wanted
	}
	return found, nil
}

// withoutMarks removes the label and the annotation that only a hub can compute.
func withoutMarks(object *unstructured.Unstructured) *unstructured.Unstructured {
	plain := object.DeepCopy()
	unstructured.RemoveNestedField(plain.Object, "metadata", "labels", ownership.OwnerLabel)
	unstructured.RemoveNestedField(plain.Object, "metadata", "annotations", ownership.MarkAnnotation)
	if len(plain.GetLabels()) == 0 {
		plain.SetLabels(nil)
	}
	if len(plain.GetAnnotations()) == 0 {
		plain.SetAnnotations(nil)
	}
	return plain
}
