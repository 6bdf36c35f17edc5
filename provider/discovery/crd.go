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
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/apis/schemas/structural"
)

const crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// getCRD returns the CustomResourceDefinition of a kind, or nil if it has none or may not be read. The reason is for
// the latter.
func (r clusterReader) getCRD(ctx context.Context, kind structural.Kind) (_ *apiextensionsv1.CustomResourceDefinition, reason string, err error) {
	if kind.Group == "" {
		return nil, "", nil
	}
	name := kind.Plural + "." + kind.Group
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err = r.getJSON(ctx, crd, crdsPath, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Sprintf("the definition %s may not be read, so the schema is that of the OpenAPI document, without printer columns", name), nil
	case err != nil:
		return nil, "", err
	case !crd.DeletionTimestamp.IsZero():
		return nil, "", newUnusableError("its definition is being deleted")
	}
	return stripCRD(crd), "", structural.CheckDefinition(crd)
}

// stripCRD returns what of a definition means the same in every cluster.
func stripCRD(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	cleaned := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   crdTypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: crd.Name},
		Spec:       crd.Spec,
	}
	if approval, ok := crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]; ok {
		cleaned.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: approval}
	}
	cleaned.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	return cleaned
}
