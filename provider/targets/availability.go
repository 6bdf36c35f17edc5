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
	// servedRecheckInterval is how often a refused list is tried again when nothing tells of a cure. One that is forbidden is
	// tried after firstRecheck, and then each time twice as late, since an API server that starts forbids everything until
	// it has read its roles.
	servedRecheckInterval   = 5 * time.Minute
	initialForbiddenRecheck = time.Second
	// A definition is announced a little before its API is served: for announcedLimit after it was, the API is asked for
	// each announcedInterval.
	crdChangedPollInterval = 250 * time.Millisecond
	crdChangedPollPeriod   = 10 * time.Second
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

// requestGate lets the lists and watches of one informer through. One that cannot succeed now waits in here: to the reflector
// it is a request that takes long, so it neither backs off nor forgets what it holds.
type requestGate struct {
	connection *Connection
	resource   schema.GroupResource
	onChange   func()

	lock         sync.Mutex
	availability Availability
}

func (c *Connection) newRequestGate(resource schema.GroupVersionResource, onChange func()) *requestGate {
	return &requestGate{connection: c, resource: resource.GroupResource(), onChange: onChange}
}

// Availability is what the target last said.
func (g *requestGate) Availability() Availability {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.availability
}

func (g *requestGate) setAvailability(state Availability) {
	g.lock.Lock()
	changed := g.availability.Reason != state.Reason
	g.availability = state
	g.lock.Unlock()
	if changed {
		g.connection.log.Info("the availability of a resource changed", "resource", g.resource.String(), "reason", state.Reason)
		if g.onChange != nil {
			g.onChange()
		}
	}
}

// do makes the request while the target is up, and again while it is refused, until ctx ends.
func (g *requestGate) do(ctx context.Context, request func() error) error {
	var served *servedSignal
	recheck := initialForbiddenRecheck
	for {
		if err := g.connection.WaitUntilUp(ctx); err != nil {
			return err
		}
		err := request()
		state := availabilityFrom(err)
		if err == nil || state.Reason != "" {
			g.setAvailability(state)
		}
		switch {
		case utilnet.IsConnectionRefused(err):
			// It waits for the probe to find the target down, or up; the reflector would not make it look, and back off for
			// longer than the target is away.
			g.connection.ProbeNow()
			err = g.wait(ctx, uncertainProbeInterval, nil)
		case state.Reason == "":
			return err
		case state.Reason == ReasonForbidden:
			err = g.wait(ctx, recheck, nil)
			recheck = min(2*recheck, servedRecheckInterval)
		case served == nil:
			// It is asked for once more at once, since the definition may have come before the cure was listened for.
			served = g.watchServed()
			defer served.unsubscribe()
			err = nil
		default:
			err = g.wait(ctx, served.nextPoll(g.connection.clock.Now()), served.wake)
		}
		if err != nil {
			return err
		}
	}
}

// wait returns after the interval, or at a signal.
func (g *requestGate) wait(ctx context.Context, interval time.Duration, signal <-chan struct{}) error {
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

// servedSignal is the hope that a resource comes to be served.
type servedSignal struct {
	wake chan struct{}
	// crdChanged is set when the definition of the resource changed.
	crdChanged atomic.Bool
	// pollUntil is until when the API is asked for often.
	pollUntil   time.Time
	unsubscribe func()
}

// nextPoll is how soon the API should be asked for again.
func (c *servedSignal) nextPoll(now time.Time) time.Duration {
	if c.crdChanged.Swap(false) {
		c.pollUntil = now.Add(crdChangedPollPeriod)
	}
	if now.Before(c.pollUntil) {
		return crdChangedPollInterval
	}
	return servedRecheckInterval
}

func (g *requestGate) watchServed() *servedSignal {
	c := &servedSignal{wake: make(chan struct{}, 1)}
	wake := func() {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	c.unsubscribe = g.connection.Subscribe(Listener{
		OnSynced: wake,
		OnCRD: func(changed schema.GroupResource) {
			if changed == g.resource {
				c.crdChanged.Store(true)
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
