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

// Package metadatapatch makes patches that change the metadata of an object only if it is still the same object.
package metadatapatch

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Patch has changes to an object's metadata. The target makes all of them or none.
type Patch struct {
	SetLabels, SetAnnotations map[string]string
	// RemoveLabels and RemoveAnnotations are keys; a missing key is no error.
	RemoveLabels, RemoveAnnotations []string
	// ManagedFields replace all existing entries, unless they are nil.
	ManagedFields []metav1.ManagedFieldsEntry
	// ResourceVersion, if it is set, must equal the object's, else the target returns a Conflict error. ManagedFields require
	// it, because they would be wrong for a field that was written after the caller read the object.
	ResourceVersion string
}

// Merge returns a merge patch for the object that has the UID. The API server refuses the patch for another object, because
// a UID cannot be changed. An apply of the metadata alone would give up all our other fields, and a JSON patch fails if a map
// or a key is missing.
func (p Patch) Merge(uid types.UID) ([]byte, error) {
	switch {
	case uid == "":
		return nil, fmt.Errorf("an edit needs the UID of its object")
	case p.ManagedFields != nil && p.ResourceVersion == "":
		return nil, fmt.Errorf("an edit of managed fields needs the resourceVersion they belong to")
	}
	metadata := map[string]any{"uid": uid}
	if labels := mapPatch(p.SetLabels, p.RemoveLabels); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := mapPatch(p.SetAnnotations, p.RemoveAnnotations); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if p.ManagedFields != nil {
		metadata["managedFields"] = p.ManagedFields
	}
	if p.ResourceVersion != "" {
		metadata["resourceVersion"] = p.ResourceVersion
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}

// mapPatch returns a merge patch for a map; null removes a key. A key that is both set and removed is set.
func mapPatch(set map[string]string, remove []string) map[string]any {
	patch := make(map[string]any, len(set)+len(remove))
	for _, key := range remove {
		patch[key] = nil
	}
	for key, value := range set {
		patch[key] = value
	}
	return patch
}
