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

package waves

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOf(t *testing.T) {
	// The waves in their order.
	waves := [][]schema.GroupResource{
		{{Resource: "namespaces"}},
		{{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}},
		{{Group: rbacGroup, Resource: "clusterroles"}, {Group: rbacGroup, Resource: "rolebindings"}, {Resource: "serviceaccounts"}},
		{{Resource: "configmaps"}, {Resource: "secrets"}, {Resource: "persistentvolumes"}, {Resource: "persistentvolumeclaims"}, {Resource: "resourcequotas"}, {Resource: "limitranges"}, {Group: "storage.k8s.io", Resource: "storageclasses"}, {Group: "scheduling.k8s.io", Resource: "priorityclasses"}},
		{{Resource: "services"}, {Group: "apps", Resource: "deployments"}, {Group: "example.org", Resource: "configmaps"}, {Group: "example.org", Resource: "namespaces"}},
		{{Group: admissionGroup, Resource: "validatingwebhookconfigurations"}, {Group: "apiregistration.k8s.io", Resource: "apiservices"}},
	}
	var order []Wave
	for _, wave := range waves {
		for _, resource := range wave {
			if got, want := Of(resource), Of(wave[0]); got != want {
				t.Errorf("%s: want the wave of %s, %d, got %d", resource, wave[0], want, got)
			}
		}
		order = append(order, Of(wave[0]))
	}
	if !slices.IsSorted(order) || len(slices.Compact(order)) != len(waves) {
		t.Errorf("the waves do not follow each other: %v", order)
	}
}
