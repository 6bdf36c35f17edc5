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

package selection_test

import (
	"fmt"
	"math/rand/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// source makes the choices of a generator: random numbers, or the bytes of a fuzzer.
type source interface{ IntN(int) int }

type generator struct{ source }

func seeded(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // the same objects in every run
}

func (g generator) pick(names ...string) string { return names[g.IntN(len(names))] }

func (g generator) list(names ...string) []string {
	var result []string
	for range g.IntN(5) {
		result = append(result, g.pick(names...))
	}
	return result
}

func (g generator) group() string { return g.pick("", "", "", "example.com") }

func (g generator) resourceName() string {
	return g.pick("configmaps", "configmaps", "namespaces", "secrets", "serviceaccounts", "*", "*")
}

func (g generator) resource() edgev2alpha1.GroupResource {
	return edgev2alpha1.GroupResource{Group: g.group(), Resource: g.resourceName()}
}

func (g generator) version() string { return g.pick("", "v1", "v1", "v1", "v2") }

func (g generator) name() string {
	return g.pick("a", "b", "kube-root-ca.crt", "default", "kube-system", "*")
}

func (g generator) names() []string { return g.list("a", "b", "kube-root-ca.crt", "default", "*") }

func (g generator) namespace() string { return g.pick("a", "b", "kube-system", "*") }

func (g generator) selector() *metav1.LabelSelector {
	if g.IntN(4) > 0 {
		return nil
	}
	return &metav1.LabelSelector{MatchLabels: g.entries()}
}

// annotations returns the annotations that an entry requires: mostly none.
func (g generator) annotations() map[string]string {
	if g.IntN(4) > 0 {
		return nil
	}
	return g.entries()
}

func (g generator) entries() map[string]string {
	result := map[string]string{}
	for range g.IntN(3) {
		result[g.pick("k", "l")] = g.pick("", "x")
	}
	return result
}

func (g generator) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(int64(g.IntN(3)), 0)}
}

func (g generator) syncerConfig(name string) *edgev2alpha1.SyncerConfig {
	config := &edgev2alpha1.SyncerConfig{ObjectMeta: g.meta(name)}
	config.Spec.DeletionPolicy = edgev2alpha1.DeletionPolicy(g.pick("", "Delete", "Orphan"))
	config.Spec.StatusReturn = []*bool{nil, new(true), new(false)}[g.IntN(3)]
	config.Spec.Suspend = g.IntN(2) == 0
	config.Spec.NamespaceScope.Namespaces = g.list("a", "b", "kube-system", "*")
	for range g.IntN(3) {
		config.Spec.NamespaceScope.Resources = append(config.Spec.NamespaceScope.Resources, edgev2alpha1.NamespaceScopeDownsyncResource{
			GroupResource: g.resource(), APIVersion: g.version(), LabelSelector: g.selector(), Annotations: g.annotations(),
		})
	}
	for range g.IntN(3) {
		entry := edgev2alpha1.NamespaceScopeDownsyncObjects{GroupResource: g.resource(), APIVersion: g.version(), LabelSelector: g.selector(), Annotations: g.annotations()}
		for range g.IntN(3) {
			entry.ObjectsByNamespace = append(entry.ObjectsByNamespace, edgev2alpha1.NamespaceAndNames{Namespace: g.namespace(), Names: g.names()})
		}
		config.Spec.NamespacedObjects = append(config.Spec.NamespacedObjects, entry)
	}
	for range g.IntN(3) {
		config.Spec.ClusterScope = append(config.Spec.ClusterScope, edgev2alpha1.ClusterScopeDownsyncResource{
			GroupResource: g.resource(), APIVersion: g.version(), Objects: g.names(), LabelSelector: g.selector(), Annotations: g.annotations(),
		})
	}
	for range g.IntN(3) {
		config.Spec.Upsync = append(config.Spec.Upsync, edgev2alpha1.UpsyncSet{
			APIGroup: g.group(), Resources: []string{g.resourceName(), g.resourceName()}[:1+g.IntN(2)],
			Namespaces: g.list("a", "b", "kube-system", "*"), Names: g.names(), LabelSelector: g.selector(), Annotations: g.annotations(),
		})
	}
	config.Spec.Conversions = g.conversions()
	return config
}

func (g generator) edgeSyncConfig(name string) *edgev2alpha1.EdgeSyncConfig {
	config := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: g.meta(name)}
	for range g.IntN(3) {
		config.Spec.DownSyncedResources = append(config.Spec.DownSyncedResources, g.edgeResource())
	}
	for range g.IntN(3) {
		config.Spec.UpSyncedResources = append(config.Spec.UpSyncedResources, g.edgeResource())
	}
	config.Spec.Conversions = g.conversions()
	return config
}

func (g generator) edgeResource() edgev2alpha1.EdgeSyncConfigResource {
	return edgev2alpha1.EdgeSyncConfigResource{
		Kind: g.pick("ConfigMap", "Namespace", "Secret", "*", ""), Group: g.group(), Version: g.version(),
		Namespace: g.pick("", g.namespace()), Name: g.pick("", g.name()),
	}
}

// conversions returns conversions that are mostly valid, and mostly have names.
func (g generator) conversions() (all []edgev2alpha1.Conversion) {
	for range g.IntN(4) {
		side := func() edgev2alpha1.EdgeSyncConfigResource {
			return edgev2alpha1.EdgeSyncConfigResource{Kind: g.pick("ConfigMap", "ConfigMap", "ConfigMap", "Secret", "Namespace"), Group: g.pick("", "", "example.com"), Version: g.pick("", "", "", "v1", "v2")}
		}
		made := edgev2alpha1.Conversion{Upstream: side(), Downstream: side()}
		switch g.IntN(4) {
		case 0:
			made.Upstream.Name, made.Downstream.Name = g.pick("a", "b"), g.pick("a", "b", "*")
		case 1:
			made.Upstream.Namespace, made.Downstream.Name = g.pick("a", "*"), g.pick("", "*")
		case 2:
			made.Upstream.Kind, made.Downstream.Kind = "*", g.pick("*", "*", "*", "Secret")
		}
		all = append(all, made)
	}
	return all
}

func (g generator) configs() (syncerConfigs []*edgev2alpha1.SyncerConfig, edgeSyncConfigs []*edgev2alpha1.EdgeSyncConfig) {
	for number := range g.IntN(4) {
		syncerConfigs = append(syncerConfigs, g.syncerConfig(fmt.Sprint("s", number)))
	}
	for number := range g.IntN(3) {
		edgeSyncConfigs = append(edgeSyncConfigs, g.edgeSyncConfig(fmt.Sprint("e", number)))
	}
	return syncerConfigs, edgeSyncConfigs
}

// entries returns labels or annotations as decoded from JSON.
func entries(all map[string]string) selection.MetadataMap {
	if all == nil {
		return nil
	}
	result := selection.MetadataMap{}
	for key, value := range all {
		result[key] = value
	}
	return result
}

func (g generator) object() selection.Object {
	kind := g.pick("configmaps", "configmaps", "configmaps.example.com", "namespaces", "serviceaccounts", "secrets", "deployments")
	object := object(kind + " " + g.pick("a", "b", "kube-system", "c") + "/" + g.pick("a", "b", "c", "default", "kube-root-ca.crt"))
	if g.IntN(3) == 0 || kind == "namespaces" {
		object.Namespace, object.Name = "", g.pick("a", "b", "c", "default", "kube-system")
	}
	object.Resource.Version = g.pick("v1", "v1", "v1", "v1", "v2")
	object.Labels, object.Annotations = entries(g.entries()), entries(g.entries())
	if kind == "secrets" {
		object.SecretType = g.pick("", "Opaque", "kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token")
	}
	return object
}
