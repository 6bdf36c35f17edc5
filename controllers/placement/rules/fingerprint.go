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

package rules

import (
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// Fingerprint identifies the content of a set of objects. Users who may read the objects' metadata can compute
// it, and so check whether the hub has observed the present content.
type Fingerprint struct {
	count int
	sum   uint64
}

// Add adds an object, by the hash that ContentHash returns.
func (f *Fingerprint) Add(contentHash uint64) {
	f.count++
	f.sum += contentHash
}

// String returns the text in the status of an EdgePlacement.
func (f *Fingerprint) String() string { return fmt.Sprintf("%d-%016x", f.count, f.sum) }

// ContentHash returns a hash that changes with the content of an object, and not with its status. It reads the metadata only: the
// generation, the labels and the annotations, or the resource version if the kind counts no generations.
func ContentHash(resource schema.GroupResource, object *unstructured.Unstructured) uint64 {
	hash := fnv.New64a()
	write := func(texts ...string) {
		for _, text := range texts {
			_, _ = io.WriteString(hash, strconv.Itoa(len(text))+":"+text)
		}
	}
	write(resource.Group, resource.Resource, object.GetNamespace(), object.GetName(), string(object.GetUID()))
	if object.GetGeneration() == 0 {
		write(object.GetResourceVersion())
		return hash.Sum64()
	}
	write(strconv.FormatInt(object.GetGeneration(), 10))
	for _, field := range []string{"labels", "annotations"} {
		values := plan.MetadataMap(object, field)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if text, ok := values[key].(string); ok && !IsBookkeeping(key) {
				write(field, key, text)
			}
		}
	}
	return hash.Sum64()
}

// IsBookkeeping reports whether an annotation is not content: it is the hub's, or kubectl's copy of the object.
func IsBookkeeping(key string) bool {
	return key == edgev2alpha1.AnnotationExecutingCount || key == ownership.StatusAnnotation || key == corev1.LastAppliedConfigAnnotation
}
