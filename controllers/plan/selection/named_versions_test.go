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
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// Of several entries that name a version for a resource, the entry of the oldest config comes first.
func TestNamedVersions(t *testing.T) {
	const all = "namespaces: ['*'], resources: "
	down := func(entries string) string { return "{namespaceScope: {" + all + "[" + entries + "]}}" }
	for name, test := range map[string]struct {
		// The second is the older one.
		younger, older, edge string
		want                 string
	}{
		"none":                  {younger: down("{group: shop, resource: lamps, apiVersion: ''}")},
		"another resource":      {younger: down("{group: shop, resource: bulbs, apiVersion: v1}, {group: store, resource: lamps, apiVersion: v1}")},
		"all resources":         {younger: down("{group: shop, resource: '*', apiVersion: v1}"), edge: "{downSyncedResources: [{group: shop, version: v1, kind: '*', namespace: '*', name: '*'}]}"},
		"one":                   {younger: down("{group: shop, resource: lamps, apiVersion: v1}"), want: "v1 younger spec.namespaceScope.resources[0]"},
		"the older":             {younger: down("{group: shop, resource: lamps, apiVersion: v1}"), older: down("{group: shop, resource: lamps, apiVersion: v2}"), want: "v2 older spec.namespaceScope.resources[0]; v1 younger spec.namespaceScope.resources[0]"},
		"the first of one":      {younger: down("{group: shop, resource: lamps, apiVersion: v2}, {group: shop, resource: lamps, apiVersion: v1}"), want: "v2 younger spec.namespaceScope.resources[0]; v1 younger spec.namespaceScope.resources[1]"},
		"one that is idle":      {younger: "{namespaceScope: {resources: [{group: shop, resource: lamps, apiVersion: v1}]}}"},
		"one in several places": {younger: "{namespacedObjects: [{group: shop, resource: lamps, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x]}, {namespace: b, names: [y]}]}]}", want: "v1 younger spec.namespacedObjects[0]"},
		"by kind":               {edge: "{downSyncedResources: [{group: shop, version: v1, kind: Lamp, namespace: '*', name: '*'}]}", want: "v1 edge spec.downSyncedResources[0]"},
		"upsync":                {edge: "{upSyncedResources: [{group: light, version: v1, kind: Light, namespace: '*', name: '*'}, {group: shop, version: v2, kind: Lamp, namespace: '*', name: '*'}]}", want: "v1 edge spec.upSyncedResources[0]"},
		"downsync first":        {edge: "{upSyncedResources: [{group: light, version: v1, kind: Light, namespace: a, name: b}], downSyncedResources: [{group: shop, version: v2, kind: Lamp, namespace: a, name: c}]}", want: "v2 edge spec.downSyncedResources[0]; v1 edge spec.upSyncedResources[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			var syncerConfigs []*edgev2alpha1.SyncerConfig
			for age, spec := range []string{test.older, test.younger} {
				if spec != "" {
					config := syncerConfig(t, []string{"older", "younger"}[age], spec)
					config.CreationTimestamp = metav1.Unix(int64(age)*3600, 0)
					syncerConfigs = append(syncerConfigs, config)
				}
			}
			var edges []*edgev2alpha1.EdgeSyncConfig
			if test.edge != "" {
				edges = append(edges, edgeSyncConfig(t, "edge", test.edge))
			}
			var got []string
			for _, named := range selection.Compile(syncerConfigs, edges).NamedVersions(
				selection.API{GroupResource: schema.GroupResource{Group: "shop", Resource: "lamps"}, Kind: "Lamp"},
				selection.API{GroupResource: schema.GroupResource{Group: "light", Resource: "lights"}, Kind: "Light"},
			) {
				_, config, _ := strings.Cut(named.Config, "/")
				got = append(got, fmt.Sprintf("%s %s %s", named.Version, config, named.Field))
			}
			if got := strings.Join(got, "; "); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}
