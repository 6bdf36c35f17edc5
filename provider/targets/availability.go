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
	"context"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/synchub-dev/synchub/provider/redact"
)

const (
	// recheckInterval is how often a refused list is tried again when nothing tells of a cure. One that is forbidden is
	// tried after firstRecheck, and then each time twice as late, since an API server that starts forbids everything until
	// it has read its roles.
	recheckInterval = 5 * time.Minute
	firstRecheck    = time.Second
	// A definition is announced a little before its API is served: for announcedLimit after it was, the API is asked for
	// each announcedInterval.
	announcedInterval = 250 * time.Millisecond
	announcedLimit    = 10 * time.Second
)

// Reasons of an [Availability], in the form of condition reasons.
const (
	ReasonNotServed = "NotServed"
	ReasonForbidden = "Forbidden"
)

// Availability tells why a resource cannot be read on a target. The zero value says that it can, or was not tried yet.
type Availability struct {
	// Reason is ReasonNotServed or ReasonForbidden; Message is the API server's.
	Reason, Message string
}

// gate lets the lists and watches of one informer through. One that cannot succeed now waits in here: to the reflector
// it is a request that takes long, so it neither backs off nor forgets what it holds.
type gate struct {
	connection *Connection
	resource   schema.GroupResource
	onChange   func()

	lock  sync.Mutex
	state Availability
}

func (c *Connection) newGate(resource schema.GroupVersionResource, onChange func()) *gate {
	return &gate{connection: c, resource: resource.GroupResource(), onChange: onChange}
}

// Availability is what the target last said.
func (g *gate) Availability() Availability {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.state
}

func (g *gate) set(state Availability) {
	g.lock.Lock()
	changed := g.state.Reason != state.Reason
	g.state = state
	g.lock.Unlock()
	if changed {
		g.connection.log.Info("the availability of a resource changed", "resource", g.resource.String(), "reason", state.Reason)
		if g.onChange != nil {
			g.onChange()
		}
	}
}

// pass makes the request while the target is up, and again while it is refused, until ctx ends.
func (g *gate) pass(ctx context.Context, request func() error) error {
	var cure *cure
	recheck := firstRecheck
	for {
		if err := g.connection.WaitUp(ctx); err != nil {
			return err
		}
		err := request()
		state := availabilityFrom(err)
		if err == nil || state.Reason != "" {
			g.set(state)
		}
		switch {
		case utilnet.IsConnectionRefused(err):
			// It waits for the probe to find the target down, or up; the reflector would not make it look, and back off for
			// longer than the target is away.
			g.connection.Doubt()
			err = g.wait(ctx, suspectInterval, nil)
		case state.Reason == "":
			return err
		case state.Reason == ReasonForbidden:
			err = g.wait(ctx, recheck, nil)
			recheck = min(2*recheck, recheckInterval)
		case cure == nil:
			// It is asked for once more at once, since the definition may have come before the cure was listened for.
			cure = g.listen()
			defer cure.unsubscribe()
			err = nil
		default:
			err = g.wait(ctx, cure.interval(g.connection.clock.Now()), cure.signal)
		}
		if err != nil {
			return err
		}
	}
}

// wait returns after the interval, or at a signal.
func (g *gate) wait(ctx context.Context, interval time.Duration, signal <-chan struct{}) error {
	timer := g.connection.clock.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-signal:
	case <-timer.C():
	}
	return nil
}

// cure is the hope that a resource comes to be served.
type cure struct {
	signal chan struct{}
	// announced is set when the definition of the resource changed.
	announced atomic.Bool
	// expected is until when the API is asked for often.
	expected    time.Time
	unsubscribe func()
}

// interval is how soon the API should be asked for again.
func (c *cure) interval(now time.Time) time.Duration {
	if c.announced.Swap(false) {
		c.expected = now.Add(announcedLimit)
	}
	if now.Before(c.expected) {
		return announcedInterval
	}
	return recheckInterval
}

func (g *gate) listen() *cure {
	c := &cure{signal: make(chan struct{}, 1)}
	wake := func() {
		select {
		case c.signal <- struct{}{}:
		default:
		}
	}
	c.unsubscribe = g.connection.Subscribe(Listener{
		Synced: wake,
		CRD: func(changed schema.GroupResource) {
			if changed == g.resource {
				c.announced.Store(true)
				wake()
			}
		},
	})
	return c
}

// availabilityFrom tells what the answer to a list or watch says of the resource itself. A 404 never means an object:
// no list has a name. A 405 comes from a resource that can only be created, like a review.
func availabilityFrom(err error) Availability {
	switch {
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return Availability{Reason: ReasonNotServed, Message: redact.Text(err.Error())}
	case apierrors.IsForbidden(err):
		return Availability{Reason: ReasonForbidden, Message: redact.Text(err.Error())}
	default:
		return Availability{}
	}
}
