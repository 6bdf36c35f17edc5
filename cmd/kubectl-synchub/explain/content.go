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

	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/path"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

// travels tells whether the object belongs on the target.
func (e *explainer) travels() bool {
	return e.goesDown || e.facts.Object.It != nil && e.relation() != ""
}

// lookAtTarget tells what the target has.
func (e *explainer) lookAtTarget() {
	switch {
	case e.placeError != nil:
		return
	case e.facts.Target.Error != nil:
		e.say(StepTarget, Unknown, "the cluster cannot be asked: %s", inOneLine(e.facts.Target.Error)).do("give --target-kubeconfig")
	case e.facts.Target.It == nil:
		e.lookAtNothing()
	case e.source != nil:
		e.say(StepTarget, OK, "the cluster has it")
	case e.observed == nil && e.travels():
		e.say(StepTarget, Stopped, "the cluster has an object of this name that is not the mailbox's: %s", whose(e.whose)).because(sync.ReasonConflict).
			do("remove it there, choose another name, or let spec.adoption of the PublishedResource or of the SyncTarget take it over")
	case e.observed == nil:
		e.say(StepTarget, OK, "the cluster has an object of this name that is not the mailbox's: %s", whose(e.whose))
	case e.observed.Terminating:
		e.say(StepTarget, Waiting, "it is being deleted on the cluster; then it is made again, if it still belongs there").because("Terminating")
	default:
		e.say(StepTarget, OK, "the cluster has it, with the hub's mark")
	}
}

// lookAtNothing tells of an object that the target does not have.
func (e *explainer) lookAtNothing() {
	switch {
	case e.source != nil:
		e.say(StepTarget, Waiting, "the cluster does not have it any more; once that is proven it goes from the mailbox")
	case e.travels() && e.facts.SyncTarget.Spec.Unschedulable:
		e.say(StepTarget, Stopped, "the cluster does not have %s, and nothing new is made there while the SyncTarget is cordoned", e.place.called()).
			because(sync.ReasonTargetCordoned).do("kubectl synchub uncordon %s", e.facts.SyncTarget.Name)
	case e.travels():
		e.say(StepTarget, Waiting, "the cluster does not have %s yet", e.place.called()).do("if that stays so, look whether the hub runs")
	default:
		e.say(StepTarget, OK, "the cluster does not have it")
	}
}

func whose(reason error) string {
	if errors.Is(reason, ownership.ErrUnmarked) {
		return "it has no mark of the hub"
	}
	return inOneLine(reason)
}

// lookAtContent tells whether the target's object is what the mailbox's says. The hub decides by a hash, of which nobody else
// has the key; here the fields are compared.
func (e *explainer) lookAtContent() {
	if !e.goesDown || e.observed == nil || e.observed.Terminating {
		return
	}
	wish := e.wish()
	wish.Relation = e.observed.Mark.Relation
	desired, err := e.down().DesireObserved(e.facts.Object.It, wish, e.observed.Mark, func(before *transform.Desired) bool {
		return len(e.differing(before.Object.Object)) == 0
	})
	if err != nil {
		e.say(StepContent, Stopped, "%s", inOneLine(err)).because(sync.ReasonRuleFailed)
		return
	}
	decision, err := decide.Down(decide.Source{State: decide.InStep, Desired: desired.HeldAs(e.observed.Mark)}, e.observed, nil)
	if err != nil {
		e.say(StepContent, Unknown, "it cannot be compared: %s", inOneLine(err))
		return
	}
	e.tellContent(decision, desired)
}

func (e *explainer) tellContent(decision decide.Decision, desired *transform.Desired) {
	differing := e.differing(desired.Object.Object)
	deferred := e.deferred(desired)
	beyond := e.beyondLimits()
	switch {
	case decision.Cause == decide.Taken:
		from := e.observed.Mark.Source
		e.say(StepContent, Stopped, "the cluster's object came from another one of the mailbox: %s %s", from.Resource, types.NamespacedName{Namespace: from.Namespace, Name: from.Name}).
			because(sync.ReasonConflict).do("give one of them another name")
	case desired.Mark.Policy == ownership.PolicyCreateOnly:
		e.say(StepContent, OK, "it was to be created once, and is left alone since then")
	case decision.Cause == decide.Drifted:
		e.say(StepContent, Unknown, "the hub does not hold %s there; it repairs what others change, and leaves what the cluster does not keep", firstOf(decision.Fields)).because("Drifted")
	case beyond != nil && decision.Cause == decide.Changed:
		e.say(StepContent, Stopped, "it may be among what is beyond a limit, and is left as it is: %s", sentence(beyond.Message)).because(beyond.Reason)
	case beyond != nil && len(differing) > 0:
		e.say(StepContent, Unknown, "values differ at %s; it may be among what is beyond a limit: %s", firstOf(differing), sentence(beyond.Message)).because(beyond.Reason)
	case decision.Cause == decide.Changed:
		e.say(StepContent, Waiting, "the hub is about to write it anew").because("Changed")
	case e.publisher == nil:
		e.say(StepContent, Unknown, "whether it is in step cannot be told without the PublishedResource")
	case len(differing) > 0:
		e.say(StepContent, Unknown, "values differ at %s; either the cluster writes them in another form, or the hub is about to apply them", firstOf(differing))
	case len(deferred) > 0:
		e.say(StepContent, Waiting, "left to the target until the next change in the mailbox, since ignoreFields named it before: %s", firstOf(deferred)).
			because("LeftToTarget").do("to apply the mailbox's value now, change anything in the object there")
	default:
		e.say(StepContent, OK, "it is what the mailbox says")
	}
}

// deferred says of the fields that are left to the target until the source changes how they differ. In a Secret that stays
// untold.
func (e *explainer) deferred(desired *transform.Desired) (texts []string) {
	if len(desired.Deferred) == 0 {
		return nil
	}
	wish := e.wish()
	wish.Relation = e.observed.Mark.Relation
	wanted, err := e.down().Desire(e.facts.Object.It, wish)
	if err != nil {
		return nil
	}
	for _, field := range desired.Deferred {
		mailbox, target := field.Path.Values(wanted.Object.Object), field.Path.Values(e.facts.Target.It.Object)
		switch {
		case apiequality.Semantic.DeepEqual(mailbox, target):
		case e.resource.GroupResource() == secrets || e.place.GroupResource() == secrets:
			texts = append(texts, fmt.Sprintf("%s differs", field.Path))
		default:
			texts = append(texts, fmt.Sprintf("%s is %s on the target and %s in the mailbox", field.Path, inShort(target), inShort(mailbox)))
		}
	}
	return texts
}

var secrets = schema.GroupResource{Resource: "secrets"}

// inShort writes the values that a path leads to as JSON, cut where they are long.
func inShort(values []any) string {
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

// differing returns the paths where the target has other values.
func (e *explainer) differing(desired map[string]any) []string {
	actual := e.facts.Target.It.Object
	return slices.DeleteFunc(transform.Missing(desired, actual), func(path string) bool {
		return strings.Contains(path, "synchub.dev") || isSameQuantity(path, desired, actual)
	})
}

// isSameQuantity tells whether two objects have the same quantity at a path. API servers write them in a form of their own.
func isSameQuantity(at string, one, other map[string]any) bool {
	parsed, err := path.Parse(strings.TrimPrefix(at, "."))
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

// lookAtStatus tells whether the status comes back.
func (e *explainer) lookAtStatus() {
	if !e.goesDown || e.observed == nil {
		return
	}
	switch {
	case e.resource.Native:
		e.say(StepStatus, OK, "kcp keeps the status of such objects itself, so none comes back")
	case !e.resource.StatusReturn:
		e.say(StepStatus, OK, "none comes back: statusReturn of the PublishedResource is false")
	case !e.selected.StatusReturn:
		e.say(StepStatus, OK, "none comes back: statusReturn is false in all configs that select it")
	case e.publisher == nil || e.resource.Rules != nil && e.resource.Rules.Up != nil:
		e.say(StepStatus, Unknown, "whether the status came back cannot be compared, since rules may change it on its way")
	case e.isStatusBack():
		e.say(StepStatus, OK, "the mailbox shows the cluster's status")
	default:
		e.say(StepStatus, Waiting, "the mailbox does not show the cluster's status yet")
	}
}

func (e *explainer) isStatusBack() bool {
	above, below := e.facts.Object.It, e.facts.Target.It
	wanted := e.resource.StatusAbove(above, below, true)
	return apiequality.Semantic.DeepEqual(transform.PlainStatus(above.Object["status"]), wanted)
}
