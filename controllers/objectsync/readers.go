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

package objectsync

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// newObserver returns the observer over the controller's caches.
func (c *Controller) newObserver() *observe.Observer {
	return observe.New(observe.Observer{
		Mailbox: (*mailboxReader)(c), Target: (*targetReader)(c), Planner: &c.planner,
		Registry: c.Registry, RequestCompleteness: c.RequestCompleteness, IsPublished: c.IsPublished,
		SyncTargetInput: c.SyncTargetInput, ReadsCopies: c.cachesWholeObjects,
	})
}

// mailboxReader implements [observe.Mailbox] with the cache of the mailbox.
type mailboxReader Controller

// NamespaceLabels implements [observe.Mailbox].
func (r *mailboxReader) NamespaceLabels(name string) (labels map[string]string, known bool) {
	namespace, state := r.Mailboxes.Get(namespaces, r.Mailbox, types.NamespacedName{Name: name})
	if state != mailboxes.Present || mailboxes.ProjectionOf(namespace) == mailboxes.IdentityOnly {
		return nil, false
	}
	return namespace.GetLabels(), true
}

// PartOf implements [observe.Mailbox].
func (*mailboxReader) PartOf(object *unstructured.Unstructured) observe.Part {
	switch mailboxes.ProjectionOf(object) {
	case mailboxes.FullObject:
		return observe.Whole
	case mailboxes.MetadataOnly:
		return observe.Metadata
	default:
		return observe.Identity
	}
}

// RequestWhole implements [observe.Mailbox].
func (r *mailboxReader) RequestWhole(object *unstructured.Unstructured) error {
	err := r.Mailboxes.RequireFullObject(r.Resource.GroupVersionResource, r.Mailbox, object)
	if isLimitError(err) {
		return err
	}
	// It is being fetched, and an event follows.
	return nil
}

// targetReader implements [observe.Target] with the caches of the target.
type targetReader Controller

func (r *targetReader) controller() *Controller { return (*Controller)(r) }

// APIOf implements [observe.Target].
func (r *targetReader) APIOf(kind schema.GroupKind) (plan.TargetAPI, error) {
	if err := r.CheckKind(kind); err != nil {
		return plan.TargetAPI{}, err
	}
	target := r.controller().targetResourceForKind(kind)
	if target == nil {
		return plan.TargetAPI{}, fmt.Errorf("%w %s, the API of the copy", observe.ErrNotServed, kind)
	}
	return target.TargetAPI, nil
}

// KindOf implements [observe.Target].
func (r *targetReader) KindOf(resource schema.GroupResource) schema.GroupVersionKind {
	return r.controller().targetGVK(resource)
}

// CheckKind implements [observe.Target].
func (r *targetReader) CheckKind(kind schema.GroupKind) error {
	for _, one := range r.UnresolvedKinds {
		// The kind of an earlier conversion's results may be unknown.
		if one.IsDenied() && one.GroupResource.Group == kind.Group && (one.Kind == kind.Kind || kind.Kind == "") {
			return &policy.DeniedError{Reason: one.Reason, Message: one.Message}
		}
	}
	return nil
}

// CheckNamespace implements [observe.Target]. A namespace that the connection does not watch counts as denied: there, an absent object
// proves nothing.
func (r *targetReader) CheckNamespace(name string, protectedToo bool) error {
	if err := r.controller().namespacePolicy().Check(name, protectedToo); err != nil {
		return err
	}
	if !r.Connection.WatchesNamespace(name) {
		return policy.NamespaceNotAllowed(name)
	}
	return nil
}

// CheckProtected implements [observe.Target].
func (r *targetReader) CheckProtected(name string, protectedToo bool) error {
	return r.controller().namespacePolicy().CheckProtected(name, protectedToo)
}

// NamespaceLabels implements [observe.Target].
func (r *targetReader) NamespaceLabels(name string) (labels map[string]string, known bool) {
	return r.Connection.NamespaceLabels(name)
}

// CopiesOf implements [observe.Target].
func (r *targetReader) CopiesOf(source types.NamespacedName) []plan.Copy {
	return r.controller().observeCopiesOf(source)
}

// CopyAt implements [observe.Target].
func (r *targetReader) CopyAt(api plan.TargetAPI, key types.NamespacedName) plan.Copy {
	return r.controller().observeCopy(r.controller().targetResourceFor(api.GroupResource()), key)
}

func (c *Controller) namespacePolicy() *policy.NamespacePolicy {
	if c.NamespacePolicy == nil {
		return nil
	}
	return c.NamespacePolicy()
}

// IsDenied reports whether the hub itself, and not the target, excludes the kind.
func (u UnavailableResource) IsDenied() bool {
	return u.Reason == policy.ReasonConversionNotPublished || u.Reason == policy.ReasonConversionBypassesRules
}
