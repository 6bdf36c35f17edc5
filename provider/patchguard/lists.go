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

package patchguard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mergedLists are lists that strategic merge patches merge, by the Go types of Kubernetes: the field, and the key of its items.
type mergedLists map[string]string

var (
	// podLists are in a PodSpec.
	podLists = mergedLists{
		"containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name", "imagePullSecrets": "name",
		"hostAliases": "ip", "topologySpreadConstraints": "topologyKey", "schedulingGates": "name", "resourceClaims": "name",
	}
	// containerLists are in a container.
	containerLists = mergedLists{"env": "name", "ports": "containerPort", "volumeMounts": "mountPath", "volumeDevices": "devicePath"}
	// serviceLists are in the spec of a Service.
	serviceLists = mergedLists{"ports": "port"}
)

// cel returns a CEL map of the lists.
func (l mergedLists) cel() string {
	entries := make([]string, 0, len(l))
	for _, field := range slices.Sorted(maps.Keys(l)) {
		entries = append(entries, fmt.Sprintf("'%s': '%s'", field, l[field]))
	}
	return "{" + strings.Join(entries, ", ") + "}"
}
