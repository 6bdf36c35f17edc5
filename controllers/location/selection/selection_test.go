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

package selection

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func TestSelects(t *testing.T) {
	prod := map[string]string{"env": "prod", "region": "eu"}
	for name, test := range map[string]struct {
		selector *metav1.LabelSelector
		labels   map[string]string
		selects  bool
		fails    bool
	}{
		"no selector":       {nil, prod, true, false},
		"no labels":         {nil, nil, true, false},
		"an empty selector": {&metav1.LabelSelector{}, prod, true, false},
		"a label":           {&metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}, prod, true, false},
		"another value":     {&metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}, prod, false, false},
		"a missing label":   {&metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}, nil, false, false},
		"an expression": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"eu", "us"}},
		}}, prod, true, false},
		"an invalid operator": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Like", Values: []string{"p*"}}}}, prod, false, true},
		"an invalid key":      {&metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}, prod, false, true},
	} {
		selects, err := Selects(&edgev2alpha1.LocationSpec{InstanceSelector: test.selector}, test.labels)
		if selects != test.selects || (err != nil) != test.fails {
			t.Errorf("%s: got %v, %v", name, selects, err)
		}
	}
}

func TestIsAvailable(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		change    func(*edgev2alpha1.SyncTarget)
		available bool
	}{
		"ready":             {func(*edgev2alpha1.SyncTarget) {}, true},
		"not ready":         {func(s *edgev2alpha1.SyncTarget) { s.Status.Conditions[0].Status = metav1.ConditionFalse }, false},
		"unknown":           {func(s *edgev2alpha1.SyncTarget) { s.Status.Conditions[0].Status = metav1.ConditionUnknown }, false},
		"never reported":    {func(s *edgev2alpha1.SyncTarget) { s.Status.Conditions = nil }, false},
		"another condition": {func(s *edgev2alpha1.SyncTarget) { s.Status.Conditions[0].Type = edgev2alpha1.ConditionMailboxReady }, false},
		"cordoned":          {func(s *edgev2alpha1.SyncTarget) { s.Spec.Unschedulable = true }, false},
		"drained":           {func(s *edgev2alpha1.SyncTarget) { s.Spec.Drain = true }, false},
		"suspended":         {func(s *edgev2alpha1.SyncTarget) { s.Spec.Suspend = true }, false},
		"terminating":       {func(s *edgev2alpha1.SyncTarget) { s.DeletionTimestamp = &now }, false},
	} {
		syncTarget := &edgev2alpha1.SyncTarget{}
		syncTarget.Status.Conditions = []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionTrue}}
		test.change(syncTarget)
		if got := IsAvailable(syncTarget); got != test.available {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestIsAvailableTo(t *testing.T) {
	availableTo := edgev2alpha1.AvailableTo{Workspaces: []string{"root:shop", "root:teams:*"}}
	for path, want := range map[string]bool{
		"root:shop":           true,
		"root:shop:child":     false,
		"root:shops":          false,
		"root":                false,
		"shop":                false,
		"root:teams:web":      true,
		"root:teams:web:blue": false,
		"root:teams":          false,
		"root:teams:":         false,
		"root:teamsx":         false,
		"root:teamsx:web":     false,
		"x:root:teams:web":    false,
		"":                    false,
		"*":                   false,
	} {
		if got := IsAvailableTo(&availableTo, path); got != want {
			t.Errorf("%q: got %v", path, got)
		}
	}
	for name, odd := range map[string][]string{"nobody": nil, "an empty entry": {""}, "only a suffix": {":*"}, "a star": {"*"}} {
		for _, path := range []string{"", "root", ":root", "root:teams"} {
			if IsAvailableTo(&edgev2alpha1.AvailableTo{Workspaces: odd}, path) {
				t.Errorf("%s names %q", name, path)
			}
		}
	}
}
