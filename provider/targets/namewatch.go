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

// maxSingleNameWatches is how many names of one resource are watched one by one. It is half as many that make a watch of all objects
// give way to them again, so that one name more or less does not list everything anew.
const maxSingleNameWatches = 8

// NameWatch tells when something happens under names of one resource that somebody else has taken.
type NameWatch struct {
	connection *Connection
	resource   schema.GroupVersionResource
	onChange   func(types.NamespacedName)
	// changed wakes Run.
	changed chan struct{}

	lock sync.Mutex
	// names are the watched ones, with what is known of them.
	names map[types.NamespacedName]observedName
	// watchesAll is set while all objects of the resource are watched instead of single names; full are those watches once they know
	// them, by namespace.
	watchesAll    bool
	fullInformers map[string]*informer
	// generation counts the names that were ever added.
	generation int
}

// watchKey identifies the watch of one name. Without a name it is that of all objects, in a namespace if it has one.
type watchKey struct {
	types.NamespacedName
	generation int
}

// observedName is what was last seen under a name: nothing yet, no object, or an object with a fingerprint.
type observedName struct {
	// generation tells a name apart from the same that was removed before.
	generation  int
	observed    bool
	fingerprint string
}

// fingerprintKey holds the fingerprint of an object in place of its annotations.
const fingerprintKey = "fingerprint"

// toFingerprint leaves of an object its identity and a hash of what may decide to whom it belongs. Of that a status is
// no part: there are objects whose status changes all the time.
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

// NewNameWatch returns a watch without names, which does nothing until [NameWatch.Run]. For each deletion of an object
// under a watched name, and each change of its labels, annotations or generation, it calls onChange, which must return at
// once. What is there at first is no change, but a name that is free at first is told, since whatever had it is gone.
func (c *Connection) NewNameWatch(resource schema.GroupVersionResource, onChange func(types.NamespacedName)) *NameWatch {
	return &NameWatch{
		connection: c,
		resource:   resource,
		onChange:   onChange,
		changed:    make(chan struct{}, 1),
		names:      map[types.NamespacedName]observedName{},
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
		w.observeStore(informer, key)
	}
	w.wake()
}

// Remove ends the watch of a name.
func (w *NameWatch) Remove(key types.NamespacedName) {
	w.lock.Lock()
	delete(w.names, key)
	w.lock.Unlock()
	w.wake()
}

func (w *NameWatch) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run watches until ctx ends. It does not return before all it started has ended.
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

// desiredWatches returns the watches there should be.
func (w *NameWatch) desiredWatches() map[watchKey]struct{} {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.watchesAll = len(w.names) > maxSingleNameWatches || w.watchesAll && len(w.names) > maxSingleNameWatches/2
	if w.watchesAll {
		return w.allObjectsWatches()
	}
	w.fullInformers = nil
	watches := make(map[watchKey]struct{}, len(w.names))
	for key, seen := range w.names {
		watches[watchKey{key, seen.generation}] = struct{}{}
	}
	return watches
}

// allObjectsWatches returns the watches of all objects. The names tell whether these are in namespaces. It needs the lock.
func (w *NameWatch) allObjectsWatches() map[watchKey]struct{} {
	namespaced := false
	for key := range w.names {
		namespaced = namespaced || key.Namespace != metav1.NamespaceNone
	}
	all := map[watchKey]struct{}{}
	for _, namespace := range w.connection.WatchNamespaces(namespaced) {
		all[watchKey{NamespacedName: types.NamespacedName{Namespace: namespace}}] = struct{}{}
	}
	return all
}

// fullInformerFor returns the watch that knows all objects where a name is, nil if there is none. It needs the lock.
func (w *NameWatch) fullInformerFor(key types.NamespacedName) *informer {
	if full := w.fullInformers[metav1.NamespaceAll]; full != nil {
		return full
	}
	return w.fullInformers[key.Namespace]
}

// watch watches one name, or all objects, until ctx ends.
func (w *NameWatch) watch(ctx context.Context, which watchKey) {
	from := w.connection.metadataSource(w.resource, which.Namespace)
	if which.Name != "" {
		from = from.withName(which.Name)
	}
	note := func(object any) { w.observe(keyFor(object), fingerprintOf(object)) }
	informer := w.connection.newInformer(from, w.connection.newRequestGate(w.resource, nil), toFingerprint, nil, cache.ResourceEventHandlerFuncs{
		AddFunc:    note,
		UpdateFunc: func(_, object any) { note(object) },
		DeleteFunc: func(object any) { w.observe(keyFor(object), "") },
	})
	informer.runAndNotify(ctx, func() {
		if which.Name != "" {
			w.observeStore(informer, which.NamespacedName)
			return
		}
		for _, key := range w.setFullInformer(ctx, which.Namespace, informer) {
			w.observeStore(informer, key)
		}
	})
}

// setFullInformer makes the informer the one that knows all objects of a namespace, or of all, and returns the watched names there.
func (w *NameWatch) setFullInformer(ctx context.Context, namespace string, filled *informer) []types.NamespacedName {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.watchesAll && ctx.Err() == nil {
		if w.fullInformers == nil {
			w.fullInformers = map[string]*informer{}
		}
		w.fullInformers[namespace] = filled
	}
	keys := make([]types.NamespacedName, 0, len(w.names))
	for key := range w.names {
		if namespace == metav1.NamespaceAll || namespace == key.Namespace {
			keys = append(keys, key)
		}
	}
	return keys
}

// observeStore notes what a filled informer holds under a name, unless its handler has been told of an object there already.
func (w *NameWatch) observeStore(informer *informer, key types.NamespacedName) {
	w.lock.Lock()
	// The store and what is known are compared at one moment; a store that is asked before could be older.
	object, exists, err := informer.GetByKey(cache.ObjectName(key).String())
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

// observe takes down what an informer has told of a name.
func (w *NameWatch) observe(key types.NamespacedName, fingerprint string) {
	w.lock.Lock()
	changed := w.recordLocked(key, fingerprint)
	w.lock.Unlock()
	if changed {
		w.onChange(key)
	}
}

// recordLocked takes down what was seen under a name, and reports whether it is to be told. It needs the lock.
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
