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
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/tenants"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// tenantsController is the running controller of tenants for one connection to a target.
type tenantsController struct {
	*tenants.Controller
	runner
}

// currentTenants returns the tenants of the target, nil if it has none.
func (t *targetState) currentTenants() *tenants.Controller {
	if running := t.tenants.Load(); running != nil {
		return running.Controller
	}
	return nil
}

// updateTenants starts the controller of tenants if workload workspaces have namespaces of their own, or had some, and changes its
// settings. It runs until the connection ends, so that it removes what the settings do not need any more.
func (p *pass) updateTenants(ctx context.Context) error {
	m, state, target := p.manager, p.state, p.target
	running := state.tenants.Load()
	if err := p.recordTenants(ctx); err != nil {
		return err
	}
	if running != nil && running.Connection != target.Connection {
		running.stop()
		running = nil
		state.tenants.Store(nil)
	}
	switch {
	case running != nil:
		if running.SetTenancy(target.Tenancy) {
			state.retryDenied("")
		}
	case !tenancy.NamingOf(target.Tenancy).IsShared() || len(state.tenantResources) > 0:
		controller := tenants.New(tenants.Options{
			Connection: target.Connection,
			Mailboxes:  m.Mailboxes,
			Mailbox:    target.Mailbox,
			Owner:      m.Owner(target.UID),
			Hasher:     m.Hasher,
			OnPrepared: state.retryDenied,
			Written:    state.tenantResources,
			OnProblem:  func() { m.StateChanged.Publish(target.UID) },
			Clock:      m.Clock,
			Log:        m.Log.WithValues("syncTarget", target.Name),
		}, target.Tenancy)
		state.tenants.Store(&tenantsController{controller, p.start(controller.Run, controller.Log)})
	}
	return nil
}

// recordTenants records, if that changed, the resources of the objects that the hub may write for workspaces, or may have left. After a
// restart with another tenancy the hub removes them.
func (p *pass) recordTenants(ctx context.Context) error {
	left := p.state.tenantResources
	if running := p.state.currentTenants(); running != nil {
		left = running.LeftResources()
	}
	next := slices.Compact(slices.Sorted(slices.Values(slices.Concat(left, tenants.ResourcesFor(p.target.Tenancy)))))
	if slices.Equal(next, p.state.tenantResources) {
		return nil
	}
	if err := p.manager.StoreTenantResources(ctx, p.target.UID, next); err != nil {
		return fmt.Errorf("cannot record what the hub keeps on the target for workspaces: %w", err)
	}
	p.state.tenantResources = next
	return nil
}

// StoreTenantResourcesIn returns a function that stores the resources of the objects for workspaces of a SyncTarget in the ledger.
func StoreTenantResourcesIn(entries *ledger.Store) func(context.Context, types.UID, []string) error {
	return func(ctx context.Context, syncTarget types.UID, resources []string) error {
		return entries.Update(ctx, syncTarget, func(entry *ledger.Entry) { entry.TenantResources = resources })
	}
}

// retryDenied enqueues the objects that the target has denied in a namespace; in all, if none is named.
func (t *targetState) retryDenied(namespace string) {
	for _, controller := range t.controllers() {
		controller.RetryDenied(namespace)
	}
}
