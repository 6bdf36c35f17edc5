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

package syncerconfig_test

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/syncerconfig"
)

func TestUnresolved(t *testing.T) {
	published := []sync.Resource{
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"},
		{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespaced: true},
	}
	entry := func(group, version, resource string) edgev2alpha1.SyncerConfigSpec {
		return edgev2alpha1.SyncerConfigSpec{ClusterScope: []edgev2alpha1.ClusterScopeDownsyncResource{{
			GroupResource: edgev2alpha1.GroupResource{Group: group, Resource: resource}, APIVersion: version, Objects: []string{"x"},
		}}}
	}
	older := func(group, version, kind string) edgev2alpha1.EdgeSyncConfigSpec {
		return edgev2alpha1.EdgeSyncConfigSpec{DownSyncedResources: []edgev2alpha1.EdgeSyncConfigResource{{Group: group, Version: version, Kind: kind, Name: "x"}}}
	}
	for name, test := range map[string]struct {
		syncer edgev2alpha1.SyncerConfigSpec
		edge   edgev2alpha1.EdgeSyncConfigSpec
		want   string
	}{
		"published":                          {syncer: entry("", "v1", "configmaps")},
		"published, whatever version":        {syncer: entry("", "", "configmaps")},
		"published, of a group":              {syncer: entry("apps", "v1", "deployments")},
		"another version":                    {syncer: entry("", "v2", "configmaps"), want: "spec.clusterScope[0] (v2 configmaps)"},
		"another version, of a group":        {syncer: entry("apps", "v1beta1", "deployments"), want: "spec.clusterScope[0] (apps/v1beta1 deployments)"},
		"another resource":                   {syncer: entry("", "v1", "secrets"), want: "spec.clusterScope[0] (v1 secrets)"},
		"another resource, whatever version": {syncer: entry("", "", "secrets"), want: "spec.clusterScope[0] (secrets)"},
		"another group":                      {syncer: entry("apps", "v1", "configmaps"), want: "spec.clusterScope[0] (apps/v1 configmaps)"},
		"another group, whatever version":    {syncer: entry("example.com", "", "configmaps"), want: "spec.clusterScope[0] (example.com configmaps)"},
		"a kind is no resource":              {syncer: entry("", "v1", "ConfigMap"), want: "spec.clusterScope[0] (v1 ConfigMap)"},
		"all resources of a group":           {syncer: entry("", "v1", "*")},
		"all resources, whatever version":    {syncer: entry("apps", "", "*")},
		"all resources in another version":   {syncer: entry("apps", "v2", "*"), want: "spec.clusterScope[0] (apps/v2 *)"},
		"all resources of another group":     {syncer: entry("example.com", "v1", "*"), want: "spec.clusterScope[0] (example.com/v1 *)"},
		"a kind":                             {edge: older("", "v1", "ConfigMap")},
		"a kind, whatever version":           {edge: older("apps", "", "Deployment")},
		"another kind":                       {edge: older("", "v1", "Secret"), want: "spec.downSyncedResources[0] (v1 Secret)"},
		"a kind of another group":            {edge: older("apps", "v1", "ConfigMap"), want: "spec.downSyncedResources[0] (apps/v1 ConfigMap)"},
		"a kind in another version":          {edge: older("", "v2", "ConfigMap"), want: "spec.downSyncedResources[0] (v2 ConfigMap)"},
		"a resource is no kind":              {edge: older("", "v1", "configmaps"), want: "spec.downSyncedResources[0] (v1 configmaps)"},
		"all kinds of a group":               {edge: older("apps", "v1", "*")},
		"all kinds of another group":         {edge: older("example.com", "", "*"), want: "spec.downSyncedResources[0] (example.com *)"},
	} {
		t.Run(name, func(t *testing.T) {
			matcher := selection.Compile(
				[]*edgev2alpha1.SyncerConfig{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: test.syncer}},
				[]*edgev2alpha1.EdgeSyncConfig{{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: test.edge}},
			)
			want := map[string][]string{}
			switch {
			case test.want == "":
			case strings.HasPrefix(test.want, "spec.down"):
				want["EdgeSyncConfig/b"] = []string{test.want}
			default:
				want["SyncerConfig/a"] = []string{test.want}
			}
			if got := syncerconfig.Unresolved(matcher, published); !reflect.DeepEqual(got, want) {
				t.Errorf("want %v, got %v", want, got)
			}
		})
	}
}

func TestUnresolvedOfMany(t *testing.T) {
	resource := edgev2alpha1.GroupResource{Group: "example.com", Resource: "widgets"}
	spec := edgev2alpha1.SyncerConfigSpec{
		NamespaceScope:    edgev2alpha1.NamespaceScopeDownsyncs{Namespaces: []string{"*"}, Resources: []edgev2alpha1.NamespaceScopeDownsyncResource{{GroupResource: resource}}},
		NamespacedObjects: []edgev2alpha1.NamespaceScopeDownsyncObjects{{GroupResource: resource}},
		ClusterScope:      []edgev2alpha1.ClusterScopeDownsyncResource{{GroupResource: resource}, {GroupResource: resource}},
	}
	matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: spec},
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: edgev2alpha1.SyncerConfigSpec{}},
	}, nil)
	want := map[string][]string{"SyncerConfig/a": {
		"spec.namespaceScope.resources[0] (example.com widgets)", "spec.namespacedObjects[0] (example.com widgets)",
		"spec.clusterScope[0] (example.com widgets)", "spec.clusterScope[1] (example.com widgets)",
	}}
	if got := syncerconfig.Unresolved(matcher, nil); !reflect.DeepEqual(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
	if got := syncerconfig.Unresolved(nil, nil); len(got) > 0 {
		t.Errorf("without configs: %v", got)
	}
}
