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

package plan

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// StatusReturn is the status that a mailbox object gets from an object of the target. The zero value stands for none.
type StatusReturn struct {
	// OnTarget has the status; nil if the mailbox object gets none.
	OnTarget *unstructured.Unstructured
	// Applied is true if OnTarget has the current content of the mailbox object.
	Applied bool
	// Selection is why the object is synced.
	Selection ObjectSelection
	// SyncTarget are the SyncTarget's fields as mutations read them.
	SyncTarget map[string]any
}

// MailboxStatus returns the status for a mailbox object, as changed by spec.mutation.up or the relation's mutation, and the paths of
// the fields that the mailbox's schema does not have.
func (p Planner) MailboxStatus(inMailbox *unstructured.Unstructured, returned StatusReturn) (status map[string]any, pruned []string, err error) {
	program, field := p.Resource.GetRules().Up, "spec.mutation.up"
	if returned.Selection.Related != nil {
		program, field = returned.Selection.Related.Relation.Up, "spec.related mutation.up"
	}
	onTarget := returned.OnTarget
	if program != nil {
		mutated, err := transform.MutatedStatus(onTarget, program, mutation.Inputs{Other: inMailbox.Object, SyncTarget: returned.SyncTarget})
		if err != nil {
			return nil, nil, &RuleError{Field: field, Err: err}
		}
		onTarget = &unstructured.Unstructured{Object: maps.Clone(onTarget.Object)}
		onTarget.Object["status"] = mutated
	}
	status, pruned = p.Up.Pruner.PruneStatus(p.Resource.MailboxStatus(inMailbox, onTarget, returned.Applied))
	return status, pruned, nil
}

// MailboxStatus returns the status for the mailbox object. applied is true if the copy has the current content of the mailbox
// object, so that its observedGeneration can be translated.
func (r Resource) MailboxStatus(inMailbox, onTarget *unstructured.Unstructured, applied bool) map[string]any {
	if !r.StatusSubresource {
		// Without the subresource each write of the status increments the generation, so an observedGeneration cannot be
		// translated.
		return transform.StatusOf(onTarget.Object["status"])
	}
	return transform.ReturnedStatus(onTarget.Object["status"], transform.Generations{
		Source: inMailbox.GetGeneration(), Target: onTarget.GetGeneration(), Applied: applied,
	})
}
