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
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// syncerConfig decodes the spec of a SyncerConfig.
func syncerConfig(t testing.TB, name, spec string) *edgev2alpha1.SyncerConfig {
	t.Helper()
	config := &edgev2alpha1.SyncerConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	config.Spec = fixtures.Decode[edgev2alpha1.SyncerConfigSpec](t, spec)
	return config
}

func edgeSyncConfig(t testing.TB, name, spec string) *edgev2alpha1.EdgeSyncConfig {
	t.Helper()
	config := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	config.Spec = fixtures.Decode[edgev2alpha1.EdgeSyncConfigSpec](t, spec)
	return config
}

var kinds = map[string]struct {
	group, version, kind string
}{
	"configmaps": {"", "v1", "ConfigMap"}, "secrets": {"", "v1", "Secret"}, "serviceaccounts": {"", "v1", "ServiceAccount"},
	"namespaces": {"", "v1", "Namespace"}, "deployments": {"apps", "v1", "Deployment"}, "clusterroles": {"rbac.authorization.k8s.io", "v1", "ClusterRole"},
	"clusterrolebindings": {"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"},
	"nodes":               {"", "v1", "Node"}, "services": {"", "v1", "Service"}, "endpoints": {"", "v1", "Endpoints"}, "events": {"", "v1", "Event"},
	"events.events.k8s.io": {"events.k8s.io", "v1", "Event"}, "leases": {"coordination.k8s.io", "v1", "Lease"},
	"endpointslices": {"discovery.k8s.io", "v1", "EndpointSlice"}, "roles": {"rbac.authorization.k8s.io", "v1", "Role"},
	"priorityclasses": {"scheduling.k8s.io", "v1", "PriorityClass"},
	"policyreports":   {"wgpolicyk8s.io", "v1alpha2", "PolicyReport"}, "clusterpolicyreports": {"wgpolicyk8s.io", "v1alpha2", "ClusterPolicyReport"},
	// A resource of another group with the name of a core resource.
	"configmaps.example.com": {"example.com", "v1beta1", "ConfigMap"},
}

// object parses "resource namespace/name" or, for a cluster-scoped object, "resource name".
func object(reference string) selection.Object {
	resource, name, _ := strings.Cut(reference, " ")
	namespace := ""
	if before, after, found := strings.Cut(name, "/"); found {
		namespace, name = before, after
	}
	kind := kinds[resource]
	resource, _, _ = strings.Cut(resource, ".")
	return selection.Object{
		Resource:  schema.GroupVersionResource{Group: kind.group, Version: kind.version, Resource: resource},
		Kind:      kind.kind,
		Namespace: namespace,
		Name:      name,
	}
}

func TestMatch(t *testing.T) {
	for name, test := range map[string]struct {
		syncer, edge string
		yes, no      []string
	}{
		"nothing at all": {no: []string{"configmaps a/x", "namespaces a"}},
		"namespaceScope": {
			syncer: "{namespaceScope: {namespaces: [a, b], resources: [{group: '', resource: configmaps, apiVersion: v1}, {group: apps, resource: deployments, apiVersion: v1}]}}",
			yes:    []string{"configmaps a/x", "configmaps b/y", "deployments a/x"},
			no:     []string{"configmaps c/x", "secrets a/x", "configmaps.example.com a/x", "namespaces a", "clusterroles a"},
		},
		"namespaceScope, all namespaces": {
			syncer: "{namespaceScope: {namespaces: ['*'], resources: [{group: '', resource: configmaps, apiVersion: v1}, {group: '', resource: namespaces, apiVersion: v1}]}}",
			yes:    []string{"configmaps a/x", "configmaps b/x", "configmaps default/x"},
			no:     []string{"configmaps kube-system/x", "configmaps a/kube-root-ca.crt", "namespaces a", "configmaps x"},
		},
		"namespaceScope, all resources of a group": {
			syncer: "{namespaceScope: {namespaces: [a], resources: [{group: '', resource: '*', apiVersion: v1}]}}",
			yes:    []string{"configmaps a/x", "secrets a/x"},
			no:     []string{"deployments a/x", "configmaps.example.com a/x", "configmaps b/x", "namespaces a", "serviceaccounts a/default"},
		},
		"namespaceScope, \"*\" and another": {
			syncer: "{namespaceScope: {namespaces: [a, '*'], resources: [{group: '', resource: configmaps, apiVersion: v1}]}}",
			yes:    []string{"configmaps a/x", "configmaps b/x"},
			no:     []string{"configmaps kube-public/x"},
		},
		"namespaceScope without namespaces": {
			syncer: "{namespaceScope: {resources: [{group: '', resource: configmaps, apiVersion: v1}]}}",
			no:     []string{"configmaps a/x", "configmaps x"},
		},
		"namespaceScope without resources": {
			syncer: "{namespaceScope: {namespaces: ['*']}}",
			no:     []string{"configmaps a/x", "namespaces a"},
		},
		"namespaceScope, a namespace of the system": {
			syncer: "{namespaceScope: {namespaces: [kube-system], resources: [{group: '', resource: configmaps, apiVersion: v1}]}}",
			yes:    []string{"configmaps kube-system/x"},
			no:     []string{"configmaps kube-system/kube-root-ca.crt", "configmaps kube-system/extension-apiserver-authentication", "configmaps kube-public/x"},
		},
		"namespaceScope, all namespaces and one of the system": {
			syncer: "{namespaceScope: {namespaces: ['*', kube-system], resources: [{group: '', resource: configmaps, apiVersion: v1}]}}",
			yes:    []string{"configmaps kube-system/x", "configmaps a/x"},
			no:     []string{"configmaps kube-system/kube-root-ca.crt", "configmaps kube-public/x"},
		},
		"namespacedObjects": {
			syncer: "{namespacedObjects: [{group: '', resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x, w]}, {namespace: b, names: [z]}]}]}",
			yes:    []string{"configmaps a/x", "configmaps a/w", "configmaps b/z"},
			no:     []string{"configmaps a/z", "configmaps b/x", "secrets a/x", "configmaps x"},
		},
		"namespacedObjects, all names": {
			syncer: "{namespacedObjects: [{group: '', resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: a, names: ['*']}]}]}",
			yes:    []string{"configmaps a/x"},
			no:     []string{"configmaps b/x", "configmaps a/kube-root-ca.crt"},
		},
		"namespacedObjects, all names and one of the system's": {
			syncer: "{namespacedObjects: [{group: '', resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: a, names: ['*', kube-root-ca.crt]}]}]}",
			yes:    []string{"configmaps a/x", "configmaps a/kube-root-ca.crt"},
			no:     []string{"configmaps b/kube-root-ca.crt"},
		},
		"namespacedObjects, a name in all namespaces": {
			syncer: "{namespacedObjects: [{group: '', resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: '*', names: [x]}]}]}",
			yes:    []string{"configmaps a/x", "configmaps b/x"},
			no:     []string{"configmaps a/y", "configmaps x", "configmaps kube-system/x"},
		},
		"namespacedObjects, a subresource": {
			syncer: "{namespacedObjects: [{group: '', resource: configmaps/status, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x]}]}]}",
			no:     []string{"configmaps a/x"},
		},
		"namespacedObjects, a name of any resource": {
			syncer: "{namespacedObjects: [{group: '', resource: '*', apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x]}]}]}",
			yes:    []string{"configmaps a/x", "secrets a/x"},
			no:     []string{"configmaps a/y", "deployments a/x"},
		},
		"namespacedObjects without names": {
			syncer: "{namespacedObjects: [{group: '', resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: a}, {namespace: '*', names: []}]}]}",
			no:     []string{"configmaps a/x", "configmaps x"},
		},
		"namespacedObjects without namespaces": {
			syncer: "{namespacedObjects: [{group: '', resource: configmaps, apiVersion: v1}]}",
			no:     []string{"configmaps a/x", "configmaps x"},
		},
		"clusterScope": {
			syncer: "{clusterScope: [{group: '', resource: namespaces, apiVersion: v1, objects: [a, b]}, {group: rbac.authorization.k8s.io, resource: clusterroles, apiVersion: v1, objects: [r]}]}",
			yes:    []string{"namespaces a", "namespaces b", "clusterroles r"},
			no:     []string{"namespaces c", "clusterroles a", "namespaces r"},
		},
		"clusterScope, all": {
			syncer: "{clusterScope: [{group: '', resource: namespaces, apiVersion: v1, objects: ['*']}, {group: '', resource: configmaps, apiVersion: v1, objects: ['*']}]}",
			yes:    []string{"namespaces a"},
			no:     []string{"configmaps a/x", "namespaces kube-system", "namespaces kube-node-lease", "namespaces default", "clusterroles r"},
		},
		"clusterScope, all resources of a group": {
			syncer: "{clusterScope: [{group: '', resource: '*', apiVersion: v1, objects: ['*']}]}",
			yes:    []string{"namespaces a"},
			no:     []string{"configmaps a/x", "clusterroles r", "namespaces default"},
		},
		"clusterScope without objects": {
			syncer: "{clusterScope: [{group: '', resource: namespaces, apiVersion: v1}, {group: '', resource: namespaces, apiVersion: v1, objects: []}]}",
			no:     []string{"namespaces a"},
		},
		"system objects by name": {
			syncer: `
clusterScope:
- {group: "", resource: namespaces, apiVersion: v1, objects: [default, kube-system]}
namespacedObjects:
- {group: "", resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [kube-root-ca.crt]}, {namespace: kube-system, names: [x]}]}
- {group: "", resource: serviceaccounts, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [default]}]}
`,
			yes: []string{"namespaces default", "namespaces kube-system", "configmaps a/kube-root-ca.crt", "configmaps kube-system/x", "serviceaccounts a/default"},
			no:  []string{"namespaces kube-public", "configmaps kube-system/y"},
		},
		"what is a system object in core is none elsewhere": {
			syncer: "{namespaceScope: {namespaces: [a], resources: [{group: example.com, resource: configmaps, apiVersion: v1beta1}, {group: '', resource: serviceaccounts, apiVersion: v1}]}}",
			yes:    []string{"configmaps.example.com a/kube-root-ca.crt", "serviceaccounts a/robot"},
			no:     []string{"serviceaccounts a/default"},
		},
		"another version": {
			syncer: "{namespaceScope: {namespaces: ['*'], resources: [{group: '', resource: configmaps, apiVersion: v2}]}, namespacedObjects: [{group: '', resource: configmaps, apiVersion: v1beta1, objectsByNamespace: [{namespace: a, names: [x]}]}]}",
			edge:   "{downSyncedResources: [{kind: ConfigMap, version: v2, namespace: a, name: x}]}",
			no:     []string{"configmaps a/x"},
		},
		"no version": {
			syncer: "{namespaceScope: {namespaces: [a], resources: [{group: '', resource: configmaps, apiVersion: ''}]}}",
			yes:    []string{"configmaps a/x"},
		},
		"EdgeSyncConfig": {
			edge: "{downSyncedResources: [{kind: ConfigMap, version: v1, namespace: a, name: x}, {kind: Deployment, group: apps, namespace: a, name: '*'}, {kind: Namespace, name: a}]}",
			yes:  []string{"configmaps a/x", "deployments a/y", "namespaces a"},
			no:   []string{"configmaps a/y", "configmaps.example.com a/x", "deployments b/y", "namespaces b", "secrets a/x", "configmaps x"},
		},
		"EdgeSyncConfig, all namespaces": {
			edge: "{downSyncedResources: [{kind: ConfigMap, namespace: '*', name: x}, {kind: Secret, namespace: '*', name: '*'}]}",
			yes:  []string{"configmaps a/x", "configmaps b/x", "secrets a/y"},
			no:   []string{"configmaps a/y", "configmaps x", "secrets kube-system/y"},
		},
		"EdgeSyncConfig, all kinds of a group": {
			edge: "{downSyncedResources: [{kind: '*', namespace: a, name: '*'}, {kind: '*', group: rbac.authorization.k8s.io, name: '*'}]}",
			yes:  []string{"configmaps a/x", "secrets a/x", "clusterroles r"},
			no:   []string{"deployments a/x", "namespaces a", "configmaps a/kube-root-ca.crt"},
		},
		"EdgeSyncConfig, all cluster-scoped": {
			edge: "{downSyncedResources: [{kind: Namespace, name: '*'}]}",
			yes:  []string{"namespaces a"},
			no:   []string{"namespaces default", "configmaps a/x"},
		},
		"EdgeSyncConfig, empty fields": {
			edge: "{downSyncedResources: [{namespace: a, name: x}, {kind: ConfigMap, namespace: a}, {kind: Namespace}, {}], upSyncedResources: [{kind: ConfigMap, namespace: a, name: x}]}",
			no:   []string{"configmaps a/x", "namespaces a"},
		},
		"upsync selects nothing for down": {
			syncer: "{upsync: [{apiGroup: '', resources: ['*'], namespaces: ['*'], names: ['*']}]}",
			no:     []string{"configmaps a/x", "namespaces a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var edges []*edgev2alpha1.EdgeSyncConfig
			if test.edge != "" {
				edges = append(edges, edgeSyncConfig(t, "edge", test.edge))
			}
			matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "syncer", test.syncer)}, edges)
			for _, reference := range test.yes {
				object := object(reference)
				if selected, ok := matcher.Match(object); !ok || len(selected.Configs) == 0 {
					t.Errorf("%s is not selected", reference)
				}
				if !matcher.SelectsDown(object.Resource.GroupResource(), object.Kind) {
					t.Errorf("the resource of %s is selected by nothing", reference)
				}
			}
			for _, reference := range test.no {
				if selected, ok := matcher.Match(object(reference)); ok || !reflect.DeepEqual(selected, selection.Selection{}) {
					t.Errorf("%s is selected: %+v", reference, selected)
				}
			}
			active := matcher.HasRules(selection.SyncerConfigID("syncer")) || matcher.HasRules(selection.EdgeSyncConfigID("edge"))
			if len(test.yes) > 0 && !active {
				t.Error("a config that selects objects is reported to select nothing")
			}
		})
	}
}

func TestSecretsOfTheSystem(t *testing.T) {
	all := selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "c", "{namespaceScope: {namespaces: [a], resources: [{group: '', resource: secrets, apiVersion: v1}]}}")}, nil)
	named := selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "c", "{namespacedObjects: [{group: '', resource: secrets, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x]}]}]}")}, nil)
	for secretType, system := range map[string]bool{
		"": false, "Opaque": false, "kubernetes.io/tls": false,
		"kubernetes.io/service-account-token": true, "bootstrap.kubernetes.io/token": true,
	} {
		object := object("secrets a/x")
		object.SecretType = secretType
		if _, ok := all.Match(object); ok == system {
			t.Errorf("type %q: selected by a wildcard: %v", secretType, ok)
		}
		if _, ok := named.Match(object); !ok {
			t.Errorf("type %q: not selected by name", secretType)
		}
	}
}

// A partial matcher selects the same objects. Whether any other object is selected is unknown.
func TestPartial(t *testing.T) {
	whole := selection.Compile([]*edgev2alpha1.SyncerConfig{
		syncerConfig(t, "one", "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: a, names: [x]}]}]"),
	}, nil)
	partial := whole.AsPartial()
	if whole.IsPartial() || !partial.IsPartial() || (*selection.Matcher)(nil).IsPartial() {
		t.Error("a matcher is partial that is not, or not that is")
	}
	if !partial.HasConfig("SyncerConfig/one") || partial.HasConfig("EdgeSyncConfig/one") || (*selection.Matcher)(nil).HasConfig("SyncerConfig/one") {
		t.Error("a matcher has a config that it does not have, or not one that it has")
	}
	if _, ok := partial.Match(object("configmaps a/x")); !ok || partial.IsSuspended(object("configmaps a/x")) {
		t.Error("it does not select what its config selects")
	}
	if _, ok := partial.Match(object("configmaps a/y")); ok || !partial.IsSuspended(object("configmaps a/y")) || whole.IsSuspended(object("configmaps a/y")) {
		t.Error("an object that no known config selects is not unresolved")
	}
}
