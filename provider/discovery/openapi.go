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

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/apis/schemas"
	"github.com/synchub-dev/synchub/apis/schemas/structural"
)

// coreGroup replaces the empty name of the core group in the name of a CRD, as in the names of kcp's schemas.
const coreGroup = "core"

var crdTypeMeta = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}

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
