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
	gosync "sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// managed is a SyncTarget with its sync controllers.
type managed struct {
	// turn is held, over requests too, by the one that starts and stops controllers.
	turn        gosync.Mutex
	gone        bool
	stale       bool // guarded by the manager's lock
	recorded    map[schema.GroupResource]struct{}
	unsubscribe []func()

	// lock guards what follows, and is never held over a request. The holder of turn may read pairs, matcher and known
	// without it, since only he writes them.
	lock    gosync.Mutex
	target  Target
	matcher *selection.Matcher
	known   bool
	pairs   map[schema.GroupResource]*pair
}

func (t *managed) describe() Target {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.target
}

func (t *managed) controllers() []*sync.Controller {
	t.lock.Lock()
	defer t.lock.Unlock()
	controllers := make([]*sync.Controller, 0, len(t.pairs))
	for _, pair := range t.pairs {
		controllers = append(controllers, pair.controller)
	}
	return controllers
}

// pair is a running sync controller.
type pair struct {
	controller *sync.Controller
	cancel     context.CancelFunc
	done       chan struct{}
}

// end stops the controller of one resource. The caller holds turn.
func (t *managed) end(resource schema.GroupResource) {
	t.lock.Lock()
	ending := t.pairs[resource]
	delete(t.pairs, resource)
	t.lock.Unlock()
	ending.cancel()
	<-ending.done
}

// stop ends all sync controllers of the target together.
func (t *managed) stop() {
	for _, unsubscribe := range t.unsubscribe {
		unsubscribe()
	}
	t.turn.Lock()
	defer t.turn.Unlock()
	t.lock.Lock()
	ending := t.pairs
	t.pairs = nil
	t.lock.Unlock()
	t.gone = true
	for _, pair := range ending {
		pair.cancel()
	}
	for _, pair := range ending {
		<-pair.done
	}
}

// configSubscriber makes the manager compile the configs of a mailbox anew when one of them changes.
type configSubscriber struct {
	manager    *Manager
	managed    *managed
	syncTarget types.UID
}

func (s *configSubscriber) OnEvent(event mailboxes.Event) {
	if event.Old != nil && event.New != nil && event.Old.GetGeneration() == event.New.GetGeneration() {
		return // only the status changed, which we write ourselves
	}
	s.OnReset()
}

func (s *configSubscriber) OnProven(types.NamespacedName) {}

func (s *configSubscriber) OnReset() {
	s.manager.lock.Lock()
	s.managed.stale = true
	s.manager.lock.Unlock()
	s.manager.enqueue(s.syncTarget)
}
