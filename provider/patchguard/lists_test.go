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
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
)

// unguarded are lists that no policy needs to protect: kcp serves the kind itself, by its Go type, or a node's kubelet and a
// status write it.
var unguarded = []string{
	"/ServiceAccount.secrets", "/ComponentStatus.conditions", "/Node.spec.podCIDRs", "admissionregistration.k8s.io/", "storage.k8s.io/CSINode",
	"scheduling.k8s.io/", "StatefulSet.spec.volumeClaimTemplates[].status.conditions",
}

// Each list that clients merge by the Go types of Kubernetes is one of the policy.
func TestAllMergedListsAreGuarded(t *testing.T) {
	for kind, goType := range scheme.Scheme.AllKnownTypes() {
		for path, key := range mergedListsOf(goType, nil) {
			if strings.Contains(path, ".metadata.") || strings.HasPrefix(path, ".metadata") || strings.HasPrefix(path, ".status") || strings.HasPrefix(path, ".items") {
				continue
			}
			name := kind.Group + "/" + kind.Kind + path
			if slices.ContainsFunc(unguarded, func(part string) bool { return strings.Contains(name, part) }) {
				continue
			}
			field := path[strings.LastIndex(path, ".")+1:]
			lists := podLists
			switch {
			case strings.Count(path, "[]") == 1:
				lists = containerLists
			case kind.Kind == "Service":
				lists = serviceLists
			}
			if lists[field] != key {
				t.Errorf("%s is merged by %s, and the policy does not guard it", name, key)
			}
		}
	}
}

// mergedListsOf returns the paths of the lists in a Go type that strategic merge patches merge, with their keys.
func mergedListsOf(goType reflect.Type, within []reflect.Type) map[string]string {
	prefix := ""
	for goType.Kind() == reflect.Pointer || goType.Kind() == reflect.Slice {
		if goType.Kind() == reflect.Slice {
			prefix += "[]"
		}
		goType = goType.Elem()
	}
	if goType.Kind() != reflect.Struct || slices.Contains(within, goType) {
		return nil
	}
	found := map[string]string{}
	for field := range goType.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" {
			name = "." + name
		}
		if strategy := field.Tag.Get("patchStrategy"); strings.HasPrefix(strategy, "merge") {
			found[prefix+name] = field.Tag.Get("patchMergeKey")
		}
		for path, key := range mergedListsOf(field.Type, append(slices.Clip(within), goType)) {
			found[prefix+name+path] = key
		}
	}
	return found
}
