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
	"sync/atomic"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Subscriber receives the events of one resource in one mailbox. Informers call its methods, which must not block. They may
// call methods of [Mailboxes] that neither start nor end watches.
type Subscriber interface {
	// OnEvent is called for a change of one object.
	OnEvent(Event)
	// OnAbsenceDecided is called when a verification has ended: reconcile the object again.
	OnAbsenceDecided(key types.NamespacedName)
	// OnReset is called when the cache was filled, or the mailbox's binding changed: reconcile all objects again.
	OnReset()
}

// subscriptionKey identifies the events of a subscription.
type subscriptionKey struct {
	resource schema.GroupVersionResource
	mailbox  logicalcluster.Name
}

// subscription is a separate type so that several subscriptions of one subscriber have different addresses.
type subscription struct{ Subscriber }

// Subscriptions are the subscribers of all mailboxes, and the observer. An event finds its subscriptions without a lock.
type Subscriptions struct {
	endpoints *Endpoints
	// byKey holds a []*subscription for each subscriptionKey, in order of subscription. A slice is replaced, never changed.
	byKey sync.Map
	// writeLock serializes the replacements.
	writeLock sync.Mutex
	// observer is nil before Observe.
	observer atomic.Pointer[observer]
}

// Subscribe calls the subscriber for later events of one resource in one mailbox, after earlier subscribers. [Caches.List]
// returns the current objects. The resource need not be watched yet. A call may still be running after unsubscribe.
func (s *Subscriptions) Subscribe(resource schema.GroupVersionResource, mailbox logicalcluster.Name, subscriber Subscriber) (unsubscribe func()) {
	key, added := subscriptionKey{resource, mailbox}, &subscription{subscriber}
	s.writeLock.Lock()
	defer s.writeLock.Unlock()
	s.byKey.Store(key, append(slices.Clone(s.get(key)), added))
	return func() { s.remove(key, added) }
}

func (s *Subscriptions) remove(key subscriptionKey, removed *subscription) {
	s.writeLock.Lock()
	defer s.writeLock.Unlock()
	left := slices.DeleteFunc(slices.Clone(s.get(key)), func(one *subscription) bool { return one == removed })
	if len(left) == 0 {
		s.byKey.Delete(key)
		return
	}
	s.byKey.Store(key, left)
}

// get returns the subscriptions for a key. The caller must not change the slice.
func (s *Subscriptions) get(key subscriptionKey) []*subscription {
	found, ok := s.byKey.Load(key)
	if !ok {
		return nil
	}
	return found.([]*subscription)
}

// notifyReset resets the subscribers of a resource in all affected mailboxes.
func (s *Subscriptions) notifyReset(resource schema.GroupVersionResource, isAffected func(logicalcluster.Name) bool) {
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

// publish calls the subscribers and the observer for an event of a mailbox.
func (s *Subscriptions) publish(resource schema.GroupVersionResource, mailbox logicalcluster.Name, event Event) {
	for _, subscription := range s.get(subscriptionKey{resource, mailbox}) {
		subscription.OnEvent(event)
	}
	if observer := s.observer.Load(); observer != nil {
		observer.OnEvent(resource, mailbox, event)
	}
}

// resetMailbox resets all subscribers of a mailbox.
func (s *Subscriptions) resetMailbox(mailbox logicalcluster.Name) {
	for _, resource := range s.endpoints.watchedResources() {
		notifyReset(s.get(subscriptionKey{resource, mailbox}))
	}
	s.resetObserver(mailbox)
}

func (s *Subscriptions) resetObserver(mailbox logicalcluster.Name) {
	if observer := s.observer.Load(); observer != nil {
		observer.OnReset(mailbox)
	}
}

// Observer receives the events of all resources in all mailboxes. Informers call its methods, which must not block.
type Observer interface {
	// OnEvent is called for a change of one object.
	OnEvent(resource schema.GroupVersionResource, mailbox logicalcluster.Name, event Event)
	// OnAbsenceDecided is called when a verification has ended.
	OnAbsenceDecided(resource schema.GroupVersionResource, mailbox logicalcluster.Name, key types.NamespacedName)
	// OnReset is called when a cache was filled, or the mailbox's binding changed or vanished: reconcile all objects again.
	OnReset(mailbox logicalcluster.Name)
}

// observer wraps the interface, so that its pointer can be swapped.
type observer struct{ Observer }

// SetObserver calls an observer for all later events, after the subscribers. There is one observer; call Observe before
// [Mailboxes.Start].
func (s *Subscriptions) SetObserver(all Observer) { s.observer.Store(&observer{all}) }
