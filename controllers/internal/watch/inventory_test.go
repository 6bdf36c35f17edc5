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

package watch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// inventory is a workspace whose caches sync when the channels are closed.
type inventory struct {
	cluster.Cluster
	syncTargets, locations chan struct{}
	err                    error
}

func (i *inventory) GetCache() cache.Cache { return informers{inventory: i} }

// informers is the cache of an inventory.
type informers struct {
	cache.Cache
	inventory *inventory
}

func (i informers) GetInformer(_ context.Context, of client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if _, is := of.(*edgev2alpha1.Location); is {
		return informer{done: i.inventory.locations}, i.inventory.err
	}
	return informer{done: i.inventory.syncTargets}, i.inventory.err
}

type informer struct {
	cache.Informer
	done chan struct{}
}

func (i informer) HasSyncedChecker() toolscache.DoneChecker { return i }
func (i informer) Name() string                             { return "" }
func (i informer) Done() <-chan struct{}                    { return i.done }

type queue = workqueue.TypedRateLimitingInterface[mcreconcile.Request]

func newQueue(t *testing.T) queue {
	made := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[mcreconcile.Request]())
	t.Cleanup(made.ShutDown)
	return made
}

// taken returns whether the queue had just the request of the workspace abc.
func taken(queue queue) bool {
	synctest.Wait()
	if queue.Len() != 1 {
		return false
	}
	request, _ := queue.Get()
	queue.Done(request)
	return request == InventoryRequest("abc")
}

func engage(ctx context.Context, t *testing.T, workspace *inventory, queue queue) error {
	t.Helper()
	source, engages, err := Engagement().ForCluster("abc", workspace)
	if err != nil || !engages {
		t.Fatalf("the source does not engage: %v", err)
	}
	return source.Start(ctx, queue)
}

// The workspace is enqueued when both caches have synced, and when the hub loses it.
func TestEngagement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, workspace := newQueue(t), &inventory{syncTargets: make(chan struct{}), locations: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		if err := engage(ctx, t, workspace, queue); err != nil {
			t.Fatal(err)
		}
		close(workspace.syncTargets)
		if taken(queue) {
			t.Error("the workspace is enqueued before its Locations are cached")
		}
		close(workspace.locations)
		if !taken(queue) {
			t.Error("the workspace is not enqueued when its Locations are cached")
		}
		cancel()
		if !taken(queue) {
			t.Error("the workspace is not enqueued when the hub loses it")
		}
	})
}

func TestEngagementThatEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, workspace := newQueue(t), &inventory{syncTargets: make(chan struct{}), locations: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		if err := engage(ctx, t, workspace, queue); err != nil {
			t.Fatal(err)
		}
		cancel()
		if !taken(queue) {
			t.Error("the workspace is not enqueued when the hub loses it")
		}
		workspace.err = errors.New("no informer")
		if err := engage(t.Context(), t, workspace, queue); !errors.Is(err, workspace.err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestEnqueueInventory(t *testing.T) {
	queue := newQueue(t)
	handler := EnqueueInventory("abc", nil)
	for _, name := range []string{"one", "two"} {
		syncTarget := &edgev2alpha1.SyncTarget{}
		syncTarget.Name = name
		handler.Create(t.Context(), event.CreateEvent{Object: syncTarget}, queue)
	}
	if request, _ := queue.Get(); queue.Len() != 0 || request != InventoryRequest("abc") {
		t.Errorf("got %v and %d more", request, queue.Len())
	}
}
