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

package bindcompute

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestDefaultName(t *testing.T) {
	long := "root:" + strings.Repeat("a", 240) + ":" + strings.Repeat("b", 100)
	names := map[string]string{}
	for _, path := range []string{"root", "root:inventory", "root:a:b", "root:a-b", "2yz3r9p5", long, long + "b", "root:" + strings.Repeat("a", 230) + ":" + strings.Repeat("b", 100)} {
		name := DefaultName(path)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s: %q is no name: %q", path, name, problems)
		}
		if other, ok := names[name]; ok {
			t.Errorf("%s and %s have the name %s", path, other, name)
		}
		names[name] = path
	}
	if got := DefaultName("root:teams:inventory"); got != "root.teams.inventory" {
		t.Errorf("the name is %s", got)
	}
}

func TestDifferences(t *testing.T) {
	desired, without := Placement{Inventory: "root:inventory"}, Placement{Inventory: "root:inventory", AggregateStatus: new(false)}
	narrow := Placement{
		Inventory:  "root:inventory",
		Locations:  []metav1.LabelSelector{{MatchLabels: map[string]string{"env": "prod"}}, {MatchLabels: map[string]string{"env": "stage"}}},
		Namespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}},
	}
	for name, test := range map[string]struct {
		existing, desired Placement
		change            func(*edgev2alpha1.EdgePlacementSpec)
		want              []string
	}{
		"equal": {desired, desired, func(*edgev2alpha1.EdgePlacementSpec) {}, nil},
		"with more settings": {desired, desired, func(spec *edgev2alpha1.EdgePlacementSpec) {
			spec.DeletionPolicy, spec.WantSingletonReportedState, spec.Upsync = edgev2alpha1.DeletionPolicyOrphan, true, []edgev2alpha1.PlacementUpsync{{}}
		}, nil},
		"in another order": {narrow, narrow, func(spec *edgev2alpha1.EdgePlacementSpec) { slices.Reverse(spec.LocationSelectors) }, nil},
		"as expressions": {narrow, narrow, func(spec *edgev2alpha1.EdgePlacementSpec) {
			spec.LocationSelectors[0] = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpExists}}}
		}, []string{`spec.locationSelectors is ["env", "env=stage"], not ["env=prod", "env=stage"]`}},
		"without a status":        {without, desired, func(*edgev2alpha1.EdgePlacementSpec) {}, nil},
		"with an unwanted status": {desired, without, func(*edgev2alpha1.EdgePlacementSpec) {}, []string{"spec.aggregateStatus is true, not false"}},
		"another inventory":       {desired, desired, func(spec *edgev2alpha1.EdgePlacementSpec) { spec.InventoryWorkspaces = nil }, []string{"spec.inventoryWorkspaces is [], not [root:inventory]"}},
		"without upsync":          {desired, Placement{Inventory: "root:inventory", Upsync: []schema.GroupResource{}}, func(*edgev2alpha1.EdgePlacementSpec) {}, []string{`spec.upsync is [{apiGroup: "", resources: [pods], namespaces: [*], names: [*], labelSelector: "<none>", to: Workspace}], not []`}},
		"no test":                 {narrow, narrow, func(spec *edgev2alpha1.EdgePlacementSpec) { spec.Downsync = nil }, []string{`spec.downsync is [], not [{namespaceSelectors: ["team=web"]}]`}},
		"another test": {narrow, narrow, func(spec *edgev2alpha1.EdgePlacementSpec) {
			spec.Downsync[0] = edgev2alpha1.DownsyncObjectTest{
				APIGroup: new("apps"), Resources: []string{"deployments"}, Namespaces: []string{"shop"}, ObjectNames: []string{"web"},
				LabelSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}},
			}
		}, []string{`spec.downsync is [{apiGroup: "apps", resources: [deployments], namespaces: [shop], objectNames: [web], labelSelectors: ["a=b"]}], not [{namespaceSelectors: ["team=web"]}]`}},
	} {
		t.Run(name, func(t *testing.T) {
			existing := test.existing.Object().DeepCopy().Spec
			test.change(&existing)
			if got := test.desired.differences(&existing); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestPlacementObject(t *testing.T) {
	want := fixtures.Decode[edgev2alpha1.EdgePlacement](t, `
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: root.inventory, annotations: {synchub.dev/bind-compute: "root:inventory"}}
spec:
  aggregateStatus: true
  inventoryWorkspaces: ["root:inventory"]
  locationSelectors: [{}]
  downsync:
  - namespaceSelectors:
    - matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kcp-system, kube-node-lease, kube-public, kube-system, synchub]}]
  upsync: [{resources: [pods], namespaces: ["*"], names: ["*"], to: Workspace}]
`)
	if got := (Placement{Inventory: "root:inventory"}).Object(); !equal(got, &want) {
		t.Errorf("got %+v", got)
	}
	want = fixtures.Decode[edgev2alpha1.EdgePlacement](t, `
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: prod, annotations: {synchub.dev/bind-compute: "root:inventory"}}
spec:
  inventoryWorkspaces: ["root:inventory"]
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync: [{namespaceSelectors: [{matchLabels: {team: web}}]}]
  upsync: [{apiGroup: apps, resources: [replicasets], namespaces: ["*"], names: ["*"], to: Workspace}]
`)
	got := Placement{
		Name: "prod", Inventory: "root:inventory",
		Locations:  []metav1.LabelSelector{{MatchLabels: map[string]string{"env": "prod"}}},
		Namespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}}, AggregateStatus: new(false),
		Upsync: []schema.GroupResource{{Group: "apps", Resource: "replicasets"}},
	}.Object()
	if !equal(got, &want) {
		t.Errorf("got %+v", got)
	}
}

func TestParseResource(t *testing.T) {
	for text, want := range map[string]schema.GroupResource{
		"pods": {Resource: "pods"}, "replicasets.apps": {Group: "apps", Resource: "replicasets"}, "policyreports.wgpolicyk8s.io": {Group: "wgpolicyk8s.io", Resource: "policyreports"},
		"": {}, "Pods": {}, "pods/status": {}, "replicasets.": {Resource: "replicasets"}, ".apps": {}, "pods.a_b": {},
	} {
		if got, err := ParseResource(text); (err == nil) != (want != schema.GroupResource{}) || err == nil && got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
