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

	"k8s.io/apimachinery/pkg/types"
)

// firstPass tells when everything that was there at the start has been tried once.
type firstPass struct {
	ended chan struct{}

	lock gosync.Mutex
	// left is nil until the pass has begun.
	left map[types.NamespacedName]struct{}
	over bool
}

func newFirstPass() *firstPass { return &firstPass{ended: make(chan struct{})} }

func (p *firstPass) begin(keys []types.NamespacedName) {
	p.lock.Lock()
	p.left = make(map[types.NamespacedName]struct{}, len(keys))
	for _, key := range keys {
		p.left[key] = struct{}{}
	}
	p.lock.Unlock()
	p.tried(types.NamespacedName{})
}

// tried is called for each object that was tried.
func (p *firstPass) tried(key types.NamespacedName) {
	p.lock.Lock()
	delete(p.left, key)
	done := p.left != nil && len(p.left) == 0
	p.lock.Unlock()
	if done {
		p.end()
	}
}

func (p *firstPass) end() {
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.over {
		p.over = true
		close(p.ended)
	}
}
