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

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/internal/patch"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// Reconcile starts and stops the sync controllers of one SyncTarget according to its configs.
func (m *Manager) Reconcile(ctx context.Context, syncTarget types.UID) (reconcile.Result, error) {
	state, ok := m.get(syncTarget)
	if !ok {
		return reconcile.Result{}, nil
	}
	published, publication := m.publication()
	state.reconcileMutex.Lock()
	defer state.reconcileMutex.Unlock()
	if state.stopped {
		return reconcile.Result{}, nil
	}
	ctx, cancel := state.stoppableContext(m.Role.Context(ctx, syncTarget))
	defer cancel()
	if !m.updateConfigs(state) {
		// The mailbox cannot be observed yet. Its subscriber enqueues the SyncTarget when it can.
		return reconcile.Result{}, nil
	}
	if state.isPreparing() {
		return m.prepare(state, published, publication)
	}
	requeueAfter := m.updateMissingAPIs(ctx, state, published)
	m.updateRebound(state)
	versionsRequeueAfter, unanswered := m.chooseVersions(state, published)
	err := errors.Join(m.reconcileControllers(ctx, state, state.withChosenVersions(published), publication), unanswered)
	requeueAfter = shorterDelay(requeueAfter, versionsRequeueAfter)
	if errors.Is(ctx.Err(), context.Canceled) {
		// The SyncTarget was unassigned, or the hub is stopping.
		return reconcile.Result{}, nil
	}
	switch {
	case apierrors.IsConflict(err):
		return patch.ResultOf(err)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("SyncTarget %s: %w", state.currentTarget().Name, err)
	case state.awaitsCRD(m.Clock.Now()):
		return reconcile.Result{RequeueAfter: requeueDelay}, nil
	default:
		return reconcile.Result{RequeueAfter: requeueAfter}, nil
	}
}

// shorterDelay returns the shorter of two delays; zero means never.
func shorterDelay(one, other time.Duration) time.Duration {
	if one == 0 || other == 0 {
		return max(one, other)
	}
	return min(one, other)
}

// publication returns the resources that mailboxes have, and the number of that publication.
func (m *Manager) publication() (published []plan.Resource, number int) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.published, m.publicationNumber
}

// updateConfigs compiles the configs of the mailbox if they are stale, and reports whether they are known.
func (m *Manager) updateConfigs(state *targetState) bool {
	m.lock.Lock()
	stale, verify := state.configsStale, state.verifyMissing
	state.configsStale, state.verifyMissing = false, false
	m.lock.Unlock()
	if !stale {
		return state.configsKnown
	}
	configs, ok := state.configs.observe(m.Mailboxes, state.currentTarget().Mailbox, verify)
	if !ok {
		return state.configsKnown
	}
	state.configs = configs
	matcher := matcherOf(m.Log, configs)
	state.lock.Lock()
	before := state.configsKnown
	state.configsKnown, state.matcher = true, matcher
	state.lock.Unlock()
	m.updateCachePolicy(state)
	if !before {
		m.StateChanged.Publish(state.currentTarget().UID)
	}
	for _, controller := range state.controllers() {
		controller.SetMatcher(matcher)
	}
	return true
}

// decodeConfigs converts config objects into their Go type.
func decodeConfigs[T any](log logr.Logger, objects []*unstructured.Unstructured) (configs []*T) {
	for _, object := range objects {
		config := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, config); err != nil {
			// This cannot happen: the schema that kcp enforces is generated from this type.
			log.Error(err, "cannot read a config", "kind", object.GetKind(), "name", object.GetName())
			continue
		}
		configs = append(configs, config)
	}
	return configs
}
