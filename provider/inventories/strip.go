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

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/metrics/cachesize"
	"github.com/synchub-dev/synchub/provider/redact"
)

const (
	// maxAnnotation is how many bytes an annotation may have that the hub reads: it lists SyncTargets of a workspace.
	maxAnnotation = 64 << 10
	// maxFinalizers is how many bytes all finalizers of a SyncTarget may have.
	maxFinalizers = 4 << 10
	// maxSpec is how many bytes the spec of a SyncTarget may have as JSON. The schema allows more only of mailboxAccess.
	maxSpec = 256 << 10
	// maxStatus is how many bytes a status may have as JSON that is held. The hub writes a fraction of that.
	maxStatus = 256 << 10
)

// annotationTooLarge is on a SyncTarget of the cache that is too large to be held. Whoever writes it himself says so of his own.
const annotationTooLarge = "synchub.dev/too-large"

// TooLarge says what of a SyncTarget of the cache is too large, empty if nothing is. Neither its finalizers nor its spec are held then:
// nothing may be concluded from them.
func TooLarge(syncTarget *edgev2alpha1.SyncTarget) (what string) {
	return syncTarget.Annotations[annotationTooLarge]
}

// stripObject leaves of an object what the cache holds of it. What it has made already it leaves as it is.
func stripObject(object any) (any, error) {
	switch known := object.(type) {
	case *edgev2alpha1.SyncTarget:
		stripSyncTarget(known)
	case *metav1.PartialObjectMetadata:
		known.Finalizers = nil
		stripMetadata(&known.ObjectMeta, edgev2alpha1.AnnotationAllowedSyncTargets)
	}
	return object, nil
}

func stripSyncTarget(syncTarget *edgev2alpha1.SyncTarget) {
	stripMetadata(&syncTarget.ObjectMeta, edgev2alpha1.AnnotationForceRemoval, edgev2alpha1.AnnotationConfirmedCluster, annotationTooLarge)
	stripSpec(&syncTarget.Spec)
	if jsonSize(syncTarget.Status) > maxStatus {
		// What the hub writes instead has no such size.
		syncTarget.Status = edgev2alpha1.SyncTargetStatus{}
	}
	what := TooLarge(syncTarget)
	switch {
	case totalLength(syncTarget.Finalizers) > maxFinalizers:
		what = fmt.Sprintf("its finalizers have more than %d bytes", maxFinalizers)
	case jsonSize(syncTarget.Spec) > maxSpec:
		what = fmt.Sprintf("its spec has more than %d bytes", maxSpec)
	}
	if what == "" {
		return
	}
	syncTarget.Annotations[annotationTooLarge] = redact.Text(what)
	syncTarget.Finalizers, syncTarget.Spec = nil, edgev2alpha1.SyncTargetSpec{}
}

// stripSpec leaves of fields without effect that they are set.
func stripSpec(spec *edgev2alpha1.SyncTargetSpec) {
	if len(spec.SupportedAPIExports) > 0 { //nolint:staticcheck // deprecated is why it is told
		spec.SupportedAPIExports = make([]edgev2alpha1.APIExportReference, 1) //nolint:staticcheck // as above
	}
	if len(spec.Cells) > 0 { //nolint:staticcheck // as above
		spec.Cells = map[string]string{"": ""} //nolint:staticcheck // as above
	}
}

// stripMetadata leaves which object it is, its finalizers, and those of the annotations given that are not longer than any use of them.
func stripMetadata(object *metav1.ObjectMeta, annotations ...string) {
	kept := map[string]string{}
	for _, key := range append(annotations, logicalcluster.AnnotationKey) {
		if text, ok := object.Annotations[key]; ok && len(text) <= maxAnnotation {
			kept[key] = text
		}
	}
	object.Annotations = kept
	object.Labels, object.OwnerReferences, object.ManagedFields = nil, nil, nil
}

func totalLength(texts []string) (length int) {
	for _, text := range texts {
		length += len(text)
	}
	return length
}

// jsonSize returns how many bytes a value has as JSON.
func jsonSize(value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		// No API server takes what cannot be written.
		return 0
	}
	return len(text)
}

// sizeOf estimates how many bytes an object of the cache takes.
func sizeOf(object any) int64 {
	size := cachesize.SizeOf(object)
	if syncTarget, is := object.(*edgev2alpha1.SyncTarget); is {
		size += int64(jsonSize(syncTarget.Spec) + jsonSize(syncTarget.Status))
	}
	return size
}
