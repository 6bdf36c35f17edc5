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

// Slots are taken by the large answers of one server while they are read and decoded: one for each that may be at once. Nil does
// not bound them. They are the server's own, so that one that never ends an answer holds up nobody else.
type Slots chan struct{}

const (
	// manyValues is how many values an answer has that takes one of heavyTurns while it is decoded. It has come to its end by then,
	// and gives the turn back before anything else is asked for, so that no server has a say in how long that takes.
	manyValues          = 1 << 15
	maxManyValuesAtOnce = 2
)

// manyValuesSlots are those of all servers together: what is decoded takes up to a hundred times as much as what was sent.
var manyValuesSlots = make(Slots, maxManyValuesAtOnce)

// slot is what an answer has taken.
type slot struct {
	lock sync.Mutex
	// large and heavy are the turns of which one was taken, nil if none was.
	large, manyValues Slots
	closed            bool
	// buffer is what whoever reads keeps for the next answer.
	buffer int64
}

// acquireLarge waits for a turn of the server, unless the answer has one.
func (t *slot) acquireLarge(ctx context.Context, turns Slots) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.large != nil || turns == nil {
		return nil
	}
	if t.closed {
		return net.ErrClosed
	}
	if err := turns.acquire(ctx); err != nil {
		return err
	}
	t.large = turns
	return nil
}

// acquireManyValues waits for one of all turns, unless the answer has one.
func (t *slot) acquireManyValues(ctx context.Context) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.manyValues != nil {
		return nil
	}
	if t.closed {
		return net.ErrClosed
	}
	if err := manyValuesSlots.acquire(ctx); err != nil {
		return err
	}
	t.manyValues = manyValuesSlots
	return nil
}

// release lets others have what was taken.
func (t *slot) release() {
	t.lock.Lock()
	defer t.lock.Unlock()
	for _, taken := range [...]*Slots{&t.large, &t.manyValues} {
		if *taken != nil {
			<-*taken
			*taken = nil
		}
	}
}

// releaseManyValues lets others have the one of all turns. The one of its server the answer keeps.
func (t *slot) releaseManyValues() {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.manyValues != nil {
		<-t.manyValues
		t.manyValues = nil
	}
}

// growBuffer notes how much room is kept, and returns by how much that has grown.
func (t *slot) growBuffer(room int64) (grown int64) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.closed {
		return 0
	}
	grown = max(room-t.buffer, 0)
	t.buffer += grown
	return grown
}

// close is giveBack for an answer of which nothing more is read. It returns how much room was kept.
func (t *slot) close() (room int64) {
	t.release()
	t.lock.Lock()
	defer t.lock.Unlock()
	room, t.buffer, t.closed = t.buffer, 0, true
	return room
}

func (t Slots) acquire(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slotContext is the context of a request whose answer keeps its turns until it was decoded.
type slotContext struct {
	context.Context
	slot slot
}

type slotKey struct{}

// Value implements [context.Context].
func (w *slotContext) Value(key any) any {
	if key == (slotKey{}) {
		return &w.slot
	}
	return w.Context.Value(key)
}

// WithSlot returns a context for requests, one after the other, whose answers keep their turns until release is called, or the next
// request shows that the answer before has been decoded. Without it they do so until they were read.
func WithSlot(ctx context.Context) (_ context.Context, release func()) {
	slotCtx := &slotContext{Context: ctx}
	return slotCtx, slotCtx.slot.release
}
