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

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// Projection is the part of an object that the hub caches.
type Projection int

const (
	// FullObject: everything but the managedFields.
	FullObject Projection = iota
	// MetadataOnly: the fields that selection reads. No config of the mailbox selects the object.
	MetadataOnly
	// IdentityOnly: only the identity. The object is beyond a limit; whether a config selects it is unknown.
	IdentityOnly
)

// exceededLimit is the limit that prevents the caching of more than an object's [IdentityOnly].
type exceededLimit int

const (
	withinLimits exceededLimit = iota
	mailboxLimit
	resourceLimit
)

// projectionField marks an object that is not cached whole. The transform removes the field from objects of a server.
const projectionField = "synchub.dev/projection"

// Values of projectionField. The value for an identity names the exceeded limit.
const (
	projectionMetadata           = "Metadata"
	projectionIdentity           = "Identity"
	projectionIdentityByResource = "IdentityByResource"
)

// ProjectionOf returns how much of a cached object there is.
func ProjectionOf(object *unstructured.Unstructured) Projection {
	switch object.Object[projectionField] {
	case nil:
		return FullObject
	case projectionMetadata:
		return MetadataOnly
	default:
		return IdentityOnly
	}
}

// exceededLimitOf returns the limit that a cached identity exceeds.
func exceededLimitOf(object *unstructured.Unstructured) exceededLimit {
	switch {
	case ProjectionOf(object) != IdentityOnly:
		return withinLimits
	case object.Object[projectionField] == projectionIdentityByResource:
		return resourceLimit
	default:
		return mailboxLimit
	}
}

const (
	// lastAppliedAnnotation repeats the whole object.
	lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
	// maxIdentityText bounds each annotation, and all finalizers together, of an [IdentityOnly], in bytes.
	maxIdentityText = 4 << 10
)

// toMetadataOnly returns the fields of an object that selection reads.
func toMetadataOnly(object *unstructured.Unstructured) *unstructured.Unstructured {
	kept := newPartialObject(object, projectionMetadata)
	from, to := metadataFields(object), metadataFields(kept)
	for _, field := range []string{"labels", "ownerReferences", "finalizers", "generation"} {
		if value, ok := from[field]; ok {
			to[field] = value
		}
	}
	annotations, _ := from["annotations"].(map[string]any)
	if _, ok := annotations[lastAppliedAnnotation]; !ok {
		to["annotations"] = annotations
		return kept
	}
	others := make(map[string]any, len(annotations)-1)
	for key, value := range annotations {
		if key != lastAppliedAnnotation {
			others[key] = value
		}
	}
	to["annotations"] = others
	return kept
}

// toIdentityOnly returns the identity of an object, with the given annotations unless they are long, and with the fields that
// keep the object from being deleted.
func toIdentityOnly(object *unstructured.Unstructured, annotations []string) *unstructured.Unstructured {
	kept := newPartialObject(object, projectionIdentity)
	from, to := metadataFields(object), metadataFields(kept)
	to["annotations"] = fewAnnotations(object, annotations)
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 && totalLength(finalizers) <= maxIdentityText {
		to["finalizers"] = from["finalizers"]
	}
	return kept
}

// fewAnnotations returns the given annotations of an object, and the annotation with its logical cluster, unless they are
// long.
func fewAnnotations(object *unstructured.Unstructured, annotations []string) map[string]any {
	all, _ := metadataFields(object)["annotations"].(map[string]any)
	few := map[string]any{}
	for _, key := range append(annotations, logicalcluster.AnnotationKey) {
		if text, ok := all[key].(string); ok && len(text) <= maxIdentityText {
			few[key] = text
		}
	}
	return few
}

// newPartialObject returns the identity of an object, marked as a projection.
func newPartialObject(object *unstructured.Unstructured, projection string) *unstructured.Unstructured {
	metadata := map[string]any{}
	for _, field := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"} {
		if value, ok := metadataFields(object)[field]; ok {
			metadata[field] = value
		}
	}
	kept := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": object.Object["apiVersion"], "kind": object.Object["kind"], "metadata": metadata, projectionField: projection,
	}}
	// The type reports whether a Secret is a ServiceAccount's token, which no config selects.
	if kind, ok := object.Object["type"].(string); ok && len(kind) <= maxIdentityText {
		kept.Object["type"] = kind
	}
	return kept
}

func metadataFields(object *unstructured.Unstructured) map[string]any {
	metadata, _ := object.Object["metadata"].(map[string]any)
	return metadata
}

func totalLength(texts []string) (length int) {
	for _, text := range texts {
		length += len(text)
	}
	return length
}

// cachedObject is the entry of one object in the cache of a resource.
type cachedObject struct {
	current atomic.Pointer[unstructured.Unstructured]
	// fullSize is the size of the whole object.
	fullSize atomic.Int64
	// identityBytes is the size of the object as an [IdentityOnly]; zero before a review computes it.
	identityBytes atomic.Int64
	// listNumber is the number of the initial list that had the object; zero if an event had it.
	listNumber uint32
	// requested is true if a reader needs the whole object although no config selects it.
	requested atomic.Bool

	// relistNumber is the number of the last relist when the object came; zero unless the cache drops unowned mailboxes.
	relistNumber uint32
	// selectionUnknown is true if the object is cached whole because the mailbox's configs were unknown.
	selectionUnknown bool
	// The lock of the mailbox's usage guards the following. countedBytes is what the object counts for there; counted is false
	// before it counts and after it has left the cache.
	countedBytes int64
	counted      bool

	// isPlaceholder is true for an entry without an object: the placeholder of an excluded (evicted or unowned) mailbox, or
	// an end-of-list marker.
	isPlaceholder bool
}

var (
	_ metav1.ObjectMetaAccessor = &cachedObject{}
	_ runtime.Object            = &cachedObject{}
)

// GetObjectMeta lets informers index the current object.
func (c *cachedObject) GetObjectMeta() metav1.Object { return c.current.Load() }

// GetObjectKind implements [runtime.Object], so that an entry can stand in a list.
func (c *cachedObject) GetObjectKind() schema.ObjectKind { return c.current.Load() }

// DeepCopyObject implements [runtime.Object].
func (c *cachedObject) DeepCopyObject() runtime.Object {
	copied := newCachedObject(c.current.Load().DeepCopy(), c.fullSize.Load())
	copied.listNumber = c.listNumber
	return copied
}

func newCachedObject(object *unstructured.Unstructured, size int64) *cachedObject {
	made := &cachedObject{}
	made.fullSize.Store(size)
	made.current.Store(object)
	return made
}

// currentSize returns the size of the entry's current object.
func (c *cachedObject) currentSize() int64 {
	object := c.current.Load()
	if ProjectionOf(object) == FullObject {
		return c.fullSize.Load()
	}
	return cachesize.SizeOf(object)
}

// toObject returns the object of a cache entry or a tombstone.
func toObject(entry any) *unstructured.Unstructured {
	switch known := entry.(type) {
	case cache.DeletedFinalStateUnknown:
		return toObject(known.Obj)
	case *cachedObject:
		return known.current.Load()
	default:
		return entry.(*unstructured.Unstructured)
	}
}
