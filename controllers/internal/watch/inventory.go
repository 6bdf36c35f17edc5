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
	"fmt"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	mcsource "sigs.k8s.io/multicluster-runtime/pkg/source"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// InventoryRequest returns the request of an inventory workspace.
func InventoryRequest(inventory multicluster.ClusterName) mcreconcile.Request {
	return mcreconcile.Request{ClusterName: inventory}
}

// EnqueueInventory returns an event handler that enqueues the workspace of an object.
func EnqueueInventory(name multicluster.ClusterName, inventory cluster.Cluster) handler.TypedEventHandler[client.Object, mcreconcile.Request] {
	return mchandler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})(name, inventory)
}

// Engagement returns a source that enqueues each inventory workspace when its SyncTargets and Locations are
// cached, and again when the hub loses the workspace. Otherwise a workspace without a Location would cause no
// event if its Locations become readable after its SyncTargets.
func Engagement() mcsource.TypedSource[client.Object, mcreconcile.Request] { return engagement{} }

type engagement struct{}

// ForCluster implements [mcsource.TypedSource].
func (engagement) ForCluster(name multicluster.ClusterName, inventory cluster.Cluster) (source.TypedSource[mcreconcile.Request], bool, error) {
	return source.TypedFunc[mcreconcile.Request](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
		var synced []<-chan struct{}
		for _, kind := range []client.Object{&edgev2alpha1.SyncTarget{}, &edgev2alpha1.Location{}} {
			informer, err := inventory.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false))
			if err != nil {
				return fmt.Errorf("cannot watch the inventory workspace %s: %w", name, err)
			}
			synced = append(synced, informer.HasSyncedChecker().Done())
		}
		context.AfterFunc(ctx, func() { queue.Add(InventoryRequest(name)) })
		go func() {
			for _, done := range synced {
				select {
				case <-done:
				case <-ctx.Done():
					return
				}
			}
			queue.Add(InventoryRequest(name))
		}()
		return nil
	}), true, nil
}
