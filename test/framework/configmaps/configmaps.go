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

// Package configmaps has a fake of the ConfigMaps in one namespace of a server.
package configmaps

import (
	"context"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

var resource = corev1.Resource("configmaps")

// Fake has ConfigMaps as a server has them: a write by an old resourceVersion is a conflict, lists have pages, and watches begin at a
// resourceVersion. Other methods than those below panic.
type Fake struct {
	corev1client.ConfigMapInterface
	// Before is called before each request, with its verb and the name of the ConfigMap. An error of it is the answer. Nil does nothing.
	Before func(verb, name string) error
	// After is called after each update, before its answer. Nil does nothing.
	After func(written *corev1.ConfigMap)

	lock    sync.Mutex
	version int
	stored  map[string]*corev1.ConfigMap
	events  []event
	// changed is closed at the next event.
	changed chan struct{}
}

type event struct {
	watch.Event
	version int
}

// New returns a Fake that has ConfigMaps.
func New(stored ...*corev1.ConfigMap) *Fake {
	f := &Fake{stored: map[string]*corev1.ConfigMap{}, changed: make(chan struct{}), version: 1}
	for _, object := range stored {
		f.lock.Lock()
		f.store(watch.Added, object.DeepCopy())
		f.lock.Unlock()
	}
	return f
}

// IsWatchListSemanticsUnSupported makes reflectors list before they watch.
func (*Fake) IsWatchListSemanticsUnSupported() bool { return true }

// SetVersion sets the last resourceVersion, as a restore from a backup does.
func (f *Fake) SetVersion(version int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.version = version
}

// begin begins a request.
func (f *Fake) begin(verb, name string) error {
	if f.Before == nil {
		return nil
	}
	return f.Before(verb, name)
}

// store stores a ConfigMap, or deletes it. The caller holds the lock.
func (f *Fake) store(kind watch.EventType, object *corev1.ConfigMap) {
	f.version++
	object.ResourceVersion = strconv.Itoa(f.version)
	f.stored[object.Name] = object
	if kind == watch.Deleted {
		delete(f.stored, object.Name)
	}
	f.events = append(f.events, event{watch.Event{Type: kind, Object: object.DeepCopy()}, f.version})
	close(f.changed)
	f.changed = make(chan struct{})
}

// Get implements [corev1client.ConfigMapInterface].
func (f *Fake) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	if err := f.begin("get", name); err != nil {
		return nil, err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	found, ok := f.stored[name]
	if !ok {
		return nil, apierrors.NewNotFound(resource, name)
	}
	return found.DeepCopy(), nil
}

// Create implements [corev1client.ConfigMapInterface].
func (f *Fake) Create(_ context.Context, object *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	if err := f.begin("create", object.Name); err != nil {
		return nil, err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.stored[object.Name] != nil {
		return nil, apierrors.NewAlreadyExists(resource, object.Name)
	}
	created := object.DeepCopy()
	f.store(watch.Added, created)
	return created.DeepCopy(), nil
}

// Update implements [corev1client.ConfigMapInterface].
func (f *Fake) Update(_ context.Context, object *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	if err := f.begin("update", object.Name); err != nil {
		return nil, err
	}
	updated, err := f.update(object.DeepCopy())
	if err == nil && f.After != nil {
		f.After(updated)
	}
	return updated, err
}

func (f *Fake) update(object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	switch found := f.stored[object.Name]; {
	case found == nil:
		return nil, apierrors.NewNotFound(resource, object.Name)
	case object.ResourceVersion != "" && object.ResourceVersion != found.ResourceVersion:
		return nil, apierrors.NewConflict(resource, object.Name, nil)
	}
	f.store(watch.Modified, object)
	return object.DeepCopy(), nil
}

// Delete implements [corev1client.ConfigMapInterface].
func (f *Fake) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	if err := f.begin("delete", name); err != nil {
		return err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	found := f.stored[name]
	if found == nil {
		return apierrors.NewNotFound(resource, name)
	}
	f.store(watch.Deleted, found.DeepCopy())
	return nil
}

// List implements [corev1client.ConfigMapInterface]. A page has what is stored when it is requested.
func (f *Fake) List(_ context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error) {
	if err := f.begin("list", ""); err != nil {
		return nil, err
	}
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	names := make([]string, 0, len(f.stored))
	for name, object := range f.stored {
		if name > options.Continue && selector.Matches(labels.Set(object.Labels)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.version)}}
	for _, name := range names {
		if options.Limit > 0 && len(list.Items) == int(options.Limit) {
			list.Continue = list.Items[len(list.Items)-1].Name
			break
		}
		list.Items = append(list.Items, *f.stored[name].DeepCopy())
	}
	return list, nil
}

// Watch implements [corev1client.ConfigMapInterface].
func (f *Fake) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := f.begin("watch", ""); err != nil {
		return nil, err
	}
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, err
	}
	since, err := strconv.Atoi(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{results: make(chan watch.Event), stop: cancel}
	go w.run(ctx, f, selector, since)
	return w, nil
}

type watcher struct {
	results chan watch.Event
	stop    func()
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

func (w *watcher) Stop() { w.stop() }

func (w *watcher) run(ctx context.Context, f *Fake, selector labels.Selector, since int) {
	defer close(w.results)
	for next := 0; ; {
		f.lock.Lock()
		pending, changed := f.events[next:], f.changed
		next = len(f.events)
		f.lock.Unlock()
		for _, one := range pending {
			object := one.Object.(*corev1.ConfigMap).DeepCopy()
			if one.version <= since || !selector.Matches(labels.Set(object.Labels)) {
				continue
			}
			select {
			case w.results <- watch.Event{Type: one.Type, Object: object}:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
