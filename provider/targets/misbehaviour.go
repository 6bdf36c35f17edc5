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
	"k8s.io/utils/clock"
)

const (
	// maxVersionLength is how long a resourceVersion, or what a page says of the next, may be: they come back with each request. maxName is
	// the same for names: those that stand in events and in the status of configs.
	maxVersionLength, maxName = 4 << 10, 4 << 10
	// maxEmptyPages is how many pages of a list may hold nothing. API servers give none, but what stands before them may.
	maxEmptyPages = 10
	// A watch begins anew at once as often as maxRestarts, and once each restartInterval then. client-go does so without any pause
	// for some ways in which a server ends it, and has no limit for that.
	maxRestarts     = 5
	restartInterval = time.Second
	// maxDials and dialInterval are the same for network connections: over HTTP/1.1 each watch has one. net/http opens them without a
	// pause as long as a server goes away from each.
	maxDials     = 100
	dialInterval = 100 * time.Millisecond
)

var (
	errVersionTooLong = errors.New("the target's resourceVersion is longer than any that an API server gives")
	errNameTooLong    = errors.New("the target's object has a longer name than any that an API server stores")
	errEndlessList    = errors.New("the target's list has no end")
)

// checkVersions has the target quarantined if it gives a version of a list, or a word for its next page, that no API server would.
func (i *informer) checkVersions(tokens ...string) error {
	for _, token := range tokens {
		if len(token) > maxVersionLength {
			i.connection.Quarantine(fmt.Sprintf("a resourceVersion of %s, or the token of a page, has %d bytes", i.resource, len(token)))
			return errVersionTooLong
		}
	}
	return nil
}

// checkName has the target quarantined if an object is called as none can be.
func (i *informer) checkName(object any) error {
	named, ok := object.(metav1.Object)
	if !ok || len(named.GetName()) <= maxName && len(named.GetNamespace()) <= maxName {
		return nil
	}
	i.connection.Quarantine(fmt.Sprintf("the name of one of its %s has %d bytes", i.resource, max(len(named.GetName()), len(named.GetNamespace()))))
	return errNameTooLong
}

// UpdateResourceVersion is called by the reflector for each event.
func (i *informer) UpdateResourceVersion(resourceVersion string) {
	_ = i.checkVersions(resourceVersion)
}

// pacer pace how often something begins. They may be used by many at once.
type pacer struct {
	lock sync.Mutex
	// reservedUntil is until when those that there were count.
	reservedUntil time.Time
}

// wait returns when there may be one more: so many at once, and one each interval then.
func (r *pacer) wait(ctx context.Context, clock clock.Clock, atOnce int, interval time.Duration) error {
	wait := r.reserve(clock.Now(), time.Duration(atOnce)*interval, interval)
	if wait <= 0 {
		return nil
	}
	select {
	case <-clock.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reserve counts one more, and returns for how long it has to wait.
func (r *pacer) reserve(now time.Time, most, interval time.Duration) time.Duration {
	r.lock.Lock()
	defer r.lock.Unlock()
	// A clock that was set back makes nobody wait for longer than an hour.
	if ahead := r.reservedUntil.Sub(now); ahead < 0 || ahead > most+time.Hour {
		r.reservedUntil = now
	}
	r.reservedUntil = r.reservedUntil.Add(interval)
	return r.reservedUntil.Sub(now) - most
}
