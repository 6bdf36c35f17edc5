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

package targets

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// A target is restored from a backup while the hub cannot reach it. Its resourceVersion passes the former one before the hub
// reaches it again, so the watches continue. Objects that were created after the backup must leave the caches, and objects
// that were deleted after it must come back.
func TestCachesFollowARestoredTarget(t *testing.T) {
	tier.Thorough(t)
	g := NewWithT(t)
	target := suite.Start(t, func(ctx context.Context, all servers.Options) (*servers.Target, error) {
		return servers.StartTarget(ctx, all, "restored", servers.TargetOptions{})
	})
	suite.Apply(t, target.Config, definitions)
	namespace := newNamespace(t, target)
	client := administrator(t, target).Resource(widgets).Namespace(namespace)
	suite.Eventually(t, func(g Gomega) { create(t, g, client, "old") })
	snapshot, err := target.TakeSnapshot(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	before, err := client.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	remove := func(g Gomega) { g.Expect(client.Delete(t.Context(), "old", metav1.DeleteOptions{})).To(Succeed()) }
	for name, change := range map[string]func(g Gomega){
		"an object was created": func(g Gomega) { create(t, g, client, "younger") },
		"an object was deleted": remove,
		"an object was recreated": func(g Gomega) {
			remove(g)
			create(t, g, client, "old")
		},
		"an object was updated": func(g Gomega) {
			_, err := client.Patch(t.Context(), "old", types.MergePatchType, []byte(`{"metadata": {"labels": {"changed": "yes"}}}`), metav1.PatchOptions{})
			g.Expect(err).NotTo(HaveOccurred())
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			proxy := newFlakyProxy(t, target)
			connection, err := newRegistry(t.Context(), t, clock.RealClock{}).Connect(syncTarget, kubeconfigAt(t, target, proxy.URL()), kcp.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			cached := connection.Watches.NewCache(widgets, CacheOptions{Namespaced: true, Handler: (&eventRecorder{}).handler()})
			runInTest(t, cached.Run)
			waitForCacheSync(t, cached)
			change(g)
			now, err := client.List(t.Context(), metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			suite.Eventually(t, func(g Gomega) { g.Expect(versionsIn(cached, namespace)).To(Equal(versionsOf(now))) })

			proxy.Disconnect()
			g.Expect(target.Restore(t.Context(), snapshot)).To(Succeed())
			passVersion(t, g, target, now.GetResourceVersion())
			proxy.Reconnect(t)
			suite.Eventually(t, func(g Gomega) { g.Expect(versionsIn(cached, namespace)).To(Equal(versionsOf(before))) })
		})
	}
}

func create(t *testing.T, g Gomega, client dynamic.ResourceInterface, name string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": name}}}
	_, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// passVersion writes until the target has passed a resourceVersion, and nothing that the hub reads.
func passVersion(t *testing.T, g Gomega, target *servers.Target, version string) {
	t.Helper()
	settings := administrator(t, target).Resource(configMaps).Namespace("default")
	suite.Apply(t, target.Config, "{apiVersion: v1, kind: ConfigMap, metadata: {name: busy, namespace: default}}")
	for i := range 10_000 {
		written, err := settings.Patch(t.Context(), "busy", types.MergePatchType, fmt.Appendf(nil, `{"data": {"n": "%d"}}`, i), metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		if i > 20 && isNewer(written.GetResourceVersion(), version) {
			return
		}
	}
	t.Fatalf("the target does not pass the version %s", version)
}

// versionsIn and versionsOf return the UIDs and resourceVersions of objects by their names.
func versionsIn(cached *Cache, namespace string) map[string]string {
	versions := map[string]string{}
	for _, object := range cached.List() {
		if object.GetNamespace() == namespace {
			versions[object.GetName()] = string(object.GetUID()) + "@" + object.GetResourceVersion()
		}
	}
	return versions
}

func versionsOf(list *unstructured.UnstructuredList) map[string]string {
	versions := map[string]string{}
	for i := range list.Items {
		versions[list.Items[i].GetName()] = string(list.Items[i].GetUID()) + "@" + list.Items[i].GetResourceVersion()
	}
	return versions
}
