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

package apiresourceschema

import (
	"context"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// A definition is announced a little before its API is served: for announcedLimit after it was, the target is asked
	// for it each announcedInterval.
	announcedPollInterval = 500 * time.Millisecond
	announcedTimeout      = 10 * time.Second
)

// definitionWatches listen to targets that PublishedResources have their definitions from.
type definitionWatches struct {
	clock clock.Clock

	lock   sync.Mutex
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	byName map[string]*definitionWatch
}

// definitionWatch is the target of one PublishedResource.
type definitionWatch struct {
	// resource is what the PublishedResource is about.
	resource synchubv1alpha1.ResourceDescriptor
	// target is nil while the hub knows none. Reached is true once it has been up.
	target *targets.Connection
	wasUp  bool
	// unsubscribe ends the listening. It is used by the reconciler of the PublishedResource only.
	unsubscribe func()
	// announcedAt is when the target last told of a definition that may be the one.
	announcedAt time.Time
	// install is true if the definition is to be installed elsewhere.
	install bool
	// inFlight is true while the target is being asked, outdated if it must be asked once more then. found is what it said, nil
	// once that was taken.
	inFlight, stale bool
	result          *definitionResult
}

// definitionResult is what a target said of a definition.
type definitionResult struct {
	definition *apiextensionsv1.CustomResourceDefinition
	// err is why there is none, undefined why it cannot be installed elsewhere.
	err, notInstallable error
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// mayMatch tells whether a resource, which may be named by its kind only, can be the one that a definition defines.
func mayMatch(resource synchubv1alpha1.ResourceDescriptor, defined schema.GroupResource) bool {
	return resource.Group == defined.Group && (resource.Resource == "" || resource.Resource == defined.Resource)
}

// setQueue takes over the queue of the controller.
func (e *definitionWatches) setQueue(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.queue = queue
	return nil
}

// watch listens to the target of a PublishedResource, nil for one that is not known yet, instead of the one before.
func (e *definitionWatches) watch(resource *synchubv1alpha1.PublishedResource, target *targets.Connection) {
	name, now := resource.Name, &definitionWatch{resource: resource.Spec.Resource, install: resource.Spec.InstallCRD, target: target, unsubscribe: func() {}}
	e.lock.Lock()
	before, ok := e.byName[name]
	if ok && before.target == target && before.resource == now.resource && before.install == now.install {
		e.lock.Unlock()
		return
	}
	now.wasUp = ok && before.wasUp
	e.byName[name] = now
	e.lock.Unlock()
	if ok {
		before.unsubscribe()
	}
	if target != nil {
		now.unsubscribe = target.Subscribe(targets.Listener{
			OnCRD: func(defined schema.GroupResource) {
				if mayMatch(now.resource, defined) {
					e.markAnnounced(name, now)
				}
			},
			OnSynced: func() { e.enqueue(name) },
		})
	}
}

// markUp notes whether the target of a PublishedResource is up, and tells whether it has been since this hub listens for it.
func (e *definitionWatches) markUp(name string, isUp bool) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	watch := e.byName[name]
	watch.wasUp = watch.wasUp || isUp
	return watch.wasUp
}

// resultOf returns what the target of a PublishedResource says, nil as long as it is being asked: the PublishedResource is looked
// at again when it has answered. A target that answers slowly holds up nobody but those who ask it.
func (e *definitionWatches) resultOf(name string, read func(ctx context.Context) definitionResult) *definitionResult {
	e.lock.Lock()
	defer e.lock.Unlock()
	watch := e.byName[name]
	answer := watch.result
	switch watch.result = nil; {
	case watch.inFlight:
		watch.stale = true
	case answer == nil || watch.stale:
		watch.inFlight, watch.stale = true, false
		watch.target.RunInBackground(func(ctx context.Context) {
			said := read(ctx)
			e.lock.Lock()
			watch.inFlight, watch.result = false, &said
			e.lock.Unlock()
			e.enqueue(name)
		})
	}
	return answer
}

// forget stops listening for a PublishedResource.
func (e *definitionWatches) forget(name string) {
	e.lock.Lock()
	before, ok := e.byName[name]
	delete(e.byName, name)
	e.lock.Unlock()
	if ok {
		before.unsubscribe()
	}
}

// markAnnounced notes that a target told of a definition.
func (e *definitionWatches) markAnnounced(name string, by *definitionWatch) {
	e.lock.Lock()
	by.announcedAt = e.clock.Now()
	e.lock.Unlock()
	e.enqueue(name)
}

// isAnnounced tells whether a definition was announced that may be served soon.
func (e *definitionWatches) isAnnounced(name string, now time.Time) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	watch, ok := e.byName[name]
	return ok && now.Sub(watch.announcedAt) < announcedTimeout
}

// enqueue has a PublishedResource looked at.
func (e *definitionWatches) enqueue(names ...string) {
	e.lock.Lock()
	queue := e.queue
	e.lock.Unlock()
	for _, name := range names {
		if queue != nil {
			queue.Add(requestFor(name))
		}
	}
}

// TargetChanged is called when the target of a SyncTarget was connected, came up or went down.
func (c *Controller) TargetChanged(syncTarget types.UID) {
	c.watches.lock.Lock()
	var names []string
	for name, watch := range c.watches.byName {
		if watch.target == nil || watch.target.SyncTarget == syncTarget {
			names = append(names, name)
		}
	}
	c.watches.lock.Unlock()
	c.watches.enqueue(names...)
}
