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

package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetConditionIf sets the condition to True if set is true, and removes the condition otherwise.
func SetConditionIf(set bool, conditions *[]metav1.Condition, condition metav1.Condition) {
	if !set {
		meta.RemoveStatusCondition(conditions, condition.Type)
		return
	}
	condition.Status = metav1.ConditionTrue
	meta.SetStatusCondition(conditions, condition)
}
