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

	"github.com/synchub-dev/synchub/provider/metrics/cachesize"
	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	// initialQuarantine is how long a target is quarantined the first time. Each further time doubles it, up to maxQuarantine;
	// after quarantineResetAfter without an incident it starts over.
	initialQuarantine    = 30 * time.Second
	maxQuarantine        = 10 * time.Minute
	quarantineResetAfter = 30 * time.Minute
)

// CacheLimits bound the cache of one target. The zero value bounds nothing.
type CacheLimits struct {
	Objects, Bytes int64
}

// quarantine records why a target is quarantined: it sends more than the hub takes. The hub sends no request meanwhile, and
// probes the target afterwards like one that was away.
type quarantine struct {
	lock     sync.Mutex
	since    time.Time
	until    time.Time
	duration time.Duration
	health   Health
	// disconnected is true once the connections of the target are closed.
	disconnected bool
}

// start quarantines the target from now on, and returns false if it is quarantined already.
func (p *quarantine) start(now time.Time, reason, message string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	switch {
	case now.Before(p.until):
		return false
	case p.duration == 0, now.Sub(p.until) > quarantineResetAfter:
		p.duration = initialQuarantine
	default:
		p.duration = min(2*p.duration, maxQuarantine)
	}
	p.since, p.until, p.disconnected = now, now.Add(p.duration), false
	p.health = Health{Reason: reason, Message: message}
	return true
}

// remaining returns why the target is quarantined, and for how much longer; zero if it is not.
func (p *quarantine) remaining(now time.Time) (problem Health, left time.Duration) {
	p.lock.Lock()
	defer p.lock.Unlock()
	// A clock that was set back must not keep a target quarantined.
	if p.until.IsZero() || !now.Before(p.until) || now.Before(p.since) {
		return Health{}, 0
	}
	return p.health, p.until.Sub(now)
}

// onMisbehaviour quarantines the target for a response.
func (c *Connection) onMisbehaviour(err error) {
	reason, what := ReasonTooLarge, "it sends more than the hub takes"
	if _, ok := errors.AsType[*transport.ContentTypeError](err); ok {
		reason, what = ReasonNotAnAPIServer, "it answers as no API server does"
	}
	c.startQuarantine(reason, fmt.Sprintf("The target is quarantined, because %s: %v.", what, err))
}

// Quarantine quarantines the target because it shows more than the hub takes.
func (c *Connection) Quarantine(what string) {
	c.startQuarantine(ReasonTooLarge, fmt.Sprintf("The target is quarantined, because %s.", what))
}

// startQuarantine quarantines the target. The probe, which ends itself, does the rest.
func (c *Connection) startQuarantine(reason, message string) {
	if c.quarantine.start(c.clock.Now(), reason, message) {
		c.ProbeNow()
	}
}

// enterQuarantine reports the quarantine, and ends all requests to the target.
func (c *Connection) enterQuarantine(problem Health) {
	health := c.Health()
	health.Up, health.Reason, health.Message = false, problem.Reason, problem.Message
	c.setHealth(health)
	c.quarantine.lock.Lock()
	dropped := c.quarantine.disconnected
	c.quarantine.disconnected = true
	c.quarantine.lock.Unlock()
	if !dropped {
		c.dialer.CloseAll()
	}
}

// addWatchBuffer counts the buffers of watches as cached.
func (c *Connection) addWatchBuffer(bytes int64) {
	c.watchBuffers.Add(0, bytes)
	if bytes > 0 {
		c.CheckCacheLimits()
	}
}

// CountCache adds memory outside the informers, empty so far, to the counted cache of the target; takeOut removes it. Its
// owner calls [Connection.CheckCacheLimits] when it grows.
func (c *Connection) CountCache(held *cachesize.Counter) (takeOut func()) {
	return held.AddToParent(&c.cached)
}

// CheckCacheLimits quarantines the target if its caches are too large.
func (c *Connection) CheckCacheLimits() { c.exceedsCacheLimits(0, 0, true) }

// exceedsCacheLimits reports whether the caches of the target, with the lists being read, exceed a limit, and quarantines the
// target then. A target that does not grow is not quarantined for the memory of others.
func (c *Connection) exceedsCacheLimits(objects, bytes int64, grows bool) bool {
	objects, bytes = objects+c.cached.Objects(), bytes+c.cached.Bytes()
	limits := c.cacheLimits
	switch {
	case limits.Objects > 0 && objects > limits.Objects:
		c.startQuarantine(ReasonCacheFull, fmt.Sprintf("The target is quarantined, because the hub would hold more than %d of its objects. "+
			"Select less on it, or have the hub's --target-cache-objects raised.", limits.Objects))
	case limits.Bytes > 0 && bytes > limits.Bytes:
		c.startQuarantine(ReasonCacheFull, fmt.Sprintf("The target is quarantined, because its objects would take more than %d bytes of the hub's memory. "+
			"Select less on it, or have the hub's --target-cache-bytes raised.", limits.Bytes))
	case grows && !c.memory.allows(bytes):
		c.startQuarantine(ReasonCacheFull, fmt.Sprintf("The target is quarantined, because the objects of all targets together would take more than %d bytes of the hub's memory, "+
			"and it is one of those that take most. Select less on it, or have the hub's --targets-max-bytes raised.", c.memory.limit))
	default:
		return false
	}
	return true
}
