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

package ledger

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/transport"
)

// ListWatch lists and watches the ConfigMaps that have a label. onError is called with the errors of its requests.
func ListWatch(client corev1client.ConfigMapInterface, label string, onError func(error)) cache.ListerWatcher {
	requests := configMaps{client}
	checked := func(err error) error {
		if err != nil {
			onError(err)
		}
		return err
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = label
			list, err := requests.list(ctx, options)
			return list, checked(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = label
			watching, err := client.Watch(requestclass.With(ctx, requestclass.Background), options)
			return watching, checked(err)
		},
	}, client)
}

// newReflector returns a reflector that keeps the Store up to date.
func (s *Store) newReflector() *cache.Reflector {
	unreadable := func(err error) {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			s.failWatch(readError(err))
		}
	}
	return cache.NewReflectorWithOptions(ListWatch(s.options.ConfigMaps, ledgerLabel, unreadable), &corev1.ConfigMap{}, reflectorStore{s}, cache.ReflectorOptions{Name: "ledger"})
}

// reflectorStore stores the objects that the reflector reads in the Store.
type reflectorStore struct{ ledger *Store }

var _ cache.ReflectorStore = reflectorStore{}

// Add implements [cache.ReflectorStore].
func (s reflectorStore) Add(object any) error { return s.Update(object) }

// Update implements [cache.ReflectorStore].
func (s reflectorStore) Update(object any) error {
	err := s.ledger.onStored(object.(*corev1.ConfigMap))
	if err != nil {
		s.ledger.failWatch(err)
	}
	return err
}

// Delete implements [cache.ReflectorStore].
func (s reflectorStore) Delete(object any) error {
	stored := object.(*corev1.ConfigMap)
	if stored.Name == leaderConfigMap {
		s.ledger.onLeader(leaderRecord{})
	} else {
		s.ledger.recordDeleted(types.UID(stored.Name), stored.ResourceVersion)
	}
	return nil
}

// Replace implements [cache.ReflectorStore].
func (s reflectorStore) Replace(objects []any, version string) error {
	listed := make(map[types.UID]struct{}, len(objects))
	for _, object := range objects {
		if err := s.Update(object); err != nil {
			return err
		}
		listed[types.UID(object.(*corev1.ConfigMap).Name)] = struct{}{}
	}
	s.ledger.recordOnly(listed, version)
	if _, ok := listed[leaderConfigMap]; !ok {
		s.ledger.onLeader(leaderRecord{})
	}
	s.ledger.onAllEntries()
	return nil
}

// Resync implements [cache.ReflectorStore].
func (reflectorStore) Resync() error { return nil }

// onStored stores the entry in a ConfigMap of the ledger.
func (s *Store) onStored(stored *corev1.ConfigMap) error {
	if stored.Name == leaderConfigMap {
		s.onLeader(decodeLeader(stored))
		return nil
	}
	entry, err := decode(stored)
	if err != nil {
		return err
	}
	s.record(types.UID(stored.Name), entry, stored.ResourceVersion)
	return nil
}

// EnsureFresh returns once all entries are at least as new as they were in the provider workspace at the time since, by the clock of the
// Store. It lists them, unless a list that began since then has been read. Callers share a list. A replica that takes over SyncTargets
// needs it: the watch may not have shown the last writes of their former owner yet.
func (s *Store) EnsureFresh(ctx context.Context, since time.Time) error {
	for !s.isFresh(since) {
		// A list that runs already may have begun too early. Other callers need the list even if this one is canceled.
		listing := s.lists.DoChan("", func() (any, error) {
			if s.isFresh(since) {
				// Another list has ended since this caller found the entries outdated.
				return nil, nil
			}
			return nil, s.list(context.WithoutCancel(ctx))
		})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case result := <-listing:
			if result.Err != nil {
				return result.Err
			}
		}
	}
	return nil
}

// entries selects the ConfigMaps with entries.
var entries = metav1.ListOptions{LabelSelector: ledgerLabel + "=" + labelSyncTarget, Limit: pageSize}

// list reads all entries from kcp.
func (s *Store) list(ctx context.Context) error {
	began, highest := s.options.Clock.Now(), s.beginList()
	var complete time.Time
	defer func() { s.endList(complete) }()
	listed := map[types.UID]struct{}{}
	version := ""
	for page, err := range transport.Pages(ctx, entries, s.configMaps.list) {
		if err != nil {
			return readError(err)
		}
		if version == "" && wentBack(highest, page.ResourceVersion) {
			s.forgetVersions(page.ResourceVersion)
		}
		version = page.ResourceVersion
		for i := range page.Items {
			if err := s.onStored(&page.Items[i]); err != nil {
				return err
			}
			listed[types.UID(page.Items[i].Name)] = struct{}{}
		}
	}
	s.recordOnly(listed, version)
	complete = began
	return nil
}
