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

package syncmanager

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
)

// runner is the goroutine of a controller. The zero value means none.
type runner struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// run runs a controller until [runner.stop], or until the manager ends.
func (m *Manager) run(syncTarget types.UID, controller func(context.Context) error, log logr.Logger) runner {
	ctx, cancel := context.WithCancel(m.Role.Context(m.ctx, syncTarget))
	started := runner{cancel, make(chan struct{})}
	go func() {
		defer close(started.done)
		if err := controller(ctx); err != nil {
			log.Error(err, "a controller ended")
		}
	}()
	return started
}

// stop returns when the controller has ended.
func (r runner) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.done
	}
}

// syncController is a running sync controller.
type syncController struct {
	controller *objectsync.Controller
	startedAt  time.Time
	runner
}
