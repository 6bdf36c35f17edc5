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

package sync

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Priorities of keys in the queue. Whatever may concern very many objects at once gives way to a change of one.
const (
	// replayPriority is for what is looked at although nothing is known to have changed.
	replayPriority = -100
	// createPriority is for objects that are new on either side, and for those of which something else has changed that decides
	// about them: a config, a relation, a namespace, or what they failed by.
	createPriority = 0
	// changePriority is for changes of objects known.
	changePriority = 100
)

// Resume makes the controller look at all objects again, after the target was away, and at what changed meanwhile and is
// none of them any more.
func (c *Controller) Resume() {
	c.enqueueAll()
	c.enqueue(replayPriority, c.pending.keys()...)
}

// OnReset is called when the mailbox's cache was filled anew, or is not filled any more.
func (c *Controller) OnReset() {
	c.Changed()
	c.poke()
	c.enqueueAll()
	c.answerRoll()
}

// OnProven is called when a suspicion about an object has been decided.
func (c *Controller) OnProven(key types.NamespacedName) {
	if key == mailboxes.Roll {
		c.callTheRoll()
		return
	}
	c.enqueue(changePriority, key)
}

// OnEvent is called for each change in the mailbox.
func (c *Controller) OnEvent(event mailboxes.Event) {
	switch {
	case event.Initial:
		c.enqueue(replayPriority, event.Key)
	case event.Old == nil:
		c.saw(seenInMailbox, createPriority, event.Key)
	case event.Unchanged:
		c.enqueue(createPriority, event.Key)
	default:
		if event.New == nil {
			c.inMailbox.gone(event.Key, event.Old.GetUID())
		}
		c.saw(seenInMailbox, changePriority, event.Key)
	}
}

// targetHandler passes on each change of what went down.
func (c *Controller) targetHandler(side *side) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			c.appearedOnTarget(initial, c.sourcesOf(obj.(*unstructured.Unstructured))...)
		},
		UpdateFunc: func(oldObj, obj any) {
			old, object := oldObj.(*unstructured.Unstructured), obj.(*unstructured.Unstructured)
			if old.GetResourceVersion() != object.GetResourceVersion() {
				c.saw(seenOnTarget, changePriority, c.sourcesOf(object)...)
				if isMarkedOtherwise(old, object) {
					// Somebody may have taken the mark off.
					c.saw(seenOnTarget, changePriority, c.sourcesOf(old)...)
				}
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			object := obj.(*unstructured.Unstructured)
			at := side.at(keyOf(object))
			c.onTarget.gone(at, object.GetUID())
			c.saw(seenOnTarget, changePriority, c.sourcesOf(object)...)
			c.wake(at)
			c.Changed()
		},
	}
}

func isMarkedOtherwise(old, object *unstructured.Unstructured) bool {
	before, _ := annotation(old, ownership.MarkAnnotation)
	after, _ := annotation(object, ownership.MarkAnnotation)
	return before != after
}

// feedHandler passes on each change of what comes up. A feed that was replaced is not listened to any more.
func (c *Controller) feedHandler(ctx context.Context, side *side) cache.ResourceEventHandler {
	// A feed is replaced under the lock.
	whileCurrent := func(do func()) (current bool) {
		c.locked(func() {
			if current = ctx.Err() == nil; current {
				do()
			}
		})
		return current
	}
	raise := func(obj any) (keys []types.NamespacedName) {
		object := obj.(*unstructured.Unstructured)
		key, ok := c.comesUpAs(side, c.matcher.Load(), object)
		if ok && whileCurrent(func() { c.raised.add(key, side.at(keyOf(object))) }) {
			keys = append(keys, key)
		}
		return keys
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { c.appearedOnTarget(initial, raise(obj)...) },
		UpdateFunc: func(_, obj any) { c.saw(seenOnTarget, changePriority, raise(obj)...) },
		DeleteFunc: func(obj any) {
			tombstone, unseen := obj.(cache.DeletedFinalStateUnknown)
			if unseen {
				obj = tombstone.Obj
			}
			object := obj.(*unstructured.Unstructured)
			at, uid := side.at(keyOf(object)), object.GetUID()
			var keys []types.NamespacedName
			current := whileCurrent(func() {
				keys = c.raised.move(at, types.NamespacedName{}, false)
				// An end that was not seen is no end: the target is asked before anything is deleted.
				if !unseen && slices.ContainsFunc(keys, c.mayHaveComeUp) {
					c.raised.setEnded(at, uid)
				}
			})
			if current {
				c.saw(seenOnTarget, changePriority, keys...)
				c.Changed()
			}
		},
	}
}

// namespaceSubscriber looks again at the objects of a namespace of the mailbox whose labels changed, where the rules ask for
// them.
type namespaceSubscriber Controller

// OnEvent is called for each change of a namespace in the mailbox.
func (s *namespaceSubscriber) OnEvent(event mailboxes.Event) {
	if event.Old != nil && event.New != nil && maps.Equal(event.Old.GetLabels(), event.New.GetLabels()) {
		return
	}
	(*Controller)(s).lookInto(event.Key.Name)
}

// OnProven has nothing to do: of a namespace nothing is suspected here.
func (s *namespaceSubscriber) OnProven(types.NamespacedName) {}

// OnReset is called when it is known anew which namespaces there are.
func (s *namespaceSubscriber) OnReset() {
	if c := (*Controller)(s); c.asksForNamespaces() {
		c.enqueueAll()
	}
}

// lookInto looks again at all objects of a namespace of the mailbox.
func (c *Controller) lookInto(namespace string) {
	if !c.asksForNamespaces() {
		return
	}
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		if source.GetNamespace() == namespace {
			c.enqueue(createPriority, keyOf(source))
		}
	}
}

// asksForNamespaces tells whether a rule looks at the labels of namespaces.
func (c *Controller) asksForNamespaces() bool {
	return c.Resource.rules().Filter.NeedsNamespace() ||
		slices.ContainsFunc(c.Relations, (*relation.Relation).SelectsNamespaces)
}

// renames tells whether objects may be in another namespace on the target.
func (c *Controller) renames() bool {
	return c.Resource.rules().Naming != nil || len(c.Relations) > 0
}

// mayHaveComeUp tells whether the mailbox has, or may have, an object of a name that came up.
func (c *Controller) mayHaveComeUp(key types.NamespacedName) bool {
	held, known := c.mailboxObject(key)
	return !known || c.cameUp(held)
}

// listener wakes what waits for a cure that shows in another object.
func (c *Controller) listener(ctx context.Context) targets.Listener {
	return targets.Listener{
		Namespace: func(name string, gone bool) {
			if gone {
				c.enqueue(createPriority, c.failures.failing(func(key types.NamespacedName, failure Failure) bool {
					// Where rules name the namespaces, any of them may be meant.
					return failure.Reason == ReasonNamespaceTerminating && (key.Namespace == name || c.renames())
				})...)
			}
		},
		Labels: func(namespace string) {
			if slices.ContainsFunc(c.Relations, (*relation.Relation).SelectsNamespaces) {
				for _, side := range c.sides {
					c.kinChangedBelow(ctx, side, relation.Change{Namespaces: []string{namespace}})
				}
			}
		},
		Synced: func() {
			if slices.ContainsFunc(c.Relations, (*relation.Relation).SelectsNamespaces) {
				c.kinChangedBelowAll(ctx)
			}
		},
		CRD: func(resource schema.GroupResource) {
			if c.sideOf(resource) != nil {
				c.enqueue(createPriority, c.failures.failing(func(_ types.NamespacedName, failure Failure) bool {
					return failure.Reason == ReasonNotServed
				})...)
			}
		},
	}
}

// wake makes the controller look again at what waits for a place.
func (c *Controller) wake(at place) { c.enqueue(changePriority, c.waiting.at(at)...) }

func keyOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// sourcesOf returns the name in the mailbox of what an object on the target came from. One whose mark is lost is taken
// for that of the same name.
func (c *Controller) sourcesOf(object *unstructured.Unstructured) []types.NamespacedName {
	mark, err := markBelow(c.Owner, object)
	switch {
	case err != nil:
		return []types.NamespacedName{keyOf(object)}
	case c.isSource(mark.Source):
		return []types.NamespacedName{{Namespace: mark.Source.Namespace, Name: mark.Source.Name}}
	default:
		return nil
	}
}

func (c *Controller) isSource(source ownership.Source) bool {
	return source.Group == c.Resource.Group && source.Resource == c.Resource.Resource
}

func (c *Controller) indexBySource(obj any) ([]string, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, nil
	}
	mark, err := markBelow(c.Owner, object)
	if errors.Is(err, ownership.ErrUnverified) {
		return []string{unverified}, nil
	}
	if err != nil || !c.isSource(mark.Source) {
		return nil, nil //nolint:nilerr // what is not ours has no source
	}
	return []string{types.NamespacedName{Namespace: mark.Source.Namespace, Name: mark.Source.Name}.String()}, nil
}

// SetMatcher makes the controller select by another matcher, and looks again at those objects whose answer changed.
func (c *Controller) SetMatcher(matcher *selection.Matcher) {
	old := c.matcher.Swap(matcher)
	raised := c.raised.keys()
	upChanged := c.setFeeds(matcher)
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		before, was := c.chooseDown(old, source)
		after, is := c.chooseDown(matcher, source)
		// Suspension and policies of what comes up change without another feed, and there are few of it.
		if was != is || !before.equal(after) || upChanged && is || c.cameUp(source) {
			c.enqueue(createPriority, keyOf(source))
		}
	}
	for _, side := range c.sides {
		for _, object := range side.cache.List() {
			c.enqueue(createPriority, c.thawed(old, matcher, c.sourcesOf(object))...)
		}
	}
	c.enqueue(createPriority, raised...)
	if old.IsPartial() != matcher.IsPartial() {
		// Of what is not selected it has become known, or unknown, that nothing selects it.
		c.enqueueAll()
	}
	if len(c.Relations) > 0 {
		// Which namespaces they may be in hangs on the configs.
		if owner := c.feedOwner(); owner != nil {
			c.kinChangedBelowAll(owner)
		}
	}
}

// thawed returns those of the names that a suspension holds back by one of two matchers only. The objects need not be in
// the mailbox any more.
func (c *Controller) thawed(old, matcher *selection.Matcher, keys []types.NamespacedName) []types.NamespacedName {
	return slices.DeleteFunc(keys, func(key types.NamespacedName) bool {
		return old.Frozen(c.named(key)) == matcher.Frozen(c.named(key))
	})
}

// enqueueAll puts everything there is into the queue.
func (c *Controller) enqueueAll() { c.enqueue(replayPriority, c.keys()...) }

// keys returns all objects of the mailbox that are selected or came up, all of ours on the target, and all that comes up.
func (c *Controller) keys() []types.NamespacedName {
	matcher := c.matcher.Load()
	keys := map[types.NamespacedName]struct{}{}
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		if _, ok := c.chooseDown(matcher, source); ok || c.cameUp(source) || IsHeld(source) {
			keys[keyOf(source)] = struct{}{}
		}
	}
	for _, side := range c.sides {
		for _, object := range side.cache.List() {
			for _, key := range c.sourcesOf(object) {
				keys[key] = struct{}{}
			}
		}
	}
	for _, key := range c.raised.keys() {
		keys[key] = struct{}{}
	}
	all := make([]types.NamespacedName, 0, len(keys))
	for key := range keys {
		all = append(all, key)
	}
	return all
}

// isWorking tells whether the controller has begun.
func (c *Controller) isWorking() (working bool) {
	c.locked(func() { working = c.queue != nil })
	return working
}

// appearedOnTarget has objects looked at of which the target shows something that it did not show before. What was there at the
// start has not changed. What appears later is most often what the hub has just made, so it comes after what is still to be made.
func (c *Controller) appearedOnTarget(initial bool, keys ...types.NamespacedName) {
	if initial {
		c.enqueue(replayPriority, keys...)
	} else {
		c.saw(seenOnTarget, createPriority, keys...)
	}
}

// enqueue has objects looked at that have not changed themselves.
func (c *Controller) enqueue(priority int, keys ...types.NamespacedName) {
	c.saw(seenElsewhere, priority, keys...)
}

// saw has objects looked at that have changed.
func (c *Controller) saw(from origin, priority int, keys ...types.NamespacedName) {
	c.lock.Lock()
	queue := c.queue
	c.lock.Unlock()
	if queue != nil && len(keys) > 0 {
		if priority > replayPriority {
			c.pending.note(c.Clock.Now(), from, keys...)
		}
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
	}
}
