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

package synctarget

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
)

// setNotImplementedCondition sets the condition NotImplemented for the given fields, or removes it if there are none.
func setNotImplementedCondition(all *[]metav1.Condition, generation int64, fields []string) {
	status.SetConditionIf(len(fields) > 0, all, metav1.Condition{
		Type:               edgev2alpha1.ConditionNotImplemented,
		Reason:             ReasonFieldsWithoutEffect,
		Message:            fmt.Sprintf("This version of synchub does not act on: %s.", strings.Join(fields, ", ")),
		ObservedGeneration: generation,
	})
}

type fieldList []string

func (l *fieldList) addIf(field string, set bool) {
	if set {
		*l = append(*l, field)
	}
}

// unsupportedFields returns the fields of a SyncTarget that are set without effect. A change that implements a field removes the
// field here.
func unsupportedFields(spec *edgev2alpha1.SyncTargetSpec) []string {
	var fields fieldList
	fields.addIf("spec.evictAfter", spec.EvictAfter != nil)                     //nolint:staticcheck // it is reported because it is deprecated
	fields.addIf("spec.supportedAPIExports", len(spec.SupportedAPIExports) > 0) //nolint:staticcheck // it is reported because it is deprecated
	fields.addIf("spec.cells", len(spec.Cells) > 0)                             //nolint:staticcheck // it is reported because it is deprecated
	return fields
}
