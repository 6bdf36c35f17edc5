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

package patch

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// again is when a change that lost a race is tried again; by then the cache shows the winner's.
const again = 200 * time.Millisecond

// Status writes the status of changed, which was stored before. Both must be copies of what a cache holds.
func Status(ctx context.Context, cluster client.Client, stored, changed client.Object) (reconcile.Result, error) {
	return Settle(cluster.Status().Patch(ctx, changed, difference(stored, changed)))
}

// Object writes metadata and spec of changed, which was stored before. Both must be copies of what a cache holds.
func Object(ctx context.Context, cluster client.Client, stored, changed client.Object) (reconcile.Result, error) {
	return Settle(cluster.Patch(ctx, changed, difference(stored, changed)))
}

// difference returns what makes the one the other. Managed fields are half of many objects, and nothing that anybody changes.
func difference(stored, changed client.Object) client.Patch {
	stored.SetManagedFields(nil)
	changed.SetManagedFields(nil)
	return client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
}

// Settle turns a lost race into another try, and that the object is gone into nothing to do.
func Settle(err error) (reconcile.Result, error) {
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: again}, nil
	default:
		return reconcile.Result{}, fmt.Errorf("cannot write the change: %w", err)
	}
}
