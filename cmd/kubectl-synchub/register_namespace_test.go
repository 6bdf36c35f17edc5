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
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// namespaceRaces tests registrations and removals while somebody else changes the namespace, or an object in it.
type namespaceRaces struct{ *testFleet }

// outlasts tests a registration while the namespace is terminating. No controller in this cluster finishes the
// termination, so the test does.
func (f namespaceRaces) outlasts(t *testing.T) {
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
func (f namespaceRaces) remakes(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: registration.Namespace}}
	if err := f.admin.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	applied := 0
	target := f.target(t, "florin", interceptor.Funcs{
		Apply: func(ctx context.Context, to client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if applied++; applied == 1 {
				if err := to.Delete(ctx, namespace); err != nil {
					return err
				}
				f.endNamespace(t)
				f.awaitRefusal(t)
			}
			return to.Apply(ctx, object, options...)
		},
	})
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

// leavesLate tests that an object that somebody creates between the check and the write is left alone.
func (f namespaceRaces) leavesLate(t *testing.T) {
	t.Helper()
	var late *rbacv1.ClusterRole
	target := f.target(t, "krone", interceptor.Funcs{
		Apply: func(ctx context.Context, to client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if kind := object.(runtime.Object).GetObjectKind().GroupVersionKind().Kind; kind == "ClusterRole" {
				late = &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.identity(t, "krone").Name()}}
				late.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
				if err := to.Create(ctx, late); err != nil {
					return err
				}
			}
			return to.Apply(ctx, object, options...)
		},
	})
	if err := target.Ensure(t.Context(), nil, rbac.Options{}); !apierrors.IsConflict(err) {
		t.Errorf("want a conflict, got %v", err)
	}
	var now rbacv1.ClusterRole
	if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(late), &now); err != nil || now.ResourceVersion != late.ResourceVersion {
		t.Errorf("it was changed: %v, %v", now.Rules, err)
	}
	for _, err := range []error{f.admin.Delete(t.Context(), &now), target.Remove(t.Context())} {
		if err != nil {
			t.Error(err)
		}
	}
	f.endNamespace(t)
	f.awaitRefusal(t)
}

// identity returns the identity of a SyncTarget on the cluster.
func (f *testFleet) identity(t *testing.T, syncTarget string) registration.Identity {
	t.Helper()
	inventory, err := registration.InventoryID(t.Context(), f.admin)
	if err != nil {
		t.Fatal(err)
	}
	return registration.Identity{SyncTarget: syncTarget, Inventory: inventory}
}

// target returns the identity of a SyncTarget on the cluster, with a client that calls the functions.
func (f namespaceRaces) target(t *testing.T, syncTarget string, intercept interceptor.Funcs) *registration.Target {
	t.Helper()
	return &registration.Target{Identity: f.identity(t, syncTarget), Client: interceptor.NewClient(f.admin, intercept)}
}

// keepsNamespace tests that a removal does not delete the namespace of an identity that was created after the removal had found the
// namespace empty.
func (f namespaceRaces) keepsNamespace(t *testing.T) {
	t.Helper()
	other := f.target(t, "crown", interceptor.Funcs{})
	deletions := 0
	removed := f.target(t, "florin", interceptor.Funcs{
		Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if object.GetName() == registration.Namespace {
				if deletions++; deletions == 1 {
					if err := other.Ensure(ctx, nil, rbac.Options{}); err != nil {
						return err
					}
				}
			}
			return to.Delete(ctx, object, options...)
		},
	})
	for _, err := range []error{removed.Ensure(t.Context(), nil, rbac.Options{}), removed.Remove(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if deletions != 1 {
		t.Errorf("the namespace was to be deleted %d times", deletions)
	}
	var namespace corev1.Namespace
	if err := f.admin.Get(t.Context(), types.NamespacedName{Name: registration.Namespace}, &namespace); err != nil || namespace.DeletionTimestamp != nil {
		t.Errorf("the namespace of the other identity is deleted: %v", err)
	}
	if err := other.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	f.endNamespace(t)
	f.awaitRefusal(t)
}

// beginsAgain tests that the namespace is deleted just after the identity's ServiceAccount was created in it.
func (f namespaceRaces) beginsAgain(t *testing.T) {
	t.Helper()
	patches := 0
	target := f.target(t, "florin", interceptor.Funcs{
		Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if object.GetName() == registration.Namespace {
				if patches++; patches == 1 {
					if err := to.Delete(ctx, object.DeepCopyObject().(client.Object)); err != nil {
						return err
					}
					// The patch meets a namespace that is terminating. The deletion ends while the registration waits for that.
					err := to.Patch(ctx, object, patch, options...)
					f.endNamespace(t)
					f.awaitRefusal(t)
					return err
				}
			}
			return to.Patch(ctx, object, patch, options...)
		},
	})
	if err := target.Ensure(t.Context(), nil, rbac.Options{}); err != nil {
		t.Fatal(err)
	}
	var namespace corev1.Namespace
	if err := f.admin.Get(t.Context(), types.NamespacedName{Name: registration.Namespace}, &namespace); err != nil || namespace.DeletionTimestamp != nil || patches == 0 {
		t.Errorf("after %d patches the identity has no namespace: %v", patches, err)
	}
	if err := target.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	f.endNamespace(t)
	f.awaitRefusal(t)
}

// needsNoPatch tests that an administrator who may not change namespaces can register a cluster.
func (f namespaceRaces) needsNoPatch(t *testing.T) {
	t.Helper()
	refused := 0
	target := f.target(t, "florin", interceptor.Funcs{
		Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if object.GetName() == registration.Namespace {
				refused++
				return apierrors.NewForbidden(corev1.Resource("namespaces"), registration.Namespace, nil)
			}
			return to.Patch(ctx, object, patch, options...)
		},
	})
	for _, err := range []error{target.Ensure(t.Context(), nil, rbac.Options{}), target.Remove(t.Context())} {
		if err != nil {
			t.Error(err)
		}
	}
	if refused != 1 {
		t.Errorf("the namespace was to be changed %d times", refused)
	}
	f.endNamespace(t)
	f.awaitRefusal(t)
}
