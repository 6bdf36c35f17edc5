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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
)

// emptinessChecks are lists on a target that check whether unselected resources have objects left. They run in
// the background.
type emptinessChecks struct {
	lock gosync.Mutex
	all  map[schema.GroupResource]*emptinessCheck
}

// emptinessCheck is one such list. Its result is valid until the hub writes an object of the resource.
type emptinessCheck struct {
	connection *targets.Connection
	done       bool
	empty      bool
	err        error
}

// isEmptied reports whether an unselected pair has no object on the target or in the mailbox. Both the caches
// and a list on the target, which does not depend on the caches, must be empty.
func (p *pass) isEmptied(resource plan.Resource) (bool, error) {
	running, ok := p.state.syncControllers[resource.GroupResource()]
	if !ok {
		return p.isIncompatibleEmpty(resource)
	}
	// If the target does not serve the API, its objects may reappear together with the API.
	if !running.controller.IsEmpty() || !running.controller.Status.IsServed() {
		p.state.emptinessChecks.forget(resource.GroupResource())
		return false, nil
	}
	return p.isListedEmpty(resource)
}

// isListedEmpty reports whether a list on the target found no object of the resource. While there is no result it returns false and
// starts a list in the background, which enqueues the SyncTarget when done.
func (p *pass) isListedEmpty(resource plan.Resource) (bool, error) {
	manager, checks, target := p.manager, &p.state.emptinessChecks, p.state.currentTarget()
	if !target.Connection.Health.IsUp() {
		checks.forget(resource.GroupResource())
		return false, nil
	}
	owner := manager.Owner(target.UID)
	known, started := checks.resultOrNew(resource.GroupResource(), target.Connection)
	if started != nil {
		target.Connection.RunInBackground(func(ctx context.Context) {
			var namespaces []string
			if resource.Namespaced {
				namespaces = target.WrittenNamespaces
			}
			empty, err := target.Connection.Objects.HasNoObjects(requestclass.With(ctx, requestclass.Background), resource.TargetAPI().GroupVersionResource, objectsync.Selector(owner), namespaces...)
			if apierrors.IsForbidden(err) && len(namespaces) > 0 {
				// The hub may leave objects for ever in namespaces that it may no longer list. The status of
				// the SyncTarget reports these objects.
				err = nil
			}
			checks.finish(started, empty, err)
			manager.enqueue(target.UID)
		})
	}
	return known.empty, known.err
}

// resultOrNew returns the result of the check of a resource, once. If there is no check, it returns a new one that the caller must run.
func (e *emptinessChecks) resultOrNew(resource schema.GroupResource, connection *targets.Connection) (known emptinessCheck, started *emptinessCheck) {
	e.lock.Lock()
	defer e.lock.Unlock()
	found, ok := e.all[resource]
	if ok && found.connection == connection {
		if found.done {
			delete(e.all, resource)
			return *found, nil
		}
		return emptinessCheck{}, nil
	}
	if e.all == nil {
		e.all = map[schema.GroupResource]*emptinessCheck{}
	}
	started = &emptinessCheck{connection: connection}
	e.all[resource] = started
	return emptinessCheck{}, started
}

func (e *emptinessChecks) finish(check *emptinessCheck, empty bool, err error) {
	e.lock.Lock()
	defer e.lock.Unlock()
	check.done, check.empty, check.err = true, empty, err
}

// forget drops the check of a resource, whether finished or running.
func (e *emptinessChecks) forget(resource schema.GroupResource) {
	e.lock.Lock()
	defer e.lock.Unlock()
	delete(e.all, resource)
}
