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

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
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

// Workspaces have the original of a twin, and the twin has its copies. Without the twin, the original has them.
func TestTwinsHaveTheCopies(t *testing.T) {
	role := func(group string) plan.Resource {
		return plan.Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: "roles"}, Kind: "Role", Namespaced: true}
	}
	original, twin := role("rbac.authorization.k8s.io"), role("denatured.synchub.dev")
	original.Native, twin.Exported, twin.StatusReturn = true, true, true
	twin.Projected = plan.TargetAPI{GroupVersionResource: original.GroupVersionResource, Kind: "Role"}
	of := original.GroupVersionResource
	for name, c := range map[string]struct {
		published []plan.Resource
		want      plan.Resource
	}{
		"the twin alone": {[]plan.Resource{twin}, twin},
		"the twin first": {[]plan.Resource{twin, original}, twin},
		"the twin last":  {[]plan.Resource{original, twin}, twin},
		"the original":   {[]plan.Resource{original}, original},
	} {
		policy := &CachePolicy{}
		policy.publish(c.published)
		source, ok := policy.placeable(of)
		copied, hasCopies := policy.placeableCopy(of)
		if !ok || !hasCopies || copied != c.want || policy.copyOf(of) != c.want.GroupVersionResource {
			t.Errorf("%s: the copies are %+v", name, copied)
		}
		if source.GroupVersionResource != of || source.TargetAPI() != original.TargetAPI() || !source.Native || source.Exported {
			t.Errorf("%s: workspaces have %+v", name, source)
		}
		if got := (&copies{policy: policy}).locate(pairOf(of, "x")); got.Resource != c.want.GroupVersionResource || got.Workspace != "m" {
			t.Errorf("%s: the copy is at %+v", name, got)
		}
	}
}

// kcp does not serve LimitRanges, so workspaces have them from the hub's export.
func TestOriginalsOfTheExport(t *testing.T) {
	limits := plan.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "denatured.synchub.dev", Version: "v1", Resource: "limitranges"}, Exported: true}
	limits.Projected = plan.TargetAPI{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "limitranges"}}
	policy := &CachePolicy{}
	policy.publish([]plan.Resource{limits})
	if source, ok := policy.placeable(limits.Projected.GroupVersionResource); !ok || source.Native || !source.Exported {
		t.Errorf("workspaces have what kcp does not serve as %+v, %t", source, ok)
	}
	if unknown := (schema.GroupVersionResource{Version: "v1", Resource: "secrets"}); policy.copyOf(unknown) != unknown {
		t.Error("the copies of what is not published are elsewhere")
	}
}

// A config keeps what it brings up of a resource that is not published yet.
func TestReflectableResources(t *testing.T) {
	published := func(name string) plan.Resource {
		resource := plan.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: name}}
		resource.Namespaced = true
		return resource
	}
	leaving, clusterScoped := published("leaving"), published("clusterscoped")
	leaving.Unpublishing, clusterScoped.Namespaced = true, false
	policy := &CachePolicy{}
	policy.publish([]plan.Resource{published("reports"), leaving, clusterScoped})
	config := &edgev2alpha1.SyncerConfig{Spec: edgev2alpha1.SyncerConfigSpec{Upsync: []edgev2alpha1.UpsyncSet{
		{APIGroup: "example.org", Resources: []string{"reports", "leaving", "clusterscoped", "late", "*"}}, {APIGroup: "example.org", Resources: []string{"late"}}, {Resources: []string{"pods"}},
	}}}
	names := func(resources []schema.GroupResource) (names []string) {
		for _, resource := range resources {
			names = append(names, resource.String())
		}
		slices.Sort(names)
		return names
	}
	if got, want := names(policy.reflectable(config)), []string{"late.example.org", "pods", "reports.example.org"}; !slices.Equal(got, want) {
		t.Errorf("with a config: %v, want %v", got, want)
	}
	if got, want := names(policy.reflectable(nil)), []string{"reports.example.org"}; !slices.Equal(got, want) {
		t.Errorf("without a config: %v, want %v", got, want)
	}
}
