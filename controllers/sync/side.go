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
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/controllers/sync/boundary"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/targets"
)

// place is where an object is on the target.
type place struct {
	resource schema.GroupResource
	key      types.NamespacedName
}

// side is one of the resources that the mailbox's objects can be on the target.
type side struct {
	TargetResource
	// versions are those in which configs may speak of it, if there are several: objects are the same in all of them.
	versions []string
	// cache holds what went down to it.
	cache *targets.Cache
	// taken watches names that somebody else has taken.
	taken *targets.NameWatch
	// takenRuns is true once a name was to be watched; feed is nil while nothing of the resource is selected for coming up,
	// and kin is where it must reach for what is related. The controller's lock guards all three.
	takenRuns bool
	feed      *feed
	kin       reach
	lock      func(func())
}

// feed is the source of what comes up, as one matcher selects it.
type feed struct {
	*targets.Feed
	// key tells what the feed was filled for (see selection.Matcher.UpKey).
	key    string
	cancel context.CancelFunc
}

// bySource is the index of a cache by the mailbox object that an object came from.
const bySource = "source"

// unverified is where that index has the objects that bear the hub's label and a mark that names it, but that somebody else wrote.
// It is the name of no object, which has a slash.
const unverified = "unverified"

func (c *Controller) newSide(resource TargetResource) *side {
	s := &side{TargetResource: resource, lock: c.locked}
	if c.Resource.HasTargetVersions() && c.Resource.OnTarget().GroupResource() == resource.GroupResource() {
		s.versions = c.Resource.TargetVersions()
	}
	s.cache = c.Connection.NewCache(resource.GroupVersionResource, targets.CacheOptions{
		Namespaced:     c.Resource.Namespaced,
		Selector:       c.selector,
		Strip:          c.strip,
		Handler:        c.targetHandler(s),
		Indexers:       cache.Indexers{bySource: c.indexBySource},
		OnAvailability: c.availabilityChanged,
	})
	s.taken = c.Connection.NewNameWatch(resource.GroupVersionResource, func(key types.NamespacedName) {
		c.wake(place{s.GroupResource(), key})
	})
	return s
}

func (c *Controller) locked(do func()) {
	c.lock.Lock()
	defer c.lock.Unlock()
	do()
}

func (s *side) feeding() (current *feed) {
	s.lock(func() { current = s.feed })
	return current
}

// inConfigs is what configs call the resource.
func (s *side) inConfigs() schema.GroupVersionResource {
	resource := s.GroupVersionResource
	if len(s.versions) > 0 {
		resource.Version = s.versions[0]
	}
	return resource
}

// isKnown tells whether it is known what the target holds: what it does not serve it does not hold.
func (s *side) isKnown() bool {
	return s.cache.Synced() || s.cache.Availability().Reason == targets.ReasonNotServed
}

func (s *side) at(key types.NamespacedName) place { return place{s.GroupResource(), key} }

// sideOf returns the side of a resource on the target, or nil.
func (c *Controller) sideOf(resource schema.GroupResource) *side {
	for _, side := range c.sides {
		if side.GroupResource() == resource {
			return side
		}
	}
	return nil
}

// sideOfKind returns the side of a kind on the target, or nil.
func (c *Controller) sideOfKind(kind schema.GroupKind) *side {
	for _, side := range c.sides {
		if side.Group == kind.Group && side.Kind == kind.Kind {
			return side
		}
	}
	return nil
}

// runTaken lets names be watched, until the controller ends. Most controllers never have one to watch.
func (c *Controller) runTaken(side *side) {
	c.locked(func() {
		if owner := c.feeding; owner != nil && !side.takenRuns {
			side.takenRuns = true
			c.running.Go(func() { side.taken.Run(owner) })
		}
	})
}

// startFeeds begins to read what comes up, until ctx ends.
func (c *Controller) startFeeds(ctx context.Context) {
	c.locked(func() { c.feeding = ctx })
	c.setFeeds(c.matcher.Load())
}

// feedOwner returns what owns the feeds, nil while the controller does not run.
func (c *Controller) feedOwner() context.Context {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.feeding
}

func (c *Controller) stopFeeds() {
	c.locked(func() { c.feeding = nil })
}

// setFeeds replaces the feeds that were filled for another selection than the matcher's, and tells whether there were any.
func (c *Controller) setFeeds(matcher *selection.Matcher) (changed bool) {
	for _, side := range c.sides {
		changed = c.setFeed(side, matcher) || changed
	}
	return changed
}

// setFeed replaces the feed of a side if it was filled for another selection, or does not reach what is related.
func (c *Controller) setFeed(side *side, matcher *selection.Matcher) (changed bool) {
	selected := ""
	if c.mayFeed(side) && matcher.SelectsUp(side.GroupResource(), side.Kind) {
		selected = matcher.UpKey(side.GroupResource(), side.Kind)
	}
	names, namespaces, all := c.kinScope(side.GroupResource())
	admitted := c.namespaces().String()
	c.locked(func() {
		if c.feeding == nil {
			return
		}
		side.kin.widen(names, namespaces, all)
		key := selected
		if !side.kin.isNowhere() {
			key += "/" + side.kin.String()
		}
		if key != "" {
			key += "/" + admitted
		}
		if side.feed == nil && key == "" || side.feed != nil && side.feed.key == key {
			return
		}
		changed = true
		if side.feed != nil {
			side.feed.cancel()
			side.feed = nil
			c.raised.forget(side.GroupResource())
		}
		if key != "" {
			side.feed = c.newFeed(side, matcher, key)
		}
	})
	return changed
}

// newFeed starts a feed. The caller holds the lock.
func (c *Controller) newFeed(side *side, matcher *selection.Matcher, key string) *feed {
	ctx, cancel := context.WithCancel(c.feeding)
	scope := c.Connection.Within(side.kin.with(c.selectedScope(matcher, side)), c.Resource.Namespaced)
	started := &feed{key: key, cancel: cancel}
	started.Feed = c.Connection.NewFeed(side.GroupVersionResource, targets.FeedOptions{
		Scope: scope,
		Keep: func(object *unstructured.Unstructured) bool {
			_, ok := c.comesUpAs(side, c.matcher.Load(), object)
			return ok
		},
		Bystanders:     !side.kin.isNowhere(),
		Passed:         func(bystander metav1.ObjectMeta) { c.passed(ctx, side, bystander) },
		Handler:        c.feedHandler(ctx, side),
		OnAvailability: c.availabilityChanged,
	})
	c.running.Go(func() { started.Run(ctx) })
	c.running.Go(func() {
		// What came up before and is not selected any more shows only now.
		if started.WaitSynced(ctx) {
			c.enqueueAll()
			c.answerRoll()
		}
	})
	return started
}

// comesUpAs returns the name in the mailbox under which an object of the target comes up; ok is false if it does not:
// nothing selects it, a hub brought it there, or it comes up as another resource.
func (c *Controller) comesUpAs(side *side, matcher *selection.Matcher, object *unstructured.Unstructured) (types.NamespacedName, bool) {
	if StaysBelow(c.Owner, object) {
		return types.NamespacedName{}, false
	}
	chosen, ok := c.chooseUp(matcher, side, object)
	if !ok || chosen.kin == nil && chosen.Conversion == nil && side.GroupResource() != c.Resource.OnTarget().GroupResource() {
		return types.NamespacedName{}, false
	}
	name, err := c.up.Name(object, c.wishUp(chosen, object))
	if err == nil {
		if err := c.admitsUp(side, keyOf(object), types.NamespacedName{Namespace: name.Namespace, Name: name.Name}); err != nil {
			// Where the config's entry does not tell it, it is reported under the name that it has on the target.
			return keyOf(object), chosen.kin != nil || reasonOf(err) == boundary.ReasonNameReserved
		}
	}
	if refused, illegal := errors.AsType[*transform.RefusedError](err); illegal && refused != nil {
		// It is reported under the name that it has on the target.
		return keyOf(object), true
	}
	if err != nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, true
}

// areFeedsSynced tells whether it is known what comes up.
func (c *Controller) areFeedsSynced() bool {
	return !slices.ContainsFunc(c.sides, func(side *side) bool {
		feed := side.feeding()
		return feed != nil && !feed.Synced()
	})
}

// mayFeed tells whether configs can select objects of a side for coming up.
func (c *Controller) mayFeed(side *side) bool {
	return !c.Resource.Companion && c.admitsFrom(side) == nil
}

// selectedScope returns where the objects are that configs select for coming up.
func (c *Controller) selectedScope(matcher *selection.Matcher, side *side) selection.Scope {
	if !c.mayFeed(side) {
		return selection.Scope{}
	}
	scope := matcher.UpScope(side.GroupResource(), side.Kind, c.Resource.Namespaced)
	// What does not come up is not read either.
	scope.Namespaces = slices.DeleteFunc(scope.Namespaces, func(name string) bool {
		return c.admitsNamespace(name, side.Allows.ProtectedNamespaces) != nil
	})
	scope.Names = slices.DeleteFunc(scope.Names, func(name types.NamespacedName) bool { return c.admits(side, name) != nil })
	return scope
}
