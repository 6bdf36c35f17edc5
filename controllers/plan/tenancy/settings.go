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

package tenancy

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// Settings determine how workload workspaces share a cluster. The zero value lets them share its namespaces.
type Settings struct {
	Naming Naming
	// NamespaceLabels are labels of each namespace of a workspace.
	NamespaceLabels map[string]string
	// ClusterScoped are the cluster-scoped resources that workspaces may place.
	ClusterScoped []edgev2alpha1.GroupResource
}

// SettingsOf returns the settings of a cluster.
func SettingsOf(tenancy *edgev2alpha1.Tenancy) Settings {
	naming := NamingOf(tenancy)
	if naming.IsShared() {
		return Settings{}
	}
	return Settings{naming, tenancy.NamespaceLabels, tenancy.ClusterScoped}
}

// AllowsClusterScoped reports whether workspaces may place the objects of a cluster-scoped resource.
func (s Settings) AllowsClusterScoped(resource schema.GroupResource) bool {
	return s.Naming.IsShared() || slices.ContainsFunc(s.ClusterScoped, func(allowed edgev2alpha1.GroupResource) bool {
		return allowed.Group == resource.Group && (allowed.Resource == edgev2alpha1.Wildcard || allowed.Resource == resource.Resource)
	})
}

// Labels returns the labels of a workspace's namespace on the cluster: its own ones, except those that only the cluster's
// administrator may set, and the labels of the settings. It returns nil if the workspaces share the namespaces.
func (s Settings) Labels(own map[string]string) map[string]string {
	if s.Naming.IsShared() {
		return nil
	}
	labels := map[string]string{}
	for key, value := range own {
		if !isReserved(key) {
			labels[key] = value
		}
	}
	maps.Copy(labels, s.NamespaceLabels)
	return labels
}

// Annotations returns the annotations of a workspace's namespace on the cluster, except those that only the cluster's administrator
// may set.
func (s Settings) Annotations(own map[string]string) map[string]string {
	if s.Naming.IsShared() {
		return nil
	}
	annotations := map[string]string{}
	for key, value := range own {
		if !isReserved(key) {
			annotations[key] = value
		}
	}
	return annotations
}

// reservedDomains are the domains of labels and annotations that make Kubernetes, or a distribution, treat a namespace in another
// way: Pod Security, node selectors, security contexts.
var reservedDomains = []string{"kubernetes.io", "k8s.io", "openshift.io"}

// isReserved reports whether only the cluster's administrator may set a label or annotation of a namespace.
func isReserved(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	return found && slices.ContainsFunc(reservedDomains, func(domain string) bool {
		return prefix == domain || strings.HasSuffix(prefix, "."+domain)
	})
}
