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

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// start starts the caches, which stop with ctx, and subscribes to all events that decisions depend on. stop ends the
// subscriptions in reverse order.
func (c *Controller) start(ctx context.Context) (stop func()) {
	c.tasks.begin(ctx)
	stops := []func(){
		c.reporter.metrics.use(),
		collector.Add(c),
		c.firstPass.finish,
		c.Connection.Watches.Subscribe(c.enqueuer.targetListener(c.onNamespaceLabels)),
		c.Connection.CacheSize.Add(&c.target.writes.Size),
	}
	for _, api := range c.target.apis {
		c.tasks.start(func() { api.cache.Run(ctx) })
		c.tasks.start(func() {
			api.cache.OnProgress(ctx, func() {
				c.recheckStart()
				c.primaries.recheckInitialSync()
			})
		})
	}
	c.upsync.update(c.matcher.Load())
	stops = append(stops, c.tasks.end, c.Mailboxes.Subscribe(c.Resource.GroupVersionResource, c.Mailbox, c))
	if c.readsNamespaceLabels() {
		stops = append(stops, c.Mailboxes.Subscribe(namespaces, c.Mailbox, namespaceSubscriber{c.enqueuer}))
	}
	stops = append(
		stops,
		c.Registry.Subscribe(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.enqueuer.relatedInMailbox),
		c.upsync.subscribe(),
	)
	return func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
}

// waitForCacheSync waits until the target's caches have synced, because no decision is safe before. It does not wait for APIs and
// namespaces that the hub cannot list. If the hub can list nothing, waitForCacheSync returns only if the mailbox has objects that cannot
// be left alone: upsynced ones, ones with the finalizer, or, if the target does not serve the API, copies that placements made, whose
// failure their users look for. It returns false if ctx ends first.
func (c *Controller) waitForCacheSync(ctx context.Context) bool {
	begins := func() bool {
		if c.Resource.Unpublishing {
			return true
		}
		known := 0
		for _, api := range c.target.apis {
			filled, pending := api.cache.Progress()
			if pending > 0 {
				return false
			}
			known += filled
		}
		// What a target does not serve cannot be there unseen, unlike what the hub may not list.
		return known > 0 || c.mailbox.holdsObjects() || !c.Status.IsServed() && c.mailbox.hasPlacedCopies()
	}
	for !begins() {
		select {
		case <-ctx.Done():
			return false
		case <-c.startSignal:
		}
	}
	return true
}

// recheckStart makes [Controller.waitForCacheSync] check its conditions again.
func (c *Controller) recheckStart() {
	select {
	case c.startSignal <- struct{}{}:
	default:
	}
}

func waitForAll(ctx context.Context, all []<-chan struct{}) bool {
	for _, one := range all {
		select {
		case <-ctx.Done():
			return false
		case <-one:
		}
	}
	return true
}
