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
	"maps"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/synchub-dev/synchub/apis/schemas/structural"
)

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
		if crd.Annotations == nil {
			crd.Annotations = map[string]string{}
		}
		crd.Annotations[NotesAnnotation] = text
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
