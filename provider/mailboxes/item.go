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

package mailboxes

import (
	"sync/atomic"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/holdings"
)

// Extent is how much of an object the hub holds.
type Extent int

const (
	// Whole: all but the managedFields.
	Whole Extent = iota
	// Metadata: as much as selection needs. No config of the mailbox selects the object.
	Metadata
	// Identity: only which object it is. It is beyond a limit; whether a config selects the object is unknown.
	Identity
)

// refusal says whose limits leave no room for more of an object than its [Identity].
type refusal int

const (
	notRefused refusal = iota
	byMailbox
	byResource
)

// extentField marks an object that is not held whole. Transformation removes the field from objects of a server.
const extentField = "synchub.dev/extent"

// Values of the extentField. That of an identity says by whose limits no more is held.
const (
	extentMetadata           = "Metadata"
	extentIdentity           = "Identity"
	extentIdentityByResource = "IdentityByResource"
)

// ExtentOf returns how much of an object of a cache is held.
func ExtentOf(object *unstructured.Unstructured) Extent {
	switch object.Object[extentField] {
	case nil:
		return Whole
	case extentMetadata:
		return Metadata
	default:
		return Identity
	}
}

// refusalOf returns by whose limits no more is held of an object of a cache than its identity.
func refusalOf(object *unstructured.Unstructured) refusal {
	switch {
	case ExtentOf(object) != Identity:
		return notRefused
	case object.Object[extentField] == extentIdentityByResource:
		return byResource
	default:
		return byMailbox
	}
}

const (
	// lastApplied holds all of an object once more.
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	// identityText is how many bytes one annotation or all finalizers may have that are held of an [Identity].
	identityText = 4 << 10
)

// metadataOf returns what selection needs of an object.
func metadataOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	kept := partial(object, extentMetadata)
	from, to := metadataFields(object), metadataFields(kept)
	for _, field := range []string{"labels", "ownerReferences", "finalizers", "generation"} {
		if value, ok := from[field]; ok {
			to[field] = value
		}
	}
	annotations, _ := from["annotations"].(map[string]any)
	if _, ok := annotations[lastApplied]; !ok {
		to["annotations"] = annotations
		return kept
	}
	others := make(map[string]any, len(annotations)-1)
	for key, value := range annotations {
		if key != lastApplied {
			others[key] = value
		}
	}
	to["annotations"] = others
	return kept
}

// identityOf returns which object it is, with those of the annotations given that are not long, and what keeps it from
// being deleted.
func identityOf(object *unstructured.Unstructured, annotations []string) *unstructured.Unstructured {
	kept := partial(object, extentIdentity)
	from, to := metadataFields(object), metadataFields(kept)
	all, _ := from["annotations"].(map[string]any)
	few := map[string]any{}
	for _, key := range append(annotations, logicalcluster.AnnotationKey) {
		if text, ok := all[key].(string); ok && len(text) <= identityText {
			few[key] = text
		}
	}
	to["annotations"] = few
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 && lengthOf(finalizers) <= identityText {
		to["finalizers"] = from["finalizers"]
	}
	return kept
}

func partial(object *unstructured.Unstructured, extent string) *unstructured.Unstructured {
	metadata := map[string]any{}
	for _, field := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"} {
		if value, ok := metadataFields(object)[field]; ok {
			metadata[field] = value
		}
	}
	kept := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": object.Object["apiVersion"], "kind": object.Object["kind"], "metadata": metadata, extentField: extent,
	}}
	// Whether a Secret is a ServiceAccount's token, which no config selects.
	if kind, ok := object.Object["type"].(string); ok && len(kind) <= identityText {
		kept.Object["type"] = kind
	}
	return kept
}

func metadataFields(object *unstructured.Unstructured) map[string]any {
	metadata, _ := object.Object["metadata"].(map[string]any)
	return metadata
}

func lengthOf(texts []string) (length int) {
	for _, text := range texts {
		length += len(text)
	}
	return length
}

// item is what the cache of a resource holds of one object.
type item struct {
	held atomic.Pointer[unstructured.Unstructured]
	// size is what the whole object takes.
	size atomic.Int64
	// identity is what the object takes as an [Identity]; zero before a review asks.
	identity atomic.Int64
	// fill is the number of the initial list that the object came with, zero if it came by an event.
	fill uint32
	// requested is true if a reader needs the whole object although no config selects it.
	requested atomic.Bool

	// unsure is true if the object is held whole because the mailbox's configs were unknown.
	unsure bool
	// What follows is guarded by the lock of the mailbox's account. charged is what the object counts for there; counted is
	// false before it does and after it has left the cache.
	charged int64
	counted bool

	// isPlaceholder is true of what stands for all objects of a closed mailbox.
	isPlaceholder bool
}

var (
	_ metav1.ObjectMetaAccessor = &item{}
	_ runtime.Object            = &item{}
)

// GetObjectMeta makes indexes and keys of the object that is held.
func (i *item) GetObjectMeta() metav1.Object { return i.held.Load() }

// GetObjectKind implements [runtime.Object], so that an item can stand in a list.
func (i *item) GetObjectKind() schema.ObjectKind { return i.held.Load() }

// DeepCopyObject implements [runtime.Object].
func (i *item) DeepCopyObject() runtime.Object {
	copied := newItem(i.held.Load().DeepCopy(), i.size.Load())
	copied.fill = i.fill
	return copied
}

func newItem(object *unstructured.Unstructured, size int64) *item {
	made := &item{}
	made.size.Store(size)
	made.held.Store(object)
	return made
}

// heldSize is what the item's object takes now.
func (i *item) heldSize() int64 {
	object := i.held.Load()
	if ExtentOf(object) == Whole {
		return i.size.Load()
	}
	return holdings.SizeOf(object)
}

// objectOf returns the object that an entry of a cache, or a tombstone of one, stands for.
func objectOf(entry any) *unstructured.Unstructured {
	switch known := entry.(type) {
	case cache.DeletedFinalStateUnknown:
		return objectOf(known.Obj)
	case *item:
		return known.held.Load()
	default:
		return entry.(*unstructured.Unstructured)
	}
}
