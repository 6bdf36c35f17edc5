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
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// publishing tests registrations that publish the APIs of the target.
type publishing struct{ *testFleet }

// imports tests that register publishes APIs of the target. The cluster is also the hosting cluster.
func (f publishing) imports(t *testing.T) {
	t.Helper()
	f.hosts(t)
	asked := []string{"--hosting-kubeconfig", f.Kubeconfig, "--resources", "deployments.apps,configmaps", "--yes"}
	fail(t, "the target does not serve gizmos.example.com", f.with("--hosting-kubeconfig", f.Kubeconfig, "--resources", "gizmos.example.com,deployments.apps")...)

	shown := succeed(t, f.with(append(asked, "--dry-run=client", "-o", "yaml")...)...)
	for _, part := range []string{"kind: PublishedResource", "source: Schema", "source: Claim", "kind: Deployment", "kind: ClusterRole\n", "name: florin\n"} {
		if !strings.Contains(shown.out, part) {
			t.Errorf("%q is not shown:\n%s", part, shown.out)
		}
	}
	succeed(t, f.with(append(asked, "--dry-run=server")...)...)
	if names := f.published(t); len(names) > 0 {
		t.Errorf("%q were made", names)
	}
	f.advises(t)

	got := succeed(t, f.with(asked...)...)
	if strings.Count(got.out, "publishedresource.synchub.dev/deployments.apps created\n") != 1 || strings.Join(f.published(t), " ") != "configmaps deployments.apps" {
		t.Errorf("there are %q, and it prints\n%s", f.published(t), got.out)
	}
	var made synchubv1alpha1.PublishedResource
	if err := f.admin.Get(t.Context(), types.NamespacedName{Name: "deployments.apps"}, &made); err != nil {
		t.Fatal(err)
	}
	inventory, err := registration.InventoryID(t.Context(), f.admin)
	if err != nil {
		t.Fatal(err)
	}
	if from := made.Spec.API.SchemaFrom; from == nil || from.SyncTarget == nil || from.SyncTarget.Name != "florin" || from.SyncTarget.Cluster != inventory {
		t.Errorf("its schema is from %+v", from)
	}
	again := succeed(t, f.with(asked...)...)
	if !strings.Contains(again.out, "publishedresource.synchub.dev/deployments.apps unchanged\n") || len(f.published(t)) != 2 {
		t.Errorf("there are %q, and it prints\n%s", f.published(t), again.out)
	}
	succeed(t, f.with("--resources", "jobs.batch:up", "--yes")...)
	if granted := succeed(t, f.with("--hosting-kubeconfig", f.Kubeconfig, "--yes")...); !strings.Contains(granted.errs, "PublishedResources of the hosting cluster, and granted before: configmaps,deployments.apps,jobs.batch:up.") {
		t.Errorf("it prints\n%s", granted.errs)
	}
	f.awaits(t)
}

// hosts makes the cluster serve PublishedResources.
func (f *testFleet) hosts(t *testing.T) {
	t.Helper()
	crd := suite.ReadFile(t, "../../apis/schemas/crds/synchub.dev_publishedresources.yaml")
	suite.Apply(t, f.Config, string(crd))
	suite.WaitUntil(t, "the API is served", func() bool {
		return f.admin.List(t.Context(), &synchubv1alpha1.PublishedResourceList{}) == nil
	})
}

func (f publishing) published(t *testing.T) (names []string) {
	t.Helper()
	var list synchubv1alpha1.PublishedResourceList
	if err := f.admin.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// advises tests a registration by a user who may not write in the hosting cluster.
func (f publishing) advises(t *testing.T) {
	t.Helper()
	if err := f.admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nobody"}}); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := f.ServiceAccountKubeconfig(t.Context(), "default", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, map[string]string{"nobody": string(kubeconfig)})[0]
	got := plugin(t, f.with("--hosting-kubeconfig", file, "--resources", "deployments.apps", "--yes")...)
	_, manifest, isShown := strings.Cut(got.errs, "Have this applied there, unless it is published already:\n")
	if got.err == nil || !isShown || !strings.Contains(got.errs, "forbidden") || !strings.Contains(got.out, "clusterrole.rbac.authorization.k8s.io/"+f.name) {
		t.Fatalf("%v\n%s%s", got.err, got.out, got.errs)
	}
	if len(f.published(t)) > 0 {
		t.Error("something was published")
	}
	// The printed manifest applies unchanged.
	suite.Apply(t, f.Config, manifest)
	if err := f.admin.Delete(t.Context(), &synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: "deployments.apps"}}); err != nil {
		t.Errorf("what was printed was not applied: %v", err)
	}
}

// awaits tests that register waits until mailboxes have the APIs.
func (f publishing) awaits(t *testing.T) {
	t.Helper()
	f.report(t, metav1.ConditionTrue, append(registration.ReadyConditions, edgev2alpha1.ConditionReady)...)
	register := []string{"register", "florin", "--target-kubeconfig", f.Kubeconfig, "--hosting-kubeconfig", f.Kubeconfig, "--resources", "jobs.batch", "--yes"}
	fail(t, "the PublishedResource jobs.batch was not ready after 1s: the hub has not reported anything yet", append(register, "--timeout", "1s")...)
	f.saysOfJobs(t, metav1.ConditionFalse)
	fail(t, "was not ready after 1s: Said: so.", append(register, "--timeout", "1s")...)
	f.saysOfJobs(t, metav1.ConditionTrue)
	succeed(t, append(register, "--timeout", "20s")...)

	// Reset the condition for other tests.
	f.report(t, metav1.ConditionUnknown, edgev2alpha1.ConditionReady)
	if err := f.admin.DeleteAllOf(t.Context(), &synchubv1alpha1.PublishedResource{}); err != nil {
		t.Fatal(err)
	}
}

func (f publishing) saysOfJobs(t *testing.T, status metav1.ConditionStatus) {
	t.Helper()
	var made synchubv1alpha1.PublishedResource
	if err := f.admin.Get(t.Context(), types.NamespacedName{Name: "jobs.batch"}, &made); err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(&made.Status.Conditions, metav1.Condition{
		Type: synchubv1alpha1.ConditionReady, Status: status, Reason: "Said", Message: "so.", ObservedGeneration: made.Generation,
	})
	if err := f.admin.Status().Update(t.Context(), &made); err != nil {
		t.Fatal(err)
	}
}
