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
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/definition"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/provider/targets"
)

// keeper keeps definitions on a target as long as one connection to it lasts.
type keeper struct {
	*definition.Keeper
	connection *targets.Connection
	cancel     context.CancelFunc
	done       chan struct{}
}

func (k *keeper) stop() {
	k.cancel()
	<-k.done
}

// SetDefinitions sets the definitions that targets are given, each with the resources that it is for.
func (m *Manager) SetDefinitions(definitions []definition.Wanted) {
	m.lock.Lock()
	m.definitions = definitions
	m.lock.Unlock()
	m.enqueueAll()
}

// define makes the target have the definitions of what is synced with it. The caller holds turn.
func (m *Manager) define(managed *managed, wanted []sync.Resource) {
	m.lock.Lock()
	owner, all := m.ctx, m.definitions
	m.lock.Unlock()
	var needed []definition.Wanted
	for _, one := range all {
		index := slices.IndexFunc(wanted, func(r sync.Resource) bool { return r.PublishedResource == one.PublishedResource })
		if index < 0 {
			continue
		}
		one.Version = cmp.Or(wanted[index].TargetVersion, one.Version)
		needed = append(needed, one)
	}
	target := managed.describe()
	if managed.keeper != nil && managed.keeper.connection != target.Connection {
		managed.setKeeper(nil)
	}
	if managed.keeper == nil {
		if len(needed) == 0 {
			return
		}
		ctx, cancel := context.WithCancel(owner)
		started := &keeper{connection: target.Connection, cancel: cancel, done: make(chan struct{}), Keeper: definition.New(definition.Options{
			Connection: target.Connection,
			Owner:      m.Owner(target.UID),
			Changed:    func() { m.observer.Changed(target.UID) },
			Clock:      m.Clock,
			Log:        m.Log.WithValues("syncTarget", target.Name),
		})}
		managed.setKeeper(started)
		go func() {
			defer close(started.done)
			started.Run(ctx)
		}()
	}
	managed.keeper.Set(needed)
}

// setKeeper replaces the keeper, after it has ended.
func (t *managed) setKeeper(next *keeper) {
	if t.keeper != nil {
		t.keeper.stop()
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	t.keeper = next
}

// definitions returns what is known of the definitions that the target is given. The caller holds the lock.
func (t *managed) definitions() map[schema.GroupResource]definition.State {
	if t.keeper == nil {
		return nil
	}
	return t.keeper.States()
}
