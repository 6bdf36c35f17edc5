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

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/synchub-dev/synchub/provider/metrics/cachesize"
)

// source is what an informer lists and watches.
type source struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// example has the type of the objects.
	example runtime.Object
	// labelSelector and fieldSelector are selectors.
	labelSelector, fieldSelector string
}

// objectSource returns whole objects of the resource, in a namespace or, if that is "", everywhere.
func (c *Connection) objectSource(resource schema.GroupVersionResource, namespace string) source {
	client := c.resourceClient(resource, namespace)
	return source{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		watch:   client.Watch,
		example: &unstructured.Unstructured{},
	}
}

// metadataSource returns the same as [metav1.PartialObjectMetadata].
func (c *Connection) metadataSource(resource schema.GroupVersionResource, namespace string) source {
	client := c.metadata.Resource(resource).Namespace(namespace)
	return source{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		watch:   client.Watch,
		example: &metav1.PartialObjectMetadata{},
	}
}

// withName narrows the source to one object.
func (s source) withName(name string) source {
	s.fieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return s
}

// informer keeps a store in sync with a target.
type informer struct {
	*store
	*requestGate
	reflector    *cache.Reflector
	connection   *Connection
	restartPacer pacer
	// listProgress is the size of the list that is being read. Only the reflector uses it.
	listProgress listProgress
	// pending is the part of the total that the list takes.
	pending pendingBytes
}

type listProgress struct {
	isListing      bool
	objects, bytes int64
	// listed are the transformed objects of a list in pages.
	listed []any
}

// newInformer returns an informer whose requests pass the gate. It does nothing until it runs.
func (c *Connection) newInformer(from source, gate *requestGate, transform cache.TransformFunc, indexers cache.Indexers, handler cache.ResourceEventHandler) *informer {
	log := c.log.WithValues("resource", gate.resource.String())
	pass := func(ctx context.Context, request func() error) error {
		err := gate.do(ctx, request)
		if err != nil && ctx.Err() == nil {
			log.V(1).Info("the watch ended and will be taken up again", "error", c.RedactError(err))
			c.ProbeNow()
		}
		return err
	}
	made := &informer{requestGate: gate, connection: c, pending: pendingBytes{memory: c.memory}}
	requests := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector, options.FieldSelector = from.labelSelector, from.fieldSelector
			all, err := made.list(ctx, options, func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
				err = pass(ctx, func() (err error) {
					list, err = c.listLimited(ctx, options, from.list)
					return err
				})
				return list, err
			})
			if err != nil {
				made.endList()
			}
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (events watch.Interface, err error) {
			options.LabelSelector, options.FieldSelector = from.labelSelector, from.fieldSelector
			if len(options.ResourceVersion) > maxVersionLength {
				return nil, errVersionTooLong
			}
			if err := made.restartPacer.wait(ctx, c.clock, maxRestarts, restartInterval); err != nil {
				return nil, err
			}
			made.beginList(options.SendInitialEvents != nil)
			err = pass(ctx, func() (err error) {
				events, err = from.watch(ctx, options)
				return err
			})
			if options.SendInitialEvents != nil && apierrors.IsTooManyRequests(err) {
				// If the reflector recognised the error, it would wait without checking whether to end.
				err = errors.New(err.Error())
			}
			return events, err
		},
	}
	made.store = newStore(transform, indexers, handler)
	made.reflector = cache.NewReflectorWithOptions(requests, from.example, made, cache.ReflectorOptions{
		Name: gate.resource.String(), Logger: new(logr.Discard()),
	})
	return made
}

// beginList is called before a request that starts or continues a list.
func (i *informer) beginList(anew bool) {
	if anew {
		i.endList()
		i.listProgress.isListing = true
	}
}

// endList drops the objects that were read, unless the cache takes them.
func (i *informer) endList() {
	i.pending.reset()
	i.listProgress = listProgress{}
}

// errCacheLimitExceeded ends a list that exceeds the cache limits.
var errCacheLimitExceeded = errors.New("the target has more objects than the hub holds")

// list reads all pages, keeps only the transformed objects, and returns an empty list: the objects go to Replace another way.
// The reflector would keep all pages as they came.
func (i *informer) list(ctx context.Context, options metav1.ListOptions, next func(context.Context, metav1.ListOptions) (runtime.Object, error)) (runtime.Object, error) {
	i.beginList(true)
	version, empty := "", 0
	for {
		list, err := next(ctx, options)
		if err != nil {
			return nil, err
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			kept, err := i.transformAndCount(item)
			i.listProgress.listed = append(i.listProgress.listed, kept)
			if err == nil && i.exceedsCacheLimits() {
				err = errCacheLimitExceeded
			}
			return err
		}); err != nil {
			return nil, err
		}
		of, err := meta.ListAccessor(list)
		if err != nil {
			return nil, err
		}
		version = cmp.Or(version, of.GetResourceVersion())
		options.Continue = of.GetContinue()
		if err := i.checkVersions(version, options.Continue); err != nil {
			return nil, err
		}
		if meta.LenList(list) == 0 && options.Continue != "" {
			if empty++; empty > maxEmptyPages {
				i.connection.Quarantine(fmt.Sprintf("its list of %s has no end", i.resource))
				return nil, errEndlessList
			}
		}
		if options.Continue == "" {
			return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: version}}, nil
		}
	}
}

// transformAndCount transforms an object, and counts it if it belongs to a list.
func (i *informer) transformAndCount(object any) (any, error) {
	if err := i.checkName(object); err != nil {
		return nil, err
	}
	object, err := i.transform(object)
	if err == nil && i.listProgress.isListing {
		size := cachesize.SizeOf(object)
		i.listProgress.objects++
		i.listProgress.bytes += size
		i.pending.add(size)
		i.exceedsCacheLimits()
	}
	return object, err
}

// exceedsCacheLimits reports whether the list that is being read exceeds the cache limits, and quarantines the target then.
// Until the list is complete its objects count beside the cached ones, which they replace.
func (i *informer) exceedsCacheLimits() bool {
	bytes := i.listProgress.bytes - i.cached.Bytes()
	return i.connection.exceedsCacheLimits(i.listProgress.objects-i.cached.Objects(), bytes, bytes > 0)
}

// Transformer makes the reflector transform and count the objects of a watch that begins with all objects.
func (i *informer) Transformer() cache.TransformFunc { return i.transformAndCount }

// Replace is called with the objects of a list, unless they came in pages.
func (i *informer) Replace(objects []any, resourceVersion string) error {
	i.UpdateResourceVersion(resourceVersion)
	if i.listProgress.listed != nil {
		objects = i.listProgress.listed
	}
	i.endList()
	return i.store.Replace(objects, resourceVersion)
}

// Add is called for each new object.
func (i *informer) Add(object any) error { return i.Update(object) }

// Update is called for each changed object. An object beyond the limits is cached until the watch ends because of it: the
// reflector would not request it again.
func (i *informer) Update(object any) error {
	before := i.cached.Bytes()
	if err := i.checkName(object); err != nil {
		return err
	}
	err := i.store.Update(object)
	i.connection.exceedsCacheLimits(0, 0, i.cached.Bytes() > before)
	return err
}

// RunWithContext keeps the store in sync until ctx ends, and counts it for that long. The errors of the reflector are not
// logged, because the requests report them.
func (i *informer) RunWithContext(ctx context.Context) {
	defer i.connection.trackInformer(i)()
	// A list may go on for a moment after the reflector has ended.
	defer i.pending.close()
	i.reflector.RunWithContext(klog.NewContext(ctx, logr.Discard()))
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

// toIdentityOnly reduces an object to its identity and resourceVersion.
func toIdentityOnly(object any) (any, error) {
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: identityMeta(partial)}, nil
}

// toIdentityAndLabels keeps the labels, too.
func toIdentityAndLabels(object any) (any, error) {
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := &metav1.PartialObjectMetadata{ObjectMeta: identityMeta(partial)}
	kept.Labels = partial.Labels
	return kept, nil
}

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
