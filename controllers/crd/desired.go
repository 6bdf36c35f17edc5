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

	"github.com/synchub-dev/synchub/apis/schemas"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
)

// InstalledByLabel is on each definition that the hub installed; its value is [ownership.Owner.LabelValue]. It is not the
// label of objects that came from a mailbox, so that nobody takes the definition for one of them.
const InstalledByLabel = "synchub.dev/installed-by"

// unapproved is what API servers ask for on a definition of a group that belongs to Kubernetes, if it is not the original.
const unapproved = "unapproved, installed for the API of the mailboxes"

const (
	crdKind = "CustomResourceDefinition"
	// publishedResources is what definitions are marked to come from.
	publishedResources = "publishedresources"
)

// Installation is a definition that a target must have.
type Installation struct {
	// PublishedResource and UID are of the PublishedResource that asks for it.
	PublishedResource string
	UID               types.UID
	// CRD is the definition as its source has it. It must not change any more.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Version is the one that objects are written in. Empty stands for the preferred one.
	Version string
}

// resource is what the definition defines.
func (w Installation) resource() schema.GroupResource {
	return schema.GroupResource{Group: w.CRD.Spec.Group, Resource: w.CRD.Spec.Names.Plural}
}

// version is the one that the target must serve; empty if the definition serves none.
func (w Installation) version() string {
	if w.Version != "" {
		return w.Version
	}
	return schemas.PreferredVersion(w.CRD)
}

// equal tells whether two ask for the same. That is cheap where they share the definition.
func (w Installation) equal(other Installation) bool {
	if w.PublishedResource != other.PublishedResource || w.UID != other.UID || w.Version != other.Version {
		return false
	}
	const approved = apiextensionsv1.KubeAPIApprovedAnnotation
	return w.CRD == other.CRD ||
		w.CRD.Annotations[approved] == other.CRD.Annotations[approved] && apiequality.Semantic.DeepEqual(w.CRD.Spec, other.CRD.Spec)
}

// Desired returns the definition as the owner's target must have it: of the source's the spec alone, in the form in which
// an API server stores it. Versions are not converted into each other, because the target could not reach the source's
// webhook. The error says why no target could accept the definition.
func Desired(desired Installation, owner ownership.Owner) (*apiextensionsv1.CustomResourceDefinition, error) {
	name := desired.resource().String()
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
			Labels:      map[string]string{InstalledByLabel: owner.LabelValue()},
			Annotations: desiredAnnotations(desired, owner.Seal(newMark(desired, self, owner))),
		},
		Spec: *spec,
	}, nil
}

// normalizeSpec returns a copy of the spec without what only the source's cluster can use.
func normalizeSpec(source *apiextensionsv1.CustomResourceDefinitionSpec) (*apiextensionsv1.CustomResourceDefinitionSpec, error) {
	// By way of JSON, which says some things in one form only that Go can say in two.
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

// moveToSchemas says in the schemas what spec.preserveUnknownFields says in definitions that once were v1beta1's. New
// ones must not have it.
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
