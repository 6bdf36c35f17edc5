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
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
	"github.com/synchub-dev/synchub/provider/targets"
)

// explainSyncTarget explains the settings of the SyncTarget that stop a sync, such as suspend.
func (e *explainer) explainSyncTarget() {
	spec, name := &e.facts.SyncTarget.Spec, e.facts.SyncTarget.Name
	switch {
	case e.facts.SyncTarget.DeletionTimestamp != nil && spec.DeletionPolicy == edgev2alpha1.DeletionPolicyDelete:
		e.addStep(StepSyncTarget, Stopped, "it is being deleted, together with the hub's objects on the cluster").withReason("Deleting")
	case e.facts.SyncTarget.DeletionTimestamp != nil:
		e.addStep(StepSyncTarget, Stopped, "it is being deleted; the hub's objects stay on the cluster, without marks").withReason("Deleting")
	case spec.Suspend:
		e.addStep(StepSyncTarget, Stopped, "it is suspended: nothing is written to the cluster").withReason("Suspended").withAdvice("kubectl synchub resume %s", name)
	case spec.Drain:
		e.addStep(StepSyncTarget, Stopped, "it is drained: the hub's objects are removed from the cluster").withReason("Draining").withAdvice("kubectl synchub uncordon %s", name)
	case spec.Unschedulable:
		e.addStep(StepSyncTarget, OK, "it is cordoned: nothing new is created on the cluster, and existing objects stay in sync").withReason("Cordoned")
	default:
		e.addStep(StepSyncTarget, OK, "it is registered")
	}
}

// explainConnection explains whether the hub reaches the cluster and syncs with it.
func (e *explainer) explainConnection() {
	row := overview.RowOf(e.facts.SyncTarget, e.facts.Now)
	if row.Reason == overview.ReasonHubSilent {
		e.addStep(StepConnection, Unknown, "%s", sentence(row.Message)).withReason(row.Reason)
		return
	}
	for _, kind := range []string{edgev2alpha1.ConditionHeartbeatHealthy, edgev2alpha1.ConditionSyncerReady} {
		condition := e.condition(kind)
		if condition == nil {
			e.addStep(StepConnection, Unknown, "the hub has not said %s yet", kind)
			return
		}
		if condition.Status != metav1.ConditionTrue && (kind == edgev2alpha1.ConditionHeartbeatHealthy || !e.isReportedElsewhere()) {
			e.addStep(StepConnection, stateOfCondition(condition), "%s", sentence(condition.Message)).withReason(condition.Reason)
			return
		}
	}
	step := e.addStep(StepConnection, OK, "the hub reaches the cluster")
	if authorized := e.condition(edgev2alpha1.ConditionSyncerAuthorized); authorized != nil && authorized.Status == metav1.ConditionFalse {
		step.withReason(authorized.Reason).withAdvice("%s", sentence(authorized.Message))
	}
}

// isReportedElsewhere reports whether another step explains why the hub does not sync.
func (e *explainer) isReportedElsewhere() bool {
	spec := &e.facts.SyncTarget.Spec
	return spec.Suspend || spec.Drain || e.facts.SyncTarget.DeletionTimestamp != nil || e.facts.SyncTarget.Status.Mailbox == nil
}

// explainMailbox explains whether the mailbox exists and is readable.
func (e *explainer) explainMailbox() {
	mailbox, condition := e.facts.SyncTarget.Status.Mailbox, e.condition(edgev2alpha1.ConditionMailboxReady)
	switch {
	case condition != nil && condition.Status != metav1.ConditionTrue:
		e.addStep(StepMailbox, stateOfCondition(condition), "%s", sentence(condition.Message)).withReason(condition.Reason)
	case mailbox == nil:
		e.addStep(StepMailbox, Waiting, "it has no mailbox workspace yet")
	case e.facts.Served.Err != nil:
		e.addStep(StepMailbox, Unknown, "the workspace %s cannot be looked into: %s", mailbox.Workspace, inOneLine(e.facts.Served.Err)).
			withAdvice("ask for a role there in spec.mailboxAccess of the SyncTarget")
	default:
		e.addStep(StepMailbox, OK, "it is the workspace %s", mailbox.Workspace)
	}
}

func (e *explainer) condition(kind string) *metav1.Condition {
	return meta.FindStatusCondition(e.facts.SyncTarget.Status.Conditions, kind)
}

// stateOfCondition returns the state for a condition that is not True. A reason that describes an ongoing start is
// Waiting, because it ends without intervention.
func stateOfCondition(condition *metav1.Condition) State {
	switch condition.Reason {
	case targets.ReasonConnecting, "Initializing", "Starting":
		return Waiting
	default:
		return Stopped
	}
}

// sentence returns a message in a form that fits into a sentence.
func sentence(message string) string {
	return strings.TrimSuffix(strings.Join(strings.Fields(message), " "), ".")
}

func inOneLine(err error) string { return sentence(err.Error()) }
