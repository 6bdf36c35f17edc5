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
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

const providerWorkspace = "root:synchub"

// workspaceContent makes a workspace an inventory.
const workspaceContent = `
{apiVersion: v1, kind: Namespace, metadata: {name: default}}
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: synchub}
spec:
  reference: {export: {path: %s, name: %s}}
  permissionClaims:
  - {group: "", resource: secrets, verbs: ["*"], state: Accepted, selector: {matchLabels: {%s: %s}}}
`

// engaged are the workspaces that a provider has found.
type engaged struct {
	provider *Provider
	access   *kcp.ConfigProvider

	lock sync.Mutex
	all  map[multicluster.ClusterName]cluster.Cluster
}

func (e *engaged) Engage(_ context.Context, name multicluster.ClusterName, found cluster.Cluster) error {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.all[name] = found
	return nil
}

func (e *engaged) get(name logicalcluster.Name) cluster.Cluster {
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.all[multicluster.ClusterName(name)]
}

func testScheme(t *testing.T) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apisv1alpha1.AddToScheme, edgev2alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// startProvider runs a provider until the test ends.
func startProvider(t *testing.T, server *servers.KCP, workspace string, scheme *runtime.Scheme) *engaged {
	access := connections.KCP(t, suite.ReadFile(t, server.HubKubeconfig))
	var provider *Provider
	// kcp may know the hub's rights a moment after they were granted.
	suite.Eventually(t, func(g Gomega) {
		var err error
		provider, err = New(Options{KCP: access, Workspace: workspace, Export: synchubv1alpha1.InventoryExport, Scheme: scheme, Log: logr.Discard()})
		g.Expect(err).NotTo(HaveOccurred())
	})
	found := &engaged{provider: provider, access: access, all: map[multicluster.ClusterName]cluster.Cluster{}}
	framework.RunInTest(t, func(ctx context.Context) error { return provider.Start(ctx, found) })
	return found
}

// newInventory creates an inventory workspace, and returns its logical cluster and an administrator's client.
func newInventory(t *testing.T, server *servers.KCP, name, providerWorkspace string, scheme *runtime.Scheme) (logicalcluster.Name, client.Client) {
	g, ctx := NewWithT(t), t.Context()
	made, err := framework.CreateWorkspace(ctx, server.Config, "root", name, "root:universal")
	g.Expect(err).NotTo(HaveOccurred())
	config := server.Workspace("root:" + name)
	manifest := fmt.Sprintf(workspaceContent, providerWorkspace, synchubv1alpha1.InventoryExport, edgev2alpha1.LabelCredential, edgev2alpha1.CredentialKubeconfig)
	// kcp may know the rights in a new workspace a moment later.
	g.Eventually(framework.Apply).WithContext(ctx).WithArguments(config, manifest).Should(Succeed())
	g.Eventually(framework.List).WithContext(ctx).WithArguments(config, edgev2alpha1.GroupVersion.WithResource("synctargets"), "", "").Should(BeEmpty())
	writer, err := client.New(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return logicalcluster.Name(made.Spec.Cluster), writer
}

// readsOf returns how many lists and watches of a resource were sent.
func readsOf(t *testing.T, resource string) (sent float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(requestmetrics.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if strings.HasPrefix(labels["resource"], resource) && (labels["verb"] == "list" || labels["verb"] == "watch") {
				sent += metric.GetCounter().GetValue()
			}
		}
	}
	return sent
}

func TestMain(m *testing.M) { suite.Main(m) }

func TestAgainstKCP(t *testing.T) {
	tier.Thorough(t)
	ctx, server := t.Context(), suite.KCP(t)
	connections.Bootstrap(t, server, providerWorkspace)
	scheme := testScheme(t)
	found := startProvider(t, server, providerWorkspace, scheme)
	provider := found.provider
	greedyName, greedy := newInventory(t, server, "greedy", providerWorkspace, scheme)
	modestName, modest := newInventory(t, server, "modest", providerWorkspace, scheme)

	t.Run("caches only fields that the hub reads", func(t *testing.T) {
		g := NewWithT(t)
		long := strings.Repeat("x", 200<<10)
		for number := range 3 {
			syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("large-", number), Labels: map[string]string{"some": "label"},
				Annotations: map[string]string{"long": long, edgev2alpha1.AnnotationForceRemoval: "true"}, Finalizers: []string{"example.com/mine"},
			}}
			g.Expect(greedy.Create(ctx, syncTarget)).To(Succeed())
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprint("large-", number), Labels: map[string]string{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig},
				Annotations: map[string]string{"long": long, edgev2alpha1.AnnotationAllowedSyncTargets: "large"},
			}, Data: map[string][]byte{"kubeconfig": []byte(strings.Repeat("y", 900<<10))}}
			g.Expect(greedy.Create(ctx, secret)).To(Succeed())
		}
		// The cache is filled before the first use of an object or an informer.
		cached := func() (objects, bytes int64) {
			for _, cache := range provider.endpointCaches() {
				for _, of := range cache.sizes {
					objects, bytes = objects+of.Objects(), bytes+of.Bytes()
				}
			}
			return objects, bytes
		}
		suite.Eventually(t, func(g Gomega) {
			objects, bytes := cached()
			g.Expect(objects).To(BeEquivalentTo(6))
			g.Expect(bytes).To(BeNumerically("<", 10<<10))
		})
		var read edgev2alpha1.SyncTarget
		secret := SecretMetadata()
		suite.Eventually(t, func(g Gomega) {
			cluster := found.get(greedyName)
			g.Expect(cluster).NotTo(BeNil())
			g.Expect(cluster.GetClient().Get(ctx, types.NamespacedName{Name: "large-2"}, &read)).To(Succeed())
			g.Expect(cluster.GetClient().Get(ctx, types.NamespacedName{Namespace: "default", Name: "large-2"}, secret)).To(Succeed())
		})
		g.Expect(read.Annotations).To(HaveLen(2))
		g.Expect(read.Annotations).To(HaveKeyWithValue(edgev2alpha1.AnnotationForceRemoval, "true"))
		g.Expect(read.Labels).To(Equal(map[string]string{"some": "label"}))
		g.Expect(read.ManagedFields).To(BeEmpty())
		g.Expect(logicalcluster.From(&read)).To(Equal(greedyName))
		g.Expect(secret.Annotations).To(HaveLen(2))
		g.Expect(secret.Annotations).To(HaveKeyWithValue(edgev2alpha1.AnnotationAllowedSyncTargets, "large"))

		// A patch of a cached object removes no fields that the cache lacks.
		changed := read.DeepCopy()
		changed.Finalizers = append(changed.Finalizers, "example.com/ours")
		g.Expect(found.get(greedyName).GetClient().Patch(ctx, changed, client.MergeFromWithOptions(&read, client.MergeFromWithOptimisticLock{}))).To(Succeed())
		var stored edgev2alpha1.SyncTarget
		g.Expect(greedy.Get(ctx, types.NamespacedName{Name: "large-2"}, &stored)).To(Succeed())
		g.Expect(stored.Annotations).To(HaveKeyWithValue("long", long))
		g.Expect(stored.Labels).To(HaveKeyWithValue("some", "label"))
		g.Expect(stored.Finalizers).To(ConsistOf("example.com/mine", "example.com/ours"))
	})

	t.Run("holds Locations", func(t *testing.T) {
		g := NewWithT(t)
		spec := edgev2alpha1.LocationSpec{Resource: edgev2alpha1.GroupVersionResource{Version: "v2alpha1", Resource: "synctargets"}}
		g.Expect(modest.Create(ctx, &edgev2alpha1.Location{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{"env": "prod"}}, Spec: spec})).To(Succeed())
		var read edgev2alpha1.LocationList
		suite.Eventually(t, func(g Gomega) {
			g.Expect(found.get(modestName).GetClient().List(ctx, &read)).To(Succeed())
			g.Expect(read.Items).To(HaveExactElements(HaveField("Labels", map[string]string{"env": "prod"})))
		})
		var others edgev2alpha1.LocationList
		g.Expect(found.get(greedyName).GetClient().List(ctx, &others)).To(Succeed())
		g.Expect(others.Items).To(BeEmpty())
		// The cache counts an object a moment after it shows it.
		suite.Eventually(t, func(g Gomega) {
			for _, cache := range provider.endpointCaches() {
				g.Expect(cache.sizes[locations].Objects()).To(BeEquivalentTo(1))
			}
		})
		g.Expect(modest.Delete(ctx, &read.Items[0])).To(Succeed())
	})

	t.Run("shows each workspace its own", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(modest.Create(ctx, &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin"}})).To(Succeed())
		var read edgev2alpha1.SyncTarget
		suite.Eventually(t, func(g Gomega) {
			cluster := found.get(modestName)
			g.Expect(cluster).NotTo(BeNil())
			g.Expect(cluster.GetClient().Get(ctx, types.NamespacedName{Name: "florin"}, &read)).To(Succeed())
		})
		g.Expect(found.get(modestName).GetClient().Get(ctx, types.NamespacedName{Name: "large-2"}, &read)).To(Satisfy(apierrors.IsNotFound))
		g.Expect(found.get(modestName).GetClient().Get(ctx, types.NamespacedName{Namespace: "default", Name: "s"}, &corev1.Secret{})).
			To(MatchError(ContainSubstring("is not cached")))
		seen := make(chan string, 1000)
		informer, err := found.get(modestName).GetCache().GetInformer(ctx, &edgev2alpha1.SyncTarget{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(added any) { seen <- added.(*edgev2alpha1.SyncTarget).Name }})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(seen).Should(Receive(Equal("florin")))
	})

	t.Run("reads the Secrets with kubeconfigs, in pages", func(t *testing.T) {
		g := NewWithT(t)
		const count = secretsPageSize + 5
		for number := range count + 1 {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("small-", number)}, Data: map[string][]byte{"kubeconfig": fmt.Append(nil, number)}}
			if number < count {
				secret.Labels = map[string]string{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig}
			}
			g.Expect(modest.Create(ctx, secret)).To(Succeed())
		}
		modestCluster := found.get(modestName)
		suite.Eventually(t, func(g Gomega) {
			read := map[string]string{}
			for secret, err := range CredentialSecrets(ctx, modestCluster) {
				g.Expect(err).NotTo(HaveOccurred())
				read[secret.Name] = string(secret.Data["kubeconfig"])
			}
			g.Expect(read).To(HaveLen(count))
			g.Expect(read).To(HaveKeyWithValue("small-7", "7"))
		})
		one, err := GetSecret(ctx, modestCluster, types.NamespacedName{Namespace: "default", Name: "small-7"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(one.Data).To(HaveKeyWithValue("kubeconfig", []byte("7")))
		ended, cancel := context.WithCancel(ctx)
		cancel()
		for _, err := range CredentialSecrets(ended, modestCluster) {
			g.Expect(err).To(MatchError(ContainSubstring("cannot list the Secrets")))
		}
		g.Expect(modest.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("default"))).To(Succeed())
	})

	// Otherwise, after a restore of kcp from a backup, the cache keeps objects that kcp has lost.
	t.Run("lists again once watches restart, and follows", func(t *testing.T) {
		g := NewWithT(t)
		before := readsOf(t, "synctargets")
		found.access.Watches.Restart()
		suite.Eventually(t, func(g Gomega) { g.Expect(readsOf(t, "synctargets")).To(BeNumerically(">", before)) })
		g.Expect(modest.Create(ctx, &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "later"}})).To(Succeed())
		suite.Eventually(t, func(g Gomega) {
			var read edgev2alpha1.SyncTargetList
			g.Expect(found.get(modestName).GetClient().List(ctx, &read)).To(Succeed())
			g.Expect(read.Items).To(ConsistOf(HaveField("Name", "florin"), HaveField("Name", "later")))
		})
	})

	// docs/operations.md describes this to operators.
	t.Run("kcp bounds how many there are in a workspace", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(framework.Apply(ctx, server.Workspace("root:modest"), `
apiVersion: v1
kind: ResourceQuota
metadata:
  name: inventory
  namespace: default
  annotations: {experimental.quota.kcp.io/cluster-scoped: "true"}
spec:
  hard: {count/synctargets.edge.kubestellar.io: "20", count/secrets: "20"}
`)).To(Succeed())
		number := 0
		many := func() metav1.ObjectMeta {
			number++
			return metav1.ObjectMeta{Name: fmt.Sprint("many-", number), Namespace: "default"}
		}
		// kcp takes a moment to count.
		g.Eventually(func() error { return modest.Create(ctx, &corev1.Secret{ObjectMeta: many()}) }).
			Should(MatchError(ContainSubstring("exceeded quota")))
		g.Eventually(func() error {
			meta := many()
			meta.Namespace = ""
			return modest.Create(ctx, &edgev2alpha1.SyncTarget{ObjectMeta: meta})
		}).Should(MatchError(ContainSubstring("exceeded quota")))
	})
}
