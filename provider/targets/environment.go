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
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/topic"
)

// environment is what the parts of a connection share: its clock, its log, and the goroutines that end with it.
type environment struct {
	syncTarget types.UID
	clock      clock.WithTicker
	log        logr.Logger
	changes    *topic.Topic[types.UID]

	// ctx owns the goroutines; running waits for them.
	ctx     context.Context //nolint:containedctx // the owner of all requests
	cancel  context.CancelFunc
	running sync.WaitGroup
	// lock prevents that runInBackground starts something after end.
	lock sync.Mutex
}

// sleep waits, and returns the error of ctx if that ends first.
func (e *environment) sleep(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-e.clock.After(wait):
		return nil
	}
}

// changed publishes that the state of the target, its connection or its permissions may have changed.
func (e *environment) changed() { e.changes.Publish(e.syncTarget) }

// runInBackground starts work whose ctx ends with the connection. It starts nothing after end.
func (e *environment) runInBackground(work func(ctx context.Context)) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.ctx.Err() == nil {
		e.running.Go(func() { work(e.ctx) })
	}
}

// end ends the work in the background, and does not wait for it.
func (e *environment) end() {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.cancel()
}
