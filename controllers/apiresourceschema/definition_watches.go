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
	// A target reports the event of a CRD a little before it serves the API. For announcedTimeout after that event the
	// controller reads the CRD every announcedPollInterval.
	announcedPollInterval = 500 * time.Millisecond
	announcedTimeout      = 10 * time.Second
)

// definitionWatches contains the subscriptions to the targets whose CRDs PublishedResources use. It is safe for
// concurrent use.
type definitionWatches struct {
	clock clock.Clock

	lock   sync.Mutex
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	byName map[string]*definitionWatch
}

// definitionWatch is the subscription of one PublishedResource.
type definitionWatch struct {
	// resource is spec.resource of the PublishedResource.
	resource synchubv1alpha1.ResourceDescriptor
	// target is nil while the hub has no connection. wasUp is true once the target has been up.
	target *targets.Connection
	wasUp  bool
	// unsubscribe ends the subscription. Only the reconciler of the PublishedResource calls it.
	unsubscribe func()
	// announcedAt is the time of the target's last event of a matching CRD.
	announcedAt time.Time
	// install is true if targets must get the CRD.
	install bool
	// inFlight is true while a read from the target is running. stale is true if the controller must read again
	// after that. result is the last result, or nil after resultOf returned it.
	inFlight, stale bool
	result          *definitionResult
}

// definitionResult is the result of reading a CRD from a target.
type definitionResult struct {
	definition *apiextensionsv1.CustomResourceDefinition
	// err is why the CRD could not be read. notInstallable is why it cannot be installed on other targets.
	err, notInstallable error
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// mayMatch reports whether a CRD may define the resource, whose plural name may be unknown.
func mayMatch(resource synchubv1alpha1.ResourceDescriptor, defined schema.GroupResource) bool {
	return resource.Group == defined.Group && (resource.Resource == "" || resource.Resource == defined.Resource)
}

// setQueue keeps the queue of the controller, for enqueue. It implements a source function.
func (e *definitionWatches) setQueue(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.queue = queue
	return nil
}

// watch subscribes to the target of a PublishedResource in place of the previous target. target is nil while the hub has no
// connection.
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
		now.unsubscribe = target.Watches.Subscribe(targets.Listener{
			OnCRD: func(defined schema.GroupResource) {
				if mayMatch(now.resource, defined) {
					e.markAnnounced(name, now)
				}
			},
			OnSynced: func() { e.enqueue(name) },
		})
	}
}

// markUp records whether the target of a PublishedResource is up, and reports whether it was ever up since the first watch.
func (e *definitionWatches) markUp(name string, isUp bool) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	watch := e.byName[name]
	watch.wasUp = watch.wasUp || isUp
	return watch.wasUp
}

// resultOf returns the result of the last read, or nil if a read is running or has just been started. After the read the
// PublishedResource is enqueued. A slow target therefore blocks no worker, only the PublishedResources that read from it.
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
			result := read(ctx)
			e.lock.Lock()
			watch.inFlight, watch.result = false, &result
			e.lock.Unlock()
			e.enqueue(name)
		})
	}
	return answer
}

// forget ends the subscription of a PublishedResource.
func (e *definitionWatches) forget(name string) {
	e.lock.Lock()
	before, ok := e.byName[name]
	delete(e.byName, name)
	e.lock.Unlock()
	if ok {
		before.unsubscribe()
	}
}

// markAnnounced records the event of a CRD and enqueues the PublishedResource.
func (e *definitionWatches) markAnnounced(name string, by *definitionWatch) {
	e.lock.Lock()
	by.announcedAt = e.clock.Now()
	e.lock.Unlock()
	e.enqueue(name)
}

// isAnnounced reports whether the target reported a matching CRD within the last announcedTimeout.
func (e *definitionWatches) isAnnounced(name string, now time.Time) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	watch, ok := e.byName[name]
	return ok && now.Sub(watch.announcedAt) < announcedTimeout
}

// enqueue enqueues PublishedResources by name. Before the controller starts, it does nothing.
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

// targetChanged enqueues the PublishedResources that read from a target that got a connection, came up or went down.
func (c *Controller) targetChanged(_ workqueue.TypedRateLimitingInterface[reconcile.Request], syncTarget types.UID) {
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
