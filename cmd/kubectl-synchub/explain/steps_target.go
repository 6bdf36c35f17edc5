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
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/wording"
)

// explainCompatibility explains whether the target accepts objects of the resource.
func explainCompatibility(o *observation) *Step {
	resource, recorded := o.ref.GroupResource(), o.syncedResource(o.ref.GroupResource())
	warnsOnly := o.published != nil && o.published.Spec.Compatibility == synchubv1alpha1.CompatibilityWarn
	switch {
	case !o.belongs, resource.Resource == "":
		return nil
	case recorded.Resource == "":
		return newStep(Waiting, "", "the hub does not list %s in the SyncTarget's status.syncedResources yet", resource)
	case recorded.State == edgev2alpha1.SyncedResourceIncompatible && recorded.Reason == "SchemaIncompatible" && warnsOnly:
		return newStep(OK, recorded.Reason, "not every object fits, and the PublishedResource lets them go down all the same: %s", sentence(recorded.Message))
	case recorded.State == edgev2alpha1.SyncedResourceIncompatible:
		return newStep(Stopped, recorded.Reason, "%s", sentence(recorded.Message))
	case recorded.State == edgev2alpha1.SyncedResourceAccepted:
		return newStep(OK, recorded.Reason, "the cluster takes %s", resource)
	case o.copied != nil:
		return newStep(OK, recorded.Reason, "the cluster took %s before; the hub compares it again", resource)
	default:
		return newStep(Waiting, recorded.Reason, "the hub has not found out yet whether the cluster takes %s", resource)
	}
}

// explainReport explains the object's failure as the hub reports it, which includes errors from the target.
func explainReport(o *observation) *Step {
	failure, name := o.failure()
	last, beyond := o.lastEvent(), o.beyondLimits()
	switch {
	case !o.belongs && o.noDownsync == "":
		return nil
	case failure != nil:
		return newStep(Stopped, failure.Reason, "%s: %s", name, sentence(failure.Message))
	case o.copied != nil, o.noDownsync != "":
		return nil
	case last != nil && o.isCountedSince(last.LastTimestamp):
		return newStep(OK, "", "an event, %s ago: %s; that is over: since then the hub has counted the objects that fail, and this one is not among them",
			o.age(last.LastTimestamp), sentence(last.Message))
	case last != nil:
		return newStep(Stopped, last.Reason, "the last event about it, %s ago: %s", o.age(last.LastTimestamp), sentence(last.Message))
	case beyond != nil:
		return newStep(Stopped, beyond.Reason, "it may be among the objects beyond a limit: %s", sentence(beyond.Message))
	}
	for _, config := range o.reporters() {
		if config.status.Failed > edgev2alpha1.MaxFailures {
			return newStep(Unknown, "", "so many objects fail that not all are listed").advise("see the events in the mailbox")
		}
	}
	return nil
}

// age returns the age of a time, for people.
func (o *observation) age(at metav1.Time) string { return overview.FormatDuration(o.Now.Sub(at.Time)) }

// beyondLimits returns the condition of the SyncTarget that the mailbox exceeds a limit, or nil. The limit is the
// mailbox's, or a resource's which is or may be this one. The condition does not name the objects beyond the
// limit if there are many, or if labels select them.
func (o *observation) beyondLimits() *metav1.Condition {
	beyond := o.condition(edgev2alpha1.ConditionMailboxLimitExceeded)
	if beyond == nil || beyond.Status != metav1.ConditionTrue {
		return nil
	}
	isResource := beyond.Reason == plan.ReasonResourceLimitExceeded && (o.published == nil || o.published.Spec.Limits != nil)
	if beyond.Reason == plan.ReasonMailboxLimitExceeded || isResource {
		return beyond
	}
	return nil
}

// reporter is an object whose status lists failures.
type reporter struct {
	name   string
	object metav1.Object
	status *edgev2alpha1.SyncerConfigStatus
}

// reporters returns all configs, and then the SyncTarget.
func (o *observation) reporters() (all []reporter) {
	for _, config := range o.Configs.Value.SyncerConfigs {
		all = append(all, reporter{"SyncerConfig/" + config.Name, config, &config.Status})
	}
	for _, config := range o.Configs.Value.EdgeSyncConfigs {
		all = append(all, reporter{"EdgeSyncConfig/" + config.Name, config, &config.Status})
	}
	ofTarget := &edgev2alpha1.SyncerConfigStatus{Failures: o.SyncTarget.Status.Failures}
	return append(all, reporter{"SyncTarget/" + o.SyncTarget.Name, o.SyncTarget, ofTarget})
}

// failure returns the object's failure and the name of the object that reports it.
func (o *observation) failure() (found *edgev2alpha1.ObjectFailure, name string) {
	for _, one := range o.reporters() {
		for i, failure := range one.status.Failures {
			if failure.Group == o.Resource.Group && failure.Resource == o.Resource.Resource && failure.Namespace == o.Key.Namespace && failure.Name == o.Key.Name {
				return &one.status.Failures[i], one.name
			}
		}
	}
	return nil, ""
}

// isCountedSince reports whether the hub has counted failures after a time and listed all of them, and the object is not among them.
func (o *observation) isCountedSince(at metav1.Time) bool {
	status := &o.SyncTarget.Status
	failure, _ := o.failure()
	return failure == nil && status.Counts != nil && int(status.Counts.Failed) == len(status.Failures) && at.Before(status.LastSyncerHeartbeatTime)
}

// countDelay is how much older than the hub's counts a change must be to be in them, as clocks differ and events take time.
const countDelay = 10 * time.Second

// isReportedInSync reports whether the object is in sync by the hub's counts, which are newer than the object and the configs.
func (o *observation) isReportedInSync() bool {
	for _, explain := range []func(*observation) *Step{explainSyncTarget, explainConnection, explainCompatibility} {
		if step := explain(o); step == nil || step.State != OK {
			return false
		}
	}
	if !o.goesDown || o.planned.Decision.Cause != plan.Missing || o.SyncTarget.Status.PendingSince != nil || o.beyondLimits() != nil {
		return false
	}
	var latest metav1.Time
	for _, one := range append(o.reporters(), reporter{object: o.Object.Value}) {
		created := one.object.GetCreationTimestamp()
		for _, entry := range slices.Concat(one.object.GetManagedFields(), []metav1.ManagedFieldsEntry{{Time: &created}}) {
			if entry.Subresource == "" && latest.Before(entry.Time) {
				latest = *entry.Time
			}
		}
	}
	return o.isCountedSince(metav1.NewTime(latest.Add(countDelay)))
}

// lastEvent returns the hub's last warning about the object, or nil. Events about a former object of the same name do
// not count.
func (o *observation) lastEvent() (last *corev1.Event) {
	var uid types.UID
	if object := o.Object.Value; object != nil {
		uid = object.GetUID()
	}
	for i := range o.Events {
		event := &o.Events[i]
		isWarning := event.ReportingController == "synchub" && event.Type == corev1.EventTypeWarning && event.InvolvedObject.UID == uid
		if isWarning && (last == nil || last.LastTimestamp.Before(&event.LastTimestamp)) {
			last = event
		}
	}
	return last
}

// explainTarget explains which object the target has.
func explainTarget(o *observation) *Step {
	switch {
	case o.refErr != nil:
		return nil
	case o.Target.Err != nil && o.isReportedInSync():
		return newStep(OK, "", "the hub counted its objects there %s ago, and none of those that fail or wait is this one; the cluster itself cannot be asked: %s",
			o.age(*o.SyncTarget.Status.LastSyncerHeartbeatTime), inOneLine(o.Target.Err))
	case o.Target.Err != nil:
		return newStep(Unknown, "", "the cluster cannot be asked: %s", inOneLine(o.Target.Err)).advise("give --target-kubeconfig")
	case o.Target.Value == nil:
		return explainAbsent(o)
	case o.source != nil:
		return newStep(OK, "", "the cluster has it")
	case o.copied != nil && o.decided(StepTarget) != nil:
		return o.decided(StepTarget)
	case o.copied != nil:
		return newStep(OK, "", "the cluster has it, with the hub's mark")
	}
	owner := inOneLine(o.notOwnedErr)
	if errors.Is(o.notOwnedErr, ownership.ErrUnmarked) {
		owner = "it has no mark of the hub"
	}
	step := newStep(OK, "", "the cluster has an object of this name that is not the mailbox's: %s", owner)
	if o.belongs {
		step.State, step.Reason = Stopped, plan.ReasonConflict
		step.advise("remove it there, choose another name, or let spec.adoption of the PublishedResource or of the SyncTarget take it over")
	}
	return step
}

// explainAbsent explains why the target does not have the object.
func explainAbsent(o *observation) *Step {
	switch {
	case o.source != nil:
		return newStep(Waiting, "", "the cluster does not have it any more; once that is verified it goes from the mailbox")
	case !o.belongs:
		return newStep(OK, "", "the cluster does not have it")
	case o.SyncTarget.Spec.Unschedulable:
		return newStep(Stopped, plan.ReasonTargetCordoned, "the cluster does not have %s, and nothing new is made there while the SyncTarget is cordoned", o.ref.displayName()).
			advise("kubectl synchub uncordon %s", o.SyncTarget.Name)
	case o.decided(StepTarget) != nil:
		return o.decided(StepTarget)
	default:
		return newStep(Waiting, "", "the cluster does not have %s yet", o.ref.displayName()).advise("if that stays so, look whether the hub runs")
	}
}

// decisions are the steps that follow from the cause of the planner's decision alone.
var decisions = map[plan.Cause]Step{
	plan.FormerMailbox: {
		StepObject, Stopped, "", "it is not in the mailbox; the object on the cluster came from a mailbox that was lost, and is kept until the SyncTarget is drained", "",
	},
	plan.Cause(plan.Suspended): {
		StepObject, Stopped, "Suspended", "it is not in the mailbox any more; all that selects its name is suspended, so it is left on the cluster", "",
	},
	plan.Restored: {
		StepObject, Stopped, "Restored", "it is not in the mailbox; the object on the cluster was made from a backup of the hub's copy, so the hub does not delete it",
		"delete it there, or take its label " + ownership.OwnerLabel + " and its annotation " + ownership.MarkAnnotation + " off",
	},
	plan.ExcludedByUpsync: {
		StepName, Stopped, "SelectedUp", "its object on the cluster is selected for upsync as well, so it does not go down",
		"take it out of upsync, or do not select it for going down",
	},
	plan.BeingDeleted: {
		StepTarget, Waiting, "Terminating", "it is being deleted on the cluster; then it is made again, if it still belongs there", "",
	},
	plan.Finished: {
		StepTarget, OK, "Finished", "it has run to completion there, and was removed since; the hub runs it again once it changes, or is made again", "",
	},
	plan.Superseded: {
		StepContent, Waiting, "Superseded", "the cluster has the copy of a former object of this name; the hub removes that first, and then makes this one", "",
	},
}

// decided returns what follows from the cause of the planner's decision, if it concerns the step; else nil.
func (o *observation) decided(step string) *Step {
	decided, ok := decisions[o.planned.Decision.Cause]
	if !ok || decided.Step != step {
		return nil
	}
	return &decided
}

// explainContent explains whether the target's object equals the desired one. The hub compares hashes with a key that
// only the hub has; explainContent compares the fields.
func explainContent(o *observation) *Step {
	decision, desired := o.planned.Decision, o.planned.Desired
	switch {
	case !o.isComparable(), decision.Cause == plan.BeingDeleted, o.down.DestinationErr != nil, o.down.Err != nil:
		return nil
	case desired == nil:
		return errorStep(o.planned.Err)
	case o.planned.Err != nil:
		return newStep(Unknown, "", "it cannot be compared: %s", inOneLine(o.planned.Err))
	case decision.Cause == plan.NameTaken:
		return explainTakenName(o.copied.Mark.Source, o.Key)
	case o.decided(StepContent) != nil:
		return o.decided(StepContent)
	}
	return explainDifferences(o)
}

// explainDifferences explains how the copy on the target differs from the desired object.
func explainDifferences(o *observation) *Step {
	decision, desired, beyond := o.planned.Decision, o.planned.Desired, o.beyondLimits()
	differing, deferred := wording.First(maxListed, transform.DifferingPaths(desired.Object.Object, o.Target.Value.Object)), wording.First(maxListed, deferredFields(o, desired))
	switch isChanged := decision.Cause == plan.Changed || decision.Cause == plan.Restored; {
	case desired.Mark.Policy == ownership.PolicyCreateOnly:
		return newStep(OK, "", "it was to be created once, and is left alone since then")
	case decision.Action == plan.Report && differing == "":
		return newStep(OK, "", "another client has set %s there, to the values of the mailbox", wording.First(maxListed, decision.Fields))
	case decision.Action == plan.Report:
		return newStep(Stopped, plan.ReasonDrifted, "values differ at %s; another client changed them, and drift is Report, so the hub leaves them as they are", differing).
			advise("to undo that, set drift to Repair, or change the object in the mailbox")
	case decision.Cause == plan.Drifted:
		return newStep(Unknown, "Drifted", "the hub does not own %s there; it repairs changes by other writers, and keeps fields that the cluster does not store", wording.First(maxListed, decision.Fields))
	case beyond != nil && isChanged:
		return newStep(Stopped, beyond.Reason, "it may be among the objects beyond a limit, and is left as it is: %s", sentence(beyond.Message))
	case beyond != nil && differing != "":
		return newStep(Unknown, beyond.Reason, "values differ at %s; it may be among the objects beyond a limit: %s", differing, sentence(beyond.Message))
	case isChanged:
		return newStep(Waiting, "Changed", "the hub is about to write it again")
	case differing != "":
		return newStep(Unknown, "", "values differ at %s; either the cluster writes them in another form, or the hub is about to apply them", differing)
	case deferred != "":
		return newStep(Waiting, "LeftToTarget", "left to the target until the next change in the mailbox, since ignoreFields named it before: %s", deferred).
			advise("to apply the mailbox's value now, change anything in the object there")
	default:
		return newStep(OK, "", "it equals the object of the mailbox")
	}
}

// isComparable reports whether the target has the hub's copy of the object, and the rules are known.
func (o *observation) isComparable() bool {
	return o.goesDown && o.planned.Decision.Cause != plan.ExcludedByUpsync && o.copied != nil && o.published != nil
}

// explainTakenName explains that the cluster's object of this name is the copy of another source.
func explainTakenName(from ownership.Source, key types.NamespacedName) *Step {
	if from.Namespace == key.Namespace && from.Name == key.Name {
		return newStep(Stopped, plan.ReasonConflict, "the cluster's object is the copy of a former object of this name, which the hub may not remove").
			advise("remove it there, or choose another name")
	}
	return newStep(Stopped, plan.ReasonConflict, "the cluster's object came from another one of the mailbox: %s %s/%s", from.Resource, from.Namespace, from.Name).
		advise("give one of them another name")
}

// deferredFields describes the differences in fields that the hub leaves to the target until the source changes. It
// does not show values of a Secret.
func deferredFields(o *observation, desired *transform.Desired) (texts []string) {
	full, err := o.planner.Down.Desired(o.Object.Value, o.down.Spec)
	if err != nil {
		return nil
	}
	secrets := schema.GroupResource{Resource: "secrets"}
	for _, field := range desired.DeferredFields {
		mailbox, target := field.Path.Values(full.Object.Object), field.Path.Values(o.Target.Value.Object)
		switch {
		case apiequality.Semantic.DeepEqual(mailbox, target):
		case o.resource().GroupResource() == secrets || o.ref.GroupResource() == secrets:
			texts = append(texts, fmt.Sprintf("%s differs", field.Path))
		default:
			texts = append(texts, fmt.Sprintf("%s is %s on the target and %s in the mailbox", field.Path, shortValues(target), shortValues(mailbox)))
		}
	}
	return texts
}

// shortValues formats the values at a path as JSON and truncates long ones.
func shortValues(values []any) string {
	const limit = 64
	content, err := json.Marshal(values)
	if len(values) == 0 || err != nil {
		return "absent"
	}
	text := []rune(strings.Trim(string(content), "[]"))
	if len(text) > limit {
		return string(text[:limit]) + "…"
	}
	return string(text)
}

// explainStatus explains whether the hub returns the status to the mailbox.
func explainStatus(o *observation) *Step {
	switch {
	case !o.isComparable():
		return nil
	case o.resource().Native:
		return newStep(OK, "", "kcp keeps the status of such objects itself, so none comes back")
	case !o.resource().StatusReturn:
		return newStep(OK, "", "none comes back: statusReturn of the PublishedResource is false")
	case !o.selected.StatusReturn:
		return newStep(OK, "", "none comes back: statusReturn is false in all configs that select it")
	}
	mailbox := o.Object.Value
	status, _, err := o.planner.MailboxStatus(mailbox, plan.StatusReturn{
		OnTarget: o.Target.Value, Applied: true, Selection: o.down.Selection, SyncTarget: o.down.Spec.Inputs.SyncTarget,
	})
	switch {
	case err != nil:
		return errorStep(err)
	case transform.EqualStatus(transform.StatusOf(mailbox.Object["status"]), status):
		return newStep(OK, "", "the mailbox shows the cluster's status")
	default:
		return newStep(Waiting, "", "the mailbox does not show the cluster's status yet")
	}
}
