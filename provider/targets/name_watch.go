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

package targets

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// maxSingleNameWatches bounds the names of one resource that are watched one by one. With more, one watch covers all objects,
// until half as many names are left. So adding and removing one name does not list all objects each time.
const maxSingleNameWatches = 8

// NameWatch watches names of one resource that are taken by objects with other owners, and reports when a name may have become
// free.
type NameWatch struct {
	watches  *Watches
	resource schema.GroupVersionResource
	onChange func(types.NamespacedName)
	// changed wakes Run.
	changed chan struct{}

	lock sync.Mutex
	// names are the watched names, with their last observed states.
	names map[types.NamespacedName]observedName
	// watchesAll is true while all objects are watched instead of single names. fullInformers are the synced informers of all
	// objects, by namespace.
	watchesAll    bool
	fullInformers map[string]*informer
	// generation counts the names that were ever added.
	generation int
}

// watchKey identifies the watch of one name. Without a name it covers all objects, or all of the namespace.
type watchKey struct {
	types.NamespacedName
	generation int
}

// observedName is the last observed state of a name: unknown, no object, or an object with a fingerprint.
type observedName struct {
	// generation differs after a name was removed and added again.
	generation  int
	observed    bool
	fingerprint string
}

// fingerprintKey holds the fingerprint of an object in place of its annotations.
const fingerprintKey = "fingerprint"

// toFingerprint reduces an object to its identity and a hash of the metadata that may determine its owner. The hash excludes the
// status, which may change frequently.
func toFingerprint(object any) (any, error) {
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	if _, done := partial.Annotations[fingerprintKey]; done && len(partial.Annotations) == 1 && partial.Labels == nil {
		return partial, nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %q %q", partial.UID, partial.Generation, partial.Labels, partial.Annotations))
	reduced := &metav1.PartialObjectMetadata{ObjectMeta: identityMeta(partial)}
	reduced.Annotations = map[string]string{fingerprintKey: string(sum[:])}
	return reduced, nil
}

func fingerprintOf(object any) string {
	return object.(metav1.Object).GetAnnotations()[fingerprintKey]
}

// NewNameWatch returns a watch without names, which is idle until [NameWatch.Run]. It calls onChange for each deletion of an object
// under a watched name, and for each change of its labels, annotations or generation. It also calls onChange if the first
// list has no object of the name. onChange must not block.
func (w *Watches) NewNameWatch(resource schema.GroupVersionResource, onChange func(types.NamespacedName)) *NameWatch {
	return &NameWatch{
		watches:  w,
		resource: resource,
		onChange: onChange,
		changed:  make(chan struct{}, 1),
		names:    map[types.NamespacedName]observedName{},
	}
}

// Add begins to watch a name, unless it is watched already.
func (w *NameWatch) Add(key types.NamespacedName) {
	w.lock.Lock()
	_, known := w.names[key]
	if !known {
		w.generation++
		w.names[key] = observedName{generation: w.generation}
	}
	informer := w.fullInformerFor(key)
	w.lock.Unlock()
	if known {
		return
	}
	if informer != nil {
		w.onStore(informer, key)
	}
	signal(w.changed)
}

// Remove ends the watch of a name.
func (w *NameWatch) Remove(key types.NamespacedName) {
	w.lock.Lock()
	delete(w.names, key)
	w.lock.Unlock()
	signal(w.changed)
}

// Run watches until ctx ends. It returns when all watches have ended.
func (w *NameWatch) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	watches := map[watchKey]context.CancelFunc{}
	for {
		wanted := w.desiredWatches()
		for key := range wanted {
			if _, ok := watches[key]; ok {
				continue
			}
			watching, stop := context.WithCancel(ctx)
			watches[key] = stop
			running.Go(func() { w.watch(watching, key) })
		}
		for key, stop := range watches {
			if _, ok := wanted[key]; !ok {
				stop()
				delete(watches, key)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
	}
}

// desiredWatches returns the watches for the present names.
func (w *NameWatch) desiredWatches() map[watchKey]struct{} {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.watchesAll = len(w.names) > maxSingleNameWatches || w.watchesAll && len(w.names) > maxSingleNameWatches/2
	if w.watchesAll {
		return w.allObjectsWatches()
	}
	w.fullInformers = nil
	watches := make(map[watchKey]struct{}, len(w.names))
	for key, name := range w.names {
		watches[watchKey{key, name.generation}] = struct{}{}
	}
	return watches
}

// allObjectsWatches returns the watches of all objects, which are namespaced if a name is. It requires the lock.
func (w *NameWatch) allObjectsWatches() map[watchKey]struct{} {
	namespaced := false
	for key := range w.names {
		namespaced = namespaced || key.Namespace != metav1.NamespaceNone
	}
	all := map[watchKey]struct{}{}
	for _, namespace := range w.watches.namespaces.toList(namespaced) {
		all[watchKey{NamespacedName: types.NamespacedName{Namespace: namespace}}] = struct{}{}
	}
	return all
}

// fullInformerFor returns the synced informer of all objects that covers a name; nil if there is none. It requires the lock.
func (w *NameWatch) fullInformerFor(key types.NamespacedName) *informer {
	if full := w.fullInformers[metav1.NamespaceAll]; full != nil {
		return full
	}
	return w.fullInformers[key.Namespace]
}

// watch watches one name, or all objects, until ctx ends.
func (w *NameWatch) watch(ctx context.Context, which watchKey) {
	from := w.watches.metadataSource(w.resource, which.Namespace)
	if which.Name != "" {
		from = from.withName(which.Name)
	}
	observe := func(object any) { w.record(keyFor(object), fingerprintOf(object)) }
	informer := w.watches.newInformer(w.resource, from, nil, toFingerprint, nil, cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, object any) { observe(object) },
		DeleteFunc: func(object any) { w.record(keyFor(object), "") },
	})
	informer.runAndNotify(ctx, func() {
		if which.Name != "" {
			w.onStore(informer, which.NamespacedName)
			return
		}
		for _, key := range w.setFullInformer(ctx, which.Namespace, informer) {
			w.onStore(informer, key)
		}
	})
}

// setFullInformer sets the synced informer of all objects of a namespace, or of the cluster. It returns the watched names there.
func (w *NameWatch) setFullInformer(ctx context.Context, namespace string, synced *informer) []types.NamespacedName {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.watchesAll && ctx.Err() == nil {
		if w.fullInformers == nil {
			w.fullInformers = map[string]*informer{}
		}
		w.fullInformers[namespace] = synced
	}
	keys := make([]types.NamespacedName, 0, len(w.names))
	for key := range w.names {
		if namespace == metav1.NamespaceAll || namespace == key.Namespace {
			keys = append(keys, key)
		}
	}
	return keys
}

// onStore records the state of a name in a synced informer, unless the handler has recorded an object before.
func (w *NameWatch) onStore(informer *informer, key types.NamespacedName) {
	w.lock.Lock()
	// The store is read under the lock: an earlier read could be older than the recorded state.
	object, exists, err := informer.GetByKey(storeKey(key))
	changed := false
	switch {
	case err != nil:
	case !exists:
		changed = w.recordLocked(key, "")
	case !w.names[key].observed:
		changed = w.recordLocked(key, fingerprintOf(object))
	}
	w.lock.Unlock()
	if changed {
		w.onChange(key)
	}
}

// record records the state of a name from an event, and calls onChange if it differs.
func (w *NameWatch) record(key types.NamespacedName, fingerprint string) {
	w.lock.Lock()
	changed := w.recordLocked(key, fingerprint)
	w.lock.Unlock()
	if changed {
		w.onChange(key)
	}
}

// recordLocked records the state of a name, and reports whether to call onChange. It requires the lock.
func (w *NameWatch) recordLocked(key types.NamespacedName, fingerprint string) bool {
	before, watched := w.names[key]
	if !watched {
		return false
	}
	w.names[key] = observedName{generation: before.generation, observed: true, fingerprint: fingerprint}
	if !before.observed {
		return fingerprint == ""
	}
	return before.fingerprint != fingerprint
}
