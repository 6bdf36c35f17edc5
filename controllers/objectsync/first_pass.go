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
)

// firstPass tracks whether every key that was known at the start has been tried once.
type firstPass struct {
	done chan struct{}
	// finish closes done, once.
	finish func()

	lock gosync.Mutex
	// remaining is nil until the pass has started.
	remaining map[types.NamespacedName]struct{}
}

func newFirstPass() *firstPass {
	done := make(chan struct{})
	return &firstPass{done: done, finish: gosync.OnceFunc(func() { close(done) })}
}

func (p *firstPass) start(keys []types.NamespacedName) {
	p.lock.Lock()
	p.remaining = make(map[types.NamespacedName]struct{}, len(keys))
	for _, key := range keys {
		p.remaining[key] = struct{}{}
	}
	p.lock.Unlock()
	p.processed(types.NamespacedName{})
}

// processed is called after each reconcile.
func (p *firstPass) processed(key types.NamespacedName) {
	p.lock.Lock()
	delete(p.remaining, key)
	done := p.remaining != nil && len(p.remaining) == 0
	p.lock.Unlock()
	if done {
		p.finish()
	}
}
