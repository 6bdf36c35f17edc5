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
	announcedInterval = 500 * time.Millisecond
	announcedLimit    = 10 * time.Second
)

// ears listen to targets that PublishedResources have their definitions from.
type ears struct {
	clock clock.Clock

	lock  sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	heard map[string]*source
}

// source is the target of one PublishedResource.
type source struct {
	// wanted is what the PublishedResource is about.
	wanted synchubv1alpha1.ResourceDescriptor
	// target is nil while the hub knows none. Reached is true once it has been up.
	target  *targets.Connection
	reached bool
	// deaf ends the listening. It is used by the reconciler of the PublishedResource only.
	deaf func()
	// announced is when the target last told of a definition that may be the one.
	announced time.Time
	// install is true if the definition is to be installed elsewhere.
	install bool
	// asking is true while the target is being asked, outdated if it must be asked once more then. found is what it said, nil
	// once that was taken.
	asking, outdated bool
	found            *found
}

// found is what a target said of a definition.
type found struct {
	definition *apiextensionsv1.CustomResourceDefinition
	// err is why there is none, undefined why it cannot be installed elsewhere.
	err, undefined error
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// mayBe tells whether a resource, which may be named by its kind only, can be the one that a definition defines.
func mayBe(resource synchubv1alpha1.ResourceDescriptor, defined schema.GroupResource) bool {
	return resource.Group == defined.Group && (resource.Resource == "" || resource.Resource == defined.Resource)
}

// listen takes over the queue of the controller.
func (e *ears) listen(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.queue = queue
	return nil
}

// attend listens to the target of a PublishedResource, nil for one that is not known yet, instead of the one before.
func (e *ears) attend(resource *synchubv1alpha1.PublishedResource, target *targets.Connection) {
	name, now := resource.Name, &source{wanted: resource.Spec.Resource, install: resource.Spec.InstallCRD, target: target, deaf: func() {}}
	e.lock.Lock()
	before, ok := e.heard[name]
	if ok && before.target == target && before.wanted == now.wanted && before.install == now.install {
		e.lock.Unlock()
		return
	}
	now.reached = ok && before.reached
	e.heard[name] = now
	e.lock.Unlock()
	if ok {
		before.deaf()
	}
	if target != nil {
		now.deaf = target.Subscribe(targets.Listener{
			CRD: func(defined schema.GroupResource) {
				if mayBe(now.wanted, defined) {
					e.announce(name, now)
				}
			},
			Synced: func() { e.add(name) },
		})
	}
}

// reach notes whether the target of a PublishedResource is up, and tells whether it has been since this hub listens for it.
func (e *ears) reach(name string, isUp bool) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	heard := e.heard[name]
	heard.reached = heard.reached || isUp
	return heard.reached
}

// ask returns what the target of a PublishedResource says, nil as long as it is being asked: the PublishedResource is looked
// at again when it has answered. A target that answers slowly holds up nobody but those who ask it.
func (e *ears) ask(name string, read func(ctx context.Context) found) *found {
	e.lock.Lock()
	defer e.lock.Unlock()
	heard := e.heard[name]
	answer := heard.found
	switch heard.found = nil; {
	case heard.asking:
		heard.outdated = true
	case answer == nil || heard.outdated:
		heard.asking, heard.outdated = true, false
		heard.target.Background(func(ctx context.Context) {
			said := read(ctx)
			e.lock.Lock()
			heard.asking, heard.found = false, &said
			e.lock.Unlock()
			e.add(name)
		})
	}
	return answer
}

// forget stops listening for a PublishedResource.
func (e *ears) forget(name string) {
	e.lock.Lock()
	before, ok := e.heard[name]
	delete(e.heard, name)
	e.lock.Unlock()
	if ok {
		before.deaf()
	}
}

// announce notes that a target told of a definition.
func (e *ears) announce(name string, by *source) {
	e.lock.Lock()
	by.announced = e.clock.Now()
	e.lock.Unlock()
	e.add(name)
}

// expects tells whether a definition was announced that may be served soon.
func (e *ears) expects(name string, now time.Time) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	heard, ok := e.heard[name]
	return ok && now.Sub(heard.announced) < announcedLimit
}

// add has a PublishedResource looked at.
func (e *ears) add(names ...string) {
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
	c.ears.lock.Lock()
	var names []string
	for name, heard := range c.ears.heard {
		if heard.target == nil || heard.target.SyncTarget == syncTarget {
			names = append(names, name)
		}
	}
	c.ears.lock.Unlock()
	c.ears.add(names...)
}
