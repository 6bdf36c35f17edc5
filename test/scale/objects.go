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

	corev1 "k8s.io/api/core/v1"
)

const (
	namespace = "fleet"
	// ours is the label of what the test makes: a workspace has ConfigMaps of its own in each namespace.
	ours = "fleet=scale"

	selection = `
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
    resources:
    - {group: "", resource: configmaps, apiVersion: v1, labelSelector: {matchLabels: {fleet: scale}}}
`
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

func configMap(name string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s, labels: {fleet: scale}}
data: {name: %[1]s}
`, name, namespace)
}
