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

	"github.com/synchub-dev/synchub/provider/holdings"
)

// source is what an informer lists and watches.
type source struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// example is of the type of the objects.
	example runtime.Object
	// labels and fields are selectors.
	labels, fields string
}

// objects are all objects of the resource, as a whole, in a namespace or, if that is "", everywhere.
func (c *Connection) objects(resource schema.GroupVersionResource, namespace string) source {
	client := c.resource(resource, namespace)
	return source{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		watch:   client.Watch,
		example: &unstructured.Unstructured{},
	}
}

// metadataOf are the same as [metav1.PartialObjectMetadata].
func (c *Connection) metadataOf(resource schema.GroupVersionResource, namespace string) source {
	client := c.metadata.Resource(resource).Namespace(namespace)
	return source{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		watch:   client.Watch,
		example: &metav1.PartialObjectMetadata{},
	}
}

// named narrows the source to one object.
func (s source) named(name string) source {
	s.fields = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return s
}

// informer keeps objects in step with a target.
type informer struct {
	*store
	*gate
	reflector  *cache.Reflector
	connection *Connection
	restarts   restarts
	// reading is what was read so far while all is read anew. Only the reflector uses it.
	reading reading
	// coming is what that counts for in the total.
	coming coming
}

type reading struct {
	on             bool
	objects, bytes int64
	// listed are the objects in the form in which they are kept, if they come in pages.
	listed []any
}

// newInformer returns an informer whose requests pass the gate. It does nothing until it is run.
func (c *Connection) newInformer(from source, gate *gate, transform cache.TransformFunc, indexers cache.Indexers, handler cache.ResourceEventHandler) *informer {
	log := c.log.WithValues("resource", gate.resource.String())
	pass := func(ctx context.Context, request func() error) error {
		err := gate.pass(ctx, request)
		if err != nil && ctx.Err() == nil {
			log.V(1).Info("the watch ended and will be taken up again", "error", c.Describe(err))
			c.Doubt()
		}
		return err
	}
	made := &informer{gate: gate, connection: c, coming: coming{of: c.total}}
	requests := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector, options.FieldSelector = from.labels, from.fields
			all, err := made.list(ctx, options, func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
				err = pass(ctx, func() (err error) {
					list, err = c.inTurn(ctx, options, from.list)
					return err
				})
				return list, err
			})
			if err != nil {
				made.endReading()
			}
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (events watch.Interface, err error) {
			options.LabelSelector, options.FieldSelector = from.labels, from.fields
			if len(options.ResourceVersion) > maxPosition {
				return nil, errPositionTooLong
			}
			if err := made.restarts.pause(ctx, c.clock, maxRestarts, restartInterval); err != nil {
				return nil, err
			}
			made.begin(options.SendInitialEvents != nil)
			err = pass(ctx, func() (err error) {
				events, err = from.watch(ctx, options)
				return err
			})
			if options.SendInitialEvents != nil && apierrors.IsTooManyRequests(err) {
				// Were it to recognise this, the reflector would now wait without looking whether it should end.
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

// begin is called before a request that all is read with, or begun to be.
func (i *informer) begin(anew bool) {
	if anew {
		i.endReading()
		i.reading.on = true
	}
}

// endReading lets go of what was read, or leaves it to the cache.
func (i *informer) endReading() {
	i.coming.drop()
	i.reading = reading{}
}

// errCacheFull ends a list of more than may be held.
var errCacheFull = errors.New("the target has more objects than the hub holds")

// list reads all pages, of which it keeps only what the cache does, and returns a list without the objects: those go to
// Replace another way. The reflector would hold all pages as they came.
func (i *informer) list(ctx context.Context, options metav1.ListOptions, next func(context.Context, metav1.ListOptions) (runtime.Object, error)) (runtime.Object, error) {
	i.begin(true)
	version, empty := "", 0
	for {
		list, err := next(ctx, options)
		if err != nil {
			return nil, err
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			kept, err := i.weigh(item)
			i.reading.listed = append(i.reading.listed, kept)
			if err == nil && i.isOver() {
				err = errCacheFull
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
		if err := i.checkPositions(version, options.Continue); err != nil {
			return nil, err
		}
		if meta.LenList(list) == 0 && options.Continue != "" {
			if empty++; empty > maxEmptyPages {
				i.connection.LeaveAlone(fmt.Sprintf("its list of %s has no end", i.resource))
				return nil, errEndlessList
			}
		}
		if options.Continue == "" {
			return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: version}}, nil
		}
	}
}

// weigh is the transform. It counts what is read anew.
func (i *informer) weigh(object any) (any, error) {
	if err := i.checkName(object); err != nil {
		return nil, err
	}
	object, err := i.transform(object)
	if err == nil && i.reading.on {
		size := holdings.SizeOf(object)
		i.reading.objects++
		i.reading.bytes += size
		i.coming.add(size)
		i.isOver()
	}
	return object, err
}

// isOver tells whether more of the target is read anew than may be held, and has it parked then. That is beside what is held
// until all is there, and takes its place then.
func (i *informer) isOver() bool {
	bytes := i.reading.bytes - i.held.Bytes()
	return i.connection.isOver(i.reading.objects-i.held.Objects(), bytes, bytes > 0)
}

// Transformer has the reflector reduce and weigh what it reads of a watch that begins with all objects.
func (i *informer) Transformer() cache.TransformFunc { return i.weigh }

// Replace is called with all that there is, unless it came in pages.
func (i *informer) Replace(objects []any, resourceVersion string) error {
	i.UpdateResourceVersion(resourceVersion)
	if i.reading.listed != nil {
		objects = i.reading.listed
	}
	i.endReading()
	return i.store.Replace(objects, resourceVersion)
}

// Add is called for each object that appears.
func (i *informer) Add(object any) error { return i.Update(object) }

// Update is called for each object that changes. One too many is held all the same until the watch ends for it: the reflector
// would not ask for it again.
func (i *informer) Update(object any) error {
	before := i.held.Bytes()
	if err := i.checkName(object); err != nil {
		return err
	}
	err := i.store.Update(object)
	i.connection.isOver(0, 0, i.held.Bytes() > before)
	return err
}

// RunWithContext keeps the objects in step until ctx ends. For that long they count among what the hub holds. What the
// reflector has to say is said by the requests already.
func (i *informer) RunWithContext(ctx context.Context) {
	defer i.connection.holds(i)()
	// A list may go on for a moment after the reflector has ended.
	defer i.coming.end()
	i.reflector.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// WaitSynced returns true when the informer is synced, false when ctx ends first.
func (i *informer) WaitSynced(ctx context.Context) bool {
	select {
	case <-i.synced:
	case <-ctx.Done():
	}
	return i.Synced()
}

// runAnd runs the informer until ctx ends, and calls synced once it is.
func (i *informer) runAnd(ctx context.Context, synced func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if i.WaitSynced(ctx) {
			synced()
		}
	}()
	i.RunWithContext(ctx)
	<-ended
}

// onlyIdentity leaves of an object what tells it, and its states, from others.
func onlyIdentity(object any) (any, error) {
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: identity(partial)}, nil
}

// identityAndLabels leaves the labels, too.
func identityAndLabels(object any) (any, error) {
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := &metav1.PartialObjectMetadata{ObjectMeta: identity(partial)}
	kept.Labels = partial.Labels
	return kept, nil
}

func identity(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}
}

// keyOfObject returns the key of what an informer tells, which may be a tombstone.
func keyOfObject(object any) types.NamespacedName {
	name, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
}
