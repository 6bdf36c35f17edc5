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
	"testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

func TestMatchUp(t *testing.T) {
	for name, test := range map[string]struct {
		syncer, edge string
		yes, no      []string
	}{
		"nothing at all": {no: []string{"configmaps a/x", "nodes a"}},
		"downsync selects nothing for upsync": {
			syncer: "{namespaceScope: {namespaces: ['*'], resources: [{group: '', resource: '*', apiVersion: v1}]}, clusterScope: [{group: '', resource: '*', apiVersion: v1, objects: ['*', a]}]}",
			edge:   "{downSyncedResources: [{kind: ConfigMap, namespace: a, name: x}]}",
			no:     []string{"configmaps a/x", "namespaces a", "nodes a"},
		},
		"upsync": {
			syncer: "{upsync: [{apiGroup: wgpolicyk8s.io, resources: [policyreports, clusterpolicyreports], namespaces: [policy], names: ['*']}]}",
			yes:    []string{"policyreports policy/x", "clusterpolicyreports x"},
			no:     []string{"policyreports a/x", "namespaces policy", "configmaps policy/x"},
		},
		"upsync, by name": {
			syncer: "{upsync: [{apiGroup: '', resources: [configmaps, nodes], namespaces: [a, b], names: [x, w]}]}",
			yes:    []string{"configmaps a/x", "configmaps b/w", "nodes w"},
			no:     []string{"configmaps c/x", "configmaps a/z", "nodes z", "secrets a/x", "configmaps.example.com a/x", "namespaces a"},
		},
		"upsync, a name in all namespaces": {
			syncer: "{upsync: [{apiGroup: '', resources: [configmaps], namespaces: ['*'], names: [x]}]}",
			yes:    []string{"configmaps a/x", "configmaps b/x"},
			no:     []string{"configmaps a/y", "configmaps kube-system/x"},
		},
		"upsync, many names in many namespaces": {
			syncer: "{upsync: [{apiGroup: '', resources: [configmaps, secrets, nodes], namespaces: [a, b, c, d, e, f, kube-system], names: [q, r, s, t, u, v, w, x, kube-root-ca.crt]}]}",
			yes:    []string{"configmaps a/x", "secrets f/q", "nodes s", "configmaps kube-system/x", "configmaps kube-system/kube-root-ca.crt"},
			no:     []string{"configmaps g/x", "configmaps a/z", "nodes z"},
		},
		"upsync, cluster-scoped without namespaces": {
			syncer: "{upsync: [{apiGroup: '', resources: [nodes, configmaps], names: ['*']}]}",
			yes:    []string{"nodes x"},
			no:     []string{"configmaps a/x"},
		},
		"upsync, all namespaces": {
			syncer: "{upsync: [{apiGroup: '', resources: ['*'], namespaces: ['*'], names: ['*']}]}",
			yes:    []string{"configmaps a/x", "secrets b/x", "nodes x", "events kube-system/x"},
			no: []string{
				"namespaces a", "namespaces default", "configmaps kube-system/x", "configmaps a/kube-root-ca.crt", "serviceaccounts a/default",
				"services default/kubernetes", "deployments a/x",
			},
		},
		"upsync, everything but one name of all namespaces": {
			syncer: "{upsync: [{apiGroup: '', resources: ['*'], namespaces: ['*'], names: [a, x]}]}",
			yes:    []string{"configmaps a/x", "nodes a"},
			no:     []string{"namespaces a", "configmaps a/y"},
		},
		"upsync, namespaces by their resource": {
			syncer: "{upsync: [{apiGroup: '', resources: ['*', namespaces], names: ['*', kube-public]}]}",
			yes:    []string{"namespaces a", "namespaces kube-public", "nodes a"},
			no:     []string{"namespaces default", "namespaces kube-system"},
		},
		"upsync, a resource called namespaces elsewhere": {
			syncer: "{upsync: [{apiGroup: example.com, resources: ['*'], namespaces: ['*'], names: ['*']}]}",
			yes:    []string{"configmaps.example.com a/x"},
			no:     []string{"namespaces a", "configmaps a/x"},
		},
		"upsync, a namespace of the system": {
			syncer: "{upsync: [{apiGroup: '', resources: [configmaps, services], namespaces: [kube-system], names: ['*']}]}",
			yes:    []string{"configmaps kube-system/x", "services kube-system/kube-dns"},
			no:     []string{"configmaps kube-system/kube-root-ca.crt", "configmaps kube-public/x"},
		},
		"upsync, events and leases of every namespace": {
			syncer: "{upsync: [{apiGroup: events.k8s.io, resources: ['*'], namespaces: ['*'], names: ['*']}, {apiGroup: coordination.k8s.io, resources: [leases], namespaces: ['*'], names: ['*']}]}",
			yes:    []string{"events.events.k8s.io kube-system/x", "leases kube-node-lease/x", "leases a/x"},
			no:     []string{"events kube-system/x", "configmaps a/x"},
		},
		"upsync, empty lists": {
			syncer: "{upsync: [{apiGroup: '', resources: [], namespaces: ['*'], names: ['*']}, {apiGroup: '', resources: [configmaps, nodes], namespaces: ['*']}, {apiGroup: '', resources: [configmaps], namespaces: [], names: ['*']}]}",
			no:     []string{"configmaps a/x", "nodes x"},
		},
		"upsync, a subresource": {
			syncer: "{upsync: [{apiGroup: '', resources: [configmaps/status], namespaces: ['*'], names: ['*']}]}",
			no:     []string{"configmaps a/x"},
		},
		"upSyncedResources": {
			edge: "{upSyncedResources: [{kind: ConfigMap, namespace: a, name: x}, {kind: PolicyReport, group: wgpolicyk8s.io, namespace: '*', name: '*'}, {kind: Node, name: '*'}, {kind: Deployment, group: apps, version: v2, namespace: a, name: x}]}",
			yes:  []string{"configmaps a/x", "policyreports a/x", "nodes x"},
			no:   []string{"configmaps a/y", "policyreports kube-system/x", "deployments a/x", "configmaps.example.com a/x"},
		},
		"upSyncedResources, all kinds of a group": {
			edge: "{upSyncedResources: [{kind: '*', namespace: '*', name: '*'}, {kind: '*', name: '*'}]}",
			yes:  []string{"configmaps a/x", "nodes x"},
			no:   []string{"namespaces a", "deployments a/x"},
		},
		"upSyncedResources, namespaces by their kind": {
			edge: "{upSyncedResources: [{kind: Namespace, name: '*'}]}",
			yes:  []string{"namespaces a"},
			no:   []string{"namespaces default", "nodes a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			matcher := compileBoth(t, test.syncer, test.edge)
			for _, reference := range test.yes {
				object := object(reference)
				if selected, ok := matcher.MatchUp(object); !ok || len(selected.Configs) == 0 {
					t.Errorf("%s is not selected", reference)
				}
				if !matcher.SelectsUp(object.Resource.GroupResource(), object.Kind) {
					t.Errorf("the resource of %s is selected by nothing", reference)
				}
				if scope := matcher.UpScope(object.Resource.GroupResource(), object.Kind, object.Namespace != ""); !covers(scope, object) {
					t.Errorf("%s is not looked for: %+v", reference, scope)
				}
			}
			for _, reference := range test.no {
				if selected, ok := matcher.MatchUp(object(reference)); ok {
					t.Errorf("%s is selected: %+v", reference, selected)
				}
			}
		})
	}
}

// compileBoth compiles one config of each kind, unless it is empty.
func compileBoth(t *testing.T, syncer, edge string) *selection.Matcher {
	t.Helper()
	var edges []*edgev2alpha1.EdgeSyncConfig
	if edge != "" {
		edges = append(edges, edgeSyncConfig(t, "edge", edge))
	}
	return selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "syncer", syncer)}, edges)
}

func TestWildcardsNeverSelectSubresources(t *testing.T) {
	matcher := compileBoth(t, "{namespaceScope: {namespaces: ['*'], resources: [{group: apps, resource: '*', apiVersion: v1}]}, upsync: [{apiGroup: apps, resources: ['*'], namespaces: ['*'], names: ['*']}]}", "")
	object := object("deployments a/x")
	object.Resource.Resource = "deployments/status"
	if _, ok := matcher.Match(object); ok || matcher.SelectsDown(object.Resource.GroupResource(), "") {
		t.Error("a subresource is downsynced")
	}
	if _, ok := matcher.MatchUp(object); ok || matcher.SelectsUp(object.Resource.GroupResource(), "") {
		t.Error("a subresource is upsynced")
	}
}

// Policies and suspension apply to upsync as to downsync.
func TestUpUnion(t *testing.T) {
	const upsync = "upsync: [{apiGroup: '', resources: [nodes], names: ['*']}]"
	matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{
		syncerConfig(t, "orphan", "{deletionPolicy: Orphan, suspend: true, statusReturn: false, "+upsync+"}"),
		syncerConfig(t, "plain", "{"+upsync+"}"),
	}, nil)
	got, ok := matcher.MatchUp(object("nodes a"))
	want := selection.Selection{Policy: "Orphan", StatusReturn: true, Configs: []string{"SyncerConfig/orphan", "SyncerConfig/plain"}}
	if !ok || !got.Equal(want) || len(got.Configs) != 2 {
		t.Errorf("want %+v, got %+v, %v", want, got, ok)
	}
	frozen, ok := selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "frozen", "{suspend: true, "+upsync+"}")}, nil).MatchUp(object("nodes a"))
	if !ok || !frozen.Suspended {
		t.Errorf("want a suspended selection, got %+v, %v", frozen, ok)
	}
}

// A config of ordinary size must not compile to an arbitrarily large matcher.
func TestUpsyncOfManyNamesIsBounded(t *testing.T) {
	syncer := syncerConfig(t, "many", "{upsync: [{apiGroup: '', resources: "+list("configmaps", 100)+", namespaces: "+list("a", 100)+", names: "+list("x", 100)+"}]}")
	configs := []*edgev2alpha1.SyncerConfig{syncer}
	if allocations := testing.AllocsPerRun(1, func() { selection.Compile(configs, nil) }); allocations > 5000 {
		t.Errorf("300 lines took %v allocations", allocations)
	}
	matcher := selection.Compile(configs, nil)
	for reference, want := range map[string]bool{"configmaps a99/x99": true, "configmaps a100/x99": false, "configmaps a99/x100": false} {
		object := object(reference)
		object.Resource.Resource = "configmaps99"
		if _, got := matcher.MatchUp(object); got != want {
			t.Errorf("%s is upsynced: %v, want %v", reference, got, want)
		}
	}
}
