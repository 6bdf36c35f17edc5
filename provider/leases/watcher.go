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

package leases

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// Options configure a [Watcher].
type Options struct {
	// Leases are the Leases of one namespace. The Watcher watches only the Lease with the Name, or all of them if Name is
	// empty.
	Leases coordinationv1client.LeaseInterface
	Name   string
	Clock  clock.PassiveClock
	Log    logr.Logger
}

// Watcher holds the last observed state of Leases. It runs on each replica, and may lag behind the server: callers read the
// Lease before they act on it.
type Watcher struct {
	Options

	lock     sync.Mutex
	observed map[string]observation
}

// observation is a Lease as it was observed last.
type observation struct {
	record resourcelock.LeaderElectionRecord
	// raw is the record as [resourcelock.LeaseLock.Get] returns it.
	raw    []byte
	labels map[string]string
	// at is when a change was observed last, and watchedAt when the watch showed one.
	at, watchedAt time.Time
}

// NewWatcher returns a Watcher that has observed nothing yet.
func NewWatcher(options Options) *Watcher {
	return &Watcher{Options: options, observed: map[string]observation{}}
}

// NeedLeaderElection returns false: replicas that do not lead watch too.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Start watches the Leases until ctx ends. Without the right to watch them, the Locks read the Lease themselves, in each renew period.
func (w *Watcher) Start(ctx context.Context) error {
	selectName := func(options *metav1.ListOptions) {
		if w.Name != "" {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.Name).String()
		}
	}
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			selectName(&options)
			return w.Leases.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			selectName(&options)
			return w.Leases.Watch(ctx, options)
		},
	}, &coordinationv1.Lease{}, 0, nil)
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.Log.V(1).Info("cannot watch Leases, so that a takeover may take longer", "error", err.Error())
	})
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    w.onChange,
		UpdateFunc: func(_, changed any) { w.onChange(changed) },
		DeleteFunc: w.onDelete,
	}); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	return nil
}

func (w *Watcher) onChange(changed any) {
	lease, ok := changed.(*coordinationv1.Lease)
	if !ok {
		return
	}
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	raw, err := json.Marshal(*record)
	if err != nil {
		return
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	now := w.Clock.Now()
	w.observed[lease.Name] = observation{record: *record, raw: raw, labels: lease.Labels, at: now, watchedAt: now}
}

func (w *Watcher) onDelete(deleted any) {
	if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(deleted); err == nil {
		_, name, _ = cache.SplitMetaNamespaceKey(name)
		w.forget(name)
	}
}

// get returns the last observation of a Lease; ok is false if there is no Lease, or none was observed.
func (w *Watcher) get(name string) (last observation, ok bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	last, ok = w.observed[name]
	return last, ok
}

// Labels returns the labels of a Lease if the watch showed a change of it within the given time, so that its holder is alive.
func (w *Watcher) Labels(name string, within time.Duration) (labels map[string]string, ok bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	last, ok := w.observed[name]
	return last.labels, ok && last.watchedAt.Add(within).After(w.Clock.Now())
}

// set records a record that was read or written outside the watch.
func (w *Watcher) set(name string, record resourcelock.LeaderElectionRecord, raw []byte) {
	w.lock.Lock()
	defer w.lock.Unlock()
	last := w.observed[name]
	if !bytes.Equal(last.raw, raw) {
		last.at = w.Clock.Now()
	}
	last.record, last.raw = record, raw
	w.observed[name] = last
}

func (w *Watcher) forget(name string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	delete(w.observed, name)
}
