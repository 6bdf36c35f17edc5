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

package transport

import (
	"context"
	"net"
	"sync"
)

// Slots limit how many large responses of one server are read and decoded at the same time, by their capacity. Nil Slots
// set no limit. Each server has its own, so that a server whose responses never end delays no other.
type Slots chan struct{}

const (
	// manyValues is the number of values above which a response takes one of manyValuesSlots while it is decoded. It takes
	// the slot when it has been read completely, and releases it before the next request. So no server decides for how
	// long the slot is taken.
	manyValues          = 1 << 15
	maxManyValuesAtOnce = 2
)

// manyValuesSlots are shared by all servers. A decoded response can take a hundred times the memory of its bytes.
var manyValuesSlots = make(Slots, maxManyValuesAtOnce)

// slot holds the slots that one response has taken.
type slot struct {
	lock sync.Mutex
	// large and manyValues are the Slots with a slot that the response has taken, or nil.
	large, manyValues Slots
	closed            bool
	// buffer is the size in bytes of the buffers that the reader of a watch keeps.
	buffer int64
}

// acquireLarge takes one of the server's slots, unless the response has one. It waits until a slot is free or ctx ends.
func (s *slot) acquireLarge(ctx context.Context, slots Slots) error {
	return s.acquire(ctx, &s.large, slots)
}

// acquireManyValues takes one of manyValuesSlots, unless the response has one.
func (s *slot) acquireManyValues(ctx context.Context) error {
	return s.acquire(ctx, &s.manyValues, manyValuesSlots)
}

// acquire takes one of the slots, unless the response has one in taken.
func (s *slot) acquire(ctx context.Context, taken *Slots, slots Slots) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if *taken != nil || slots == nil {
		return nil
	}
	if s.closed {
		return net.ErrClosed
	}
	if err := slots.acquire(ctx); err != nil {
		return err
	}
	*taken = slots
	return nil
}

// release gives back all slots.
func (s *slot) release() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, taken := range [...]*Slots{&s.large, &s.manyValues} {
		if *taken != nil {
			<-*taken
			*taken = nil
		}
	}
}

// releaseManyValues gives back the slot of manyValuesSlots. The response keeps the slot of its server.
func (s *slot) releaseManyValues() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.manyValues != nil {
		<-s.manyValues
		s.manyValues = nil
	}
}

// growBuffer raises the size of the buffers to room bytes, and returns by how much it has grown.
func (s *slot) growBuffer(room int64) (grown int64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closed {
		return 0
	}
	grown = max(room-s.buffer, 0)
	s.buffer += grown
	return grown
}

// close gives back all slots, lets no more be taken, and returns the size of the buffers.
func (s *slot) close() (room int64) {
	s.release()
	s.lock.Lock()
	defer s.lock.Unlock()
	room, s.buffer, s.closed = s.buffer, 0, true
	return room
}

func (s Slots) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slotContext is the context of requests whose responses keep their slots until they are decoded.
type slotContext struct {
	context.Context
	slot slot
}

type slotKey struct{}

// Value implements [context.Context].
func (c *slotContext) Value(key any) any {
	if key == (slotKey{}) {
		return &c.slot
	}
	return c.Context.Value(key)
}

// WithSlot returns a context for requests that are sent one after the other. Each large response keeps its slot of the
// server until release is called. Without WithSlot, it keeps the slot until its body is closed.
func WithSlot(ctx context.Context) (_ context.Context, release func()) {
	slotCtx := &slotContext{Context: ctx}
	return slotCtx, slotCtx.slot.release
}
