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

package main

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/registration"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// outlasts tests a registration while the namespace is terminating. No controller in this cluster finishes the
// termination, so the test does.
func (f *testFleet) outlasts(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: registration.Namespace}}
	if err := f.admin.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if err := f.admin.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	tried := succeed(t, f.with("--resources", "configmaps", "--dry-run=server")...)
	for _, created := range []string{"namespace/" + registration.Namespace, "serviceaccount/" + f.name} {
		if want := created + " created (server dry run)\n"; !strings.Contains(tried.out, want) {
			t.Errorf("%q is not printed:\n%s", want, tried.out)
		}
	}
	ended := make(chan printed, 1)
	go func() { ended <- plugin(t, f.with("--resources", "configmaps")...) }()
	suite.WaitUntil(t, "the SyncTarget exists", func() bool {
		return f.admin.Get(t.Context(), types.NamespacedName{Name: "florin"}, &edgev2alpha1.SyncTarget{}) == nil
	})
	f.endNamespace(t)
	if got := <-ended; got.err != nil {
		t.Fatalf("%v\n%s%s", got.err, got.out, got.errs)
	}
	succeed(t, "unregister", "florin", "--target-kubeconfig", f.Kubeconfig, "--yes")
}

// endNamespace finishes the termination of the namespace.
func (f *testFleet) endNamespace(t *testing.T) {
	t.Helper()
	var namespace corev1.Namespace
	if err := f.admin.Get(t.Context(), types.NamespacedName{Name: registration.Namespace}, &namespace); err != nil || namespace.DeletionTimestamp == nil {
		t.Fatalf("the namespace is not being removed: %v", err)
	}
	namespace.Spec.Finalizers = nil
	if err := f.admin.SubResource("finalize").Update(t.Context(), &namespace); err != nil {
		t.Fatal(err)
	}
}

// awaitRefusal waits until all caches of the server know that the namespace is gone. Before that, the server reports
// that it is terminating.
func (f *testFleet) awaitRefusal(t *testing.T) {
	t.Helper()
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: registration.Namespace, Name: "probe"}}
	suite.WaitUntil(t, "the namespace is gone", func() bool {
		return apierrors.IsNotFound(f.admin.Create(t.Context(), probe.DeepCopy(), client.DryRunAll))
	})
}

// remakes tests that the namespace ends between the check and the first create in it.
func (f *testFleet) remakes(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: registration.Namespace}}
	if err := f.admin.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	created := 0
	inventory, err := registration.InventoryID(t.Context(), f.admin)
	if err != nil {
		t.Fatal(err)
	}
	target := &registration.Target{
		Identity: registration.Identity{SyncTarget: "florin", Inventory: inventory},
		Client: interceptor.NewClient(f.admin, interceptor.Funcs{
			Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if created++; created == 1 {
					if err := to.Delete(ctx, namespace); err != nil {
						return err
					}
					f.endNamespace(t)
					f.awaitRefusal(t)
				}
				return to.Create(ctx, object, options...)
			},
		}),
	}
	if err := target.Ensure(t.Context(), nil, rbac.Options{}); err != nil {
		t.Fatal(err)
	}
	if f.account(t) == "" {
		t.Error("the identity has no ServiceAccount")
	}
	if err := target.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	// The namespace is empty, so it terminates. Other tests need it gone.
	f.endNamespace(t)
	f.awaitRefusal(t)
}
