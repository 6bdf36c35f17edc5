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
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// subscribeToRelated enqueues objects that begin or cease to be related.
func (c *Controller) subscribeToRelated(ctx context.Context) (stop func()) {
	stops := []func(){c.Registry.Subscribe(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.relatedChangedInMailbox)}
	for _, target := range c.targetResources {
		stops = append(stops, c.Registry.Subscribe(synchubv1alpha1.RelatedOriginTarget, target.GroupResource(), func(change related.Change) {
			c.relatedChangedOnTarget(ctx, target, change)
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

func (c *Controller) relatedChangedInMailbox(change related.Change) {
	if !change.All && len(change.Namespaces) == 0 {
		// A primary claims other names: no other objects are concerned.
		c.enqueue(changePriority, c.existingKeys(change.Names)...)
		return
	}
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		if key := keyOf(source); change.Affects(key) {
			c.enqueue(defaultPriority, key)
		}
	}
	// Copies of absent mailbox objects may have been kept for a primary.
	for _, target := range c.targetResources {
		for _, object := range target.cache.List() {
			c.enqueue(defaultPriority, slices.DeleteFunc(c.sourceKeysOf(object.(*cachedCopy)), func(key types.NamespacedName) bool { return !change.Affects(key) })...)
		}
	}
}

// existingKeys returns the keys of objects that the mailbox has, or of which the target has a copy.
func (c *Controller) existingKeys(names []types.NamespacedName) (keys []types.NamespacedName) {
	for _, key := range names {
		if !c.Resource.Namespaced {
			key.Namespace = ""
		}
		_, state := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, key)
		if state == mailboxes.Present || len(c.observeCopiesOf(key)) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// relatedChangedOnTarget replaces the upsync cache if the change is outside its scope. Otherwise it updates the names of cached
// objects, and fetches filtered objects that are related now.
func (c *Controller) relatedChangedOnTarget(ctx context.Context, target *targetResource, change related.Change) {
	matcher := c.matcher.Load()
	if c.updateUpsyncCache(target, matcher) {
		return
	}
	c.enqueue(defaultPriority, c.upsyncedRelatedKeys(target, change)...)
	upsynced := target.currentUpsyncCache()
	if upsynced == nil {
		return
	}
	for _, object := range upsynced.List() {
		if at := target.Ref(keyOf(object)); change.Affects(at.Key) {
			c.updateUpsyncName(target, matcher, at, object)
		}
	}
	for _, metadata := range upsynced.RejectedMetadata() {
		if change.Affects(types.NamespacedName{Namespace: metadata.Namespace, Name: metadata.Name}) {
			c.fetchIfRelated(ctx, target, metadata)
		}
	}
}

// allRelatedChangedOnTarget calls relatedChangedOnTarget for all objects of all target APIs.
func (c *Controller) allRelatedChangedOnTarget(ctx context.Context) {
	for _, target := range c.targetResources {
		c.relatedChangedOnTarget(ctx, target, related.Change{All: true})
	}
}

// fetchIfRelated makes the upsync cache fetch an object that it had filtered out, if a primary claims the object by now.
func (c *Controller) fetchIfRelated(ctx context.Context, target *targetResource, metadata metav1.ObjectMeta) {
	if _, selected := c.observer.SelectRelatedUp(c.matcher.Load(), target.TargetAPI, &metadata); !selected {
		return
	}
	c.withLock(func() {
		// Nothing may start once the controller ends.
		if upsynced := target.upsyncCache; upsynced != nil && c.runContext != nil {
			c.runningTasks.Go(func() {
				c.fetchObject(ctx, upsynced, types.NamespacedName{Namespace: metadata.Namespace, Name: metadata.Name})
			})
		}
	})
}

// upsyncedRelatedKeys returns the keys of upsynced related objects that the change concerns.
func (c *Controller) upsyncedRelatedKeys(target *targetResource, change related.Change) (keys []types.NamespacedName) {
	inMailbox, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, object := range inMailbox {
		mark, err := plan.MailboxMark(c.Owner, object)
		if err != nil || mark.Relation == "" {
			continue
		}
		if at := upsyncSourceRef(mark); at.Resource == target.GroupResource() && change.Affects(at.Key) {
			keys = append(keys, keyOf(object))
		}
	}
	return keys
}

// updateUpsyncName indexes a target object under its present mailbox key, if it is upsynced.
func (c *Controller) updateUpsyncName(target *targetResource, matcher *selection.Matcher, at plan.Ref, object *unstructured.Unstructured) {
	key, ok := c.upsyncKey(target, matcher, object)
	c.enqueue(defaultPriority, c.states.moveUpsynced(at, key, ok)...)
}

// fetchBackoff spaces the attempts to fetch an object. If all fail, the watch delivers the object with its next change, and
// the next cache lists it.
var fetchBackoff = wait.Backoff{Duration: retryBaseDelay, Factor: 2, Jitter: 0.1, Steps: 10}

func (c *Controller) fetchObject(ctx context.Context, upsynced *upsyncCache, key types.NamespacedName) {
	err := wait.ExponentialBackoffWithContext(ctx, fetchBackoff, func(ctx context.Context) (bool, error) {
		return upsynced.Fetch(requestclass.With(ctx, requestclass.Extra), key) == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		c.Log.Info("cannot read a related object of the target", "object", key.String())
	}
}

// relatedScope returns where related objects of a target API are.
func (c *Controller) relatedScope(resource schema.GroupResource) (names []types.NamespacedName, namespaces []string, all bool) {
	names, namespaces, all = c.Registry.SourceScope(synchubv1alpha1.RelatedOriginTarget, resource)
	if c.Resource.Namespaced {
		return names, namespaces, all
	}
	// Cluster-scoped objects are claimed by their names.
	for i := range names {
		names[i].Namespace = ""
	}
	return names, nil, all || len(namespaces) > 0
}
