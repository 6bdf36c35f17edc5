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

package mailboxes

import (
	"slices"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Subscriber receives what happens to one resource in one mailbox. Its methods are called from informers and must
// return at once; they may call the [Mailboxes], but for what starts and ends watches.
type Subscriber interface {
	// OnEvent tells of one object.
	OnEvent(Event)
	// OnProven tells that a suspicion has been decided: look at the object again.
	OnProven(key types.NamespacedName)
	// OnReset tells that the cache was filled anew, or the mailbox's binding changed: look at all objects again.
	OnReset()
}

// route is what a subscription is for.
type route struct {
	resource schema.GroupVersionResource
	mailbox  logicalcluster.Name
}

// subscription is told apart from others of the same subscriber by its address.
type subscription struct{ Subscriber }

// subscribers are all subscriptions by route. An event finds those of its route without a lock.
type subscribers struct {
	// routes holds a []*subscription by route, in the order in which they were made. A slice is replaced, never changed.
	routes sync.Map
	// changing is held while a slice is replaced.
	changing sync.Mutex
}

func (s *subscribers) add(key route, subscriber Subscriber) (remove func()) {
	added := &subscription{subscriber}
	s.changing.Lock()
	defer s.changing.Unlock()
	s.routes.Store(key, append(slices.Clone(s.of(key)), added))
	return func() { s.remove(key, added) }
}

func (s *subscribers) remove(key route, removed *subscription) {
	s.changing.Lock()
	defer s.changing.Unlock()
	left := slices.DeleteFunc(slices.Clone(s.of(key)), func(one *subscription) bool { return one == removed })
	if len(left) == 0 {
		s.routes.Delete(key)
		return
	}
	s.routes.Store(key, left)
}

// of returns the subscriptions of a route, which must not be changed.
func (s *subscribers) of(key route) []*subscription {
	found, ok := s.routes.Load(key)
	if !ok {
		return nil
	}
	return found.([]*subscription)
}

// reset makes all that subscribed to a resource in one of the mailboxes look again.
func (s *subscribers) reset(resource schema.GroupVersionResource, isAffected func(logicalcluster.Name) bool) {
	s.routes.Range(func(key, value any) bool {
		if route := key.(route); route.resource == resource && isAffected(route.mailbox) {
			resetAll(value.([]*subscription))
		}
		return true
	})
}

func resetAll(subscriptions []*subscription) {
	for _, subscription := range subscriptions {
		subscription.OnReset()
	}
}

// Subscribe hands all further events of one resource in one mailbox to the subscriber, after those who subscribed
// before it. What is there already is for [Mailboxes.List] to tell. The resource need not be watched yet or any more.
// A call that is under way when the subscription is ended may still arrive.
func (m *Mailboxes) Subscribe(resource schema.GroupVersionResource, mailbox logicalcluster.Name, subscriber Subscriber) (unsubscribe func()) {
	return m.subscribers.add(route{resource, mailbox}, subscriber)
}

// resetMailbox tells every subscriber of a mailbox to look again.
func (m *Mailboxes) resetMailbox(mailbox logicalcluster.Name) {
	for _, resource := range m.watched() {
		resetAll(m.subscribers.of(route{resource, mailbox}))
	}
}
