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
	// OnAbsenceDecided tells that a suspicion has been decided: look at the object again.
	OnAbsenceDecided(key types.NamespacedName)
	// OnReset tells that the cache was filled anew, or the mailbox's binding changed: look at all objects again.
	OnReset()
}

// subscriptionKey is what a subscription is for.
type subscriptionKey struct {
	resource schema.GroupVersionResource
	mailbox  logicalcluster.Name
}

// subscription is told apart from others of the same subscriber by its address.
type subscription struct{ Subscriber }

// subscribers are all subscriptions by route. An event finds those of its route without a lock.
type subscribers struct {
	// byKey holds a []*subscription by route, in the order in which they were made. A slice is replaced, never changed.
	byKey sync.Map
	// writeLock is held while a slice is replaced.
	writeLock sync.Mutex
}

func (s *subscribers) add(key subscriptionKey, subscriber Subscriber) (remove func()) {
	added := &subscription{subscriber}
	s.writeLock.Lock()
	defer s.writeLock.Unlock()
	s.byKey.Store(key, append(slices.Clone(s.get(key)), added))
	return func() { s.remove(key, added) }
}

func (s *subscribers) remove(key subscriptionKey, removed *subscription) {
	s.writeLock.Lock()
	defer s.writeLock.Unlock()
	left := slices.DeleteFunc(slices.Clone(s.get(key)), func(one *subscription) bool { return one == removed })
	if len(left) == 0 {
		s.byKey.Delete(key)
		return
	}
	s.byKey.Store(key, left)
}

// get returns the subscriptions of a route, which must not be changed.
func (s *subscribers) get(key subscriptionKey) []*subscription {
	found, ok := s.byKey.Load(key)
	if !ok {
		return nil
	}
	return found.([]*subscription)
}

// notifyReset makes all that subscribed to a resource in one of the mailboxes look again.
func (s *subscribers) notifyReset(resource schema.GroupVersionResource, isAffected func(logicalcluster.Name) bool) {
	s.byKey.Range(func(key, value any) bool {
		if route := key.(subscriptionKey); route.resource == resource && isAffected(route.mailbox) {
			notifyReset(value.([]*subscription))
		}
		return true
	})
}

func notifyReset(subscriptions []*subscription) {
	for _, subscription := range subscriptions {
		subscription.OnReset()
	}
}

// Subscribe hands all further events of one resource in one mailbox to the subscriber, after those who subscribed
// before it. What is there already is for [Mailboxes.List] to tell. The resource need not be watched yet or any more.
// A call that is under way when the subscription is ended may still arrive.
func (m *Mailboxes) Subscribe(resource schema.GroupVersionResource, mailbox logicalcluster.Name, subscriber Subscriber) (unsubscribe func()) {
	return m.subscribers.add(subscriptionKey{resource, mailbox}, subscriber)
}

// notifyMailboxReset tells every subscriber of a mailbox to look again.
func (m *Mailboxes) notifyMailboxReset(mailbox logicalcluster.Name) {
	for _, resource := range m.watchedResources() {
		notifyReset(m.subscribers.get(subscriptionKey{resource, mailbox}))
	}
}
