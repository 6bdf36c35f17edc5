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

package tenants

import (
	"context"
	"errors"
	"fmt"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
)

// store reads and writes the objects of one kind on the cluster.
type store struct {
	kind    kind
	objects *targets.Objects
	owner   ownership.Owner
	hasher  ownership.Hasher
	clock   clock.PassiveClock
	cache   *targets.Cache

	lock gosync.Mutex
	// writes are the hub's writes that the cache does not contain yet. They use the lock.
	writes writes.Expectations[types.NamespacedName, *unstructured.Unstructured]
	// repairs are the repairs of objects that another client changed.
	repairs map[types.NamespacedName]*writes.DriftBackoff
}

// newStore returns a store whose cache is empty until it runs. onChange is called with each object that changes.
func newStore(kind kind, o *Options, onChange func(kind, *unstructured.Unstructured), onAvailability func()) *store {
	s := &store{kind: kind, objects: &o.Connection.Objects, owner: o.Owner, hasher: o.Hasher, clock: o.Clock, repairs: map[types.NamespacedName]*writes.DriftBackoff{}}
	s.cache = o.Connection.Watches.NewCache(kind.GroupVersionResource, targets.CacheOptions{
		Namespaced: true, Selector: Selector(o.Owner), OnAvailability: onAvailability,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { onChange(kind, object.(*unstructured.Unstructured)) },
			UpdateFunc: func(_, object any) { onChange(kind, object.(*unstructured.Unstructured)) },
			DeleteFunc: func(object any) {
				if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
					object = tombstone.Obj
				}
				deleted := object.(*unstructured.Unstructured)
				s.writes.DeletionObserved(keyOf(deleted), deleted.GetUID())
				onChange(kind, deleted)
			},
		},
	})
	s.writes = writes.NewExpectations[types.NamespacedName, *unstructured.Unstructured](&s.lock, o.Clock)
	s.writes.CacheHasReached = func(key types.NamespacedName, resourceVersion string) bool {
		return s.cache.HasReached(key.Namespace, resourceVersion)
	}
	return s
}

func keyOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// ErrNotReady means that the hub has not read the objects on the cluster yet.
var ErrNotReady = errors.New("the hub has not read yet what the cluster has for the workspace")

// check returns an error until the cache has synced: [ErrNotReady], or the reason why the hub cannot read the objects.
func (s *store) check() error {
	if _, pending := s.cache.Progress(); pending > 0 {
		return ErrNotReady
	}
	if why := s.cache.Availability(); why.Reason != "" {
		return fmt.Errorf("the hub cannot read the %s of the cluster, which workspaces need (spec.tenancy of the SyncTarget): %s", s.kind.Resource, why.Message)
	}
	return nil
}

// get returns an object; the hub's own last write counts even if the cache does not contain it yet.
func (s *store) get(key types.NamespacedName) *unstructured.Unstructured {
	var cached *unstructured.Unstructured
	if found := s.cache.Get(key); found != nil {
		cached = found.(*unstructured.Unstructured)
	}
	current, deleted := s.writes.Current(key, cached)
	if deleted {
		return nil
	}
	return current
}

// written is the result of bringing an object in sync.
type written struct {
	// isWritten is true if the hub has written to the cluster.
	isWritten bool
	// wait is the delay until a repair may be made; zero for none.
	wait time.Duration
	err  error
}

// and adds the result for another object.
func (w written) and(other written) written {
	w.isWritten = w.isWritten || other.isWritten
	if w.wait == 0 || other.wait > 0 && other.wait < w.wait {
		w.wait = other.wait
	}
	w.err = errors.Join(w.err, other.err)
	return w
}

// ensure brings an object in sync with the desired one, nil for none.
func (s *store) ensure(ctx context.Context, key types.NamespacedName, desired *unstructured.Unstructured) written {
	hash := ""
	if desired != nil {
		desired = desired.DeepCopy()
		var err error
		if hash, err = seal(desired, s.owner, s.hasher); err != nil {
			return written{err: err}
		}
	}
	return s.ensureFrom(ctx, key, desired, hash, s.get(key))
}

func (s *store) ensureFrom(ctx context.Context, key types.NamespacedName, desired *unstructured.Unstructured, hash string, observed *unstructured.Unstructured) written {
	action, err := decide(desired, hash, observed, s.owner)
	if err != nil {
		return written{err: err}
	}
	switch action {
	case actionCreate:
		return s.create(ctx, key, desired, hash)
	case actionRepair:
		if wait := s.nextRepairDelay(key); wait > 0 {
			return written{wait: wait}
		}
		return s.apply(ctx, key, desired, observed.GetUID())
	case actionApply:
		return s.apply(ctx, key, desired, observed.GetUID())
	case actionReplace:
		if err := s.delete(ctx, key, observed.GetUID()); err != nil {
			return written{err: err}
		}
		return s.create(ctx, key, desired, hash)
	case actionDelete:
		err := s.delete(ctx, key, observed.GetUID())
		return written{isWritten: err == nil, err: err}
	case actionConflict:
		return written{err: fmt.Errorf("the cluster has a %s %s that is not the hub's: remove it there", s.kind.name, key)}
	case actionNone, actionWait:
	}
	return written{}
}

// create creates an object. If the name is taken, it reads the object there once: the hub may have made it and not know it.
func (s *store) create(ctx context.Context, key types.NamespacedName, desired *unstructured.Unstructured, hash string) written {
	s.writes.Started(key)
	created, err := s.objects.Create(ctx, s.kind.GroupVersionResource, desired)
	s.writes.Finished(key, created)
	if !errors.Is(err, targets.ErrAlreadyExists) {
		return written{isWritten: err == nil, err: err}
	}
	found, getErr := s.objects.Get(requestclass.With(ctx, requestclass.Extra), s.kind.GroupVersionResource, key)
	if getErr != nil {
		return written{err: errors.Join(err, getErr)}
	}
	return s.ensureFrom(ctx, key, desired, hash, found)
}

func (s *store) apply(ctx context.Context, key types.NamespacedName, desired *unstructured.Unstructured, uid types.UID) written {
	s.writes.Started(key)
	applied, err := s.objects.Apply(ctx, s.kind.GroupVersionResource, desired, uid)
	s.writes.Finished(key, applied)
	return written{isWritten: err == nil, err: err}
}

func (s *store) delete(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	s.writes.Started(key)
	if err := s.objects.Delete(ctx, s.kind.GroupVersionResource, key, uid); err != nil {
		s.writes.Finished(key, nil)
		return err
	}
	s.writes.DeleteAccepted(ctx, key, uid)
	return nil
}

// nextRepairDelay returns how long to wait before the repair of an object; zero counts the repair.
func (s *store) nextRepairDelay(key types.NamespacedName) time.Duration {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.repairs[key] == nil {
		s.repairs[key] = &writes.DriftBackoff{}
	}
	return s.repairs[key].Next(s.clock.Now())
}

// createNamespace creates a namespace with the labels, and reports whether it did; it exists after every call without an error.
func createNamespace(ctx context.Context, o *Options, name string, labels map[string]string) (created bool, err error) {
	annotations := map[string]string{ownership.EnsuredAnnotation: o.Owner.EnsuredValue(writes.NamespaceSelf(name))}
	created, err = o.Connection.Objects.EnsureNamespace(requestclass.With(ctx, requestclass.Extra), name, labels, annotations)
	if err != nil {
		return false, fmt.Errorf("cannot create the namespace %s: %w", name, err)
	}
	return created, nil
}
