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

package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/schemas"
	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// requiredVerbs are the verbs that the hub needs to sync a resource.
var requiredVerbs = []string{"get", "list", "watch"}

// coreGroup replaces the empty name of the core group in the name of a CRD, as in the names of kcp's schemas.
const coreGroup = "core"

var crdTypeMeta = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}

// UnusableError is returned for a resource that the cluster serves and mailboxes cannot have.
type UnusableError struct {
	// Reason explains the failure, as a sentence about the resource.
	Reason string
}

func (e *UnusableError) Error() string { return e.Reason }

func newUnusableError(format string, args ...any) error {
	return &UnusableError{Reason: fmt.Sprintf(format, args...)}
}

// asUnusable returns an [UnusableError] with the reason of an error, unless the error is about a limit or the context.
func asUnusable(err error) error {
	if _, tooLarge := errors.AsType[*structural.TooLargeError](err); tooLarge || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return newUnusableError("%v", err)
}

// CRDFor returns a CRD that defines a resource as the cluster serves it.
//
// The cluster's own CRD keeps all its versions, and loses the fields that only have a meaning in the cluster: status,
// conversion webhook, labels and annotations. A CRD that is built from OpenAPI documents has the served versions, or only
// the requested one. Its annotation [schemas.NotesAnnotation] lists the rules that its schemas cannot express.
//
// The error is [ErrNotServed], an [*UnusableError], a [*structural.TooLargeError], or the error of a failed request.
func (c *Client) CRDFor(ctx context.Context, resource synchubv1alpha1.ResourceDescriptor) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, err := c.crdFor(ctx, resource)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of %s: %w", resourceName(resource), err)
	}
	return crd, nil
}

func (c *Client) crdFor(ctx context.Context, resource synchubv1alpha1.ResourceDescriptor) (*apiextensionsv1.CustomResourceDefinition, error) {
	kinds, err := c.discoverKinds(ctx, resource)
	if err != nil {
		return nil, err
	}
	crd, note, err := c.ownCRD(ctx, kinds[0])
	if crd != nil || err != nil {
		return crd, err
	}
	crd, err = c.crdFromOpenAPI(ctx, kinds)
	if err == nil && note != "" {
		schemas.AddNotes(crd, "", []structural.Note{{Reason: note}})
	}
	return crd, err
}

// resourceName returns the name of a resource for errors.
func resourceName(resource synchubv1alpha1.ResourceDescriptor) string {
	name := cmp.Or(resource.Resource, "kind "+resource.Kind)
	if resource.Group != "" {
		name += "." + resource.Group
	}
	if resource.Version != "" {
		name += " in version " + resource.Version
	}
	return name
}

// discoverKinds returns the kind of a resource in each version that the cluster serves, the preferred one first, or only
// in the requested version. It returns at least one kind, or an error.
func (c *Client) discoverKinds(ctx context.Context, resource synchubv1alpha1.ResourceDescriptor) (kinds []structural.Kind, err error) {
	versions := []string{resource.Version}
	if resource.Version == "" {
		if versions, err = c.allVersions(ctx, resource.Group); err != nil {
			return nil, err
		}
	}
	if many := len(versions); many > maxVersions {
		return nil, newUnusableError("the cluster serves its group in %d versions, but the hub reads at most %d: name the version", many, maxVersions)
	}
	for _, version := range versions {
		kind, err := c.discoverKind(ctx, schema.GroupVersion{Group: resource.Group, Version: version}, resource)
		switch {
		case err == nil:
			kinds = append(kinds, kind)
		case !errors.Is(err, ErrNotServed):
			return nil, err
		}
	}
	if len(kinds) == 0 {
		return nil, ErrNotServed
	}
	return kinds, nil
}

// discoverKind returns the kind of a resource in one version, or [ErrNotServed].
func (c *Client) discoverKind(ctx context.Context, version schema.GroupVersion, resource synchubv1alpha1.ResourceDescriptor) (structural.Kind, error) {
	resources, err := c.Resources(ctx, version)
	if err != nil {
		return structural.Kind{}, err
	}
	i := slices.IndexFunc(resources, func(candidate metav1.APIResource) bool {
		return !strings.Contains(candidate.Name, "/") &&
			(resource.Resource == "" || resource.Resource == candidate.Name) && (resource.Kind == "" || resource.Kind == candidate.Kind)
	})
	if i < 0 {
		return structural.Kind{}, ErrNotServed
	}
	served := resources[i]
	for _, verb := range requiredVerbs {
		if !slices.Contains(served.Verbs, verb) {
			return structural.Kind{}, newUnusableError("it cannot be kept in sync, because the cluster serves it without %s", verb)
		}
	}
	hasSubresource := func(name string) bool {
		return slices.ContainsFunc(resources, func(candidate metav1.APIResource) bool { return candidate.Name == served.Name+"/"+name })
	}
	return structural.Kind{
		GroupVersionKind: version.WithKind(served.Kind),
		Plural:           served.Name,
		Singular:         cmp.Or(served.SingularName, strings.ToLower(served.Kind)),
		ShortNames:       served.ShortNames,
		Categories:       served.Categories,
		Namespaced:       served.Namespaced,
		Status:           hasSubresource("status"),
		Scale:            hasSubresource("scale"),
	}, nil
}

// ownCRD returns the cluster's CRD of a kind. It returns nil if the kind has no CRD. It returns nil and a note if the hub may
// not read the CRD.
func (c *Client) ownCRD(ctx context.Context, kind structural.Kind) (_ *apiextensionsv1.CustomResourceDefinition, note string, err error) {
	if kind.Group == "" {
		return nil, "", nil
	}
	name := kind.Plural + "." + kind.Group
	crd, err := c.GetCRD(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Sprintf("the definition %s may not be read, so the schema comes from the OpenAPI document, without printer columns", name), nil
	case err != nil:
		return nil, "", err
	case !crd.DeletionTimestamp.IsZero():
		return nil, "", newUnusableError("its definition is being deleted")
	}
	return stripCRD(crd), "", structural.CheckDefinition(crd)
}

// stripCRD returns a CRD with only the fields that mean the same in every cluster.
func stripCRD(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	stripped := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   crdTypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: crd.Name},
		Spec:       crd.Spec,
	}
	if approval, ok := crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]; ok {
		stripped.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: approval}
	}
	stripped.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	return stripped
}

// crdFromOpenAPI builds a CRD from the cluster's OpenAPI documents, with a version for each of the kinds.
func (c *Client) crdFromOpenAPI(ctx context.Context, kinds []structural.Kind) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := newCRD(kinds[0])
	for _, kind := range kinds {
		document, err := c.getOpenAPI(ctx, kind.GroupVersion())
		if apierrors.IsNotFound(err) {
			return nil, newUnusableError("the cluster publishes no OpenAPI v3 document of %s: name a CustomResourceDefinition in a ConfigMap", kind.GroupVersion())
		}
		if err != nil {
			return nil, err
		}
		version, notes, err := structural.Schema(ctx, document, kind)
		if err != nil {
			return nil, asUnusable(err)
		}
		schemas.AddNotes(crd, version.Name, notes)
		crd.Spec.Versions = append(crd.Spec.Versions, *version)
	}
	preferred := schemas.PreferredVersion(crd)
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == preferred
	}
	return crd, nil
}

// newCRD returns a CRD of a kind without versions.
func newCRD(kind structural.Kind) *apiextensionsv1.CustomResourceDefinition {
	scope := apiextensionsv1.ClusterScoped
	if kind.Namespaced {
		scope = apiextensionsv1.NamespaceScoped
	}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: crdTypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: kind.Plural + "." + cmp.Or(kind.Group, coreGroup),
			// Each built-in kind has its own rule for names. AnyName accepts all names that one of the rules accepts.
			Annotations: map[string]string{schemas.NamesAnnotation: schemas.AnyName},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group,
			Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: kind.Plural, Singular: kind.Singular, Kind: kind.Kind, ListKind: kind.Kind + "List",
				ShortNames: kind.ShortNames, Categories: kind.Categories,
			},
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter},
		},
	}
}
