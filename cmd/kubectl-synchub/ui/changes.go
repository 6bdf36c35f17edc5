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

package ui

import "sync"

// changes counts the changes of all watches, and notifies the live pages.
type changes struct {
	lock        sync.Mutex
	count       uint64
	subscribers map[chan struct{}]struct{}
}

func newChanges() *changes { return &changes{subscribers: map[chan struct{}]struct{}{}} }

// add counts a change. Subscribers that have not yet received the last notification get no second one.
func (c *changes) add() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.count++
	for subscriber := range c.subscribers {
		select {
		case subscriber <- struct{}{}:
		default:
		}
	}
}

// version returns the number of changes until now.
func (c *changes) version() uint64 {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.count
}

// subscribe returns a channel that receives a notification after changes.
func (c *changes) subscribe() (notified <-chan struct{}, unsubscribe func()) {
	subscriber := make(chan struct{}, 1)
	c.lock.Lock()
	defer c.lock.Unlock()
	c.subscribers[subscriber] = struct{}{}
	return subscriber, func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		delete(c.subscribers, subscriber)
	}
}
