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

package transform

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// revisionAnnotation contains a number that the Deployment controller of each side increments.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// excludedLabels and excludedAnnotations are never synced, and neither are the labels and annotations of kcp and of hubs.
var (
	excludedLabels = map[string]bool{
		corev1.LabelMetadataName:        true, // the API server sets it on every namespace by itself
		"edge.kubestellar.io/projected": true,
	}
	excludedAnnotations = map[string]bool{
		ownership.KubeStellarDownsynced:         true,
		ownership.KubeStellarUpsynced:           true,
		edgev2alpha1.AnnotationExecutingCount:   true,
		edgev2alpha1.AnnotationCustomizer:       true,
		edgev2alpha1.AnnotationExpandParameters: true,
		corev1.LastAppliedConfigAnnotation:      true,
	}
	// settingAnnotations change how the hub syncs an object. They are for the mailbox, and go no further.
	settingAnnotations = map[string]bool{edgev2alpha1.AnnotationDrift: true, edgev2alpha1.AnnotationIgnoreFields: true}
)

// sanitize returns a copy of the source without the fields that belong to its side. travels reports whether an annotation is
// synced.
func sanitize(source *unstructured.Unstructured, travels func(annotation string) bool) map[string]any {
	content := make(map[string]any, len(source.Object))
	for field, value := range source.Object {
		switch field {
		case "metadata", "status":
		default:
			content[field] = copyContent(value)
		}
	}
	metadata := map[string]any{"name": source.GetName()}
	if namespace := source.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	if labels := filterEntries(source, "labels", shouldSyncLabel); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := filterEntries(source, "annotations", travels); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	content["metadata"] = metadata
	return content
}

func shouldSyncLabel(key string) bool {
	return !excludedLabels[key] && !BelongsToKCP(key) && !belongsToHubs(key)
}

func shouldUpsyncAnnotation(annotation string) bool {
	return !excludedAnnotations[annotation] && !BelongsToKCP(annotation) && !belongsToHubs(annotation)
}

func shouldDownsyncAnnotation(annotation string) bool {
	return shouldUpsyncAnnotation(annotation) && annotation != revisionAnnotation
}

// BelongsToKCP is true for kcp.io and its subdomains, such as the labels of accepted claims (claimed.internal.apis.kcp.io).
func BelongsToKCP(key string) bool { return hasDomain(key, "kcp.io") }

// belongsToHubs is true for the keys of hubs: marks, and the labels of bindings for spec.mailboxAccess and of the Secrets of
// SyncTargets. A target may be a workspace with such objects, and users must not write them through the hub.
func belongsToHubs(key string) bool { return hasDomain(key, synchubv1alpha1.GroupName) }

func hasDomain(key, domain string) bool {
	prefix, _, found := strings.Cut(key, "/")
	rest, ok := strings.CutSuffix(prefix, domain)
	return found && ok && (rest == "" || strings.HasSuffix(rest, "."))
}

// filterEntries returns the labels or annotations to sync.
func filterEntries(source *unstructured.Unstructured, field string, travels func(key string) bool) map[string]any {
	metadata, _ := source.Object["metadata"].(map[string]any)
	entries, _ := metadata[field].(map[string]any)
	kept := make(map[string]any, len(entries))
	for key, value := range entries {
		if text, ok := value.(string); ok && travels(key) {
			kept[key] = text
		}
	}
	return kept
}

// copyContent returns a deep copy of a value. Nulls are values: a nullable field with a default has another value without its
// null. Only the null creationTimestamp that clients in Go send in templates is not copied, since each apply with it increments
// the generation.
func copyContent(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		result := make(map[string]any, len(typed))
		for key, item := range typed {
			result[key] = copyContent(item)
		}
		if metadata, ok := result["metadata"].(map[string]any); ok && isEmbeddedObject(result) {
			if created, ok := metadata["creationTimestamp"]; ok && created == nil {
				delete(metadata, "creationTimestamp")
			}
		}
		return result
	case []any:
		result := make([]any, len(typed))
		for index, item := range typed {
			result[index] = copyContent(item)
		}
		return result
	default:
		return value
	}
}

// isEmbeddedObject reports whether a map with metadata is a template or an object. In any other map, metadata is an ordinary key.
func isEmbeddedObject(fields map[string]any) bool {
	_, hasSpec := fields["spec"]
	_, hasKind := fields["kind"]
	return hasSpec || hasKind
}
