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
	"context"
	gosync "sync"
)

// tasks are the goroutines of a running controller.
type tasks struct {
	running gosync.WaitGroup

	lock gosync.Mutex
	// context ends with the run; it is nil while the controller does not run.
	context context.Context //nolint:containedctx // upsync caches start and end with the matcher, within the run
}

// begin allows tasks to start. They stop with ctx.
func (t *tasks) begin(ctx context.Context) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.context = ctx
}

// end prevents further tasks from starting.
func (t *tasks) end() { t.begin(nil) } //nolint:staticcheck // nil stands for no run

// current returns the context of the run; nil while the controller does not run.
func (t *tasks) current() context.Context {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.context
}

// start starts a task, unless the controller does not run.
func (t *tasks) start(task func()) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.context != nil {
		t.running.Go(task)
	}
}
