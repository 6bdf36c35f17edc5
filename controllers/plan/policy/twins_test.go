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

package policy

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An API with a twin acts inside kcp, no other one has its name, and its twin acts nowhere.
func TestTwins(t *testing.T) {
	for original, twin := range twins {
		inert := schema.GroupResource{Group: TwinGroup, Resource: original.Resource}
		if !IsPrivileged(original) || IsPrivileged(inert) {
			t.Errorf("%s has a twin, and acts inside kcp: %t; its twin acts: %t", original, IsPrivileged(original), IsPrivileged(inert))
		}
		if got, ok := OriginalOf(inert); !ok || got != original {
			t.Errorf("%s is the twin of %s, %t", inert, got, ok)
		}
		if got := InWorkload(inert.WithVersion("v1")); got != original.WithVersion("v1") {
			t.Errorf("workload workspaces have %s as %s", inert, got)
		}
		for _, named := range [][2]string{{original.Resource, ""}, {"", twin.kind}, {original.Resource, twin.kind}} {
			if got, ok := FindTwinned(original.Group, named[0], named[1]); !ok || got != original {
				t.Errorf("%v of %s is %s, %t", named, original.Group, got, ok)
			}
		}
		if got, ok := OriginalOf(original); ok {
			t.Errorf("%s is the twin of %s", original, got)
		}
	}
}

func TestWithoutATwin(t *testing.T) {
	for _, other := range []string{"customresourcedefinitions.apiextensions.k8s.io", "configmaps", "widgets.denatured.synchub.dev", "roles.example.com"} {
		resource := schema.ParseGroupResource(other)
		if _, ok := FindTwinned(resource.Group, resource.Resource, ""); ok {
			t.Errorf("%s has a twin", other)
		}
		if got := InWorkload(resource.WithVersion("v1")); got != resource.WithVersion("v1") {
			t.Errorf("workload workspaces have %s as %s", other, got)
		}
	}
	if _, ok := FindTwinned("rbac.authorization.k8s.io", "roles", "ClusterRole"); ok {
		t.Error("two names of different APIs name one")
	}
	if _, ok := FindTwinned("rbac.authorization.k8s.io", "", ""); ok {
		t.Error("no name names an API")
	}
}

// What every kcp workspace serves itself can only be claimed, and an export with its schema would be refused.
func TestTwinsThatKCPDoesNotServe(t *testing.T) {
	unserved := map[string]bool{
		"limitranges": true, "apiservices": true, "flowschemas": true, "prioritylevelconfigurations": true,
		"mutatingadmissionpolicies": true, "mutatingadmissionpolicybindings": true,
	}
	for original := range twins {
		if IsServedByKCP(original) == unserved[original.Resource] {
			t.Errorf("%s: served by kcp is %v", original, IsServedByKCP(original))
		}
	}
}
