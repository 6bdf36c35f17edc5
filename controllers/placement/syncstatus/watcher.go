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

package syncstatus

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// sweepInterval is how often the leader deletes the states of SyncTargets that are gone.
const sweepInterval = 10 * time.Minute

// WatcherOptions are the dependencies of a [Watcher].
type WatcherOptions struct {
	// ConfigMaps are the ConfigMaps of the ledger's namespace.
	ConfigMaps corev1client.ConfigMapInterface
	Store      *Store
	Sealer     *ownership.Sealer
	// KnownSyncTargets returns the SyncTargets in the ledger; known is false until they are loaded.
	KnownSyncTargets func() (syncTargets []types.UID, known bool)
	Clock            clock.WithTicker
	Log              logr.Logger
}

// Watcher fills a [Store] with the states that other replicas of the hub store. Only the leader runs it.
type Watcher struct {
	WatcherOptions
	informer cache.SharedIndexInformer
}

// watchedStates replaces a ConfigMap in the informer's cache, so that the encoded states are not stored twice.
type watchedStates struct {
	metav1.ObjectMeta
	states *States
}

// NewWatcher returns a Watcher, which does nothing until it is started.
func NewWatcher(options WatcherOptions) (*Watcher, error) {
	w := &Watcher{WatcherOptions: options}
	w.informer = cache.NewSharedIndexInformer(ledger.ListWatch(w.ConfigMaps, copiesLabel, func(error) {}), &corev1.ConfigMap{}, 0, cache.Indexers{})
	if err := w.informer.SetTransform(w.decode); err != nil {
		return nil, fmt.Errorf("cannot watch the states of copies: %w", err)
	}
	_, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: w.publish, UpdateFunc: func(_, next any) { w.publish(next) }, DeleteFunc: w.forget,
	})
	return w, err
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (*Watcher) NeedLeaderElection() bool { return true }

// Start watches until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	go w.informer.RunWithContext(ctx)
	ticker := w.Clock.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			if err := w.sweep(ctx); err != nil && ctx.Err() == nil {
				w.Log.Info("the states of a SyncTarget that is gone are left in the provider workspace; this is tried again", "error", err.Error())
			}
		}
	}
}

// decode replaces a ConfigMap by its states.
func (w *Watcher) decode(object any) (any, error) {
	stored, ok := object.(*corev1.ConfigMap)
	if !ok {
		return object, nil
	}
	// The seal of the replica that owns the SyncTarget covers the name of the mailbox, too.
	states, err := decode(w.Sealer, syncTargetOf(stored.Name), stored.Data[statesKey], stored.Data[sealKey])
	if err != nil {
		w.Log.Info("states of copies are ignored", "configMap", stored.Name, "error", err.Error())
	}
	return &watchedStates{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: stored.Namespace, Name: stored.Name, UID: stored.UID, ResourceVersion: stored.ResourceVersion, CreationTimestamp: stored.CreationTimestamp,
		},
		states: states,
	}, nil
}

func (w *Watcher) publish(object any) {
	// States that cannot be read, such as those that a newer release wrote, do not replace earlier ones.
	if found, ok := object.(*watchedStates); ok && found.states != nil {
		w.Store.Set(syncTargetOf(found.Name), found.states)
	}
}

func (w *Watcher) forget(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if found, ok := object.(*watchedStates); ok {
		w.Store.Set(syncTargetOf(found.Name), nil)
	}
}

// syncTargetOf returns the SyncTarget of a ConfigMap.
func syncTargetOf(name string) types.UID { return types.UID(strings.TrimSuffix(name, nameSuffix)) }

// sweep deletes the states of SyncTargets that the ledger does not have. A SyncTarget is in the ledger before
// it has copies, but the leader may learn of it later.
func (w *Watcher) sweep(ctx context.Context) error {
	known, loaded := w.KnownSyncTargets()
	if !loaded {
		return nil
	}
	isKnown := sets.New(known...)
	for _, object := range w.informer.GetStore().List() {
		found, ok := object.(*watchedStates)
		if !ok || isKnown.Has(syncTargetOf(found.Name)) || w.Clock.Since(found.CreationTimestamp.Time) < sweepInterval {
			continue
		}
		if err := w.delete(ctx, found); err != nil {
			return err
		}
	}
	return nil
}

func (w *Watcher) delete(ctx context.Context, found *watchedStates) error {
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Background), requestTimeout)
	defer cancel()
	err := w.ConfigMaps.Delete(ctx, found.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &found.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
