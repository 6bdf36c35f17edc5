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

package selection

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func many(count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	return names
}

// manyNames selects objects by their names.
func manyNames(count int) edgev2alpha1.SyncerConfigSpec {
	return edgev2alpha1.SyncerConfigSpec{NamespacedObjects: []edgev2alpha1.NamespaceScopeDownsyncObjects{{
		GroupResource:      edgev2alpha1.GroupResource{Resource: "secrets"},
		ObjectsByNamespace: []edgev2alpha1.NamespaceAndNames{{Namespace: "a", Names: many(count)}},
	}}}
}

// largeConfigs are configs with large matchers, by the part that is large.
func largeConfigs() map[string]*edgev2alpha1.SyncerConfig {
	const count = 20_000
	byNamespace, entries, selectors, scopes := &edgev2alpha1.SyncerConfig{}, &edgev2alpha1.SyncerConfig{}, &edgev2alpha1.SyncerConfig{}, &edgev2alpha1.SyncerConfig{}
	names, values, upsync := &edgev2alpha1.SyncerConfig{}, &edgev2alpha1.SyncerConfig{}, &edgev2alpha1.SyncerConfig{}
	names.Spec = manyNames(count)
	byNamespace.Spec.NamespaceScope.Namespaces = many(count)
	byNamespace.Spec.NamespaceScope.Resources = []edgev2alpha1.NamespaceScopeDownsyncResource{{GroupResource: edgev2alpha1.GroupResource{Resource: "secrets"}}, {GroupResource: edgev2alpha1.GroupResource{Resource: "configmaps"}}}
	var each []edgev2alpha1.NamespaceAndNames
	for i := range count {
		each = append(each, edgev2alpha1.NamespaceAndNames{Namespace: fmt.Sprintf("n%d", i), Names: []string{"a"}})
		resource := edgev2alpha1.GroupResource{Resource: fmt.Sprintf("r%d", i)}
		entries.Spec.ClusterScope = append(entries.Spec.ClusterScope, edgev2alpha1.ClusterScopeDownsyncResource{GroupResource: resource, Objects: []string{"a"}})
		selectors.Spec.ClusterScope = append(selectors.Spec.ClusterScope, edgev2alpha1.ClusterScopeDownsyncResource{
			GroupResource: edgev2alpha1.GroupResource{Resource: "namespaces"}, Objects: []string{All},
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b", "c": "d"}},
		})
	}
	scopes.Spec.NamespacedObjects = []edgev2alpha1.NamespaceScopeDownsyncObjects{{GroupResource: edgev2alpha1.GroupResource{Resource: "secrets"}, ObjectsByNamespace: each}}
	values.Spec.ClusterScope = []edgev2alpha1.ClusterScopeDownsyncResource{{
		GroupResource: edgev2alpha1.GroupResource{Resource: "namespaces"}, Objects: []string{All},
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: many(20 * count)}}},
	}}
	upsync.Spec.Upsync = []edgev2alpha1.UpsyncSet{{Resources: many(100), Namespaces: many(count), Names: []string{"a"}}}
	return map[string]*edgev2alpha1.SyncerConfig{
		"names": names, "namespaces": byNamespace, "entries": entries, "selectors": selectors, "scopes": scopes, "values": values, "upsync": upsync,
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // it fits
}

func TestSizeOfMatcher(t *testing.T) {
	for name, config := range largeConfigs() {
		before := heap()
		matcher := Compile([]*edgev2alpha1.SyncerConfig{config}, nil)
		used := heap() - before
		t.Logf("%s: %d bytes, estimated %d", name, used, matcher.Size())
		if matcher.Size() < used/2 || matcher.Size() > 3*used {
			t.Errorf("%s: the estimate of %d bytes is %d", name, used, matcher.Size())
		}
		runtime.KeepAlive(config)
		runtime.KeepAlive(matcher)
	}
}

func TestALargeMatcherLeavesTheYoungestConfigsOut(t *testing.T) {
	var configs []*edgev2alpha1.SyncerConfig
	for i := range 10 {
		config := &edgev2alpha1.SyncerConfig{Spec: manyNames(1000)}
		config.Name, config.CreationTimestamp = fmt.Sprint(i), metav1.NewTime(time.Unix(int64(i), 0))
		configs = append(configs, config)
	}
	one := Compile(configs[:1], nil).Size()
	matcher := CompileWithin(3*one+1, configs, nil)
	if !matcher.IsPartial() || !matcher.HasConfig(SyncerConfigID("3")) || matcher.HasConfig(SyncerConfigID("4")) {
		t.Errorf("partial: %v, %d configs are in force", matcher.IsPartial(), len(matcher.configs))
	}
	if all := CompileWithin(11*one, configs, nil); all.IsPartial() || !all.HasConfig(SyncerConfigID("9")) {
		t.Error("a config within the limit is left out")
	}
}
