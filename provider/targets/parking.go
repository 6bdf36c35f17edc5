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

package targets

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/synchub-dev/synchub/provider/holdings"
	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	// parkFirst is how long a target is left alone after it went over a limit; each time that it does so again, it is twice
	// as long, up to parkLongest. After it has behaved for parkForgotten it begins anew.
	parkFirst     = 30 * time.Second
	parkLongest   = 10 * time.Minute
	parkForgotten = 30 * time.Minute
)

// CacheLimits bound what is held of one target. The zero value does not.
type CacheLimits struct {
	Objects, Bytes int64
}

// parking remembers why a target is left alone: it sends more than the hub takes. Nothing is sent to it meanwhile, then it is
// probed as any target that was away.
type parking struct {
	lock  sync.Mutex
	since time.Time
	until time.Time
	pause time.Duration
	why   Health
	// dropped is true once the connections of the target are closed.
	dropped bool
}

// begin parks the target from now on, and returns false if it is parked already.
func (p *parking) begin(now time.Time, reason, message string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	switch {
	case now.Before(p.until):
		return false
	case p.pause == 0, now.Sub(p.until) > parkForgotten:
		p.pause = parkFirst
	default:
		p.pause = min(2*p.pause, parkLongest)
	}
	p.since, p.until, p.dropped = now, now.Add(p.pause), false
	p.why = Health{Reason: reason, Message: message}
	return true
}

// at returns why the target is parked, and for how long it still is; zero if it is not.
func (p *parking) at(now time.Time) (why Health, left time.Duration) {
	p.lock.Lock()
	defer p.lock.Unlock()
	// A clock that was set back must not keep a target parked.
	if p.until.IsZero() || !now.Before(p.until) || now.Before(p.since) {
		return Health{}, 0
	}
	return p.why, p.until.Sub(now)
}

// misbehaved parks the target for what it has sent.
func (c *Connection) misbehaved(err error) {
	reason, what := ReasonTooLarge, "it sends more than the hub takes"
	if _, ok := errors.AsType[*transport.ContentTypeError](err); ok {
		reason, what = ReasonNotAnAPIServer, "it answers as no API server does"
	}
	c.park(reason, fmt.Sprintf("The target is left alone for a while since %s: %v.", what, err))
}

// LeaveAlone has the target left alone for a while, since it shows more than the hub takes.
func (c *Connection) LeaveAlone(what string) {
	c.park(ReasonTooLarge, fmt.Sprintf("The target is left alone for a while since %s.", what))
}

// park leaves the target alone for a while. The probe, which ends itself, does what is to be done for that.
func (c *Connection) park(reason, message string) {
	if c.parking.begin(c.clock.Now(), reason, message) {
		c.Doubt()
	}
}

// dropParked tells that the target is parked, and ends all that is under way with it.
func (c *Connection) dropParked(why Health) {
	health := c.Health()
	health.Up, health.Reason, health.Message = false, why.Reason, why.Message
	c.set(health)
	c.parking.lock.Lock()
	dropped := c.parking.dropped
	c.parking.dropped = true
	c.parking.lock.Unlock()
	if !dropped {
		c.dialer.CloseAll()
	}
}

// keepsRoom counts the room that watches keep for their events as held.
func (c *Connection) keepsRoom(bytes int64) {
	c.room.Change(0, bytes)
	if bytes > 0 {
		c.Grown()
	}
}

// Count counts what is held of the target beside its informers, of which nothing is yet, among what may be; the result takes it
// out again. Whoever holds more of it calls Grown.
func (c *Connection) Count(held *holdings.Holdings) (takeOut func()) { return held.Within(&c.held) }

// Grown has the target parked if too much of it is held.
func (c *Connection) Grown() { c.isOver(0, 0, true) }

// isOver tells whether more of the target is held, with what is being read beside that, than may be, and has it parked then. A
// target that does not grow is not parked for what others take.
func (c *Connection) isOver(objects, bytes int64, grows bool) bool {
	objects, bytes = objects+c.held.Objects(), bytes+c.held.Bytes()
	limits := c.cacheLimits
	switch {
	case limits.Objects > 0 && objects > limits.Objects:
		c.park(ReasonCacheFull, fmt.Sprintf("The target is left alone for a while since the hub would hold more than %d of its objects. "+
			"Select less on it, or have the hub's --target-cache-objects raised.", limits.Objects))
	case limits.Bytes > 0 && bytes > limits.Bytes:
		c.park(ReasonCacheFull, fmt.Sprintf("The target is left alone for a while since its objects would take more than %d bytes of the hub's memory. "+
			"Select less on it, or have the hub's --target-cache-bytes raised.", limits.Bytes))
	case grows && !c.total.allows(bytes):
		c.park(ReasonCacheFull, fmt.Sprintf("The target is left alone for a while since the objects of all targets together would take more than %d bytes of the hub's memory, "+
			"and it is one of those that take most. Select less on it, or have the hub's --targets-max-bytes raised.", c.total.limit))
	default:
		return false
	}
	return true
}
