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

package apiresourceschema_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// connect creates the SyncTarget florin and connects it.
func (w *testEnv) connect(t testing.TB, registry *targets.Registry) {
	syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: florin}}
	// The API server serves the kind a moment after its CRD was created.
	suite.Eventually(t, func(g Gomega) { g.Expect(w.hosting.Create(t.Context(), syncTarget)).To(Succeed()) })
	w.florin = syncTarget.UID
	connection := connections.Connect(t, registry, syncTarget.UID, suite.ReadFile(t, w.Targets[florin].Kubeconfig), kcp.Limits{})
	suite.WaitUntil(t, "the target is up", connection.Health.IsUp)
}

// installations are the CRDs to install that a replica has found.
type installations struct{ crd.Store }

// installed returns the CRD to install for a PublishedResource, or nil.
func (i *installations) installed(name string) *crd.Installation {
	for _, one := range i.All() {
		if one.PublishedResource == name {
			return &one
		}
	}
	return nil
}

// The only inventory workspace; its SyncTargets are in the hosting cluster.
const (
	inventoryCluster = "2lofxgqp6hq5v8rn"
	inventoryPath    = "root:org:inventory"
)

type fakeInventories struct{ client client.Client }

func (i fakeInventories) GetCluster(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	if name != inventoryCluster {
		return nil, fmt.Errorf("cluster %s: %w", name, multicluster.ErrClusterNotFound)
	}
	return fakeInventory{client: i.client}, nil
}

type fakeInventory struct {
	cluster.Cluster
	client client.Client
}

func (i fakeInventory) GetClient() client.Client { return i.client }

// resolvePath returns the logical cluster of the inventory workspace, which is the only one.
func resolvePath(_ context.Context, path logicalcluster.Path) (logicalcluster.Name, error) {
	switch path.String() {
	case inventoryPath, inventoryCluster:
		return inventoryCluster, nil
	default:
		return "", kcp.ErrNoWorkspace
	}
}

// publish creates a PublishedResource, and deletes it when the test ends.
func (w *testEnv) publish(t *testing.T, name, spec string) {
	t.Helper()
	resource := &synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: name}}
	resource.Spec = fixtures.Decode[synchubv1alpha1.PublishedResourceSpec](t, spec)
	if err := w.hosting.Create(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.hosting.Delete(context.Background(), resource) })
}

// get returns a PublishedResource.
func (w *testEnv) get(g Gomega, t *testing.T, name string) *synchubv1alpha1.PublishedResource {
	t.Helper()
	resource := &synchubv1alpha1.PublishedResource{}
	g.Expect(w.hosting.Get(t.Context(), types.NamespacedName{Name: name}, resource)).To(Succeed())
	return resource
}

// setHub writes status.hub of a PublishedResource.
func (w *testEnv) setHub(t *testing.T, name string, hub *synchubv1alpha1.HubReference) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		resource := w.get(g, t, name)
		resource.Status.Hub = hub
		g.Expect(w.hosting.Status().Update(t.Context(), resource)).To(Succeed())
	})
}

// becomes waits until the condition SchemaReady has a reason and a part of a message, and returns the schema's name.
func (w *testEnv) becomes(t *testing.T, name, reason, part string) (schema string) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		resource := w.get(g, t, name)
		condition := meta.FindStatusCondition(resource.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason + ": " + condition.Message).To(And(HavePrefix(reason+": "), ContainSubstring(part)))
		g.Expect(condition.ObservedGeneration).To(Equal(resource.Generation))
		schema = resource.Status.SchemaName
	})
	return schema
}

// changes waits until the schema's name differs from before.
func (w *testEnv) changes(t *testing.T, name, before string) (schema string) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		schema = w.get(g, t, name).Status.SchemaName
		g.Expect(schema).NotTo(BeElementOf(before, ""))
	})
	return schema
}

// schemaNamed returns a schema of the provider workspace.
func (w *testEnv) schemaNamed(t *testing.T, name string) *apisv1alpha1.APIResourceSchema {
	t.Helper()
	schema := &apisv1alpha1.APIResourceSchema{}
	if err := w.provider.Get(t.Context(), types.NamespacedName{Name: name}, schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// hasEvent waits for an event on a PublishedResource.
func (w *testEnv) hasEvent(t *testing.T, name, reason string, parts ...string) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		var all eventsv1.EventList
		g.Expect(w.hosting.List(t.Context(), &all, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
		g.Expect(slices.ContainsFunc(all.Items, func(event eventsv1.Event) bool {
			return event.Regarding.Kind == "PublishedResource" && event.Regarding.Name == name && event.Reason == reason &&
				!slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(event.Note, part) })
		})).To(BeTrue(), "%s %v", reason, parts)
	})
}

// apply applies a manifest to a cluster.
func (w *testEnv) apply(t *testing.T, cluster, manifest string) {
	t.Helper()
	suite.Apply(t, w.Targets[cluster].Config, manifest)
}
