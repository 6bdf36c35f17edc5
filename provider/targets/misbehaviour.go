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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxVersionLength bounds a resourceVersion or continue token, in bytes, because each later request repeats it. maxName bounds
	// a name, because it appears in events and in the status of configs.
	maxVersionLength, maxName = 4 << 10, 4 << 10
	// maxEmptyPages bounds the empty pages of a list. An API server returns none, but a proxy in front of it may.
	maxEmptyPages = 10
	// A watch restarts up to maxRestarts times at once, and then once each restartInterval. Without that, client-go restarts
	// some watches without a delay.
	maxRestarts     = 5
	restartInterval = time.Second
	// maxDials and dialInterval do the same for network connections; with HTTP/1.1 each watch needs one. net/http dials again
	// without a delay when a server closes each connection.
	maxDials     = 100
	dialInterval = 100 * time.Millisecond
)

var (
	errVersionTooLong = errors.New("the target's resourceVersion is longer than any that an API server gives")
	errNameTooLong    = errors.New("the target's object has a longer name than any that an API server stores")
	errEndlessList    = errors.New("the target's list has no end")
)

// checkVersions quarantines the target if a resourceVersion or continue token is too long, and returns an error.
func (i *informer) checkVersions(tokens ...string) error {
	for _, token := range tokens {
		if len(token) > maxVersionLength {
			i.watches.quarantine.StartQuarantine(fmt.Sprintf("a resourceVersion of %s, or the token of a page, has %d bytes", i.resource, len(token)))
			return errVersionTooLong
		}
	}
	return nil
}

// checkName quarantines the target if the name of an object is too long, and returns an error.
func (i *informer) checkName(object any) error {
	named, ok := object.(metav1.Object)
	if !ok || len(named.GetName()) <= maxName && len(named.GetNamespace()) <= maxName {
		return nil
	}
	i.watches.quarantine.StartQuarantine(fmt.Sprintf("the name of one of its %s has %d bytes", i.resource, max(len(named.GetName()), len(named.GetNamespace()))))
	return errNameTooLong
}

// UpdateResourceVersion checks the resourceVersion of each event. The reflector calls it.
func (i *informer) UpdateResourceVersion(resourceVersion string) {
	_ = i.checkVersions(resourceVersion)
}

// pacer limits how often an action begins. It is safe for concurrent use.
type pacer struct {
	lock sync.Mutex
	// reservedUntil is the end of the reservations.
	reservedUntil time.Time
}

// wait waits until the next action may begin: a burst at once, and then one each interval. It returns the error of ctx if that
// ends first.
func (p *pacer) wait(ctx context.Context, env *environment, burst int, interval time.Duration) error {
	if wait := p.reserve(env.clock.Now(), time.Duration(burst)*interval, interval); wait > 0 {
		return env.sleep(ctx, wait)
	}
	return nil
}

// reserve reserves an interval, and returns how long the action must wait. maxAhead is the length of reservations that need not
// wait.
func (p *pacer) reserve(now time.Time, maxAhead, interval time.Duration) time.Duration {
	p.lock.Lock()
	defer p.lock.Unlock()
	// After the clock was set back, no action waits for longer than an hour.
	if ahead := p.reservedUntil.Sub(now); ahead < 0 || ahead > maxAhead+time.Hour {
		p.reservedUntil = now
	}
	p.reservedUntil = p.reservedUntil.Add(interval)
	return p.reservedUntil.Sub(now) - maxAhead
}
