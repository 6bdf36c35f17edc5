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
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

func TestRetryUntilSynced(t *testing.T) {
	g := NewWithT(t)
	reconcileWith := func(err error) (reconcile.Result, error) {
		return RetryUntilSynced(mcreconcile.Func(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, err
		})).Reconcile(t.Context(), mcreconcile.Request{})
	}
	g.Expect(reconcileWith(fmt.Errorf("cannot read Secrets: %w", ErrNotSynced))).To(Equal(reconcile.Result{RequeueAfter: retryInterval}))
	g.Expect(reconcileWith(nil)).To(BeZero())
	failed := errors.New("refused")
	_, err := reconcileWith(failed)
	g.Expect(err).To(BeIdenticalTo(failed))
}
