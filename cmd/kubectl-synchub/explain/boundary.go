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

package explain

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/policy"
)

// namespaceRefusal returns the reason why the hub does not use the object's namespace on the target, or nil. An
// option of the hub decides which namespaces are protected, so a protected namespace is known only from the hub's
// reports.
func (e *explainer) namespaceRefusal() *policy.DeniedError {
	namespace := e.targetRef.Namespace
	if e.targetRef.Group == "" && e.targetRef.Resource == "namespaces" {
		namespace = e.targetRef.Name
	}
	if namespace == "" {
		return nil
	}
	namespaces := &policy.NamespacePolicy{Protected: policy.NamespacePatterns{"*"}}
	if bounds := e.facts.SyncTarget.Spec.Namespaces; bounds != nil {
		namespaces.Only, namespaces.Allowed = bounds.Only, policy.NamespacePatterns(bounds.AllowProtected)
	}
	refusal, refused := errors.AsType[*policy.DeniedError](namespaces.Check(namespace, e.resource.Allowed.ProtectedNamespaces))
	if !refused || refusal.Reason == policy.ReasonNamespaceProtected && (!policy.DefaultProtectedNamespaces.Match(namespace) || !e.isReported(refusal.Reason)) {
		return nil
	}
	return refusal
}

// isReported reports whether the status of a config has the reason.
func (e *explainer) isReported(reason string) bool {
	return slices.ContainsFunc(e.reports(), func(reported report) bool {
		ready := meta.FindStatusCondition(reported.Conditions, edgev2alpha1.ConditionReady)
		return ready != nil && ready.Reason == reason || slices.ContainsFunc(reported.Failures, func(failure edgev2alpha1.ObjectFailure) bool {
			return failure.Reason == reason
		})
	})
}

// explainUpsync explains an object that is not in the mailbox although a config selects it for upsync.
func (e *explainer) explainUpsync() {
	refusal, refused := errors.AsType[*policy.DeniedError](e.resource.CheckUpsync(e.resource.TargetAPI()))
	if !refused {
		refusal = e.namespaceRefusal()
	}
	if refusal == nil {
		refusal, _ = errors.AsType[*policy.DeniedError](policy.CheckReservedName(e.resource.GroupResource(), e.facts.Key))
	}
	if refusal != nil {
		e.addStep(StepObject, Stopped, "it does not come up from the cluster, though a config selects it: %s", refusal.Message).withReason(refusal.Reason)
		return
	}
	e.addStep(StepObject, Waiting, "it is not in the mailbox; a config selects it for coming up from the cluster")
}
