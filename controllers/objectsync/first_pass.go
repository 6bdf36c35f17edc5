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

package objectsync

import (
	gosync "sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// firstPass tracks whether every key that was known at the start has been tried once. If the mailbox cannot be read at the start, the pass
// is blind: it has no keys, and starts again when the mailbox can be read.
type firstPass struct {
	// done is closed when each key was tried, or cannot be tried. It stays closed if the pass starts again.
	done chan struct{}
	// finish closes done, once.
	finish func()

	lock gosync.Mutex
	// remaining is nil until the pass has started.
	remaining sets.Set[types.NamespacedName]
	// isBlind is true if the mailbox could not be read when the pass started. Later waves do not wait for it.
	isBlind bool
}

func newFirstPass() *firstPass {
	done := make(chan struct{})
	return &firstPass{done: done, finish: gosync.OnceFunc(func() { close(done) })}
}

// start starts the pass, or starts it again if it is blind. keys are all known keys. readable is true if the mailbox was readable
// before the caller collected them. A pass under way drops the keys that are not in the list, since no reconcile would try them.
func (p *firstPass) start(keys []types.NamespacedName, readable bool) {
	p.lock.Lock()
	switch {
	case p.remaining == nil || p.isBlind:
		p.isBlind, p.remaining = !readable, sets.New(keys...)
	case readable && len(p.remaining) > 0:
		p.remaining = p.remaining.Intersection(sets.New(keys...))
	}
	p.lock.Unlock()
	p.finishIfNoneRemains()
}

// tried is called after each reconcile, and reports whether this ended the pass. A reconcile that could not read the mailbox does
// not count.
func (p *firstPass) tried(key types.NamespacedName, readable bool) (over bool) {
	p.lock.Lock()
	if readable {
		remained := p.remaining.Has(key)
		p.remaining.Delete(key)
		over = remained && len(p.remaining) == 0
	}
	p.lock.Unlock()
	p.finishIfNoneRemains()
	return over
}

func (p *firstPass) finishIfNoneRemains() {
	p.lock.Lock()
	done := p.remaining != nil && len(p.remaining) == 0
	p.lock.Unlock()
	if done {
		p.finish()
	}
}

// isOver reports whether the pass has ended, and the mailbox was readable.
func (p *firstPass) isOver() bool {
	select {
	case <-p.done:
	default:
		return false
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	return !p.isBlind && len(p.remaining) == 0
}
