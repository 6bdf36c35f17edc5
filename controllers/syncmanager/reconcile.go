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
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// Reconcile starts and stops the sync controllers of one SyncTarget according to its configs.
func (m *Manager) Reconcile(ctx context.Context, syncTarget types.UID) (reconcile.Result, error) {
	state, ok := m.get(syncTarget)
	if !ok {
		return reconcile.Result{}, nil
	}
	state.reconcileMutex.Lock()
	defer state.reconcileMutex.Unlock()
	if state.stopped {
		return reconcile.Result{}, nil
	}
	ctx, cancel := state.stoppableContext(m.Role.Context(ctx, syncTarget))
	defer cancel()
	pass := m.newPass(state)
	requeueAfter, err := pass.run(ctx)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		// The SyncTarget was unassigned, or the hub is stopping.
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return status.PatchResult(err)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("SyncTarget %s: %w", pass.target.Name, err)
	default:
		return reconcile.Result{RequeueAfter: requeueAfter}, nil
	}
}

// pass is one reconcile of a SyncTarget. It exists only while its goroutine holds reconcileMutex.
type pass struct {
	manager *Manager
	state   *targetState
	target  Target
	// isPreparing is true on a replica that is not the leader.
	isPreparing bool
	// published are the resources that mailboxes have, and publication is their number. From chooseVersions on, published has the
	// versions that objects are written to the target in.
	published   []plan.Resource
	publication int
}

func (m *Manager) newPass(state *targetState) *pass {
	p := &pass{manager: m, state: state, isPreparing: state.isPreparing()}
	// startPrepared changes the target before it allows writes, so the target is read later.
	p.target = state.currentTarget()
	p.published, p.publication = m.catalog.published()
	return p
}

// run returns when to reconcile again; zero means only after an event.
func (p *pass) run(ctx context.Context) (requeueAfter time.Duration, err error) {
	if !p.updateConfigs() {
		// The mailbox cannot be observed yet. Its subscriber enqueues the SyncTarget when it can.
		return 0, nil
	}
	if p.isPreparing {
		return p.prepare()
	}
	requeueAfter = p.updateMissingAPIs(ctx)
	p.updateRebound()
	versionsRequeueAfter, unanswered := p.chooseVersions()
	err = errors.Join(p.reconcileControllers(ctx), unanswered)
	if err == nil && p.state.apiEvents.awaitsCRD(p.manager.Clock.Now()) {
		return requeueDelay, nil
	}
	return shorterDelay(requeueAfter, versionsRequeueAfter), err
}

// shorterDelay returns the shorter of two delays; zero means never.
func shorterDelay(one, other time.Duration) time.Duration {
	if one == 0 || other == 0 {
		return max(one, other)
	}
	return min(one, other)
}

// reconcileControllers starts the needed sync controllers and stops the other ones.
func (p *pass) reconcileControllers(ctx context.Context) error {
	resolved, err := p.resolveTargetAPIs()
	errs := []error{err}
	unpublishing := withFinalizers(p.manager.Mailboxes, p.target.Mailbox, p.published)
	wanted, err := desiredResources(p.state, p.published, resolved, p.isEmptied)
	errs = append(errs, err)
	p.updateSchemaCheck(wanted)
	if err := p.storeWrittenResources(ctx, wanted, resolved); err != nil {
		return err
	}
	wanted = append(wanted, unpublishing...)
	p.stopControllers(wanted, resolved)
	p.state.updatePrimaries(wanted)
	p.updateCRDs(wanted)
	errs = append(errs, p.updateTenants(ctx))
	if p.state.markApplied(p.publication, p.startControllers(wanted, resolved)) {
		p.manager.ObjectsChanged.Publish(p.target.UID)
	}
	p.reportStates()
	return errors.Join(errs...)
}

// resolveTargetAPIs returns the APIs of all published resources. The error is only for the log.
func (p *pass) resolveTargetAPIs() (map[schema.GroupResource]resolvedAPIs, error) {
	p.state.apiEvents.hasUnresolved.Store(false)
	resolved := make(map[schema.GroupResource]resolvedAPIs, len(p.published))
	var errs []error
	for _, resource := range p.published {
		found, err := p.resolveTargetAPIsOf(resource, relationsTo(p.published, resource))
		errs = append(errs, err)
		resolved[resource.GroupResource()] = found
	}
	p.state.awaitAPIs(p.state.apiEvents.hasUnresolved.Load())
	return resolved, errors.Join(errs...)
}

// updateRebound publishes StateChanged when Status.Rebound has changed.
func (p *pass) updateRebound() {
	before := p.state.rebound
	p.state.rebound = p.manager.Mailboxes.Absences.WasRebound(p.target.Mailbox)
	if p.state.rebound != before {
		p.manager.StateChanged.Publish(p.target.UID)
	}
}
