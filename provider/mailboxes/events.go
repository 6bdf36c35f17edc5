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
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// handler routes the events of a resource to the subscribers of their mailboxes.
func (e *endpoint) handler(resource schema.GroupVersionResource) cache.ResourceEventHandler {
	if resource == bindingsResource {
		return cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { e.bindingChanged(nil, object) },
			UpdateFunc: func(old, object any) { e.bindingChanged(old, object) },
			DeleteFunc: func(object any) { e.bindingGone(object) },
		}
	}
	hand := func(object *unstructured.Unstructured, event Event) {
		event.Key = types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		for _, subscription := range e.owner.subscribers.of(route{resource, mailboxOf(object)}) {
			subscription.OnEvent(event)
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			object := objectOf(obj)
			e.owner.prover.absolve(mailboxOf(object), suspectOf(resource, object))
			hand(object, Event{New: object, Initial: initial})
		},
		UpdateFunc: func(oldObj, obj any) {
			old, object := objectOf(oldObj), objectOf(obj)
			if old.GetResourceVersion() != object.GetResourceVersion() {
				hand(object, Event{Old: old, New: object})
			}
		},
		DeleteFunc: func(obj any) {
			object := objectOf(obj)
			if _, unseen := obj.(cache.DeletedFinalStateUnknown); unseen {
				// The deletion itself was not seen: the object was missing from a list, which may have been partial.
				e.owner.prover.distrust(mailboxOf(object), resource)
			}
			hand(object, Event{Old: object})
		},
	}
}

// mailboxOf returns the mailbox that an object is in. [logicalcluster.From] does so too, and copies all annotations for it.
func mailboxOf(object *unstructured.Unstructured) logicalcluster.Name {
	name, _, _ := unstructured.NestedString(object.Object, "metadata", "annotations", logicalcluster.AnnotationKey)
	return logicalcluster.Name(name)
}

func (e *endpoint) bindingChanged(old, object any) {
	binding := object.(*unstructured.Unstructured)
	if old != nil && old.(*unstructured.Unstructured).GetResourceVersion() == binding.GetResourceVersion() {
		return
	}
	mailbox := logicalcluster.From(binding)
	e.owner.prover.bindingSeen(mailbox, binding.GetResourceVersion())
	e.owner.resetMailbox(mailbox)
	e.owner.Review(mailbox)
	before, _ := old.(*unstructured.Unstructured)
	e.schemasMoved(e.bound.moved(before, binding))
}

// schemasMoved watches anew what all mailboxes have by another schema now.
func (e *endpoint) schemasMoved(resources []schema.GroupResource) {
	if len(resources) > 0 {
		e.log.Info("mailboxes have changed schemas", "resources", resources)
		// It waits for handlers, of which this is one.
		e.rewatching.Go(func() { e.watchAnew(resources) })
	}
}

// bindingGone drops what was known about a mailbox that is unbound or deleted. Its objects have become Unknown.
func (e *endpoint) bindingGone(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	binding := object.(*unstructured.Unstructured)
	e.owner.letGo(logicalcluster.From(binding))
	e.clients.Evict(logicalcluster.From(binding).Path())
	e.schemasMoved(e.bound.moved(binding, nil))
}

// letGo drops what was known about a mailbox that an endpoint does not show any more. Where it is seen by another one,
// it is looked at anew.
func (m *Mailboxes) letGo(mailbox logicalcluster.Name) {
	m.prover.forget(mailbox)
	for _, configs := range []bool{true, false} {
		if m.accountOf(mailbox, configs).closed.Swap(false) {
			m.closed.Add(-1)
		}
	}
	if m.unlisted.Load() > 0 {
		for _, watching := range append(m.limited(true), m.limited(false)...) {
			watching.stopAwaiting(mailbox, 0)
		}
	}
	m.dropUnused(mailbox)
	if m.locate(mailbox) != nil {
		m.resetMailbox(mailbox)
	}
}
