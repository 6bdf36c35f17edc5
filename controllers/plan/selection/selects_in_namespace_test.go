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
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// All versions of a resource have the same objects: an entry that names any of them selects them.
func TestVersions(t *testing.T) {
	selecting := func(version string) *selection.Matcher {
		return selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "c", `
namespaceScope: {namespaces: [a], resources: [{group: example.com, resource: widgets, apiVersion: "`+version+`"}]}
upsync: [{apiGroup: example.com, resources: [widgets], namespaces: [a], names: ["*"]}]`)}, nil)
	}
	for name, test := range map[string]struct {
		version, asked string
		others         []string
		want           bool
	}{
		"no version":                    {"", "v1", nil, true},
		"the one that is synced":        {"v1", "v1", nil, true},
		"another":                       {"v2", "v1", nil, false},
		"another that is served":        {"v2", "v1", []string{"v1", "v2"}, true},
		"one of many":                   {"v3", "v1", []string{"v1", "v2", "v3"}, true},
		"the synced one, not listed":    {"v1", "v1", []string{"v2"}, true},
		"one that is not served":        {"v4", "v1", []string{"v1", "v2"}, false},
		"no version, several served":    {"", "v1", []string{"v1", "v2"}, true},
		"the beginning of one is none":  {"v1", "v1beta1", []string{"v1alpha1"}, false},
		"an empty version is not asked": {"v2", "v1", []string{""}, false},
	} {
		widget := selection.Object{Resource: schema.GroupVersionResource{Group: "example.com", Version: test.asked, Resource: "widgets"}, Kind: "Widget", Namespace: "a", Name: "x", Versions: test.others}
		if _, ok := selecting(test.version).Match(widget); ok != test.want {
			t.Errorf("%s: selected %v, want %v", name, ok, test.want)
		}
	}
}

// A resource with several versions is selected if it is selected in one of them, and suspended if all matching entries are.
func TestVersionsOfAnything(t *testing.T) {
	selected := 0
	for seed := range uint64(3000) {
		g := seeded(seed)
		matcher := selection.Compile(g.configs())
		for range 5 {
			object := g.object()
			object.Resource.Version = g.pick("v1", "v2", "v3")
			served := object
			served.Versions = g.list("v1", "v2", "v3")
			var configs []string
			frozen, free := false, false
			for _, version := range append(slices.Clone(served.Versions), object.Resource.Version) {
				object.Resource.Version = version
				if one, ok := matcher.Match(object); ok {
					configs = append(configs, one.Configs...)
				}
				if matcher.IsSuspended(object) {
					frozen = true
				} else if concerns(matcher, object) {
					free = true
				}
			}
			slices.Sort(configs)
			got, ok := matcher.Match(served)
			if matcher.HasUnresolved() {
				continue
			}
			if want := slices.Compact(configs); ok != (len(want) > 0) || !slices.Equal(got.Configs, want) {
				t.Fatalf("seed %d: %+v is selected by %v, want %v", seed, served, got.Configs, want)
			}
			if want := frozen && !free; matcher.IsSuspended(served) != want {
				t.Fatalf("seed %d: %+v is frozen: %v, want %v", seed, served, !want, want)
			}
			if ok {
				selected++
			}
		}
	}
	if selected < 500 {
		t.Errorf("only %d objects were selected", selected)
	}
}

// concerns reports whether an entry that is not suspended can select objects of this name, with any labels.
func concerns(matcher *selection.Matcher, object selection.Object) bool {
	values := []string{"", "x"}
	for choice := range 16 {
		object.Labels = selection.MetadataMap{"k": values[choice&1], "l": values[choice>>1&1]}
		object.Annotations = selection.MetadataMap{"k": values[choice>>2&1], "l": values[choice>>3&1]}
		if got, ok := matcher.Match(object); ok && !got.Suspended {
			return true
		}
	}
	return false
}

func TestSelectsInNamespace(t *testing.T) {
	var none *selection.Matcher
	for name, test := range map[string]struct {
		matcher *selection.Matcher
		reached []string
	}{
		"no configs":                           {none, nil},
		"a config of nothing":                  {selection.Compile(nil, nil), nil},
		"downsync from a namespace":            {compiled(t, "namespaceScope: {namespaces: [a], resources: [{group: '', resource: configmaps}]}"), []string{"a"}},
		"only some objects of it":              {compiled(t, "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: b, names: [x]}]}]"), []string{"b"}},
		"all namespaces":                       {compiled(t, "namespaceScope: {namespaces: ['*'], resources: [{group: '', resource: configmaps}]}"), []string{"a", "b", "default"}},
		"all, and one of Kubernetes'":          {compiled(t, "namespaceScope: {namespaces: ['*', kube-public], resources: [{group: '', resource: configmaps}]}"), []string{"a", "b", "default", "kube-public"}},
		"suspended":                            {compiled(t, "suspend: true\nnamespaceScope: {namespaces: [a], resources: [{group: '', resource: configmaps}]}"), []string{"a"}},
		"no resources":                         {compiled(t, "namespaceScope: {namespaces: [a]}"), nil},
		"no names":                             {compiled(t, "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: b}]}]"), nil},
		"an empty name":                        {compiled(t, "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: b, names: ['']}]}]"), nil},
		"upsync":                               {compiled(t, "upsync: [{apiGroup: '', resources: [configmaps], namespaces: [a, '*'], names: ['*']}]"), nil},
		"what is in no namespace":              {compiled(t, "clusterScope: [{group: '', resource: namespaces, objects: ['*', a]}]"), nil},
		"an entry that cannot be understood":   {compiled(t, "namespaceScope: {namespaces: [a], resources: [{group: '', resource: configmaps, labelSelector: {matchExpressions: [{key: a, operator: Odd}]}}]}"), []string{"a"}},
		"a subresource":                        {compiled(t, "namespaceScope: {namespaces: [a], resources: [{group: '', resource: pods/exec}]}"), nil},
		"by the older form":                    {selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{edgeSyncConfig(t, "e", "downSyncedResources: [{kind: ConfigMap, namespace: a, name: x}]")}), []string{"a"}},
		"by the older form, in no namespace":   {selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{edgeSyncConfig(t, "e", "downSyncedResources: [{kind: Namespace, name: a}]")}), nil},
		"upsync by an EdgeSyncConfig":          {selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{edgeSyncConfig(t, "e", "upSyncedResources: [{kind: ConfigMap, namespace: a, name: x}]")}), nil},
		"namespaces of two entries, all in it": {compiled(t, "namespaceScope: {namespaces: [a], resources: [{group: '', resource: configmaps}]}\nnamespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: b, names: ['*']}]}]"), []string{"a", "b"}},
	} {
		for _, namespace := range []string{"", "a", "b", "default", "kube-system", "kube-public"} {
			if got, want := test.matcher.SelectsInNamespace(namespace), slices.Contains(test.reached, namespace); got != want {
				t.Errorf("%s: %q is reached: %v, want %v", name, namespace, got, want)
			}
		}
	}
}

func compiled(t *testing.T, spec string) *selection.Matcher {
	t.Helper()
	return selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "c", spec)}, nil)
}

// A namespace is selected if and only if an entry selects objects in it.
func TestSelectsInNamespaceOfAnything(t *testing.T) {
	count := map[bool]int{}
	for seed := range uint64(3000) {
		syncerConfigs, edgeSyncConfigs := seeded(seed).configs()
		matcher := selection.Compile(syncerConfigs, edgeSyncConfigs)
		all := modelRules(syncerConfigs, edgeSyncConfigs)
		for _, namespace := range []string{"", "a", "b", "c", "kube-system", "kube-public"} {
			want := slices.ContainsFunc(all, func(one modelRule) bool {
				named := slices.ContainsFunc(one.names, func(name string) bool { return name != "" })
				if one.up || one.scope == clusterScoped || namespace == "" || !named || one.resource == "" && one.kind == "" {
					return false
				}
				return slices.Contains(one.namespaces, namespace) || slices.Contains(one.namespaces, "*") && !strings.HasPrefix(namespace, "kube-")
			})
			count[want]++
			if got := matcher.SelectsInNamespace(namespace); got != want {
				t.Fatalf("seed %d: %q is reached: %v, want %v by %+v", seed, namespace, got, want, all)
			}
		}
	}
	if count[true] < 1000 || count[false] < 1000 {
		t.Errorf("tried %v", count)
	}
}

// "All objects" are those that are neither Kubernetes' own nor in its namespaces: the objects that a wildcard selects.
func TestIsUserObject(t *testing.T) {
	for reference, want := range map[string]bool{
		"configmaps a/x": true, "configmaps kube-system/x": false, "configmaps a/kube-root-ca.crt": false, "configmaps kube-public/x": false,
		"namespaces a": true, "namespaces default": false, "namespaces kube-system": false, "secrets default/x": true,
		"serviceaccounts a/default": false, "serviceaccounts a/x": true, "services default/kubernetes": false, "clusterroles view": true,
		"clusterroles system:node": false, "nodes a": true, "deployments kube-flannel/x": false,
		// A config for all namespaces includes the cluster's health.
		"events kube-system/x": true, "leases kube-node-lease/x": true,
	} {
		object := object(reference)
		if got := selection.IsUserObject(object); got != want {
			t.Errorf("%s: %v, want %v", reference, got, want)
		}
		// For namespaced objects, "*" for all namespaces and names has the same result.
		if object.Namespace == "" {
			continue
		}
		everything := selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "c", "namespaceScope: {namespaces: ['*'], resources: [{group: '"+object.Resource.Group+"', resource: "+object.Resource.Resource+"}]}")}, nil)
		if _, ok := everything.Match(object); ok != want {
			t.Errorf("%s: selected by a wildcard: %v, want %v", reference, ok, want)
		}
	}
}
