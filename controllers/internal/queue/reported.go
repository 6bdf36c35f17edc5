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

package queue

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ReportedError is the error of a reconcile that is reported where its user looks, and logged once if at all. A [Queue] retries the key
// as after any error, but does not log it: a user can leave the cause for days.
type ReportedError struct{ Err error }

func (e *ReportedError) Error() string { return e.Err.Error() }

func (e *ReportedError) Unwrap() error { return e.Err }

func isReported(err error) bool {
	_, is := errors.AsType[*ReportedError](err)
	return is
}

// withoutReported returns a reconciler whose keys are retried after a [ReportedError] without an error for the log.
func withoutReported[K comparable](reconciler reconcile.TypedReconciler[K]) reconcile.TypedReconciler[K] {
	return reconcile.TypedFunc[K](func(ctx context.Context, key K) (reconcile.Result, error) {
		result, err := reconciler.Reconcile(ctx, key)
		if isReported(err) {
			return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // RequeueAfter would end the backoff
		}
		return result, err
	})
}
