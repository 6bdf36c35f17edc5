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
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrAsked means that the target is being asked. Listeners are told when it has answered.
var ErrAsked = errors.New("the target is being asked")

const (
	// askedTogether is how many questions wait for one target at the same time.
	askedTogether = 4
	// refusalInterval is for how long it is remembered that something is not served, unless a definition changes.
	refusalInterval = 10 * time.Second
	// answerLasts is how late an answer may be asked for that nobody was told yet.
	answerLasts = time.Minute
)

// ResolveSoon is [Connection.Resolve] for whoever must not wait for the target: what is not known is asked for, and the error
// is [ErrAsked] until the target has answered.
func (c *Connection) ResolveSoon(kind schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	found, err := c.resolveSoon(question{GroupVersion: kind.GroupVersion(), kind: kind.Kind})
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("cannot resolve %s: %w", kind, err)
	}
	return found.resource, nil
}

// ResolveResourceSoon is [Connection.ResolveResource] in the same way.
func (c *Connection) ResolveResourceSoon(resource schema.GroupVersionResource) (kind string, err error) {
	found, err := c.resolveSoon(question{GroupVersion: resource.GroupVersion(), resource: resource.Resource})
	if err != nil {
		return "", fmt.Errorf("cannot resolve %s: %w", resource, err)
	}
	return found.kind, nil
}

// VersionsSoon returns, in the same way, the versions in which the target serves a resource, the preferred one first; none if
// it does not serve it. The slice must not be changed.
func (c *Connection) VersionsSoon(resource schema.GroupResource) ([]string, error) {
	found, err := c.resolveSoon(question{GroupVersion: schema.GroupVersion{Group: resource.Group}, resource: resource.Resource, versions: true})
	if err != nil {
		return nil, fmt.Errorf("cannot find out in which versions %s is served: %w", resource, err)
	}
	return found.versions, nil
}

func (c *Connection) resolveSoon(asked question) (resolution, error) {
	now := c.clock.Now()
	found, drops, ok := c.resolutions.get(asked)
	if ok && now.Before(found.until) {
		return found, nil
	}
	if said, ok := c.unawaited.take(asked, drops, now); ok {
		return said.found, said.err
	}
	if c.unawaited.begin(asked) {
		c.Background(func(ctx context.Context) { c.answer(ctx, asked) })
	}
	return resolution{}, ErrAsked
}

// answer asks the target, when its turn has come.
func (c *Connection) answer(ctx context.Context, asked question) {
	select {
	case c.unawaited.turns <- struct{}{}:
		defer func() { <-c.unawaited.turns }()
	case <-ctx.Done():
		return
	}
	_, drops, _ := c.resolutions.get(asked)
	found, err := c.resolve(ctx, asked)
	c.unawaited.end(asked, reply{found: found, err: err, drops: drops, until: c.clock.Now().Add(c.resolutions.refusalLasts(c.clock.Now()))})
	c.signals.tell(func(listener *Listener) {
		if listener.Answered != nil {
			listener.Answered()
		}
	})
}

// refusalLasts returns for how long it is remembered that something is not served.
func (r *resolutions) refusalLasts(now time.Time) time.Duration {
	r.lock.Lock()
	defer r.lock.Unlock()
	if now.Before(r.changed.Add(announcedLimit)) {
		return announcedInterval
	}
	return refusalInterval
}

// unawaited are questions that nobody waits for.
type unawaited struct {
	turns chan struct{}

	lock   sync.Mutex
	asking map[question]struct{}
	said   map[question]reply
}

// reply is what the target said when drops were counted by the resolutions.
type reply struct {
	found resolution
	err   error
	drops int
	until time.Time
	taken bool
}

func newUnawaited() unawaited {
	return unawaited{turns: make(chan struct{}, askedTogether), asking: map[question]struct{}{}, said: map[question]reply{}}
}

// begin notes that a question is being asked, and tells whether it was not before.
func (q *unawaited) begin(asked question) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	_, asking := q.asking[asked]
	q.asking[asked] = struct{}{}
	return !asking
}

func (q *unawaited) end(asked question, answer reply) {
	q.lock.Lock()
	defer q.lock.Unlock()
	delete(q.asking, asked)
	if len(q.said) >= maxQuestions {
		clear(q.said)
	}
	q.said[asked] = answer
}

// take returns what was said; ok is false if it is to be asked. An answer is given once, unless it is too old to be true any more, and
// that something is not served also for a while after.
func (q *unawaited) take(asked question, drops int, now time.Time) (answer reply, ok bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	answer, ok = q.said[asked]
	expires := answer.until
	if !answer.taken {
		expires = expires.Add(answerLasts)
	}
	if !ok || answer.drops != drops || !now.Before(expires) {
		delete(q.said, asked)
		return reply{}, false
	}
	if errors.Is(answer.err, ErrNotServed) {
		answer.taken = true
		q.said[asked] = answer
	} else {
		delete(q.said, asked)
	}
	return answer, true
}
