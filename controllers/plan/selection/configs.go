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
	"slices"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// maxConvertedEntries bounds the number of further entries that a config can get by its conversions.
const maxConvertedEntries = 10000

// clusterScoped are the namespaces of cluster-scoped objects.
var clusterScoped = []string{""}

func (m *Matcher) addSyncerConfig(syncerConfig *edgev2alpha1.SyncerConfig) {
	spec := syncerConfig.Spec
	config := m.addConfig(&config{
		id:           SyncerConfigID(syncerConfig.Name),
		policy:       ownership.PolicyDelete,
		statusReturn: spec.StatusReturn == nil || *spec.StatusReturn,
		suspended:    spec.Suspend,
	}, spec.Conversions)
	if spec.DeletionPolicy == edgev2alpha1.DeletionPolicyOrphan {
		config.policy = ownership.PolicyOrphan
	}
	if len(spec.NamespaceScope.Namespaces) > 0 && len(spec.NamespaceScope.Resources) == 0 {
		m.emptyEntries[config.id] = append(m.emptyEntries[config.id], "spec.namespaceScope")
	}
	scope := newNameScope(spec.NamespaceScope.Namespaces, []string{All}, len(spec.NamespaceScope.Resources))
	for i, entry := range spec.NamespaceScope.Resources {
		field := fmt.Sprintf("spec.namespaceScope.resources[%d]", i)
		m.addDownsync(config, Entry{Field: field, Group: entry.Group, Version: entry.APIVersion, Resource: entry.Resource}, entry.SyncSettings,
			m.compileMetadataSelector(config, field, entry.LabelSelector, entry.Annotations), scope)
	}
	for i, entry := range spec.NamespacedObjects {
		scopes := make([]nameScope, 0, len(entry.ObjectsByNamespace))
		for _, objects := range entry.ObjectsByNamespace {
			scopes = append(scopes, newNameScope([]string{objects.Namespace}, objects.Names, 1))
		}
		field := fmt.Sprintf("spec.namespacedObjects[%d]", i)
		m.addDownsync(config, Entry{Field: field, Group: entry.Group, Version: entry.APIVersion, Resource: entry.Resource}, entry.SyncSettings,
			m.compileMetadataSelector(config, field, entry.LabelSelector, entry.Annotations), scopes...)
	}
	for i, entry := range spec.ClusterScope {
		field := fmt.Sprintf("spec.clusterScope[%d]", i)
		m.addDownsync(config, Entry{Field: field, Group: entry.Group, Version: entry.APIVersion, Resource: entry.Resource}, entry.SyncSettings,
			m.compileMetadataSelector(config, field, entry.LabelSelector, entry.Annotations), newNameScope(clusterScoped, entry.Objects, 1))
	}
	for i, set := range spec.Upsync {
		m.addUpsync(config, fmt.Sprintf("spec.upsync[%d]", i), set)
	}
}

// addDownsync adds an entry for downsync with its settings.
func (m *Matcher) addDownsync(config *config, entry Entry, settings edgev2alpha1.SyncSettings, limits *metadataSelector, scopes ...nameScope) {
	compiled, ok := m.compileSettings(config, entry.Field, settings)
	if entry.settings = compiled; !ok {
		limits = nil
	}
	m.addEntry(entry, config, limits, scopes...)
}

func (m *Matcher) addUpsync(config *config, field string, set edgev2alpha1.UpsyncSet) {
	limits := m.compileMetadataSelector(config, field, set.LabelSelector, set.Annotations)
	// The namespaces of a set do not apply to cluster-scoped objects, which are selected by name alone.
	where := newNameScope(slices.Concat(clusterScoped, set.Namespaces), set.Names, len(set.Resources))
	for j, resource := range set.Resources {
		m.addEntry(Entry{Field: fmt.Sprintf("%s.resources[%d]", field, j), Up: true, Group: set.APIGroup, Resource: resource, Namespaces: set.Namespaces, Names: set.Names},
			config, limits, where)
	}
}

func (m *Matcher) addEdgeSyncConfig(edgeSyncConfig *edgev2alpha1.EdgeSyncConfig) {
	spec := edgeSyncConfig.Spec
	config := m.addConfig(&config{id: EdgeSyncConfigID(edgeSyncConfig.Name), policy: ownership.PolicyDelete, statusReturn: true}, spec.Conversions)
	for i, entry := range spec.DownSyncedResources {
		m.addEdgeEntry(config, fmt.Sprintf("spec.downSyncedResources[%d]", i), false, entry)
	}
	if len(config.invalidConversions) > 0 && len(spec.UpSyncedResources) > 0 {
		// The entries may be meant for objects of any kind.
		m.unresolvedUp.everything = true
	}
	room := maxConvertedEntries
	for i, entry := range spec.UpSyncedResources {
		field := fmt.Sprintf("spec.upSyncedResources[%d]", i)
		converted := config.conversions.targetEntries(entry)
		if len(converted)-1 > room {
			m.addProblem(config, field, fmt.Sprintf("with its conversions it stands for more than another %d entries, and a config may have %d", room, maxConvertedEntries))
			m.unresolvedUp.everything = true
			continue
		}
		room -= len(converted) - 1
		for _, image := range converted {
			m.addEdgeEntry(config, field, true, image)
		}
	}
}

func (m *Matcher) addEdgeEntry(config *config, field string, up bool, entry edgev2alpha1.EdgeSyncConfigResource) {
	made := Entry{Field: field, Up: up, Group: entry.Group, Version: entry.Version, Kind: entry.Kind}
	if up {
		made.Namespaces, made.Names = []string{entry.Namespace}, []string{entry.Name}
	}
	m.addEntry(made, config, &metadataSelector{}, newNameScope([]string{entry.Namespace}, []string{entry.Name}, 1))
}
