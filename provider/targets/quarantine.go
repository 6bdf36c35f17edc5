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

	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	// initialQuarantine is how long a target is quarantined the first time. Each further time doubles it, up to maxQuarantine;
	// after quarantineResetAfter without an incident it starts over.
	initialQuarantine    = 30 * time.Second
	maxQuarantine        = 10 * time.Minute
	quarantineResetAfter = 30 * time.Minute
)

// Quarantine records why a target is quarantined: it sends more than the hub accepts. The hub sends no request during the
// quarantine, and probes the target afterwards as if it had been down.
type Quarantine struct {
	clock  clock.PassiveClock
	health *HealthMonitor

	lock     sync.Mutex
	since    time.Time
	until    time.Time
	duration time.Duration
	problem  Health
	// disconnected is true once the connections of the target are closed.
	disconnected bool
}

// start quarantines the target from now on, and returns false if it is quarantined already.
func (q *Quarantine) start(now time.Time, reason, message string) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	switch {
	case now.Before(q.until):
		return false
	case q.duration == 0, now.Sub(q.until) > quarantineResetAfter:
		q.duration = initialQuarantine
	default:
		q.duration = min(2*q.duration, maxQuarantine)
	}
	q.since, q.until, q.disconnected = now, now.Add(q.duration), false
	q.problem = Health{Reason: reason, Message: message}
	return true
}

// remaining returns why the target is quarantined, and for how long; zero if it is not.
func (q *Quarantine) remaining(now time.Time) (problem Health, left time.Duration) {
	q.lock.Lock()
	defer q.lock.Unlock()
	// A clock that was set back must not keep a target quarantined.
	if q.until.IsZero() || !now.Before(q.until) || now.Before(q.since) {
		return Health{}, 0
	}
	return q.problem, q.until.Sub(now)
}

// onMisbehaviour quarantines the target for a response.
func (q *Quarantine) onMisbehaviour(err error) {
	reason, what := ReasonTooLarge, "it sends more than the hub accepts"
	if _, ok := errors.AsType[*transport.ContentTypeError](err); ok {
		reason, what = ReasonNotAnAPIServer, "no API server sends such an answer"
	}
	q.startNow(reason, fmt.Sprintf("%s: %v.", what, err))
}

// StartQuarantine quarantines the target. The reason in what completes the sentence "The target is quarantined, because ...".
func (q *Quarantine) StartQuarantine(what string) { q.startNow(ReasonTooLarge, what+".") }

// startNow starts a quarantine. The prober enforces it.
func (q *Quarantine) startNow(reason, what string) {
	if q.start(q.clock.Now(), reason, "The target is quarantined, because "+what) {
		q.health.ProbeNow()
	}
}

// disconnect reports whether to close the connections of the target: once in each quarantine.
func (q *Quarantine) disconnect() bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	isFirst := !q.disconnected
	q.disconnected = true
	return isFirst
}
