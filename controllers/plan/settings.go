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

package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// maxIgnoreAnnotation is the maximum length of [edgev2alpha1.AnnotationIgnoreFields] in bytes.
const maxIgnoreAnnotation = 2048

// ApplySettings completes a spec, which has the settings of the PublishedResource, with the settings of the configs' entries and of the
// object. For drift the most specific setting counts. Ignored fields add up. The error is a [*transform.InvalidObjectError] if an
// annotation of the object is invalid, or would weaken what an administrator has set.
func ApplySettings(spec *transform.SyncSpec, entries *selection.Settings, source *unstructured.Unstructured) error {
	if entries != nil {
		if entries.Drift != "" {
			spec.ReportsDrift = entries.Drift == edgev2alpha1.DriftReport
		}
		spec.IgnoredFields = transform.UnionIgnored(spec.IgnoredFields, entries.IgnoredFields)
	}
	if err := applyDrift(spec, source); err != nil {
		return err
	}
	return applyIgnored(spec, source)
}

// applyDrift completes a spec with the drift annotation of its object. It applies no Report to fields that an administrator has set:
// the hub then repairs what somebody changes on the cluster.
func applyDrift(spec *transform.SyncSpec, source *unstructured.Unstructured) error {
	const annotation = edgev2alpha1.AnnotationDrift
	text, _ := Annotation(source, annotation)
	switch drift := edgev2alpha1.DriftPolicy(text); {
	case drift == "":
		return nil
	case drift != edgev2alpha1.DriftRepair && drift != edgev2alpha1.DriftReport:
		return invalidAnnotation(annotation, fmt.Sprintf("%.64q is neither Repair nor Report", text))
	case drift == edgev2alpha1.DriftReport && isNamespace(source):
		return invalidAnnotation(annotation, administeredNamespace)
	case drift == edgev2alpha1.DriftReport && spec.Mutation != nil:
		return invalidAnnotation(annotation, "mutations of the PublishedResource set fields of this kind, so only its spec.drift can be Report: remove the annotation")
	default:
		spec.ReportsDrift = drift == edgev2alpha1.DriftReport
		return nil
	}
}

// applyIgnored completes a spec with the ignored fields that its object names. A field that an administrator sets cannot be ignored.
func applyIgnored(spec *transform.SyncSpec, source *unstructured.Unstructured) error {
	const annotation = edgev2alpha1.AnnotationIgnoreFields
	text, _ := Annotation(source, annotation)
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if isNamespace(source) {
		return invalidAnnotation(annotation, administeredNamespace)
	}
	ignored, err := ignoredFieldsIn(text)
	if err != nil {
		return invalidAnnotation(annotation, err.Error())
	}
	for _, field := range ignored {
		if spec.Mutation.MayChange(field.Path) {
			return invalidAnnotation(annotation, fmt.Sprintf("a mutation of the PublishedResource sets %.256s, so it cannot be ignored: remove the path", field.Path))
		}
	}
	spec.IgnoredFields = transform.UnionIgnored(spec.IgnoredFields, ignored)
	return nil
}

const administeredNamespace = "a Namespace carries labels of the cluster's administrator, for example for Pod Security, which the hub always keeps: remove the annotation"

func isNamespace(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"}
}

// ignoredFieldsIn parses the value of [edgev2alpha1.AnnotationIgnoreFields].
func ignoredFieldsIn(text string) ([]transform.IgnoredField, error) {
	if len(text) > maxIgnoreAnnotation {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), maxIgnoreAnnotation)
	}
	var paths []string
	for path := range strings.SplitSeq(text, ",") {
		paths = append(paths, strings.TrimSpace(path))
	}
	return transform.ParseIgnored(paths)
}

func invalidAnnotation(annotation, message string) error {
	return &transform.InvalidObjectError{Field: fmt.Sprintf("metadata.annotations['%s']", annotation), Message: message}
}
