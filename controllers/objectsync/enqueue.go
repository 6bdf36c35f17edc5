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
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Priorities of keys in the queue. An event that may concern very many objects gives way to a change of one.
const (
	// replayPriority is for keys without a known change.
	replayPriority = -100
	// defaultPriority is the queue's default. It is for new objects, and for objects that another change concerns: of a config, a relation, a namespace,
	// or the cause of a failure.
	defaultPriority = 0
	// changePriority is for changes of known objects.
	changePriority = 100
)

// Resume enqueues all keys after the target was away, and keys that changed meanwhile and exist on neither side any more.
func (c *Controller) Resume() {
	c.enqueueAll()
	c.enqueue(replayPriority, c.states.pendingKeys()...)
}

// Uncordon enqueues the objects that failed because of the cordon.
func (c *Controller) Uncordon() { c.retry(plan.ReasonTargetCordoned) }

// Release enqueues the objects whose copies were held because kcp went back to an earlier state.
func (c *Controller) Release() { c.retry(plan.ReasonStoreWentBack) }

// RetryConflicts enqueues the objects whose name is taken, after the adoption policy has changed.
func (c *Controller) RetryConflicts() { c.retry(plan.ReasonConflict) }

// SyncTargetChanged enqueues all keys if a mutation reads the SyncTarget.
func (c *Controller) SyncTargetChanged() {
	if c.readsSyncTarget {
		c.enqueueAll()
	}
}

// NamespacesChanged enqueues all keys after the namespace policy, or the namespaces of the connection, changed.
func (c *Controller) NamespacesChanged() {
	c.updateUpsyncCaches(c.matcher.Load())
	c.enqueue(defaultPriority, c.keys()...)
}

// retry enqueues all objects that failed for a reason.
func (c *Controller) retry(reason string) {
	c.enqueue(defaultPriority, c.states.failedKeys(func(_ types.NamespacedName, failure Failure) bool {
		return failure.Reason == reason
	})...)
}

// OnReset is called when the mailbox cache was relisted, or ceases to be filled.
func (c *Controller) OnReset() {
	c.OnChange()
	c.recheckStart()
	c.enqueueAll()
	c.recheckInitialSync()
}

// OnAbsenceDecided is called when a suspected absence was verified or refuted.
func (c *Controller) OnAbsenceDecided(key types.NamespacedName) {
	if key == absence.AllObjects {
		c.checkInitialSync()
		return
	}
	c.enqueue(changePriority, key)
}

// OnEvent is called for each change in the mailbox.
func (c *Controller) OnEvent(event mailboxes.Event) {
	c.traceShownInMailbox(event.Key, event.New)
	c.recordDeletion(event)
	switch {
	case event.Initial:
		// OnReset enqueues all objects of the list, once the cache is filled. Before that, none can be read.
	case event.Old == nil:
		c.enqueueChanged(originMailbox, defaultPriority, event.Key)
	case event.ProjectionOnly:
		c.enqueue(defaultPriority, event.Key)
	default:
		if event.New == nil {
			c.recordRemovalInMailbox(event.Key, event.Old)
			c.states.mailboxExpectations.DeletionObserved(event.Key, event.Old.GetUID())
		}
		c.enqueueChanged(originMailbox, changePriority, event.Key)
	}
}

// recordRemovalInMailbox records that an upsynced object was removed from the mailbox. What the hub itself removes there has another
// source by then, or none.
func (c *Controller) recordRemovalInMailbox(key types.NamespacedName, removed *unstructured.Unstructured) {
	if mark := c.observer.UpsyncMark(removed); mark != nil {
		c.states.recordRemoval(key, &plan.Removal{Mark: *mark})
	}
}

// recordDeletion records how a mailbox object is deleted, unless in the default way: the cache forgets it with the object.
func (c *Controller) recordDeletion(event mailboxes.Event) {
	object := event.New
	if object == nil {
		object = event.Old
	}
	var deletion *plan.Deletion
	if event.New == nil || object.GetDeletionTimestamp() != nil {
		if propagation := plan.PropagationOf(object); propagation != metav1.DeletePropagationBackground {
			deletion = &plan.Deletion{UID: object.GetUID(), Propagation: propagation}
		}
	}
	c.states.setDeletion(event.Key, deletion)
}

// targetHandler enqueues the sources of copies that change.
func (c *Controller) targetHandler(target *targetResource) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			c.traceShownOnTarget(target, obj.(*cachedCopy))
			keys := c.sourceKeysOf(obj.(*cachedCopy))
			c.enqueueAdded(initial, keys...)
			if !initial {
				// The write was reported when the cache did not show the copy yet.
				c.OnChange()
			}
			c.publishPlacementCopies(keys)
		},
		UpdateFunc: func(oldObj, obj any) {
			old, object := oldObj.(*cachedCopy), obj.(*cachedCopy)
			c.traceShownOnTarget(target, object)
			if old.GetResourceVersion() != object.GetResourceVersion() {
				keys := c.sourceKeysOf(object)
				c.enqueueChanged(originTarget, changePriority, keys...)
				if former := c.sourceKeysOf(old); !slices.Equal(former, keys) {
					// Somebody may have removed the mark.
					c.enqueueChanged(originTarget, changePriority, former...)
				}
				if old.health() != object.health() {
					c.OnChange()
					c.publishPlacementCopies(keys)
				}
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			object := obj.(*cachedCopy)
			ref := target.Ref(keyOf(object))
			c.states.targetExpectations.DeletionObserved(ref, object.GetUID())
			keys := c.sourceKeysOf(object)
			if byHub := c.states.deletionObserved(ref, object.GetUID()); !byHub && object.observed != nil {
				for _, key := range keys {
					c.states.recordRemoval(key, object.asRemoval())
				}
			}
			c.enqueueChanged(originTarget, changePriority, keys...)
			c.enqueueNameWaiters(ref)
			c.OnChange()
			c.publishPlacementCopies(keys)
		},
	}
}

// upsyncHandler enqueues the keys of upsynced objects that change, until its cache is replaced.
func (c *Controller) upsyncHandler(ctx context.Context, target *targetResource) cache.ResourceEventHandler {
	// Caches are replaced under the lock.
	whileCurrent := func(do func()) (current bool) {
		c.withLock(func() {
			if current = ctx.Err() == nil; current {
				do()
			}
		})
		return current
	}
	addToIndex := func(obj any) (keys []types.NamespacedName) {
		object := obj.(*unstructured.Unstructured)
		key, ok := c.upsyncKey(target, c.matcher.Load(), object)
		if ok && whileCurrent(func() { c.states.addUpsynced(key, target.Ref(keyOf(object))) }) {
			keys = append(keys, key)
		}
		return keys
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { c.enqueueAdded(initial, addToIndex(obj)...) },
		UpdateFunc: func(_, obj any) { c.enqueueChanged(originTarget, changePriority, addToIndex(obj)...) },
		DeleteFunc: func(obj any) {
			tombstone, unseen := obj.(cache.DeletedFinalStateUnknown)
			if unseen {
				obj = tombstone.Obj
			}
			object := obj.(*unstructured.Unstructured)
			ref, uid := target.Ref(keyOf(object)), object.GetUID()
			// Before the workers start, no pass would ever forget the deletion.
			started := c.hasStarted()
			var keys []types.NamespacedName
			current := whileCurrent(func() {
				keys = c.states.moveUpsynced(ref, types.NamespacedName{}, false)
				// Without a delete event the object may still exist: the hub asks the target before it deletes anything.
				if started && !unseen && slices.ContainsFunc(keys, c.mayBeUpsynced) {
					c.states.setSourceDeleted(ref, uid)
				}
			})
			if current {
				c.enqueueChanged(originTarget, changePriority, keys...)
				c.OnChange()
			}
		},
	}
}

// namespaceLabelSubscriber enqueues the objects of mailbox namespaces whose labels change, if a rule reads those labels.
type namespaceLabelSubscriber Controller

// OnEvent is called for each change of a namespace in the mailbox. OnReset follows the initial list.
func (s *namespaceLabelSubscriber) OnEvent(event mailboxes.Event) {
	if event.Initial || event.Old != nil && event.New != nil && maps.Equal(event.Old.GetLabels(), event.New.GetLabels()) {
		return
	}
	(*Controller)(s).enqueueNamespace(event.Key.Name)
}

// OnAbsenceDecided does nothing: the controller suspects no namespace to be absent.
func (s *namespaceLabelSubscriber) OnAbsenceDecided(types.NamespacedName) {}

// OnReset is called when the namespaces were relisted.
func (s *namespaceLabelSubscriber) OnReset() {
	if c := (*Controller)(s); c.usesNamespaceLabels() {
		c.enqueueAll()
	}
}

// enqueueNamespace enqueues all objects of a mailbox namespace.
func (c *Controller) enqueueNamespace(namespace string) {
	if !c.usesNamespaceLabels() {
		return
	}
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		if source.GetNamespace() == namespace {
			c.enqueue(defaultPriority, keyOf(source))
		}
	}
}

// usesNamespaceLabels reports whether a rule reads the labels of namespaces.
func (c *Controller) usesNamespaceLabels() bool {
	return c.Resource.GetRules().Filter.UsesNamespaceLabels() ||
		slices.ContainsFunc(c.Relations, (*related.Relation).SelectsNamespaces)
}

// mayChangeNamespace reports whether objects may have another namespace on the target.
func (c *Controller) mayChangeNamespace() bool {
	return c.Resource.GetRules().Naming != nil || len(c.Relations) > 0
}

// mayBeUpsynced reports whether the mailbox has, or may have, an upsynced object of a key.
func (c *Controller) mayBeUpsynced(key types.NamespacedName) bool {
	inMailbox, known := c.mailboxObject(key)
	return !known || c.isUpsynced(inMailbox)
}

// targetListener enqueues failed objects whose cause has gone, and related objects whose namespace on the target has changed.
func (c *Controller) targetListener(ctx context.Context) targets.Listener {
	return targets.Listener{
		OnNamespace: func(name string, gone bool) {
			if gone {
				c.enqueue(defaultPriority, c.states.failedKeys(func(key types.NamespacedName, failure Failure) bool {
					// Rules that change namespaces may have meant any of them.
					return failure.Reason == plan.ReasonNamespaceTerminating && (key.Namespace == name || c.mayChangeNamespace())
				})...)
			}
		},
		OnNamespaceLabels: func(namespace string) {
			if slices.ContainsFunc(c.Relations, (*related.Relation).SelectsNamespaces) {
				for _, target := range c.targetResources {
					c.relatedChangedOnTarget(ctx, target, related.Change{Namespaces: []string{namespace}})
				}
			}
		},
		OnSynced: func() {
			if slices.ContainsFunc(c.Relations, (*related.Relation).SelectsNamespaces) {
				c.allRelatedChangedOnTarget(ctx)
			}
		},
		OnCRD: func(resource schema.GroupResource) {
			if c.targetResourceFor(resource) != nil {
				c.enqueue(defaultPriority, c.states.failedKeys(func(_ types.NamespacedName, failure Failure) bool {
					return failure.Reason == plan.ReasonNotServed
				})...)
			}
		},
	}
}

// enqueueNameWaiters enqueues the objects that wait for a name on the target.
func (c *Controller) enqueueNameWaiters(ref plan.Ref) {
	c.enqueue(changePriority, c.states.keysAwaiting(ref)...)
}

func keyOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// sourceKeysOf returns the key of the mailbox object of a copy: that of the same name if the copy has no valid mark. It returns
// no key for a copy of another resource.
func (c *Controller) sourceKeysOf(cached *cachedCopy) []types.NamespacedName {
	switch {
	case cached.observed == nil:
		return []types.NamespacedName{keyOf(cached)}
	case c.isOwnSource(cached.observed.Mark.Source):
		return []types.NamespacedName{sourceKey(cached.observed.Mark)}
	default:
		return nil
	}
}

func (c *Controller) isOwnSource(source ownership.Source) bool {
	return source.Group == c.Resource.Group && source.Resource == c.Resource.Resource
}

func (c *Controller) indexBySource(obj any) ([]string, error) {
	cached, ok := obj.(*cachedCopy)
	switch {
	case ok && cached.unverified:
		return []string{unverifiedIndexValue}, nil
	case ok && cached.observed != nil && c.isOwnSource(cached.observed.Mark.Source):
		return []string{sourceKey(cached.observed.Mark).String()}, nil
	default:
		return nil, nil
	}
}

// SetMatcher makes the controller select by another matcher, and enqueues the objects whose selection differs.
func (c *Controller) SetMatcher(matcher *selection.Matcher) {
	old := c.matcher.Swap(matcher)
	keys := c.states.upsyncedKeys()
	upChanged := c.updateUpsyncCaches(matcher)
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		before, was := c.observer.SelectDown(old, source)
		after, is := c.observer.SelectDown(matcher, source)
		// Suspension and policies of upsynced objects change without another cache, and there are few such objects.
		if was != is || !before.SameEffect(after) || upChanged && is || c.isUpsynced(source) {
			c.enqueue(defaultPriority, keyOf(source))
		}
	}
	for _, target := range c.targetResources {
		for _, object := range target.cache.List() {
			c.enqueue(defaultPriority, c.suspensionChanged(old, matcher, c.sourceKeysOf(object.(*cachedCopy)))...)
		}
	}
	c.enqueue(defaultPriority, keys...)
	if old.HasUnresolved() || matcher.HasUnresolved() {
		// Whether unselected objects are really deselected has become known, or unknown.
		c.enqueueAll()
	}
	if len(c.Relations) > 0 {
		// The matcher decides in which namespaces related objects may be.
		if ctx := c.currentRunContext(); ctx != nil {
			c.allRelatedChangedOnTarget(ctx)
		}
	}
}

// suspensionChanged returns the keys that only one of two matchers suspends. The objects may be gone from the mailbox.
func (c *Controller) suspensionChanged(old, matcher *selection.Matcher, keys []types.NamespacedName) []types.NamespacedName {
	return slices.DeleteFunc(keys, func(key types.NamespacedName) bool {
		return old.IsSuspended(c.observer.SelectionObjectByName(key)) == matcher.IsSuspended(c.observer.SelectionObjectByName(key))
	})
}

// enqueueAll enqueues all known keys, and begins the first pass. While the mailbox cannot be read, no pass could try an object:
// [Controller.OnReset] enqueues them when it can be.
func (c *Controller) enqueueAll() {
	started, readable := c.hasStarted(), c.canReadMailbox()
	var keys []types.NamespacedName
	if readable {
		keys = c.keys()
	}
	if started {
		c.firstPass.start(keys, readable)
	}
	c.enqueue(replayPriority, keys...)
}

// keys returns the keys of all mailbox objects that are selected, upsynced or have the finalizer, of all copies, of all objects to
// upsync, and of all objects that something is remembered of: they may be gone without an event.
func (c *Controller) keys() []types.NamespacedName {
	matcher := c.matcher.Load()
	keys := map[types.NamespacedName]struct{}{}
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		if _, ok := c.observer.SelectDown(matcher, source); ok || c.isUpsynced(source) || HasFinalizer(source) {
			keys[keyOf(source)] = struct{}{}
		}
	}
	for _, target := range c.targetResources {
		for _, object := range target.cache.List() {
			for _, key := range c.sourceKeysOf(object.(*cachedCopy)) {
				keys[key] = struct{}{}
			}
		}
	}
	for _, key := range slices.Concat(c.states.upsyncedKeys(), c.states.rememberedKeys()) {
		keys[key] = struct{}{}
	}
	return slices.AppendSeq(make([]types.NamespacedName, 0, len(keys)), maps.Keys(keys))
}

// hasStarted reports whether the workers have started.
func (c *Controller) hasStarted() (started bool) {
	c.withLock(func() { started = c.queue != nil })
	return started
}

// enqueueAdded enqueues keys of objects that are new in a cache of the target. Objects of the initial list have not changed.
// Later ones are mostly the hub's own creations, so they give way to objects that are still to be created.
func (c *Controller) enqueueAdded(initial bool, keys ...types.NamespacedName) {
	if initial {
		c.enqueue(replayPriority, keys...)
	} else {
		c.enqueueChanged(originTarget, defaultPriority, keys...)
	}
}

// enqueue enqueues keys of objects that have not changed themselves.
func (c *Controller) enqueue(priority int, keys ...types.NamespacedName) {
	c.enqueueChanged(originOther, priority, keys...)
}

// enqueueChanged enqueues keys of objects that have changed, and records since when.
func (c *Controller) enqueueChanged(from changeOrigin, priority int, keys ...types.NamespacedName) {
	c.lock.Lock()
	queue := c.queue
	c.lock.Unlock()
	if queue != nil && len(keys) > 0 {
		if priority > replayPriority {
			c.states.addChange(c.Clock.Now(), from, keys...)
		}
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
	}
}
