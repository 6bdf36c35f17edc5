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
	// servedRecheckInterval is how often a refused list is retried without a signal. A forbidden list is retried after
	// initialForbiddenRecheck, and then with an exponential backoff: an API server that has just started forbids all requests
	// until it has loaded its roles.
	servedRecheckInterval   = 5 * time.Minute
	initialForbiddenRecheck = time.Second
	// An API is served with a short delay after its CustomResourceDefinition changed: for crdChangedPollPeriod after the change,
	// the API is polled every crdChangedPollInterval.
	crdChangedPollInterval = 250 * time.Millisecond
	crdChangedPollPeriod   = 10 * time.Second
)

// Reasons of an [Availability], in the form of condition reasons.
const (
	ReasonNotServed = "NotServed"
	ReasonForbidden = "Forbidden"
	// ReasonNotReadable: the target serves the resource, but lists or watches of it fail, or have no end.
	ReasonNotReadable = "NotReadable"
)

// Availability describes why the hub cannot read a resource on a target. The zero value means that it can, or has not tried
// yet.
type Availability struct {
	// Reason is ReasonNotServed, ReasonForbidden or ReasonNotReadable; Message is the message of the API server.
	Reason, Message string
}

// requestGate delays the lists and watches of one informer until they can succeed. To the reflector, this looks like a long
// request: it neither backs off nor drops its objects.
type requestGate struct {
	watches  *Watches
	resource schema.GroupResource
	version  string
	onChange func()

	lock         sync.Mutex
	availability Availability
	reading      reading
}

// Availability returns the target's last answer.
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
		g.watches.env.log.Info("the availability of a resource changed", "resource", g.resource.String(), "reason", state.Reason)
		if g.onChange != nil {
			g.onChange()
		}
	}
}

// do makes the request once the target is up, and repeats it while the target refuses it, until ctx ends.
func (g *requestGate) do(ctx context.Context, request func() error) error {
	var served *servedSignal
	recheck := initialForbiddenRecheck
	for {
		if err := g.watches.health.WaitUntilUp(ctx); err != nil {
			return err
		}
		g.beginRead()
		err := request()
		state := availabilityFrom(err)
		// A resource stays not readable until the informer is in sync again.
		if state.Reason != "" || err == nil && g.Availability().Reason != ReasonNotReadable {
			g.setAvailability(state)
		}
		if ctx.Err() == nil {
			g.endRead(err)
			g.watches.informers.noteInterruption(err)
		}
		switch {
		case utilnet.IsConnectionRefused(err):
			// The next probe decides whether the target is up. The reflector would back off for longer than the target is
			// down.
			g.watches.health.ProbeNow()
			err = g.wait(ctx, uncertainProbeInterval, nil)
		case state.Reason == "":
			return err
		case state.Reason == ReasonForbidden:
			err = g.wait(ctx, recheck, nil)
			recheck = min(2*recheck, servedRecheckInterval)
		case served == nil:
			// The next request follows at once, because the definition may have appeared before the subscription.
			served = g.watchServed()
			defer served.unsubscribe()
			err = nil
		default:
			err = g.wait(ctx, served.nextPoll(g.watches.env.clock.Now()), served.wake)
		}
		if err != nil {
			return err
		}
	}
}

// wait returns after the interval, or at a signal.
func (g *requestGate) wait(ctx context.Context, interval time.Duration, signal <-chan struct{}) error {
	timer := g.watches.env.clock.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-signal:
	case <-timer.C():
	}
	return nil
}

// servedSignal wakes a request gate when the target may have begun to serve its resource.
type servedSignal struct {
	wake chan struct{}
	// crdChanged is set when the CustomResourceDefinition of the resource changes.
	crdChanged atomic.Bool
	// pollUntil is the end of the polling after a change.
	pollUntil   time.Time
	unsubscribe func()
}

// nextPoll returns the delay until the next request.
func (s *servedSignal) nextPoll(now time.Time) time.Duration {
	if s.crdChanged.Swap(false) {
		s.pollUntil = now.Add(crdChangedPollPeriod)
	}
	if now.Before(s.pollUntil) {
		return crdChangedPollInterval
	}
	return servedRecheckInterval
}

// watchServed returns a signal that is subscribed to CustomResourceDefinitions.
func (g *requestGate) watchServed() *servedSignal {
	c := &servedSignal{wake: make(chan struct{}, 1)}
	wake := func() { signal(c.wake) }
	unsubscribe := g.watches.Subscribe(Listener{
		OnSynced: wake,
		OnAPIs:   wake,
		// A target that comes up may have another version or other settings.
		OnUp: wake,
		OnCRD: func(changed schema.GroupResource) {
			if changed == g.resource {
				c.crdChanged.Store(true)
				wake()
			}
		},
	})
	stop := g.watches.apiPoll.Await()
	c.unsubscribe = func() {
		unsubscribe()
		stop()
	}
	return c
}

// availabilityFrom maps the error of a list or watch to an availability. A 404 is never about an object, because a list has no
// name. A 405 is from a resource that can only be created, such as a review.
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
