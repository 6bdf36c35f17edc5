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

package inventories

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/inventories/parameters"
	"github.com/synchub-dev/synchub/provider/redact"
)

const (
	// maxAnnotation is the maximum size in bytes of an annotation that the hub reads. The longest one lists SyncTargets of a
	// workspace.
	maxAnnotation = 64 << 10
	// maxFinalizers is the maximum size in bytes of all finalizers of a SyncTarget.
	maxFinalizers = 4 << 10
	// maxSpec is the maximum size in bytes of the spec of a SyncTarget as JSON. Only mailboxAccess can make a valid spec
	// larger.
	maxSpec = 256 << 10
	// maxStatus is the maximum size in bytes of a cached status as JSON. The hub writes much smaller ones.
	maxStatus = 256 << 10
	// maxLabels is the maximum size in bytes of all labels of a SyncTarget or a Location, keys and values. Selectors need
	// few labels, and API servers limit only each of them.
	maxLabels = 16 << 10
	// maxLocationSpec is the maximum size in bytes of the spec of a Location as JSON. The descriptions of labels alone could
	// make a valid spec larger.
	maxLocationSpec = 64 << 10
)

// annotationTooLarge marks a cached SyncTarget or Location that was too large. A user who sets it on an object only excludes
// that one.
const annotationTooLarge = "synchub.dev/too-large"

// TooLarge returns the reason why a cached SyncTarget or Location is too large, or "". The cache then has neither its
// labels, nor its finalizers, nor its spec, so callers must not use them.
func TooLarge(object metav1.Object) (reason string) {
	return object.GetAnnotations()[annotationTooLarge]
}

// stripObject removes the fields of an object that the cache does not hold. It is idempotent.
func stripObject(object any) (any, error) {
	switch known := object.(type) {
	case *edgev2alpha1.SyncTarget:
		stripSyncTarget(known)
	case *edgev2alpha1.Location:
		stripLocation(known)
	case *metav1.PartialObjectMetadata:
		known.Finalizers, known.Labels = nil, nil
		stripMetadata(&known.ObjectMeta, edgev2alpha1.AnnotationAllowedSyncTargets)
	}
	return object, nil
}

func stripSyncTarget(syncTarget *edgev2alpha1.SyncTarget) {
	kept := parameters.Of(syncTarget)
	stripMetadata(&syncTarget.ObjectMeta, edgev2alpha1.AnnotationForceRemoval, edgev2alpha1.AnnotationConfirmedCluster, edgev2alpha1.AnnotationConfirmedRestore, annotationTooLarge)
	stripSpec(&syncTarget.Spec)
	if jsonSize(syncTarget.Status) > maxStatus {
		// The hub then writes a status, which is small.
		syncTarget.Status = edgev2alpha1.SyncTargetStatus{}
	}
	reason := TooLarge(syncTarget)
	switch {
	case totalLength(syncTarget.Finalizers) > maxFinalizers:
		reason = fmt.Sprintf("its finalizers have more than %d bytes", maxFinalizers)
	case jsonSize(syncTarget.Spec) > maxSpec:
		reason = fmt.Sprintf("its spec has more than %d bytes", maxSpec)
	case totalLabelLength(syncTarget.Labels) > maxLabels:
		reason = fmt.Sprintf("its labels have more than %d bytes", maxLabels)
	}
	if reason == "" {
		maps.Copy(syncTarget.Annotations, kept)
		return
	}
	syncTarget.Annotations[annotationTooLarge] = redact.Text(reason)
	syncTarget.Labels, syncTarget.Finalizers, syncTarget.Spec = nil, nil, edgev2alpha1.SyncTargetSpec{}
}

func stripLocation(location *edgev2alpha1.Location) {
	kept := parameters.Of(location)
	stripMetadata(&location.ObjectMeta, annotationTooLarge)
	location.Finalizers = nil
	if jsonSize(location.Status) > maxStatus {
		// The hub then writes a status, which is small.
		location.Status = edgev2alpha1.LocationStatus{}
	}
	reason := TooLarge(location)
	switch {
	case jsonSize(location.Spec) > maxLocationSpec:
		reason = fmt.Sprintf("its spec has more than %d bytes", maxLocationSpec)
	case totalLabelLength(location.Labels) > maxLabels:
		reason = fmt.Sprintf("its labels have more than %d bytes", maxLabels)
	}
	if reason == "" {
		maps.Copy(location.Annotations, kept)
		return
	}
	location.Annotations[annotationTooLarge] = redact.Text(reason)
	location.Labels, location.Spec = nil, edgev2alpha1.LocationSpec{}
}

// stripSpec shortens fields without effect, so that the hub can still report that they are set.
func stripSpec(spec *edgev2alpha1.SyncTargetSpec) {
	if len(spec.SupportedAPIExports) > 0 { //nolint:staticcheck // the field is deprecated, and the hub reports that it is set
		spec.SupportedAPIExports = make([]edgev2alpha1.APIExportReference, 1) //nolint:staticcheck // as above
	}
	if len(spec.Cells) > 0 { //nolint:staticcheck // as above
		spec.Cells = map[string]string{"": ""} //nolint:staticcheck // as above
	}
}

// stripMetadata removes owners and all annotations, except the given ones of at most maxAnnotation bytes.
func stripMetadata(object *metav1.ObjectMeta, annotations ...string) {
	kept := map[string]string{}
	for _, key := range append(annotations, logicalcluster.AnnotationKey) {
		if text, ok := object.Annotations[key]; ok && len(text) <= maxAnnotation {
			kept[key] = text
		}
	}
	object.Annotations = kept
	object.OwnerReferences, object.ManagedFields = nil, nil
}

func totalLength(texts []string) (length int) {
	for _, text := range texts {
		length += len(text)
	}
	return length
}

func totalLabelLength(labels map[string]string) (length int) {
	for key, value := range labels {
		length += len(key) + len(value)
	}
	return length
}

// jsonSize returns the size in bytes of a value as JSON.
func jsonSize(value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		// API servers accept no such values.
		return 0
	}
	return len(text)
}

// sizeOf estimates the heap size in bytes of a cached object.
func sizeOf(object any) int64 {
	size := cachesize.SizeOf(object)
	switch known := object.(type) {
	case *edgev2alpha1.SyncTarget:
		size += int64(jsonSize(known.Spec) + jsonSize(known.Status))
	case *edgev2alpha1.Location:
		size += int64(jsonSize(known.Spec) + jsonSize(known.Status))
	}
	return size
}
