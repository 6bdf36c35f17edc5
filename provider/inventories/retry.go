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

package inventories

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// retryInterval is how often a reconcile is repeated until the caches are filled.
const retryInterval = 200 * time.Millisecond

// RetryUntilSynced returns a reconciler that retries, without an error in the log, while the given one returns
// [ErrNotSynced]. The events of an object arrive while its cache is still being filled, and no event arrives afterwards.
func RetryUntilSynced(reconciler mcreconcile.Reconciler) mcreconcile.Reconciler {
	return mcreconcile.Func(func(ctx context.Context, request mcreconcile.Request) (reconcile.Result, error) {
		result, err := reconciler.Reconcile(ctx, request)
		if errors.Is(err, ErrNotSynced) {
			log.FromContext(ctx).V(1).Info("waiting for the caches", "reason", err.Error())
			return reconcile.Result{RequeueAfter: retryInterval}, nil
		}
		return result, err
	})
}
