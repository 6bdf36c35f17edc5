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
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
)

// candidate is one way in which a config can select: every entry of every config, spelled out.
type candidate struct {
	config                 string
	orphan, status, frozen bool
	group, version         string
	resource, kind         string
	clusterScoped          bool
	namespaces, names      []string
	labels, annotations    map[string]string
}

// spellOut lists what the configs say, one by one and without any index.
func spellOut(syncerConfigs []*edgev2alpha1.SyncerConfig, edgeSyncConfigs []*edgev2alpha1.EdgeSyncConfig) []candidate {
	var all []candidate
	for _, config := range syncerConfigs {
		spec := config.Spec
		base := candidate{
			config: "SyncerConfig/" + config.Name,
			orphan: spec.DeletionPolicy == "Orphan",
			status: ptr.Deref(spec.StatusReturn, true),
			frozen: spec.Suspend,
		}
		add := func(of edgev2alpha1.GroupResource, version string, clusterScoped bool, namespaces, names []string, selector *metav1.LabelSelector, annotations map[string]string) {
			one := base
			one.group, one.resource, one.version, one.clusterScoped = of.Group, of.Resource, version, clusterScoped
			one.namespaces, one.names, one.annotations = namespaces, names, annotations
			if selector != nil {
				one.labels = selector.MatchLabels
			}
			all = append(all, one)
		}
		for _, entry := range spec.NamespaceScope.Resources {
			add(entry.GroupResource, entry.APIVersion, false, spec.NamespaceScope.Namespaces, []string{"*"}, entry.LabelSelector, entry.Annotations)
		}
		for _, entry := range spec.NamespacedObjects {
			for _, objects := range entry.ObjectsByNamespace {
				add(entry.GroupResource, entry.APIVersion, false, []string{objects.Namespace}, objects.Names, entry.LabelSelector, entry.Annotations)
			}
		}
		for _, entry := range spec.ClusterScope {
			add(entry.GroupResource, entry.APIVersion, true, nil, entry.Objects, entry.LabelSelector, entry.Annotations)
		}
	}
	for _, config := range edgeSyncConfigs {
		for _, entry := range config.Spec.DownSyncedResources {
			all = append(all, candidate{
				config: "EdgeSyncConfig/" + config.Name, status: true, group: entry.Group, version: entry.Version, kind: entry.Kind,
				clusterScoped: entry.Namespace == "", namespaces: []string{entry.Namespace}, names: []string{entry.Name},
			})
		}
	}
	return all
}

func (c candidate) selects(object selection.Object) bool {
	return c.speaksOf(object) && c.isIn(object.Namespace) &&
		(slices.Contains(c.names, object.Name) || slices.Contains(c.names, "*") && !selection.IsSystem(object)) &&
		within(c.labels, object.Labels) && within(c.annotations, object.Annotations)
}

func (c candidate) speaksOf(object selection.Object) bool {
	ofResource := c.resource != "" && (c.resource == "*" || c.resource == object.Resource.Resource)
	ofKind := c.kind != "" && (c.kind == "*" || c.kind == object.Kind)
	return c.group == object.Resource.Group && (ofResource || ofKind) && (c.version == "" || c.version == object.Resource.Version)
}

func (c candidate) isIn(namespace string) bool {
	if c.clusterScoped || namespace == "" {
		return c.clusterScoped && namespace == ""
	}
	return slices.Contains(c.namespaces, "*") || slices.Contains(c.namespaces, namespace)
}

func within(some, all map[string]string) bool {
	for key, value := range some {
		if actual, ok := all[key]; !ok || actual != value {
			return false
		}
	}
	return true
}

// naive answers what Match must.
func naive(all []candidate, object selection.Object) (selection.Selection, bool) {
	selecting := map[string]bool{}
	policy, status, frozen := ownership.PolicyDelete, false, true
	for _, candidate := range all {
		if !candidate.selects(object) {
			continue
		}
		selecting[candidate.config] = true
		if candidate.orphan {
			policy = ownership.PolicyOrphan
		}
		status = status || candidate.status
		frozen = frozen && candidate.frozen
	}
	if len(selecting) == 0 {
		return selection.Selection{}, false
	}
	return selection.Selection{Policy: policy, StatusReturn: status, Suspended: frozen, Configs: slices.Sorted(maps.Keys(selecting))}, true
}
