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
	"maps"
	"slices"
	gosync "sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Priorities of keys in the queue. Events that affect many objects have a lower priority than the change of a single object.
const (
	// replayPriority is for keys without a known change.
	replayPriority = -100
	// defaultPriority is the queue's default. It is for new objects, and for objects that the change of a config, a relation, a
	// namespace or the cause of a failure affects.
	defaultPriority = 0
	// changePriority is for changes of known objects.
	changePriority = 100

	// turnSize and maxTurns lower the priority of keys whose namespace has many pending ones: by one for each turnSize keys, by at most
	// maxTurns. So a burst in one namespace, which belongs to one team, delays the objects of other namespaces by few objects. The order
	// of the priorities above stays.
	turnSize = 8
	maxTurns = 90
)

// enqueuer turns the events of the caches into keys with priorities.
type enqueuer struct {
	resource  *plan.Resource
	relations []*related.Relation
	matcher   *atomic.Pointer[selection.Matcher]
	rules     *observe.Observer
	mailbox   *mailboxView
	target    *targetView
	states    *keyStates
	upsynced  *upsyncIndex
	waiters   *nameWaiters
	changes   *pendingChanges
	placed    *syncStatuses
	firstPass *firstPass
	onChange  func()
	// isTraced is true if traces record when a cache shows a write.
	isTraced bool
	clock    clock.PassiveClock

	lock gosync.Mutex
	// queue is nil until the workers start.
	queue keyQueue
}

// keyQueue is the part of a priority queue that an enqueuer needs.
type keyQueue interface {
	AddWithOpts(options priorityqueue.AddOpts, keys ...types.NamespacedName)
	Len() int
}

// start sets the queue. Keys that are enqueued before are dropped.
func (e *enqueuer) start(queue keyQueue) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.queue = queue
}

// current returns the queue; nil until the workers have started.
func (e *enqueuer) current() keyQueue {
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.queue
}

// enqueue enqueues keys of objects that have not changed themselves.
func (e *enqueuer) enqueue(priority int, keys ...types.NamespacedName) {
	e.enqueueChanged(originOther, priority, keys...)
}

// enqueueChanged enqueues keys of objects that have changed, and records since when.
func (e *enqueuer) enqueueChanged(from changeOrigin, priority int, keys ...types.NamespacedName) {
	queue := e.current()
	switch {
	case queue == nil || len(keys) == 0:
	case priority == replayPriority:
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
	default:
		now := e.clock.Now()
		for _, key := range keys {
			e.changes.add(now, from, key)
			inTurn := priority - min(e.changes.countIn(key.Namespace)/turnSize, maxTurns)
			queue.AddWithOpts(priorityqueue.AddOpts{Priority: &inTurn}, key)
		}
	}
}

// enqueueAdded enqueues keys of objects that are new in a cache of the target. Objects of the initial list have not changed. The
// hub itself created most later ones, so they have a lower priority than changed objects.
func (e *enqueuer) enqueueAdded(initial bool, keys ...types.NamespacedName) {
	if initial {
		e.enqueue(replayPriority, keys...)
	} else {
		e.enqueueChanged(originTarget, defaultPriority, keys...)
	}
}

// enqueueAll enqueues all known keys, and begins the first pass. While the mailbox is unreadable, no pass can sync an object:
// [Controller.OnReset] enqueues the keys when the mailbox is readable again.
func (e *enqueuer) enqueueAll() {
	started, readable := e.current() != nil, e.mailbox.isReadable()
	var keys []types.NamespacedName
	if readable {
		keys = e.keys()
	}
	if started {
		e.firstPass.start(keys, readable)
	}
	e.enqueue(replayPriority, keys...)
}

// keys returns the keys of all mailbox objects that are selected, upsynced or have the finalizer, of all copies, of all objects
// to upsync, and of all keys with a state: their objects may have vanished without an event.
func (e *enqueuer) keys() []types.NamespacedName {
	matcher := e.matcher.Load()
	keys := map[types.NamespacedName]struct{}{}
	sources, _ := e.mailbox.list()
	for _, source := range sources {
		if _, ok := e.rules.SelectDown(matcher, source); ok || e.mailbox.isUpsynced(source) || HasFinalizer(source) {
			keys[keyOf(source)] = struct{}{}
		}
	}
	for _, object := range e.target.copies() {
		for _, key := range e.target.sourceKeysOf(object) {
			keys[key] = struct{}{}
		}
	}
	for _, key := range slices.Concat(e.upsynced.allKeys(), e.states.rememberedKeys()) {
		keys[key] = struct{}{}
	}
	return slices.AppendSeq(make([]types.NamespacedName, 0, len(keys)), maps.Keys(keys))
}

// enqueueFailed enqueues the failed objects that satisfy a predicate.
func (e *enqueuer) enqueueFailed(is func(types.NamespacedName, Failure) bool) {
	e.enqueue(defaultPriority, e.states.failedKeys(is)...)
}

// retry enqueues all objects that failed for a reason.
func (e *enqueuer) retry(reason string) {
	e.enqueueFailed(func(_ types.NamespacedName, failure Failure) bool { return failure.Reason == reason })
}

// retryDenied enqueues the objects that the target has denied: all, or those that may be in a namespace of the target.
func (e *enqueuer) retryDenied(namespace string) {
	e.enqueueFailed(func(key types.NamespacedName, failure Failure) bool {
		isDenied := failure.Reason == plan.ReasonForbidden || failure.Reason == plan.ReasonCannotWithdraw || failure.Reason == plan.ReasonNamespaceNotPrepared
		return isDenied && (namespace == "" || e.mayBeIn(key, namespace))
	})
}

// mayBeIn reports whether the copy of an object may be in a namespace of the target. A rule that maps namespaces may have mapped any
// mailbox namespace to it.
func (e *enqueuer) mayBeIn(key types.NamespacedName, namespace string) bool {
	return key.Namespace == namespace || e.resource.GetRules().Naming != nil || len(e.relations) > 0
}

// onNamespaceGone enqueues the objects that failed because a namespace of the target was being deleted.
func (e *enqueuer) onNamespaceGone(name string) {
	e.enqueueFailed(func(key types.NamespacedName, failure Failure) bool {
		return failure.Reason == plan.ReasonNamespaceTerminating && e.mayBeIn(key, name)
	})
}

// onMailboxEvent is called for each change in the mailbox.
func (e *enqueuer) onMailboxEvent(event mailboxes.Event) {
	if e.isTraced {
		e.mailbox.writes.Observed(event.Key, event.New)
	}
	e.recordDeletion(event)
	switch {
	case event.Initial:
		// OnReset enqueues all listed objects once the cache has synced. Before that, no pass can read one.
	case event.Old == nil:
		e.enqueueChanged(originMailbox, defaultPriority, event.Key)
	case event.ProjectionOnly:
		e.enqueue(defaultPriority, event.Key)
	default:
		if event.New == nil {
			e.recordRemovalInMailbox(event.Key, event.Old)
			e.mailbox.writes.DeletionObserved(event.Key, event.Old.GetUID())
		}
		e.enqueueChanged(originMailbox, changePriority, event.Key)
	}
}

// recordRemovalInMailbox records that an upsynced object was removed from the mailbox. If the hub itself removed it, the key has
// another source, or none.
func (e *enqueuer) recordRemovalInMailbox(key types.NamespacedName, removed *unstructured.Unstructured) {
	if mark := e.rules.UpsyncMark(removed); mark != nil {
		e.states.recordRemoval(key, &plan.Removal{Mark: *mark})
	}
}

// recordDeletion records the propagation policy of a mailbox object's deletion unless it is the default, because the cache drops
// it with the object.
func (e *enqueuer) recordDeletion(event mailboxes.Event) {
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
	e.states.setDeletion(event.Key, deletion)
}

// copyHandler enqueues the sources of copies that change.
func (e *enqueuer) copyHandler(api *targetResource) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			object := obj.(*cachedCopy)
			e.traceShown(api, object)
			keys := e.target.sourceKeysOf(object)
			e.enqueueAdded(initial, keys...)
			if !initial {
				// The write called onChange before the cache contained the copy.
				e.onChange()
			}
			e.placed.publish(keys)
		},
		UpdateFunc: func(oldObj, obj any) {
			e.traceShown(api, obj.(*cachedCopy))
			e.onCopyUpdate(oldObj.(*cachedCopy), obj.(*cachedCopy))
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			object := obj.(*cachedCopy)
			e.onCopyDelete(api.Ref(keyOf(object)), object)
		},
	}
}

func (e *enqueuer) onCopyUpdate(old, object *cachedCopy) {
	if old.GetResourceVersion() == object.GetResourceVersion() {
		return
	}
	keys := e.target.sourceKeysOf(object)
	e.enqueueChanged(originTarget, changePriority, keys...)
	if former := e.target.sourceKeysOf(old); !slices.Equal(former, keys) {
		// Somebody may have removed the mark.
		e.enqueueChanged(originTarget, changePriority, former...)
	}
	if old.health() != object.health() {
		e.onChange()
		e.placed.publish(keys)
	}
}

func (e *enqueuer) onCopyDelete(ref plan.Ref, object *cachedCopy) {
	e.target.writes.DeletionObserved(ref, object.GetUID())
	keys := e.target.sourceKeysOf(object)
	if byHub := e.target.deletionObserved(ref, object.GetUID()); !byHub && object.observed != nil {
		for _, key := range keys {
			e.states.recordRemoval(key, object.asRemoval())
		}
	}
	e.enqueueChanged(originTarget, changePriority, keys...)
	e.enqueue(changePriority, e.waiters.keysOf(ref)...)
	e.onChange()
	e.placed.publish(keys)
}

// traceShown records in a write's trace that the target's cache contains the write.
func (e *enqueuer) traceShown(api *targetResource, object *cachedCopy) {
	if e.isTraced {
		e.target.writes.Observed(api.Ref(keyOf(object)), object)
	}
}

// namespaceSubscriber enqueues the objects of mailbox namespaces whose labels change. It is used if a rule reads those labels.
type namespaceSubscriber struct{ *enqueuer }

// OnEvent is called for each change of a namespace in the mailbox. OnReset follows the initial list.
func (s namespaceSubscriber) OnEvent(event mailboxes.Event) {
	if event.Initial || event.Old != nil && event.New != nil && maps.Equal(event.Old.GetLabels(), event.New.GetLabels()) {
		return
	}
	sources, _ := s.mailbox.list()
	for _, source := range sources {
		if source.GetNamespace() == event.Key.Name {
			s.enqueue(defaultPriority, keyOf(source))
		}
	}
}

// OnAbsenceDecided does nothing: the controller suspects no namespace to be absent.
func (namespaceSubscriber) OnAbsenceDecided(types.NamespacedName) {}

// OnReset is called when the namespaces were relisted.
func (s namespaceSubscriber) OnReset() { s.enqueueAll() }

// relatedInMailbox enqueues the objects that become related, or are no longer related.
func (e *enqueuer) relatedInMailbox(change related.Change) {
	if !change.All && len(change.Namespaces) == 0 {
		// A primary claims other names: this affects no other objects.
		e.enqueue(changePriority, e.existing(change.Names)...)
		return
	}
	sources, _ := e.mailbox.list()
	for _, source := range sources {
		if key := keyOf(source); change.Affects(key) {
			e.enqueue(defaultPriority, key)
		}
	}
	// The hub may have kept copies of absent mailbox objects for a primary.
	for _, object := range e.target.copies() {
		e.enqueue(defaultPriority, slices.DeleteFunc(e.target.sourceKeysOf(object), func(key types.NamespacedName) bool { return !change.Affects(key) })...)
	}
}

// existing returns the keys of objects in the mailbox, and of objects with a copy on the target.
func (e *enqueuer) existing(names []types.NamespacedName) (keys []types.NamespacedName) {
	for _, key := range names {
		if !e.resource.Namespaced {
			key.Namespace = ""
		}
		_, state := e.mailbox.cached(key)
		if state == mailboxes.Present || len(e.target.CopiesOf(key)) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// enqueueReselected enqueues the objects whose selection differs between two matchers. upsyncChanged is true if the scope of an upsync
// cache changed with them.
func (e *enqueuer) enqueueReselected(old, matcher *selection.Matcher, upsyncChanged bool) {
	sources, _ := e.mailbox.list()
	for _, source := range sources {
		before, was := e.rules.SelectDown(old, source)
		after, is := e.rules.SelectDown(matcher, source)
		// A change of an upsynced object's suspension or policy does not replace its cache. There are few such objects, so all
		// are enqueued.
		if was != is || !before.SameEffect(after) || upsyncChanged && is || e.mailbox.isUpsynced(source) {
			e.enqueue(defaultPriority, keyOf(source))
		}
	}
	for _, object := range e.target.copies() {
		e.enqueue(defaultPriority, e.suspensionChanged(old, matcher, e.target.sourceKeysOf(object))...)
	}
}

// suspensionChanged returns the keys that only one of two matchers suspends. The objects may be gone from the mailbox.
func (e *enqueuer) suspensionChanged(old, matcher *selection.Matcher, keys []types.NamespacedName) []types.NamespacedName {
	return slices.DeleteFunc(keys, func(key types.NamespacedName) bool {
		name := e.rules.SelectionObjectByName(key)
		return old.IsSuspended(name) == matcher.IsSuspended(name)
	})
}

// targetListener enqueues failed objects whose cause has gone. onNamespaceLabels is called with each namespace of the target whose labels
// changed, and with none when all were listed.
func (e *enqueuer) targetListener(onNamespaceLabels func(namespaces ...string)) targets.Listener {
	return targets.Listener{
		OnNamespace: func(name string, gone bool) {
			if gone {
				e.onNamespaceGone(name)
			}
		},
		OnNamespaceLabels: func(namespace string) { onNamespaceLabels(namespace) },
		OnSynced:          func() { onNamespaceLabels() },
		OnCRD: func(resource schema.GroupResource) {
			if e.target.resourceFor(resource) != nil {
				e.retry(plan.ReasonNotServed)
			}
		},
	}
}

func keyOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}
