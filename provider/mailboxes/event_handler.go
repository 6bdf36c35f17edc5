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

	"github.com/synchub-dev/synchub/provider/storehistory"
)

// eventHandler returns a handler that routes the events of a resource to the subscribers of each mailbox.
func (e *endpoint) eventHandler(resource schema.GroupVersionResource) cache.ResourceEventHandler {
	if resource == bindingsResource {
		return cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { e.onBindingChanged(nil, object) },
			UpdateFunc: func(old, object any) { e.onBindingChanged(old, object) },
			DeleteFunc: func(object any) { e.onBindingDeleted(object) },
		}
	}
	route := func(object *unstructured.Unstructured, event Event) {
		event.Key = keyOf(object)
		e.parts.subscriptions.publish(resource, mailboxOf(object), event)
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			object := toObject(obj)
			e.parts.absences.verifier.Clear(mailboxOf(object), missingCandidate(resource, object))
			route(object, Event{New: object, Initial: initial})
		},
		UpdateFunc: func(oldObj, obj any) {
			old, object := toObject(oldObj), toObject(obj)
			if old.GetResourceVersion() != object.GetResourceVersion() {
				route(object, Event{Old: old, New: object})
			}
		},
		DeleteFunc: func(obj any) {
			object := toObject(obj)
			if _, unseen := obj.(cache.DeletedFinalStateUnknown); unseen {
				// No delete event was observed: the object was missing from a list, which may have been partial.
				e.parts.absences.verifier.RequireRelist(mailboxOf(object), resource)
				e.parts.versions.NoteVersion(mailboxOf(object), resource, keyOf(object), storehistory.ParseVersion(object.GetResourceVersion()))
			}
			route(object, Event{Old: object})
		},
	}
}

// keyOf returns the namespace and the name of an object.
func keyOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// mailboxOf returns the mailbox of an object. [logicalcluster.From] would copy all annotations.
func mailboxOf(object *unstructured.Unstructured) logicalcluster.Name {
	name, _, _ := unstructured.NestedString(object.Object, "metadata", "annotations", logicalcluster.AnnotationKey)
	return logicalcluster.Name(name)
}

// onBindingChanged resets the subscribers of a mailbox whose binding is new or has changed.
func (e *endpoint) onBindingChanged(old, object any) {
	binding := object.(*unstructured.Unstructured)
	if old != nil && old.(*unstructured.Unstructured).GetResourceVersion() == binding.GetResourceVersion() {
		return
	}
	mailbox := logicalcluster.From(binding)
	e.parts.absences.verifier.ObserveBinding(mailbox, binding.GetResourceVersion())
	e.parts.subscriptions.resetMailbox(mailbox)
	e.parts.reviews.EnqueueCacheReview(mailbox)
	before, _ := old.(*unstructured.Unstructured)
	e.onSchemasChanged(e.schemas.update(before, binding))
}

// onSchemasChanged restarts the informers of resources whose schema has changed in all mailboxes.
func (e *endpoint) onSchemasChanged(resources []schema.GroupResource) {
	if len(resources) > 0 {
		e.log.Info("mailboxes have changed schemas", "resources", resources)
		// The restart waits for handlers, and this function is one.
		e.restarting.Go(func() { e.restartInformers(resources) })
	}
}

// onBindingDeleted drops the state of a mailbox that is unbound or deleted. Its objects have become Unknown.
func (e *endpoint) onBindingDeleted(object any) {
	binding := toObject(object)
	e.parts.release(logicalcluster.From(binding))
	e.clients.Evict(logicalcluster.From(binding).Path())
	e.onSchemasChanged(e.schemas.update(binding, nil))
}

// release drops the state of a mailbox that an endpoint does not show any more, and resets it if another endpoint shows it.
func (p *parts) release(mailbox logicalcluster.Name) {
	p.absences.verifier.ForgetMailbox(mailbox)
	for _, configs := range []bool{true, false} {
		p.usages.endEviction(mailbox, configs)
	}
	if p.relists.awaiting.Load() > 0 {
		for _, informer := range p.endpoints.informers() {
			informer.waiters.done(mailbox, 0)
		}
	}
	p.usages.deleteUnused(mailbox)
	p.owned.forgetGone(p.endpoints.isKnownGone)
	if p.endpoints.locate(mailbox) != nil {
		p.subscriptions.resetMailbox(mailbox)
	} else {
		p.subscriptions.resetObserver(mailbox)
	}
}
