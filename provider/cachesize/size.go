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

package cachesize

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Sizes of Go's types on 64-bit platforms. A map consists of groups of eight slots and doubles when more than seven eighths
// of the slots are used. Each value in an interface is a separate allocation.
const (
	mapHeader     = 48
	slotsPerGroup = 8
	mapGroupSize  = 8 + slotsPerGroup*(stringHeader+interfaceSize)
	stringHeader  = 16
	sliceHeader   = 24
	interfaceSize = 16
	scalarSize    = 8
	// objectMetaSize is the size of a metav1.ObjectMeta without the values that its fields point to.
	objectMetaSize = 256
	// resourceVersionSize is the size up to which a resourceVersion does not count. The final state of a deleted object
	// differs from the cached one only in the resourceVersion, so the sizes stay equal. No API server makes longer ones.
	resourceVersionSize = stringHeader + 32
)

// Extended is an object with facts beside its content.
type Extended interface {
	UnstructuredContent() map[string]any
	// SizeOfFacts estimates the heap size of the facts in bytes.
	SizeOfFacts() int64
}

// SizeOf estimates the heap size of an object in bytes, without allocating. For unknown types it returns 0.
func SizeOf(object any) int64 {
	switch known := object.(type) {
	case Extended:
		return scalarSize + sizeOfMap(known.UnstructuredContent()) + known.SizeOfFacts()
	case interface{ UnstructuredContent() map[string]any }:
		return scalarSize + sizeOfMap(known.UnstructuredContent())
	case metav1.ObjectMetaAccessor:
		return sizeOfMetadata(known.GetObjectMeta())
	default:
		return 0
	}
}

func sizeOfMetadata(object metav1.Object) int64 {
	size := int64(objectMetaSize + len(object.GetNamespace()) + len(object.GetName()) + len(object.GetUID()))
	size += int64(max(len(object.GetResourceVersion())+stringHeader-resourceVersionSize, 0))
	size += sizeOfStrings(object.GetLabels()) + sizeOfStrings(object.GetAnnotations())
	for _, owner := range object.GetOwnerReferences() {
		size += int64(5*stringHeader + len(owner.APIVersion) + len(owner.Kind) + len(owner.Name) + len(owner.UID))
	}
	return size
}

func sizeOfStrings(all map[string]string) int64 {
	size := sizeOfSlots(len(all))
	for key, value := range all {
		size += int64(len(key) + len(value))
	}
	return size
}

func sizeOfMap(all map[string]any) int64 {
	size := sizeOfSlots(len(all))
	for key, value := range all {
		size += int64(len(key))
		if key == "resourceVersion" {
			size += max(sizeOfValue(value)-resourceVersionSize, 0)
			continue
		}
		size += sizeOfValue(value)
	}
	return size
}

func sizeOfSlots(entries int) int64 {
	if entries == 0 {
		return mapHeader
	}
	groups := 1
	for entries > slotsPerGroup && entries > groups*(slotsPerGroup-1) {
		groups *= 2
	}
	return int64(mapHeader + groups*mapGroupSize)
}

func sizeOfValue(value any) int64 {
	switch known := value.(type) {
	case map[string]any:
		return sizeOfMap(known)
	case []any:
		size := int64(sliceHeader + interfaceSize*len(known))
		for _, item := range known {
			size += sizeOfValue(item)
		}
		return size
	case string:
		return int64(stringHeader + len(known))
	case nil, bool:
		return 0
	default:
		return scalarSize
	}
}
