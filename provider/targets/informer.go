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
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// source has the requests with which an informer lists and watches.
type source struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// example is an object of the expected type.
	example                      runtime.Object
	labelSelector, fieldSelector string
}

// withName restricts the source to one object.
func (s source) withName(name string) source {
	s.fieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return s
}

// informer keeps a store in sync with a target. It checks names, versions and limits before the embedded store gets an object.
type informer struct {
	*store
	*requestGate
	from source
	// run is the current run. Only RunWithContext replaces it.
	run           atomic.Pointer[reflectorRun]
	restartPacer  pacer
	position      position
	contradiction contradiction
}

// reflectorRun is a reflector and its store. cancel ends it, and is nil until it runs.
type reflectorRun struct {
	*cache.Reflector
	store  *reader
	cancel context.CancelFunc
}

// reader is the store of one reflector, for which it reads lists.
type reader struct {
	*informer
	// listProgress is the list that is being read.
	listProgress listProgress
	// pending is the size of that list as part of the limit for all targets.
	pending pendingBytes
}

// listProgress has the transformed objects of a list and their size in bytes.
type listProgress struct {
	isListing      bool
	objects, bytes int64
	// byRequest is true if list requests read the list; listed are its objects then. Otherwise a watch read it.
	byRequest bool
	listed    []any
}

// newRun returns a run that begins with a list.
func (i *informer) newRun(cancel context.CancelFunc) *reflectorRun {
	w, from := i.watches, i.from
	reading := &reader{informer: i, pending: pendingBytes{memory: w.size.memory}}
	pass := func(ctx context.Context, request func() error) error {
		err := i.do(ctx, request)
		if err != nil && ctx.Err() == nil {
			w.env.log.V(1).Info("the watch ended and will be resumed", "resource", i.resource.String(), "error", w.client.redactError(err))
			w.health.ProbeNow()
		}
		return err
	}
	requests := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector, options.FieldSelector = from.labelSelector, from.fieldSelector
			all, err := reading.list(ctx, options, func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
				err = pass(ctx, func() (err error) {
					list, err = w.listLimited(ctx, options, from.list)
					return err
				})
				return list, err
			})
			if err != nil {
				reading.endList()
			}
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (events watch.Interface, err error) {
			options.LabelSelector, options.FieldSelector = from.labelSelector, from.fieldSelector
			if len(options.ResourceVersion) > maxVersionLength {
				return nil, errVersionTooLong
			}
			if err := i.restartPacer.wait(ctx, w.env, maxRestarts, restartInterval); err != nil {
				return nil, err
			}
			if options.SendInitialEvents != nil {
				reading.beginList()
			}
			err = pass(ctx, func() (err error) {
				events, err = from.watch(ctx, options)
				return err
			})
			if err == nil && options.SendInitialEvents == nil {
				i.markSynced()
			}
			if options.SendInitialEvents != nil && apierrors.IsTooManyRequests(err) {
				// If the reflector recognised the error, it would wait and ignore ctx.
				err = errors.New(err.Error())
			}
			return events, err
		},
	}
	return &reflectorRun{cache.NewReflectorWithOptions(requests, from.example, reading, cache.ReflectorOptions{
		Name: i.resource.String(), Logger: new(logr.Discard()),
	}), reading, cancel}
}

// beginList starts to count the objects of a list.
func (i *reader) beginList() {
	i.endList()
	i.listProgress.isListing = true
}

// endList drops the objects of the list, once the store has them or the list has failed.
func (i *reader) endList() {
	i.pending.reset()
	i.listProgress = listProgress{}
}

// errCacheLimitExceeded ends a list that exceeds the cache limits.
var errCacheLimitExceeded = errors.New("the target has more objects than the hub caches")

// list reads all pages, keeps the transformed objects for Replace, and returns an empty list. The reflector would keep all pages
// in memory without the transform.
func (i *reader) list(ctx context.Context, options metav1.ListOptions, next func(context.Context, metav1.ListOptions) (runtime.Object, error)) (runtime.Object, error) {
	i.beginList()
	i.listProgress.byRequest = true
	version, emptyPages := "", 0
	for {
		list, err := next(ctx, options)
		if err != nil {
			return nil, err
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			kept, err := i.transformAndCount(item)
			i.listProgress.listed = append(i.listProgress.listed, kept)
			if err == nil && i.quarantineIfFull() {
				err = errCacheLimitExceeded
			}
			return err
		}); err != nil {
			return nil, err
		}
		listMeta, err := meta.ListAccessor(list)
		if err != nil {
			return nil, err
		}
		version = cmp.Or(version, listMeta.GetResourceVersion())
		options.Continue = listMeta.GetContinue()
		if err := i.checkVersions(version, options.Continue); err != nil {
			return nil, err
		}
		if meta.LenList(list) == 0 && options.Continue != "" {
			if emptyPages++; emptyPages > maxEmptyPages {
				i.watches.quarantine.StartQuarantine(fmt.Sprintf("its list of %s has no end", i.resource))
				return nil, errEndlessList
			}
		}
		if options.Continue == "" {
			return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: version}}, nil
		}
	}
}

// transformAndCount transforms an object, and counts it if a list is being read.
func (i *reader) transformAndCount(object any) (any, error) {
	if err := i.checkName(object); err != nil {
		return nil, err
	}
	object, err := i.transform(object)
	if err == nil && i.listProgress.isListing {
		size := cachesize.SizeOf(object)
		i.listProgress.objects++
		i.listProgress.bytes += size
		i.pending.add(size)
		i.quarantineIfFull()
	}
	return object, err
}

// quarantineIfFull quarantines the target if its caches would exceed a limit once the list that is being read replaces the cached objects.
// It reports whether it did.
func (i *reader) quarantineIfFull() bool {
	bytes := i.listProgress.bytes - i.cached.Bytes()
	return i.watches.size.quarantineIfFull(i.listProgress.objects-i.cached.Objects(), bytes, bytes > 0)
}

// Transformer makes the reflector transform and count the objects of a watch that begins with all objects.
func (i *reader) Transformer() cache.TransformFunc { return i.transformAndCount }

// Replace replaces the cached objects by the objects of the list that was read.
func (i *reader) Replace(objects []any, resourceVersion string) error {
	i.UpdateResourceVersion(resourceVersion)
	byRequest := i.listProgress.byRequest
	if byRequest {
		objects = i.listProgress.listed
	}
	i.endList()
	i.position.listed(objects, resourceVersion)
	err := i.store.Replace(objects, resourceVersion)
	if err == nil && !byRequest {
		i.markSynced()
	}
	return err
}

// Add caches a new object.
func (i *informer) Add(object any) error { return i.Update(object) }

// Update caches a changed object, even beyond the limits: the reflector would not request the object again, and the quarantine
// ends the watch.
func (i *informer) Update(object any) error {
	before := i.cached.Bytes()
	if err := i.checkName(object); err != nil {
		return err
	}
	i.position.changed(object, false)
	err := i.store.Update(object)
	i.watches.size.quarantineIfFull(0, 0, i.cached.Bytes() > before)
	return err
}

// Delete drops a deleted object.
func (i *informer) Delete(object any) error {
	i.position.changed(object, true)
	return i.store.Delete(object)
}

// RunWithContext keeps the store in sync, and counts its size, until ctx ends. It does not log errors of the reflector,
// because the requests report them.
func (i *informer) RunWithContext(ctx context.Context) {
	defer i.watches.informers.track(i, &i.watches.size.cached)()
	defer i.markSynced()
	ctx = klog.NewContext(ctx, logr.Discard())
	// Each run lists everything, and keeps the store in sync until ctx ends or [informer.relist]. The store keeps its objects
	// until they are listed. A run is not a separate function: this code is on the stack of every idle watch, and with a few
	// bytes more the runtime would keep 16 KiB instead of 8 KiB for each.
	for ctx.Err() == nil {
		runCtx, cancel := context.WithCancel(ctx)
		run := i.newRun(cancel)
		i.run.Store(run)
		run.RunWithContext(runCtx)
		// A list may continue for a moment after the reflector has ended.
		run.store.pending.close()
		cancel()
	}
}

// relist lists everything again.
func (i *informer) relist() {
	if cancel := i.run.Load().cancel; cancel != nil {
		cancel()
	}
}

// WaitForCacheSync returns true when the informer has synced, false when ctx ends first.
func (i *informer) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-i.synced:
	case <-ctx.Done():
	}
	return i.HasSynced()
}

// runAndNotify runs the informer until ctx ends, and calls synced once it has synced.
func (i *informer) runAndNotify(ctx context.Context, synced func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if i.WaitForCacheSync(ctx) {
			synced()
		}
	}()
	i.RunWithContext(ctx)
	<-ended
}

// parts are the informers of one cache.
type parts []*informer

// HasSynced reports whether the cache was filled and the handler was called for all initial objects.
func (p parts) HasSynced() bool {
	return !slices.ContainsFunc(p, func(part *informer) bool { return !part.HasSynced() })
}

// WaitForCacheSync returns true when the cache has synced, false when ctx ends first.
func (p parts) WaitForCacheSync(ctx context.Context) bool {
	return !slices.ContainsFunc(p, func(part *informer) bool { return !part.WaitForCacheSync(ctx) })
}

// Availability returns why the target does not let the hub fill the cache, or a part of it.
func (p parts) Availability() Availability {
	for _, part := range p {
		if state := part.Availability(); state != (Availability{}) {
			return state
		}
	}
	return Availability{}
}

// get returns the cached state of an object, or nil.
func (p parts) get(key types.NamespacedName) any {
	for _, part := range p {
		if item, exists, err := part.GetByKey(storeKey(key)); err == nil && exists {
			return item
		}
	}
	return nil
}

// toIdentityOnly reduces an object to its identity and resourceVersion.
func toIdentityOnly(object any) (any, error) {
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: identityMeta(partial)}, nil
}

// toIdentityAndLabels reduces an object to its identity, resourceVersion and labels.
func toIdentityAndLabels(object any) (any, error) {
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := &metav1.PartialObjectMetadata{ObjectMeta: identityMeta(partial)}
	kept.Labels = partial.Labels
	return kept, nil
}

// identityMeta returns the identity and resourceVersion of an object.
func identityMeta(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}
}

// keyFor returns the key of an object or a tombstone.
func keyFor(object any) types.NamespacedName {
	name, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
}
