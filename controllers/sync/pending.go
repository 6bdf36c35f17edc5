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

package sync

import (
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// pending knows since when changes wait that have not reached their other side yet. It holds an entry only for as long as
// one waits.
type pending struct {
	lock  gosync.Mutex
	since map[types.NamespacedName]time.Time
}

func newPending() *pending { return &pending{since: map[types.NamespacedName]time.Time{}} }

// note notes that objects changed; what waits already has waited longer.
func (p *pending) note(now time.Time, keys ...types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, key := range keys {
		if _, waits := p.since[key]; !waits {
			p.since[key] = now
		}
	}
}

// take returns since when an object waits, and forgets it: what changes from now on is another change.
func (p *pending) take(key types.NamespacedName) (since time.Time, waits bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	since, waits = p.since[key]
	delete(p.since, key)
	return since, waits
}

// putBack makes an object wait on that could not be brought in step.
func (p *pending) putBack(key types.NamespacedName, since time.Time) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.since[key] = since
}

// oldest returns since when the change waits that has waited longest; ok is false if none waits.
func (p *pending) oldest() (since time.Time, ok bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, one := range p.since {
		if !ok || one.Before(since) {
			since, ok = one, true
		}
	}
	return since, ok
}
