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

// Annotations that the definition of a mailbox's API carries until it is an APIResourceSchema.
const (
	// NamesAnnotation is the validation of object names, in the terms of an APIResourceSchema. Absent means that of
	// definitions.
	NamesAnnotation = "synchub.dev/name-validation"

	// NotesAnnotation says, one line each, what of the original schema could not be kept.
	NotesAnnotation = "synchub.dev/schema-notes"
)

// AnyName is the value of NamesAnnotation for kinds whose names may be all that fits into a URL, such as those of roles
// and of IPAddresses.
const AnyName = "PathSegmentName"

// subdomainName is the validation of names that definitions have.
const subdomainName = "DNS1123Subdomain"

// maxNotesLength bounds the annotation. The first notes are the ones that matter.
const maxNotesLength = 16 << 10

// AddNotes adds to the annotation NotesAnnotation of a definition. The version is empty for what concerns all.
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

// annotationsOf returns those annotations of a definition that count for its APIResourceSchema.
func annotationsOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]string {
	annotations := maps.Clone(crd.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key != NamesAnnotation && key != NotesAnnotation && key != apiextensionsv1.KubeAPIApprovedAnnotation
	})
	return annotations
}

// nameValidation returns how the names of a definition's objects are validated.
func nameValidation(crd *apiextensionsv1.CustomResourceDefinition) string {
	if crd.Annotations[NamesAnnotation] == AnyName {
		return AnyName
	}
	return subdomainName
}
