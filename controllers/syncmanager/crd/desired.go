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

package crd

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/schemas"
)

// unapproved is a value of the annotation that API servers require on CRDs of a protected Kubernetes group that are not the originals.
const unapproved = "unapproved, installed for the API of the mailboxes"

const (
	crdKind = "CustomResourceDefinition"
	// publishedResources is the source resource in the marks of installed CRDs.
	publishedResources = "publishedresources"
)

// Installation is a CRD that a target must have.
type Installation struct {
	// PublishedResource, UID and Created are the name, UID and creation time of the PublishedResource that requests the CRD.
	PublishedResource string
	UID               types.UID
	Created           metav1.Time
	// CRD is the CRD of the source. It must not be changed any more.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Version is the version that the hub writes objects in. Empty means the preferred one.
	Version string
}

// Resource returns the resource that the CRD defines.
func (i Installation) Resource() schema.GroupResource {
	return schema.GroupResource{Group: i.CRD.Spec.Group, Resource: i.CRD.Spec.Names.Plural}
}

// version returns the version that the target must serve, empty if the CRD serves none.
func (i Installation) version() string {
	if i.Version != "" {
		return i.Version
	}
	return schemas.PreferredVersion(i.CRD)
}

// equal reports whether both installations request the same CRD. That is cheap if they share the CRD.
func (i Installation) equal(other Installation) bool {
	if i.PublishedResource != other.PublishedResource || i.UID != other.UID || i.Version != other.Version {
		return false
	}
	const approved = apiextensionsv1.KubeAPIApprovedAnnotation
	return i.CRD == other.CRD ||
		i.CRD.Annotations[approved] == other.CRD.Annotations[approved] && apiequality.Semantic.DeepEqual(i.CRD.Spec, other.CRD.Spec)
}

// Desired returns the CRD that the owner's target must have. It takes only the spec of the source, in the form
// that an API server stores. It drops the conversion between versions, because the target could not reach the
// source's webhook. It returns an error if no target could accept the CRD.
func Desired(desired Installation, owner ownership.Owner) (*apiextensionsv1.CustomResourceDefinition, error) {
	name := desired.Resource().String()
	if desired.CRD.Spec.Group == "" || desired.CRD.Spec.Names.Plural == "" {
		return nil, fmt.Errorf("the definition %q cannot be installed: spec.group and spec.names.plural are required", desired.CRD.Name)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return nil, fmt.Errorf("the definition %q cannot be installed: spec.names.plural and spec.group make no legal name: %s", name, strings.Join(problems, "; "))
	}
	spec, err := normalizeSpec(&desired.CRD.Spec)
	if err != nil {
		return nil, fmt.Errorf("the definition %q cannot be installed: %w", name, err)
	}
	self := ownership.Self{Group: apiextensionsv1.GroupName, Kind: crdKind, Name: name}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: crdKind},
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{ownership.InstalledByLabel: owner.LabelValue()},
			Annotations: desiredAnnotations(desired, owner.Seal(newMark(desired, self, owner))),
		},
		Spec: *spec,
	}, nil
}

// normalizeSpec returns a copy of the spec without the parts that only the source's cluster can use.
func normalizeSpec(source *apiextensionsv1.CustomResourceDefinitionSpec) (*apiextensionsv1.CustomResourceDefinitionSpec, error) {
	// The round trip through JSON unifies values that have several representations in Go.
	text, err := json.Marshal(source)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	spec := &apiextensionsv1.CustomResourceDefinitionSpec{}
	if err := json.Unmarshal(text, spec); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	if spec.PreserveUnknownFields {
		moveToSchemas(spec)
	}
	spec.Conversion = nil
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(spec)
	if _, err := canonicalSpec(spec); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return spec, nil
}

// moveToSchemas moves spec.preserveUnknownFields, which CRDs that once were v1beta1 may have, into the schemas. API servers refuse
// the field in new CRDs.
func moveToSchemas(spec *apiextensionsv1.CustomResourceDefinitionSpec) {
	spec.PreserveUnknownFields = false
	for i := range spec.Versions {
		v := &spec.Versions[i]
		if v.Schema == nil {
			v.Schema = &apiextensionsv1.CustomResourceValidation{}
		}
		if v.Schema.OpenAPIV3Schema == nil {
			v.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object"}
		}
		v.Schema.OpenAPIV3Schema.XPreserveUnknownFields = new(true)
	}
}

func newMark(desired Installation, self ownership.Self, owner ownership.Owner) ownership.Mark {
	return ownership.Mark{
		Version:    ownership.MarkVersion,
		Hub:        owner.Hub,
		SyncTarget: owner.SyncTarget,
		Source: ownership.Source{
			Group: synchubv1alpha1.GroupName, Resource: publishedResources, Name: desired.PublishedResource, UID: desired.UID,
		},
		Self:   self,
		Policy: ownership.PolicyOrphan,
	}
}

func desiredAnnotations(desired Installation, mark string) map[string]string {
	result := map[string]string{ownership.MarkAnnotation: mark}
	if apihelpers.IsProtectedCommunityGroup(desired.CRD.Spec.Group) {
		result[apiextensionsv1.KubeAPIApprovedAnnotation] = unapproved
		if approval := desired.CRD.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]; approval != "" {
			result[apiextensionsv1.KubeAPIApprovedAnnotation] = approval
		}
	}
	return result
}
