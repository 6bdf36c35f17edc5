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
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/redact"
)

const (
	// failedReadTimeout is how long lists and watches of a resource may fail until the resource counts as not readable, and
	// hungReadTimeout how long one request may take without an error. Both are less than a minute together with probeInterval.
	failedReadTimeout = 30 * time.Second
	hungReadTimeout   = 45 * time.Second
	// pageTimeout ends the request for a page that the target never finishes, so that the request is repeated.
	pageTimeout = 3 * time.Minute
)

// noAnswerMessage is why a resource cannot be read when the target sent no error.
const noAnswerMessage = "the target does not finish its answer"

// reading records whether an informer is in sync with the target. Its gate's lock guards it.
type reading struct {
	// behindSince is when the informer ceased to be in sync with the target; zero if it is in sync. progressAt is when the
	// target last sent a page or an error, and problem the error.
	behindSince, progressAt time.Time
	problem                 string
}

// beginRead is called before a list or watch.
func (g *requestGate) beginRead() {
	now := g.watches.env.clock.Now()
	g.lock.Lock()
	defer g.lock.Unlock()
	g.reading.progressAt = now
	if g.reading.behindSince.IsZero() {
		g.reading.behindSince = now
		g.watches.informers.behind.Add(1)
	}
}

// endRead is called after the request for a page or a watch.
func (g *requestGate) endRead(err error) {
	problem := ""
	if err != nil {
		problem = redact.Text(g.watches.client.redactError(err))
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	g.reading.problem = problem
}

// markSynced is called when the informer is in sync with the target: its watch is established, and it has all objects.
func (g *requestGate) markSynced() {
	g.lock.Lock()
	if !g.reading.behindSince.IsZero() {
		g.watches.informers.behind.Add(-1)
	}
	g.reading = reading{}
	wasUnreadable := g.availability.Reason == ReasonNotReadable
	g.lock.Unlock()
	if wasUnreadable {
		g.setAvailability(Availability{})
		g.watches.env.changed()
	}
}

// checkReading makes the resource not readable if its informer has been behind for too long, and reports whether that
// changed. upSince is when the target came up.
func (g *requestGate) checkReading(now, upSince time.Time) (changed bool) {
	g.lock.Lock()
	at, limit, message := g.reading.progressAt, hungReadTimeout, noAnswerMessage
	if g.reading.problem != "" {
		at, limit, message = g.reading.behindSince, failedReadTimeout, g.reading.problem
	}
	if at.Before(upSince) {
		at = upSince
	}
	overdue := !g.reading.behindSince.IsZero() && g.availability.Reason == "" && now.Sub(at) >= limit
	g.lock.Unlock()
	if overdue {
		g.setAvailability(Availability{Reason: ReasonNotReadable, Message: message})
	}
	return overdue
}

// checkReading finds the resources that the hub has not been able to read for too long. The prober calls it.
func (w *Watches) checkReading() {
	up, upSince := w.health.upSinceTime()
	if !up || w.informers.behind.Load() == 0 {
		return
	}
	changed := false
	for _, informer := range w.informers.list() {
		changed = informer.checkReading(w.env.clock.Now(), upSince) || changed
	}
	if changed {
		w.env.changed()
	}
}

// UnreadableResources returns the resources that the target serves but does not let the hub list or watch now, with the reasons. They include
// namespaces and CustomResourceDefinitions.
func (w *Watches) UnreadableResources() map[schema.GroupResource]string {
	if w.informers.behind.Load() == 0 {
		return nil
	}
	unreadable := map[schema.GroupResource]string{}
	for _, informer := range w.informers.list() {
		if state := informer.Availability(); state.Reason == ReasonNotReadable {
			unreadable[informer.resource] = state.Message
		}
	}
	return unreadable
}
