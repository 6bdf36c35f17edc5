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
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/compatibility"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/targets"
)

// comparing compares what is synced with one target, as long as one connection to it lasts.
type comparing struct {
	*compatibility.Keeper
	connection *targets.Connection
	cancel     context.CancelFunc
	done       chan struct{}
}

// SetSchemas sets what mailboxes have from the hub, by their names there.
func (m *Manager) SetSchemas(schemas map[schema.GroupResource]compatibility.Schema) {
	m.lock.Lock()
	m.schemas = schemas
	m.lock.Unlock()
	m.enqueueAll()
}

func (m *Manager) schemaOf(resource sync.Resource) (found compatibility.Schema, ok bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	found, ok = m.schemas[resource.GroupResource()]
	return found, ok && m.Checker != nil && resource.PublishedResource != ""
}

// keptBy returns what the schema that mailboxes have from the hub keeps, nil if they have none.
func (m *Manager) keptBy(resource sync.Resource) *transform.Kept {
	m.lock.Lock()
	defer m.lock.Unlock()
	if resource.PublishedResource == "" {
		return nil
	}
	return m.schemas[resource.GroupResource()].Kept
}

// compare has compared what is wanted on the target. The caller holds turn.
func (m *Manager) compare(managed *managed, wanted []sync.Resource) {
	if m.Checker == nil {
		return
	}
	target := managed.describe()
	needed := map[schema.GroupResource]compatibility.Wanted{}
	for _, resource := range wanted {
		if known, ok := m.schemaOf(resource); ok {
			onTarget := resource.OnTarget()
			needed[resource.GroupResource()] = compatibility.Wanted{Schema: known, Target: onTarget.GroupVersionResource, Kind: onTarget.Kind, Trusted: managed.trusts(resource, known)}
		}
	}
	if managed.comparing == nil || managed.comparing.connection != target.Connection {
		m.lock.Lock()
		owner := m.ctx
		m.lock.Unlock()
		ctx, cancel := context.WithCancel(owner)
		started := &comparing{connection: target.Connection, cancel: cancel, done: make(chan struct{}), Keeper: compatibility.New(compatibility.Options{
			Connection: target.Connection,
			Checker:    m.Checker,
			Changed:    func() { m.enqueue(target.UID) },
			Clock:      m.Clock,
			Log:        m.Log.WithValues("syncTarget", target.Name),
		})}
		managed.setComparing(started)
		go func() {
			defer close(started.done)
			started.Run(ctx)
		}()
	}
	managed.comparing.Set(needed)
	m.remember(managed, wanted)
}

// setComparing replaces what compares, after it has ended.
func (t *managed) setComparing(next *comparing) {
	if t.comparing != nil {
		t.comparing.cancel()
		<-t.comparing.done
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	t.comparing = next
}

// remember takes over what is known of the resources that are wanted. What is not known anew is as it was before, also
// before a restart: so that nothing flaps, and nothing is written to what refused it while the target cannot be asked.
func (m *Manager) remember(managed *managed, wanted []sync.Resource) {
	next := maps.Clone(managed.fits)
	maps.DeleteFunc(next, func(target schema.GroupResource, _ compatibility.State) bool { return !managed.recorded[target].Own })
	if next == nil {
		next = map[schema.GroupResource]compatibility.State{}
	}
	for _, resource := range wanted {
		target := resource.OnTarget().GroupResource()
		before, known := managed.fits[target]
		if _, ok := m.schemaOf(resource); !ok {
			next[target] = compatibility.NotCompared(resource.Native || resource.Companion)
			continue
		}
		state, ok := managed.comparing.State(resource.GroupResource())
		switch {
		case ok && (state.SyncedResourceState != edgev2alpha1.SyncedResourcePending || !known):
			next[target] = state
		case known:
			next[target] = before
		}
	}
	managed.lock.Lock()
	managed.fits = next
	managed.lock.Unlock()
}

// isFrozen tells whether nothing of a resource is to be written to the target, and nothing removed there, because objects of
// the mailbox do not fit. The caller holds turn.
func (m *Manager) isFrozen(managed *managed, resource sync.Resource) bool {
	known, ok := m.schemaOf(resource)
	return ok && !known.Warn && managed.fits[resource.OnTarget().GroupResource()].Refuses()
}

// accepts tells whether objects of a resource are known to fit. The caller holds turn.
func (t *managed) accepts(resource sync.Resource) bool {
	return t.fits[resource.OnTarget().GroupResource()].SyncedResourceState == edgev2alpha1.SyncedResourceAccepted
}

// trusts returns until when it need not be asked whether objects of a resource fit; zero if it must. The caller holds turn.
func (t *managed) trusts(resource sync.Resource, schema compatibility.Schema) time.Time {
	if t.accepts(resource) && t.fits[resource.OnTarget().GroupResource()].Schema == schema.ID() {
		return t.describe().Trusted.Until
	}
	return time.Time{}
}

// mayFit returns what is closed once objects of a resource may be written of which it was not known before whether they fit.
func (m *Manager) mayFit(managed *managed, resource sync.Resource) []<-chan struct{} {
	known, ok := m.schemaOf(resource)
	if !ok || known.Warn || managed.accepts(resource) {
		return nil
	}
	if fits := managed.comparing.Fits(resource.GroupResource()); fits != nil {
		return []<-chan struct{}{fits}
	}
	return nil
}

// isEmptyOf asks the target whether anything is left of a frozen resource that nothing selects any more.
func (m *Manager) isEmptyOf(managed *managed, resource sync.Resource) (bool, error) {
	if !m.isFrozen(managed, resource) {
		managed.lists.forget(resource.GroupResource())
		return false, nil
	}
	empty, err := m.listsNothing(managed, resource)
	if apierrors.IsNotFound(err) {
		return false, nil // it is compared again, and not frozen then
	}
	return empty, err
}

// tell reports the states if they are not what was reported last.
func (m *Manager) tell(managed *managed) {
	syncTarget := managed.describe().UID
	states := m.States(syncTarget)
	if m.OnStates != nil && !maps.Equal(states, managed.told) {
		managed.told = states
		m.OnStates(syncTarget)
		m.observer.Changed(syncTarget)
	}
}

// States tells of each resource of a SyncTarget's target whether objects of the mailbox fit, and whether it can be used at all.
// What is not known is not in it.
func (m *Manager) States(syncTarget types.UID) map[schema.GroupResource]compatibility.State {
	found, ok := m.get(syncTarget)
	if !ok {
		return nil
	}
	found.lock.Lock()
	states := maps.Clone(found.fits)
	found.lock.Unlock()
	for _, controller := range found.controllers() {
		target := controller.Resource.OnTarget().GroupResource()
		unavailable := controller.Unavailable()
		missing := slices.IndexFunc(unavailable, func(one sync.Unavailable) bool { return one.Target == target })
		state, known := states[target]
		if missing >= 0 && known && state.SyncedResourceState != edgev2alpha1.SyncedResourceIncompatible {
			states[target] = compatibility.State{
				SyncedResourceState: edgev2alpha1.SyncedResourceIncompatible, Reason: unavailable[missing].Reason, Message: unavailable[missing].Message,
			}
		}
	}
	return states
}

// frozen returns the resources of which nothing is written, with why. The caller holds the lock.
func (m *Manager) frozen(managed *managed, published []sync.Resource) map[schema.GroupResource]compatibility.State {
	frozen := map[schema.GroupResource]compatibility.State{}
	for _, resource := range published {
		if _, runs := managed.pairs[resource.GroupResource()]; !runs && m.isFrozen(managed, resource) {
			frozen[resource.GroupResource()] = managed.fits[resource.OnTarget().GroupResource()]
		}
	}
	return frozen
}
