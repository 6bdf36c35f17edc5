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

package placement

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan"
)

func TestUnplacedResources(t *testing.T) {
	of := func(group, resource string) plan.Resource {
		return plan.Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}}
	}
	leases, widgets := of("coordination.k8s.io", "leases"), of("acme.io", "widgets")
	leases.RelatedOnly, widgets.Unpublishing = true, true
	for name, c := range map[string]struct {
		published []plan.Resource
		want      []string
	}{
		"nothing is published":                 {nil, []string{"events", "logicalclusters.core.kcp.io", "namespaces"}},
		"Namespaces are published":             {[]plan.Resource{of("", "namespaces"), of("", "configmaps")}, []string{"events", "logicalclusters.core.kcp.io"}},
		"one goes with others, another leaves": {[]plan.Resource{of("", "namespaces"), leases, widgets}, []string{"events", "leases.coordination.k8s.io", "logicalclusters.core.kcp.io", "widgets.acme.io"}},
	} {
		if got := unplacedResources(c.published); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
