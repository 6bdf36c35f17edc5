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

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
)

// explainTarget explains which object the target has.
func (e *explainer) explainTarget() {
	switch {
	case e.targetRefErr != nil:
		return
	case e.facts.Target.Err != nil:
		e.addStep(StepTarget, Unknown, "the cluster cannot be asked: %s", inOneLine(e.facts.Target.Err)).withAdvice("give --target-kubeconfig")
	case e.facts.Target.Value == nil:
		e.explainAbsent()
	case e.source != nil:
		e.addStep(StepTarget, OK, "the cluster has it")
	case e.observed == nil && e.belongsOnTarget():
		e.addStep(StepTarget, Stopped, "the cluster has an object of this name that is not the mailbox's: %s", ownerMessage(e.notOwnedErr)).withReason(plan.ReasonConflict).
			withAdvice("remove it there, choose another name, or let spec.adoption of the PublishedResource or of the SyncTarget take it over")
	case e.observed == nil:
		e.addStep(StepTarget, OK, "the cluster has an object of this name that is not the mailbox's: %s", ownerMessage(e.notOwnedErr))
	case e.observed.Terminating:
		e.addStep(StepTarget, Waiting, "it is being deleted on the cluster; then it is made again, if it still belongs there").withReason("Terminating")
	default:
		e.addStep(StepTarget, OK, "the cluster has it, with the hub's mark")
	}
}

// explainAbsent explains why the target does not have the object.
func (e *explainer) explainAbsent() {
	switch {
	case e.source != nil:
		e.addStep(StepTarget, Waiting, "the cluster does not have it any more; once that is verified it goes from the mailbox")
	case e.belongsOnTarget() && e.facts.SyncTarget.Spec.Unschedulable:
		e.addStep(StepTarget, Stopped, "the cluster does not have %s, and nothing new is made there while the SyncTarget is cordoned", e.targetRef.displayName()).
			withReason(plan.ReasonTargetCordoned).withAdvice("kubectl synchub uncordon %s", e.facts.SyncTarget.Name)
	case e.belongsOnTarget() && e.hasFinished():
		e.addStep(StepTarget, OK, "it has run to completion there, and was removed since; the hub runs it again once it changes, or is made again").withReason(string(plan.Finished))
	case e.belongsOnTarget():
		e.addStep(StepTarget, Waiting, "the cluster does not have %s yet", e.targetRef.displayName()).withAdvice("if that stays so, look whether the hub runs")
	default:
		e.addStep(StepTarget, OK, "the cluster does not have it")
	}
}

// hasFinished reports whether the hub noted that the object has run to completion.
func (e *explainer) hasFinished() bool { return e.planned.Decision.Cause == plan.Finished }

func ownerMessage(reason error) string {
	if errors.Is(reason, ownership.ErrUnmarked) {
		return "it has no mark of the hub"
	}
	return inOneLine(reason)
}

// explainContent explains whether the target's object equals the desired one. The hub compares hashes with a key that
// only the hub has; explainContent compares the fields.
func (e *explainer) explainContent() {
	if !e.goesDown() || e.isExcluded() || e.observed == nil || e.observed.Terminating || e.down.DestinationErr != nil || e.down.Err != nil {
		return
	}
	switch planned := e.planned; {
	case planned.Desired == nil:
		e.addStep(StepContent, Stopped, "%s", inOneLine(planned.Err)).withReason(observe.ReasonFor(planned.Err))
	case planned.Err != nil:
		e.addStep(StepContent, Unknown, "it cannot be compared: %s", inOneLine(planned.Err))
	default:
		e.explainDecision(planned.Decision, planned.Desired)
	}
}

func (e *explainer) explainDecision(decision plan.Decision, desired *transform.Desired) {
	differing := e.differingPaths(desired.Object.Object)
	deferred := e.deferredFields(desired)
	beyond := e.beyondLimits()
	switch {
	case decision.Cause == plan.Superseded:
		e.addStep(StepContent, Waiting, "the cluster has the copy of a former object of this name; the hub removes that first, and then makes this one").withReason(string(plan.Superseded))
	case decision.Cause == plan.NameTaken:
		e.explainTakenName(e.observed.Mark.Source)
	case desired.Mark.Policy == ownership.PolicyCreateOnly:
		e.addStep(StepContent, OK, "it was to be created once, and is left alone since then")
	case decision.Cause == plan.Drifted:
		e.addStep(StepContent, Unknown, "the hub does not own %s there; it repairs changes by others, and leaves fields that the cluster does not keep", joinFirst(decision.Fields)).withReason("Drifted")
	case beyond != nil && decision.Cause == plan.Changed:
		e.addStep(StepContent, Stopped, "it may be among the objects beyond a limit, and is left as it is: %s", sentence(beyond.Message)).withReason(beyond.Reason)
	case beyond != nil && len(differing) > 0:
		e.addStep(StepContent, Unknown, "values differ at %s; it may be among the objects beyond a limit: %s", joinFirst(differing), sentence(beyond.Message)).withReason(beyond.Reason)
	case decision.Cause == plan.Changed, decision.Cause == plan.Restored:
		e.addStep(StepContent, Waiting, "the hub is about to write it anew").withReason("Changed")
	case e.publishedResource == nil:
		e.addStep(StepContent, Unknown, "whether it is in sync cannot be told without the PublishedResource")
	case len(differing) > 0:
		e.addStep(StepContent, Unknown, "values differ at %s; either the cluster writes them in another form, or the hub is about to apply them", joinFirst(differing))
	case len(deferred) > 0:
		e.addStep(StepContent, Waiting, "left to the target until the next change in the mailbox, since ignoreFields named it before: %s", joinFirst(deferred)).
			withReason("LeftToTarget").withAdvice("to apply the mailbox's value now, change anything in the object there")
	default:
		e.addStep(StepContent, OK, "it is what the mailbox says")
	}
}

// explainTakenName explains that the cluster's object of this name is the copy of another source.
func (e *explainer) explainTakenName(from ownership.Source) {
	name := types.NamespacedName{Namespace: from.Namespace, Name: from.Name}
	if name == e.facts.Key {
		e.addStep(StepContent, Stopped, "the cluster's object is the copy of a former object of this name, which the hub may not remove").
			withReason(plan.ReasonConflict).withAdvice("remove it there, or choose another name")
		return
	}
	e.addStep(StepContent, Stopped, "the cluster's object came from another one of the mailbox: %s %s", from.Resource, name).
		withReason(plan.ReasonConflict).withAdvice("give one of them another name")
}

// deferredFields describes the differences in fields that the hub leaves to the target until the source changes. It
// does not show values of a Secret.
func (e *explainer) deferredFields(desired *transform.Desired) (texts []string) {
	if len(desired.DeferredFields) == 0 {
		return nil
	}
	full, err := e.planner.Down.Desired(e.facts.Object.Value, e.down.Spec)
	if err != nil {
		return nil
	}
	for _, field := range desired.DeferredFields {
		mailbox, target := field.Path.Values(full.Object.Object), field.Path.Values(e.facts.Target.Value.Object)
		switch {
		case apiequality.Semantic.DeepEqual(mailbox, target):
		case e.resource().GroupResource() == secrets || e.targetRef.GroupResource() == secrets:
			texts = append(texts, fmt.Sprintf("%s differs", field.Path))
		default:
			texts = append(texts, fmt.Sprintf("%s is %s on the target and %s in the mailbox", field.Path, shortValues(target), shortValues(mailbox)))
		}
	}
	return texts
}

var secrets = schema.GroupResource{Resource: "secrets"}

// shortValues formats the values at a path as JSON and truncates long ones.
func shortValues(values []any) string {
	const limit = 64
	if len(values) == 0 {
		return "absent"
	}
	var texts []string
	for _, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return "unknown"
		}
		texts = append(texts, string(text))
	}
	text := []rune(strings.Join(texts, ", "))
	if len(text) > limit {
		return string(text[:limit]) + "…"
	}
	return string(text)
}

// differingPaths returns the paths at which the target has other values.
func (e *explainer) differingPaths(desired map[string]any) []string {
	actual := e.facts.Target.Value.Object
	return slices.DeleteFunc(transform.MissingPaths(desired, actual), func(path string) bool {
		return strings.Contains(path, "synchub.dev") || isSameQuantity(path, desired, actual)
	})
}

// isSameQuantity reports whether two objects have the same quantity at a path. API servers write quantities in
// canonical form.
func isSameQuantity(at string, one, other map[string]any) bool {
	parsed, err := fieldpath.Parse(strings.TrimPrefix(at, "."))
	if err != nil {
		return false
	}
	first, second := parsed.Values(one), parsed.Values(other)
	if len(first) != 1 || len(second) != 1 {
		return false
	}
	a, errA := resource.ParseQuantity(fmt.Sprint(first[0]))
	b, errB := resource.ParseQuantity(fmt.Sprint(second[0]))
	return errA == nil && errB == nil && a.Cmp(b) == 0
}

// explainStatus explains whether the hub returns the status to the mailbox.
func (e *explainer) explainStatus() {
	if !e.goesDown() || e.isExcluded() || e.observed == nil {
		return
	}
	switch {
	case e.resource().Native:
		e.addStep(StepStatus, OK, "kcp keeps the status of such objects itself, so none comes back")
	case !e.resource().StatusReturn:
		e.addStep(StepStatus, OK, "none comes back: statusReturn of the PublishedResource is false")
	case !e.selected.StatusReturn:
		e.addStep(StepStatus, OK, "none comes back: statusReturn is false in all configs that select it")
	case e.publishedResource == nil:
		e.addStep(StepStatus, Unknown, "whether the status came back cannot be compared, since rules may change it on its way")
	default:
		e.compareStatus()
	}
}

// compareStatus explains whether the mailbox object has the status that the hub returns.
func (e *explainer) compareStatus() {
	mailbox := e.facts.Object.Value
	onTarget, err := e.observer.ReturnedStatus(e.facts.Target.Value, mailbox, e.down.Selection)
	switch {
	case err != nil:
		e.addStep(StepStatus, Stopped, "%s", inOneLine(err)).withReason(observe.ReasonFor(err))
	case transform.EqualStatus(transform.StatusOf(mailbox.Object["status"]), e.resource().MailboxStatus(mailbox, onTarget, true)):
		e.addStep(StepStatus, OK, "the mailbox shows the cluster's status")
	default:
		e.addStep(StepStatus, Waiting, "the mailbox does not show the cluster's status yet")
	}
}
