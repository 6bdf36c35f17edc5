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

package objectsync

import (
	"fmt"
	"net"
	"testing"

	mcpcache "github.com/kcp-dev/multicluster-provider/pkg/cache"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// BenchmarkFootprintOfRuntimeClusters measures the memory of a target and its watches if each target were a cluster of
// controller-runtime, restricted to the hub's label and stripped, with its own connections (see
// docs/design/0020-targets-as-a-provider.md).
func BenchmarkFootprintOfRuntimeClusters(b *testing.B) {
	kinds := []string{"ConfigMap", "Secret", "Service", "ServiceAccount", "Pod", "ReplicationController", "LimitRange", "ResourceQuota", "PodTemplate", "PersistentVolumeClaim"}
	for _, size := range []struct{ targets, resources int }{{60, 1}, {12, 10}} {
		b.Run(fmt.Sprintf("targets=%d/resources=%d", size.targets, size.resources), func(b *testing.B) {
			selector, err := labels.Parse(Selector(testOwner))
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				h := newBench(b)
				base := measureFootprint(b, "runtime-base")
				clusters := make([]cluster.Cluster, size.targets)
				for i := range clusters {
					config := rest.CopyConfig(suite.Target(b).Config)
					// The dialer keeps client-go from sharing connections between targets.
					config.Dial = (&net.Dialer{}).DialContext
					clusters[i], err = cluster.New(config, func(o *cluster.Options) {
						o.Scheme = runtime.NewScheme()
						o.Cache.DefaultLabelSelector = selector
						o.Cache.DefaultTransform = func(object any) (any, error) {
							cached, _ := newObserver(plan.Resource{}).cachedCopyOf(object.(*unstructured.Unstructured), verifiedMark{})
							return cached, nil
						}
					})
					if err != nil {
						b.Fatal(err)
					}
					h.run(clusters[i].Start)
				}
				connected := measureFootprint(b, "runtime-connected")
				for _, one := range clusters {
					for _, kind := range kinds[:size.resources] {
						object := &unstructured.Unstructured{}
						object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
						informer, err := one.GetCache().GetInformer(h.ctx, object)
						if err != nil {
							b.Fatal(err)
						}
						suite.WaitUntil(b, "it is synced", func() bool { return informer.HasSynced() })
					}
				}
				watching := measureFootprint(b, "runtime-watching")
				connected.report(b, base, size.targets, "target")
				watching.report(b, connected, size.targets*size.resources, "watch")
			}
		})
	}
}

// BenchmarkFootprintOfWildcardObjects measures the memory of a ConfigMap of 2 KB in the wildcard cache of kcp's
// multicluster-provider. Compare it with "above" in BenchmarkFootprintOfObjects.
func BenchmarkFootprintOfWildcardObjects(b *testing.B) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	const count = 5000
	for range b.N {
		h := newBench(b, configMaps)
		for i := range count {
			h.put(configMaps, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: object-%d, namespace: weighed, labels: {app: florin, tier: back}}, data: {settings: %q, level: info}}", i, text(1600)))
		}
		base := measureFootprint(b, "wildcard-base")
		mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{configMaps.GroupVersion()})
		mapper.Add(configMaps.GroupVersion().WithKind("ConfigMap"), meta.RESTScopeNamespace)
		config := &rest.Config{Host: h.server.URL + "/view", TLSClientConfig: rest.TLSClientConfig{
			CAData: suite.CertificateOf(h.server),
		}}
		all, err := mcpcache.NewWildcardCache(config, cache.Options{Mapper: mapper, Scheme: runtime.NewScheme(), DefaultTransform: cache.TransformStripManagedFields()})
		if err != nil {
			b.Fatal(err)
		}
		h.run(all.Start)
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(configMaps.GroupVersion().WithKind("ConfigMap"))
		informer, _, _, err := all.GetSharedInformer(object)
		if err != nil {
			b.Fatal(err)
		}
		suite.WaitUntil(b, "all are there", func() bool { return len(informer.GetStore().ListKeys()) == count })
		measureFootprint(b, "wildcard-seen").report(b, base, count, "above")
	}
}
