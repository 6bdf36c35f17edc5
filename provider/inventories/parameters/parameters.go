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

// Package parameters decides which annotations of SyncTargets and Locations are parameters. Users may refer to parameters in
// the objects that they place.
package parameters

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxOne is the maximum size of one parameter, and maxTotal the maximum size of all parameters of an object, keys and values.
const maxOne, maxTotal = 1 << 10, 16 << 10

// Of returns the annotations of a cached SyncTarget or Location that users may refer to by name in the objects that they
// place. These are annotations outside the domains of kcp, kubectl and the hub, of at most 1 KiB each and at most 16 KiB
// together, in alphabetical order.
func Of(object metav1.Object) map[string]string {
	all, size := object.GetAnnotations(), 0
	var found map[string]string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		length := len(key) + len(all[key])
		if !Is(key) || length > maxOne || size+length > maxTotal {
			continue
		}
		if found == nil {
			found = map[string]string{}
		}
		found[key], size = all[key], size+length
	}
	return found
}

// Is reports whether an annotation is meant for users: its domain belongs to no program that reads SyncTargets.
func Is(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return !slices.ContainsFunc([]string{"kcp.io", "kubectl.kubernetes.io", "synchub.dev"}, func(reserved string) bool {
		return domain == reserved || strings.HasSuffix(domain, "."+reserved)
	})
}
