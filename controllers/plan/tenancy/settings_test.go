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
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// A team cannot set the labels and annotations that make Kubernetes treat a namespace in another way.
func TestNamespaceMetadata(t *testing.T) {
	t.Parallel()
	tenancy := perWorkspace("")
	tenancy.NamespaceLabels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "tier": "gold"}
	settings := SettingsOf(tenancy)
	labels := settings.Labels(map[string]string{
		"pod-security.kubernetes.io/enforce": "privileged", "pod-security.kubernetes.io/warn": "privileged", "tier": "iron", "app": "shop", "plain": "x",
	})
	if want := map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "tier": "gold", "app": "shop", "plain": "x"}; !maps.Equal(labels, want) {
		t.Errorf("labels %v", labels)
	}
	annotations := settings.Annotations(map[string]string{"scheduler.alpha.kubernetes.io/node-selector": "a=b", "openshift.io/sa.scc.uid-range": "0/1", "notkubernetes.io/x": "y"})
	if want := map[string]string{"notkubernetes.io/x": "y"}; !maps.Equal(annotations, want) {
		t.Errorf("annotations %v", annotations)
	}
}

func TestAllowsClusterScoped(t *testing.T) {
	t.Parallel()
	tenancy := perWorkspace("")
	tenancy.ClusterScoped = []edgev2alpha1.GroupResource{{Group: "scheduling.k8s.io", Resource: "priorityclasses"}, {Group: "example.com", Resource: "*"}}
	for resource, want := range map[schema.GroupResource]bool{
		{Group: "scheduling.k8s.io", Resource: "priorityclasses"}: true,
		{Group: "storage.k8s.io", Resource: "storageclasses"}:     false,
		{Group: "example.com", Resource: "zones"}:                 true,
		{Resource: "priorityclasses"}:                             false,
	} {
		if got := SettingsOf(tenancy).AllowsClusterScoped(resource); got != want {
			t.Errorf("%s: %t", resource, got)
		}
		if !(Settings{}).AllowsClusterScoped(resource) {
			t.Errorf("%s on a shared cluster", resource)
		}
	}
}
