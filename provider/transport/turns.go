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

// Turns are taken by the large answers of one server while they are read and decoded: one for each that may be at once. Nil does
// not bound them. They are the server's own, so that one that never ends an answer holds up nobody else.
type Turns chan struct{}

const (
	// heavyValues is how many values an answer has that takes one of heavyTurns while it is decoded. It has come to its end by then,
	// and gives the turn back before anything else is asked for, so that no server has a say in how long that takes.
	heavyValues = 1 << 15
	heavyAtOnce = 2
)

// heavyTurns are those of all servers together: what is decoded takes up to a hundred times as much as what was sent.
var heavyTurns = make(Turns, heavyAtOnce)

// turn is what an answer has taken.
type turn struct {
	lock sync.Mutex
	// large and heavy are the turns of which one was taken, nil if none was.
	large, heavy Turns
	ended        bool
	// room is what whoever reads keeps for the next answer.
	room int64
}

// takeLarge waits for a turn of the server, unless the answer has one.
func (t *turn) takeLarge(ctx context.Context, turns Turns) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.large != nil || turns == nil {
		return nil
	}
	if t.ended {
		return net.ErrClosed
	}
	if err := turns.take(ctx); err != nil {
		return err
	}
	t.large = turns
	return nil
}

// takeHeavy waits for one of all turns, unless the answer has one.
func (t *turn) takeHeavy(ctx context.Context) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.heavy != nil {
		return nil
	}
	if t.ended {
		return net.ErrClosed
	}
	if err := heavyTurns.take(ctx); err != nil {
		return err
	}
	t.heavy = heavyTurns
	return nil
}

// giveBack lets others have what was taken.
func (t *turn) giveBack() {
	t.lock.Lock()
	defer t.lock.Unlock()
	for _, taken := range [...]*Turns{&t.large, &t.heavy} {
		if *taken != nil {
			<-*taken
			*taken = nil
		}
	}
}

// giveBackHeavy lets others have the one of all turns. The one of its server the answer keeps.
func (t *turn) giveBackHeavy() {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.heavy != nil {
		<-t.heavy
		t.heavy = nil
	}
}

// keepRoom notes how much room is kept, and returns by how much that has grown.
func (t *turn) keepRoom(room int64) (grown int64) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.ended {
		return 0
	}
	grown = max(room-t.room, 0)
	t.room += grown
	return grown
}

// end is giveBack for an answer of which nothing more is read. It returns how much room was kept.
func (t *turn) end() (room int64) {
	t.giveBack()
	t.lock.Lock()
	defer t.lock.Unlock()
	room, t.room, t.ended = t.room, 0, true
	return room
}

func (t Turns) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// whole is the context of a request whose answer keeps its turns until it was decoded.
type whole struct {
	context.Context
	turn turn
}

type wholeKey struct{}

// Value implements [context.Context].
func (w *whole) Value(key any) any {
	if key == (wholeKey{}) {
		return &w.turn
	}
	return w.Context.Value(key)
}

// Whole returns a context for requests, one after the other, whose answers keep their turns until release is called, or the next
// request shows that the answer before has been decoded. Without it they do so until they were read.
func Whole(ctx context.Context) (_ context.Context, release func()) {
	holding := &whole{Context: ctx}
	return holding, holding.turn.giveBack
}
