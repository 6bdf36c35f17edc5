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

package rules_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

func compile(t *testing.T, spec edgev2alpha1.EdgePlacementSpec) *rules.Placement {
	t.Helper()
	placement, err := rules.Compile(&edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return placement
}

func labelled(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// deployment is an object of the namespace prod, whose labels are known unless unknown is set.
func deployment(unknown bool) *rules.Object {
	return &rules.Object{
		Group: "apps", Resource: "deployments", Namespace: "prod", Name: "web", Labels: labels.Set{"app": "web"},
		NamespaceLabels: func() (labels.Labels, bool) { return labels.Set{"team": "a"}, !unknown },
	}
}

func clusterRole() *rules.Object {
	return &rules.Object{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "viewer", Labels: labels.Set{}}
}

func TestSelects(t *testing.T) {
	apps, core := "apps", ""
	type test = edgev2alpha1.DownsyncObjectTest
	for name, c := range map[string]struct {
		tests                     []test
		deployment, clusterScoped bool
	}{
		"no test selects nothing": {nil, false, false},
		"a group":                 {[]test{{APIGroup: &apps}}, true, false},
		"another group":           {[]test{{APIGroup: &core}}, false, false},
		"a resource":              {[]test{{Resources: []string{"services", "deployments"}}}, true, false},
		"another resource":        {[]test{{Resources: []string{"services"}}}, false, false},
		"all resources by a name": {[]test{{Resources: []string{"*"}, ObjectNames: []string{"web", "viewer"}}}, true, true},
		"a namespace has no cluster-scoped object": {[]test{{Namespaces: []string{"prod"}}}, true, false},
		"all namespaces have":                      {[]test{{Namespaces: []string{"*"}, ObjectNames: []string{"web", "viewer"}}}, true, true},
		"another namespace":                        {[]test{{Namespaces: []string{"dev"}}}, false, false},
		"a label":                                  {[]test{{LabelSelectors: []metav1.LabelSelector{labelled("app", "api"), labelled("app", "web")}}}, true, false},
		"another label":                            {[]test{{LabelSelectors: []metav1.LabelSelector{labelled("app", "api")}}}, false, false},
		"a label of the namespace":                 {[]test{{NamespaceSelectors: []metav1.LabelSelector{labelled("team", "a")}}}, true, false},
		"another label of the namespace":           {[]test{{NamespaceSelectors: []metav1.LabelSelector{labelled("team", "b")}}}, false, false},
		"the empty selector of namespaces matches cluster-scoped objects": {
			[]test{{NamespaceSelectors: []metav1.LabelSelector{labelled("team", "b"), {}}, ObjectNames: []string{"web", "viewer"}}}, true, true,
		},
		"all criteria of one test must match": {[]test{{APIGroup: &apps, Namespaces: []string{"dev"}}}, false, false},
		"any of several tests may match":      {[]test{{Namespaces: []string{"dev"}}, {APIGroup: &apps}}, true, false},
	} {
		placement := compile(t, edgev2alpha1.EdgePlacementSpec{Downsync: c.tests})
		if got, known := placement.Selects(deployment(false)); got != c.deployment || !known {
			t.Errorf("%s: the Deployment: selected %v, known %v", name, got, known)
		}
		if got, known := placement.Selects(clusterRole()); got != c.clusterScoped || !known {
			t.Errorf("%s: the ClusterRole: selected %v, known %v", name, got, known)
		}
	}
}

func TestSelectionIsUnknownWithoutTheNamespace(t *testing.T) {
	apps := "apps"
	byNamespace := edgev2alpha1.DownsyncObjectTest{NamespaceSelectors: []metav1.LabelSelector{labelled("team", "a")}}
	byGroup := edgev2alpha1.DownsyncObjectTest{APIGroup: &apps}
	elsewhere := edgev2alpha1.DownsyncObjectTest{Namespaces: []string{"dev"}, NamespaceSelectors: byNamespace.NamespaceSelectors}
	for name, c := range map[string]struct {
		tests           []edgev2alpha1.DownsyncObjectTest
		selected, known bool
	}{
		"it decides":                {[]edgev2alpha1.DownsyncObjectTest{byNamespace}, false, false},
		"another test decides":      {[]edgev2alpha1.DownsyncObjectTest{byNamespace, byGroup}, true, true},
		"another criterion decides": {[]edgev2alpha1.DownsyncObjectTest{elsewhere}, false, true},
	} {
		placement := compile(t, edgev2alpha1.EdgePlacementSpec{Downsync: c.tests})
		if selected, known := placement.Selects(deployment(true)); selected != c.selected || known != c.known {
			t.Errorf("%s: selected %v, known %v", name, selected, known)
		}
		if !placement.SelectsByNamespaceLabels() {
			t.Errorf("%s: SelectsByNamespaceLabels is false", name)
		}
	}
}

func TestCompileNamesTheField(t *testing.T) {
	invalid := []metav1.LabelSelector{{}, {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}
	for field, spec := range map[string]edgev2alpha1.EdgePlacementSpec{
		"spec.locationSelectors[1]":              {LocationSelectors: invalid},
		"spec.downsync[0].labelSelectors[1]":     {Downsync: []edgev2alpha1.DownsyncObjectTest{{LabelSelectors: invalid}}},
		"spec.upsync[1].labelSelector":           {Upsync: []edgev2alpha1.PlacementUpsync{{UpsyncSet: edgev2alpha1.UpsyncSet{LabelSelector: &invalid[0]}}, {UpsyncSet: edgev2alpha1.UpsyncSet{LabelSelector: &invalid[1]}}}},
		"spec.downsync[1].namespaceSelectors[1]": {Downsync: []edgev2alpha1.DownsyncObjectTest{{}, {NamespaceSelectors: invalid}}},
	} {
		_, err := rules.Compile(&edgev2alpha1.EdgePlacement{Spec: spec})
		if err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestCompileReadsTheRest(t *testing.T) {
	placement := compile(t, edgev2alpha1.EdgePlacementSpec{WantSingletonReportedState: true, DeletionPolicy: edgev2alpha1.DeletionPolicyOrphan})
	if placement.DeletionPolicy != ownership.PolicyOrphan || !placement.SingletonStatus {
		t.Errorf("%+v", placement)
	}
	if compile(t, edgev2alpha1.EdgePlacementSpec{}).DeletionPolicy != ownership.PolicyDelete {
		t.Error("the default policy is not Delete")
	}
}

func TestOlderPlacementsComeFirst(t *testing.T) {
	at := func(name string, seconds int64) *rules.Placement {
		placement, err := rules.Compile(&edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(seconds, 0))}})
		if err != nil {
			t.Fatal(err)
		}
		return placement
	}
	if at("b", 1).Compare(at("a", 2)) >= 0 || at("a", 2).Compare(at("b", 1)) <= 0 || at("a", 1).Compare(at("b", 1)) >= 0 || at("a", 1).Compare(at("a", 1)) != 0 {
		t.Error("placements are not ordered by age and name")
	}
}

// Copies of placements, upsynced objects and objects that kcp creates cannot be placed.
func TestIsPlaceable(t *testing.T) {
	resource := func(name string) plan.Resource {
		return plan.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: name}, Namespaced: true}
	}
	object := func(name string, annotations map[string]string) *unstructured.Unstructured {
		made := &unstructured.Unstructured{}
		made.SetNamespace("shop")
		made.SetName(name)
		made.SetAnnotations(annotations)
		return made
	}
	for name, c := range map[string]struct {
		resource string
		object   *unstructured.Unstructured
		want     bool
	}{
		"a user's":                 {"configmaps", object("prices", nil), true},
		"a copy":                   {"configmaps", object("prices", map[string]string{ownership.MarkAnnotation: "{}"}), false},
		"what the hub ensured":     {"namespaces", object("prices", map[string]string{ownership.EnsuredAnnotation: "x"}), false},
		"with a status of the hub": {"configmaps", object("prices", map[string]string{ownership.StatusAnnotation: "x"}), true},
		"kcp's certificate":        {"configmaps", object("kube-root-ca.crt", nil), false},
		"the default account":      {"serviceaccounts", object("default", nil), false},
	} {
		if got := rules.IsPlaceable(resource(c.resource), c.object); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSelectsByLabels(t *testing.T) {
	named := compile(t, edgev2alpha1.EdgePlacementSpec{Downsync: []edgev2alpha1.DownsyncObjectTest{{ObjectNames: []string{"prices"}}}})
	both := compile(t, edgev2alpha1.EdgePlacementSpec{Downsync: []edgev2alpha1.DownsyncObjectTest{
		{ObjectNames: []string{"prices"}}, {LabelSelectors: []metav1.LabelSelector{labelled("app", "web")}},
	}})
	if named.SelectsByLabels() || !both.SelectsByLabels() {
		t.Errorf("by names: %v, by labels too: %v", named.SelectsByLabels(), both.SelectsByLabels())
	}
}

// A resource is watched only if some test can select it.
func TestMaySelect(t *testing.T) {
	apps := "apps"
	type test = edgev2alpha1.DownsyncObjectTest
	for name, c := range map[string]struct {
		tests []test
		want  bool
	}{
		"no test":                     {nil, false},
		"its group":                   {[]test{{APIGroup: &apps}}, true},
		"any group":                   {[]test{{}}, true},
		"its resource of any group":   {[]test{{Resources: []string{"deployments"}}}, true},
		"its resource in its group":   {[]test{{APIGroup: &apps, Resources: []string{"deployments"}}}, true},
		"another resource":            {[]test{{APIGroup: &apps, Resources: []string{"statefulsets"}}}, false},
		"another resource, any group": {[]test{{Resources: []string{"statefulsets"}}}, false},
		"another group":               {[]test{{APIGroup: new(string), Resources: []string{"deployments"}}}, false},
		"one of two":                  {[]test{{APIGroup: new(string)}, {APIGroup: &apps}}, true},
		"with names of objects":       {[]test{{ObjectNames: []string{"web"}}}, true},
	} {
		if got := compile(t, edgev2alpha1.EdgePlacementSpec{Downsync: c.tests}).MaySelect("apps", "deployments"); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
