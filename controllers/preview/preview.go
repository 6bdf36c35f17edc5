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

package preview

import (
	"context"
	"errors"
	"fmt"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

// ErrNoDefinition means that the API is exported with a schema of the hub's, for which its definition is needed.
var ErrNoDefinition = errors.New("the definition of the API is needed for its schema")

// Names are what rules know of where objects live.
type Names struct {
	// Mailbox is the name of the mailbox's logical cluster, SyncTarget that of its SyncTarget.
	Mailbox, SyncTarget string
}

// Preview is what a PublishedResource makes.
type Preview struct {
	// Way is how mailboxes get the API: by Schema or by Claim, of which the other is nil.
	Way    published.Way
	Schema *apisv1alpha1.APIResourceSchema
	Claim  *apisv1alpha2.PermissionClaim

	names    Names
	resource sync.Resource
}

// Of returns the preview of a PublishedResource. The definition is that under the names of the targets; it may be nil if
// the API is claimed, else the error is [ErrNoDefinition]. Other errors name the field that is wrong.
func Of(ctx context.Context, resource *synchubv1alpha1.PublishedResource, definition *apiextensionsv1.CustomResourceDefinition, names Names) (*Preview, error) {
	way, err := published.WayOf(&resource.Spec)
	if err != nil {
		return nil, err
	}
	preview := &Preview{Way: way, names: names}
	api, err := preview.api(ctx, resource, definition)
	if err != nil {
		return nil, err
	}
	preview.resource, err = published.NewCompiler().Compile(resource.Name, &resource.Spec, api)
	return preview, err
}

// api returns what mailboxes have, and notes how they get it.
func (p *Preview) api(ctx context.Context, resource *synchubv1alpha1.PublishedResource, definition *apiextensionsv1.CustomResourceDefinition) (published.API, error) {
	spec := &resource.Spec
	switch p.Way {
	case published.NativeClaim:
		api, _ := published.NativeAPI(spec.Resource)
		p.claim(api.GroupVersionResource, "")
		return api, nil
	case published.ForeignClaim:
		claimed := published.ForeignAPI(spec)
		p.claim(claimed, spec.API.IdentityHash)
		// Only mailboxes could tell the rest, and it matters for what becomes of a status only.
		return published.API{GroupVersionResource: claimed, Kind: published.InMailbox(spec).Kind, Namespaced: true, Versions: []string{claimed.Version}}, nil
	default:
		return p.exported(ctx, resource, definition)
	}
}

func (p *Preview) exported(ctx context.Context, resource *synchubv1alpha1.PublishedResource, definition *apiextensionsv1.CustomResourceDefinition) (published.API, error) {
	if definition == nil {
		return published.API{}, fmt.Errorf("PublishedResource %s: %w", resource.Name, ErrNoDefinition)
	}
	schema, err := published.SchemaOf(ctx, &resource.Spec, definition)
	if err != nil {
		return published.API{}, err
	}
	p.Schema = schema
	return published.SchemaAPI(&resource.Spec, schema)
}

func (p *Preview) claim(resource schema.GroupVersionResource, identityHash string) {
	p.Claim = &apisv1alpha2.PermissionClaim{
		GroupResource: apisv1alpha2.GroupResource{Group: resource.Group, Resource: resource.Resource},
		IdentityHash:  identityHash,
		Verbs:         []string{"*"},
	}
}

// TargetVersions are those in which objects can be written to targets, the preferred one first.
func (p *Preview) TargetVersions() []string { return p.resource.TargetVersions() }

// Arrival is what becomes of an object of a mailbox.
type Arrival struct {
	// Object is what the target is given, without the hub's marks. It is nil if the filter holds the object back.
	Object *unstructured.Unstructured
	// Related are the objects of the mailbox that travel with it, by the identifiers of the relations.
	Related map[string]relation.Wanted
}

// Down returns what becomes of an object of a mailbox. namespaceLabels are those of its namespace there. The error says
// which rule fails.
func (p *Preview) Down(source *unstructured.Unstructured, namespaceLabels map[string]string) (Arrival, error) {
	if err := p.concerns(source); err != nil {
		return Arrival{}, err
	}
	if rules := p.resource.Rules; rules != nil {
		passes, err := rules.Filter.Passes(source, namespaceLabels)
		if err != nil {
			return Arrival{}, fmt.Errorf("spec.filter: %w", err)
		}
		if !passes {
			return Arrival{}, nil
		}
	}
	down := transform.Down{
		Mailbox: p.names.Mailbox, SyncTarget: p.names.SyncTarget,
		Resource: p.resource.GroupResource(), Namespaced: source.GetNamespace() != "",
		Hasher: ownership.NewHasher([]byte("preview")),
	}
	desired, err := down.Desire(source, p.resource.WishDown(ownership.PolicyDelete, nil))
	if err != nil {
		return Arrival{}, err
	}
	related, err := p.related(source)
	return Arrival{Object: withoutMarks(desired.First()), Related: related}, err
}

// IsAbout tells whether an object is of the API that mailboxes have.
func (p *Preview) IsAbout(source *unstructured.Unstructured) bool {
	kind := source.GroupVersionKind()
	return kind.Group == p.resource.Group && (kind.Kind == p.resource.Kind || p.resource.Kind == "")
}

// concerns returns an error if an object is not of the API that mailboxes have.
func (p *Preview) concerns(source *unstructured.Unstructured) error {
	if p.IsAbout(source) {
		return nil
	}
	kind := source.GroupVersionKind()
	return fmt.Errorf("%s %s is a %s; mailboxes have %s of the PublishedResource", source.GetKind(), source.GetName(),
		kind.GroupKind(), schema.GroupKind{Group: p.resource.Group, Kind: p.resource.Kind})
}

func (p *Preview) related(source *unstructured.Unstructured) (map[string]relation.Wanted, error) {
	found := map[string]relation.Wanted{}
	for _, related := range p.resource.Related() {
		if related.Origin != synchubv1alpha1.RelatedOriginMailbox {
			continue
		}
		wanted, err := related.Resolve(source, relation.Environment(p.names))
		if err != nil {
			return nil, err
		}
		found[related.Identifier] = wanted
	}
	return found, nil
}

// withoutMarks takes off what only a hub can fill in.
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
