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

package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// coreGroup represents the core group in the names of APIResourceSchemas, which do not allow an empty part.
const coreGroup = "core"

// hashLength is the number of hexadecimal digits of the content hash in the name of an APIResourceSchema.
const hashLength = 8

// unapproved is the value of the approval annotation. kcp, like Kubernetes, requires it on a schema of a *.k8s.io
// group that is not the original.
const unapproved = "unapproved, a copy of the API that a cluster serves"

// FromCRD converts a CustomResourceDefinition to an APIResourceSchema named v<hash>.<plural>.<group>. The hash covers
// the resulting spec. Equal content therefore gets the same name, whether it comes from a file or from a server that
// has defaulted fields, and different content gets another name. FromCRD ignores the name and status of the CRD: its
// group may be empty, which no server accepts in a CRD.
//
// The result has no conversion between versions, because kcp could not reach the webhook of a cluster. FromCRD
// returns an error if the CRD has no plural, kind or versions, or a version without a schema.
func FromCRD(crd *apiextensionsv1.CustomResourceDefinition) (*apisv1alpha1.APIResourceSchema, error) {
	name, err := resourceName(crd)
	if err != nil {
		return nil, err
	}

	normal := crd.DeepCopy()
	normal.Name = name
	normal.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&normal.Spec)
	if err := requireSchemas(normal); err != nil {
		return nil, err
	}

	// The real prefix replaces v0 below, when the content to hash exists.
	schema, err := apisv1alpha1.CRDToAPIResourceSchema(normal, "v0")
	if err != nil {
		return nil, fmt.Errorf("converting the definition of %s to an APIResourceSchema: %w", name, err)
	}
	schema.APIVersion = apisv1alpha1.SchemeGroupVersion.String()
	schema.Kind = "APIResourceSchema"
	schema.Spec.NameValidation = nameValidation(crd)
	prefix, err := contentPrefix(&schema.Spec)
	if err != nil {
		return nil, fmt.Errorf("hashing the APIResourceSchema of %s: %w", name, err)
	}
	schema.Name = prefix + "." + name
	schema.Annotations = approvalAnnotations(crd.Spec.Group, crd.Annotations)
	return schema, nil
}

func resourceName(crd *apiextensionsv1.CustomResourceDefinition) (string, error) {
	plural, group := crd.Spec.Names.Plural, crd.Spec.Group
	if plural == "" || crd.Spec.Names.Kind == "" {
		return "", fmt.Errorf("definition %q has no spec.names.plural or no spec.names.kind", crd.Name)
	}
	if group == "" {
		group = coreGroup
	}
	return plural + "." + group, nil
}

func requireSchemas(crd *apiextensionsv1.CustomResourceDefinition) error {
	if len(crd.Spec.Versions) == 0 {
		return fmt.Errorf("the definition of %s has no versions", crd.Name)
	}
	var errs []error
	for _, version := range crd.Spec.Versions {
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			errs = append(errs, fmt.Errorf("version %s of %s has no schema", version.Name, crd.Name))
		}
	}
	return errors.Join(errs...)
}

// contentPrefix returns "v" and the hash of the spec. It hashes by value, because raw JSON in the spec, such as
// defaults, may have its keys in any order.
func contentPrefix(spec *apisv1alpha1.APIResourceSchemaSpec) (string, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	var value map[string]any
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", err
	}
	canonical, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return "v" + hex.EncodeToString(sum[:])[:hashLength], nil
}

// Rename returns a schema with the content of another one, under another name and in a group.
func Rename(schema *apisv1alpha1.APIResourceSchema, name, group string) *apisv1alpha1.APIResourceSchema {
	renamed := &apisv1alpha1.APIResourceSchema{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *schema.Spec.DeepCopy()}
	renamed.Spec.Group = group
	renamed.Annotations = approvalAnnotations(group, schema.Annotations)
	return renamed
}

// approvalAnnotations returns the annotation without which kcp refuses schemas in groups that belong to Kubernetes, for a definition
// with these annotations.
func approvalAnnotations(group string, annotations map[string]string) map[string]string {
	if !apihelpers.IsProtectedCommunityGroup(group) {
		return nil
	}
	value := annotations[apiextensionsv1.KubeAPIApprovedAnnotation]
	if value == "" {
		value = unapproved
	}
	return map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: value}
}

// Annotations of the CRD of a mailbox's API, before FromCRD converts it to an APIResourceSchema.
const (
	// NamesAnnotation is the validation of object names, with a value of spec.nameValidation of an APIResourceSchema.
	// Absent means the validation that CRDs have.
	NamesAnnotation = "synchub.dev/name-validation"

	// NotesAnnotation lists the parts of the original schema that were not kept, one per line.
	NotesAnnotation = "synchub.dev/schema-notes"
)

// AnyName is the value of NamesAnnotation for kinds whose names may be any path segment of a URL, such as roles and
// IPAddresses.
const AnyName = "PathSegmentName"

// subdomainName is the validation of object names that CRDs have.
const subdomainName = "DNS1123Subdomain"

// maxNotesLength bounds the annotation, in bytes. The first notes are the important ones.
const maxNotesLength = 16 << 10

// AddNotes appends notes to the annotation NotesAnnotation of a CRD. The version is empty for notes about all
// versions. AddNotes drops the notes that no longer fit into maxNotesLength.
func AddNotes(crd *apiextensionsv1.CustomResourceDefinition, version string, notes []structural.Note) {
	for _, note := range notes {
		line := strings.TrimSpace(version + " " + note.String())
		text := strings.TrimSpace(crd.Annotations[NotesAnnotation] + "\n" + line)
		if len(text) > maxNotesLength {
			return
		}
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, NotesAnnotation, text)
	}
}

// annotationsOf returns the annotations of a CRD that FromCRD reads.
func annotationsOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]string {
	annotations := maps.Clone(crd.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key != NamesAnnotation && key != NotesAnnotation && key != apiextensionsv1.KubeAPIApprovedAnnotation
	})
	return annotations
}

// nameValidation returns spec.nameValidation of the APIResourceSchema for a CRD.
func nameValidation(crd *apiextensionsv1.CustomResourceDefinition) string {
	if crd.Annotations[NamesAnnotation] == AnyName {
		return AnyName
	}
	return subdomainName
}
