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

	"github.com/synchub-dev/synchub/controllers/patch"
	"github.com/synchub-dev/synchub/controllers/sync"
)

// Reconcile brings the set of sync controllers of one SyncTarget in step with its configs.
func (m *Manager) Reconcile(ctx context.Context, syncTarget types.UID) (reconcile.Result, error) {
	managed, ok := m.get(syncTarget)
	if !ok {
		return reconcile.Result{}, nil
	}
	published, publication := m.publication()
	managed.turn.Lock()
	defer managed.turn.Unlock()
	if managed.gone {
		return reconcile.Result{}, nil
	}
	ctx, cancel := managed.untilStopped(ctx)
	defer cancel()
	if !m.compile(managed) {
		// The mailbox cannot be seen yet; its subscriber is told when it can.
		return reconcile.Result{}, nil
	}
	again := m.lookForMissing(ctx, managed, published)
	m.lookForRebinding(managed)
	versionsAgain, unanswered := m.chooseVersions(managed, published)
	err := errors.Join(m.settle(ctx, managed, managed.inVersions(published), publication), unanswered)
	again = sooner(again, versionsAgain)
	if errors.Is(ctx.Err(), context.Canceled) {
		// The target is being stopped, or the hub.
		return reconcile.Result{}, nil
	}
	if err != nil && !apierrors.IsConflict(err) {
		return reconcile.Result{}, fmt.Errorf("SyncTarget %s: %w", managed.describe().Name, err)
	}
	if err == nil && managed.awaits(m.Clock.Now()) {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	if err == nil {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	return patch.Settle(err)
}

// sooner returns the shorter of two times to wait, of which zero is for ever.
func sooner(one, other time.Duration) time.Duration {
	if one == 0 || other == 0 {
		return max(one, other)
	}
	return min(one, other)
}

// publication returns the resources that mailboxes have by now, and the number of that publication.
func (m *Manager) publication() (published []sync.Resource, number int) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.published, m.publications
}

// compile takes over the configs of the mailbox as they are now; it returns false if they are not known.
func (m *Manager) compile(managed *managed) bool {
	m.lock.Lock()
	stale, ask := managed.stale, managed.ask
	managed.stale, managed.ask = false, false
	m.lock.Unlock()
	if !stale {
		return managed.known
	}
	configs, ok := managed.configs.look(m.Mailboxes, managed.describe().Mailbox, ask)
	if !ok {
		return managed.known
	}
	managed.configs = configs
	matcher := m.matcherOf(configs)
	managed.lock.Lock()
	before := managed.known
	managed.known, managed.matcher = true, matcher
	managed.lock.Unlock()
	m.hold(managed)
	if !before {
		m.OnKnown(managed.describe().UID)
	}
	for _, controller := range managed.controllers() {
		controller.SetMatcher(matcher)
	}
	return true
}

// read returns what the objects say.
func read[T any](log logr.Logger, objects []*unstructured.Unstructured) (configs []*T) {
	for _, object := range objects {
		config := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, config); err != nil {
			// The schema that kcp enforces is generated from this type.
			log.Error(err, "cannot read a config", "kind", object.GetKind(), "name", object.GetName())
			continue
		}
		configs = append(configs, config)
	}
	return configs
}
