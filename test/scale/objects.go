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

package scale

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	namespace = "fleet"
	// objectLabel selects the objects of the test: a workspace also has ConfigMaps of its own in each namespace.
	objectLabel = "fleet=scale"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// namespaced and clusterScoped are the resources that a workspace serves and the hub can sync. Objects are selected only of
// ConfigMaps; all other resources are synced without objects.
var (
	namespaced    = []string{"configmaps", "secrets", "serviceaccounts", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "resourcequotas.denatured.synchub.dev"}
	clusterScoped = []string{"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io", "customresourcedefinitions.apiextensions.k8s.io", "namespaces"}
)

// MostResources is the number of resources that can be synced.
var MostResources = len(namespaced) + len(clusterScoped)

// selection returns a config for the objects of the test, with so many resources.
func selection(resources int) string {
	inNamespaces := min(resources, len(namespaced))
	return `
apiVersion: v1
kind: Namespace
metadata: {name: ` + namespace + `}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: fleet}
spec:
  namespaceScope:
    namespaces: [` + namespace + `]
    resources:` + selected(namespaced[:inNamespaces]) + `
  clusterScope:` + selected(clusterScoped[:resources-inNamespaces]) + "\n"
}

func selected(resources []string) string {
	if len(resources) == 0 {
		return " []"
	}
	var all strings.Builder
	for _, resource := range resources {
		name, group, _ := strings.Cut(resource, ".")
		fmt.Fprintf(&all, "\n    - {group: %q, resource: %s, apiVersion: v1, labelSelector: {matchLabels: {fleet: scale}}}", group, name)
	}
	return all.String()
}

func configMap(name string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s, labels: {fleet: scale}}
data: {name: %[1]s}
`, name, namespace)
}
