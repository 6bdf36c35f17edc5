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

package observe

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// ReturnedStatus returns the target object with the status for the mailbox, as changed by spec.mutation.up or the relation's
// mutation.
func (o *Observer) ReturnedStatus(onTarget, inMailbox *unstructured.Unstructured, selected plan.ObjectSelection) (*unstructured.Unstructured, error) {
	program, field := o.resource().GetRules().Up, "spec.mutation.up"
	if selected.Related != nil {
		program, field = selected.Related.Relation.Up, "spec.related mutation.up"
	}
	if program == nil {
		return onTarget, nil
	}
	status, err := transform.MutatedStatus(onTarget, program, mutation.Inputs{Other: inMailbox.Object, SyncTarget: o.SyncTargetInput()})
	if err != nil {
		return nil, &RuleError{Field: field, Err: err}
	}
	mutated := &unstructured.Unstructured{Object: maps.Clone(onTarget.Object)}
	mutated.Object["status"] = status
	return mutated, nil
}
