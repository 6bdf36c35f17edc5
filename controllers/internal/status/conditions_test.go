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

package status_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/controllers/internal/status"
)

func TestSetConditionIf(t *testing.T) {
	all := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse}}
	suspended := metav1.Condition{Type: "Suspended", Reason: "Suspended", ObservedGeneration: 2}
	status.SetConditionIf(false, &all, suspended)
	if len(all) != 1 {
		t.Errorf("an absent condition was set: %v", all)
	}
	status.SetConditionIf(true, &all, suspended)
	if found := meta.FindStatusCondition(all, "Suspended"); found == nil || found.Status != metav1.ConditionTrue || found.Reason != "Suspended" || found.ObservedGeneration != 2 {
		t.Errorf("want the condition, got %v", all)
	}
	status.SetConditionIf(false, &all, suspended)
	if len(all) != 1 || all[0].Type != "Ready" {
		t.Errorf("want the other condition only, got %v", all)
	}
}
