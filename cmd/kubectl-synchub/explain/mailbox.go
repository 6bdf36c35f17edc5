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
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// explainPublished explains whether the resource is published and whether the mailbox serves it.
func (e *explainer) explainPublished() {
	if e.facts.Published.Err == nil && e.publishedResource == nil {
		e.explainUnpublished()
		return
	}
	if missing := e.apisMissingCondition(); missing != nil {
		e.addStep(StepPublished, Stopped, "the mailbox does not have the published API %s: %s", e.facts.Resource, sentence(missing.Message)).withReason(missing.Reason)
		return
	}
	switch served := e.facts.Served; {
	case served.Err == nil && served.Value == nil && e.publishedResource != nil && e.notReadyCondition() != nil:
		// The error of the PublishedResource is the better explanation.
	case served.Err == nil && served.Value == nil:
		e.addStep(StepPublished, Stopped, "the mailbox does not serve %s", e.facts.Resource).
			withAdvice("it must be published by a PublishedResource in the hosting cluster, or asked for by its name in mailboxes")
		return
	}
	if e.publishedResource == nil {
		e.addStep(StepPublished, Unknown, "which PublishedResource is about it cannot be seen: %s", inOneLine(e.facts.Published.Err)).
			withAdvice("give -f, or --hosting-kubeconfig")
		return
	}
	name := e.publishedResource.Name
	if ready := e.notReadyCondition(); ready != nil {
		e.addStep(StepPublished, Stopped, "the PublishedResource %s is not ready: %s", name, sentence(ready.Message)).withReason(ready.Reason)
		return
	}
	if e.compileError != nil {
		e.addStep(StepPublished, Stopped, "the PublishedResource %s is wrong: %s", name, inOneLine(e.compileError)).withReason("Invalid")
		return
	}
	e.addStep(StepPublished, OK, "the PublishedResource %s publishes it%s", name, e.targetDescription())
}

// targetDescription describes the resource on the target, as far as it differs from the mailbox or the hub chose its
// version.
func (e *explainer) targetDescription() (what string) {
	if target := e.resource().WithTargetVersion("").TargetAPI(); target.GroupVersionResource != e.resource().GroupVersionResource || target.Kind != e.resource().Kind {
		what += ", on targets as " + target.Kind + " (" + target.GroupVersionResource.GroupVersion().String() + ")"
	}
	if e.version != "" {
		what += "; it is written " + e.version
	}
	return what
}

// apisMissingCondition returns the SyncTarget's condition that its mailbox lacks the published API, or nil. The
// mailbox then serves another API of the same name.
func (e *explainer) apisMissingCondition() *metav1.Condition {
	missing := meta.FindStatusCondition(e.facts.SyncTarget.Status.Conditions, edgev2alpha1.ConditionAPIsMissing)
	if missing == nil || missing.Status != metav1.ConditionTrue {
		return nil
	}
	// The names precede the colon.
	names, _, _ := strings.Cut(missing.Message, ":")
	if !slices.Contains(strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' }), e.facts.Resource.String()) {
		return nil
	}
	return missing
}

// notReadyCondition returns the condition of the PublishedResource that is not True, or nil. A PublishedResource from
// a file has no conditions.
func (e *explainer) notReadyCondition() *metav1.Condition {
	ready := meta.FindStatusCondition(e.publishedResource.Status.Conditions, synchubv1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return nil
	}
	return ready
}

// explainUnpublished explains a resource that no PublishedResource publishes.
func (e *explainer) explainUnpublished() {
	if relation := e.relation(); relation != "" {
		e.addStep(StepPublished, OK, "no PublishedResource is about it; it travels with objects of another, by %s", relation)
		return
	}
	if other := publishedresource.FindOldest(e.facts.Published.Value, publishedresource.OnTarget, e.facts.Resource, e.resource().Kind); other != nil {
		mailbox := publishedresource.InMailbox(&other.Spec)
		e.addStep(StepPublished, Stopped, "the PublishedResource %s gives it another name in mailboxes: %s (%s)", other.Name, cmp.Or(mailbox.Resource, mailbox.Kind), cmp.Or(mailbox.Group, "core")).
			withAdvice("ask for that")
		return
	}
	step := e.addStep(StepPublished, Stopped, "no PublishedResource publishes %s", e.facts.Resource).withReason("NotPublished")
	if others := e.relatedEntries(); len(others) > 0 {
		step.withAdvice("it goes down only with related objects, by %s", strings.Join(others, ", "))
		return
	}
	step.withAdvice("make one in the hosting cluster")
}

// isMailboxReadable reports whether the mailbox is readable and serves the resource.
func (e *explainer) isMailboxReadable() bool {
	return e.facts.Served.Err == nil && e.facts.Served.Value != nil
}

// explainObject explains whether the object is in the mailbox.
func (e *explainer) explainObject() {
	if !e.isMailboxReadable() {
		return
	}
	object := e.facts.Object.Value
	switch {
	case e.facts.Object.Err != nil:
		e.addStep(StepObject, Unknown, "it cannot be read in the mailbox: %s", inOneLine(e.facts.Object.Err))
	case object == nil:
		e.explainMissingObject()
	case object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), plan.Finalizer):
		e.addStep(StepObject, Waiting, "it is being deleted, and waits in the mailbox until it is gone from the cluster").withReason("Terminating")
	case object.GetDeletionTimestamp() != nil:
		e.addStep(StepObject, Stopped, "it is being deleted in the mailbox, and so it goes from the cluster").withReason("Terminating")
	default:
		e.addStep(StepObject, OK, "it is in the mailbox")
	}
}

// explainMissingObject explains an object that is not in the mailbox but may be on the target.
func (e *explainer) explainMissingObject() {
	switch decision := e.planned.Decision; {
	case e.observed == nil:
		e.explainUpsync()
	case decision.Cause == plan.FormerMailbox:
		e.addStep(StepObject, Stopped, "it is not in the mailbox; the object on the cluster came from a mailbox that was lost, and is kept until the SyncTarget is drained")
	case decision.Cause == plan.Restored:
		e.addStep(StepObject, Stopped, "it is not in the mailbox; the object on the cluster was made from a backup of the hub's copy, so the hub does not delete it").withReason(string(plan.Restored)).
			withAdvice("delete it there, or take its label %s and its annotation %s off", ownership.OwnerLabel, ownership.MarkAnnotation)
	case decision.Cause == plan.Cause(plan.Suspended):
		e.addStep(StepObject, Stopped, "it is not in the mailbox any more; all that selects its name is suspended, so it is left on the cluster").withReason("Suspended")
	default:
		e.addStep(StepObject, Waiting, "it is not in the mailbox any more; once that is verified it goes from the cluster, with the policy %s", e.observed.Mark.Policy)
	}
}

// explainUpsync explains an object that is not in the mailbox although the target has one, which a config may select for upsync.
func (e *explainer) explainUpsync() {
	switch target := e.facts.Target.Value; {
	case e.up == nil:
		e.addStep(StepObject, Stopped, "there is no such object in the mailbox").withAdvice("make it there")
	case plan.IsNeverUpsynced(e.owner, target):
		e.addStep(StepObject, Stopped, "it is not in the mailbox; a config selects it for coming up from the cluster, but by its label or mark a hub brought it there, "+
			"and such objects are never upsynced").withReason("BroughtByHub")
	case e.up.Err != nil:
		e.addStep(StepObject, Stopped, "it does not come up from the cluster, though a config selects it: %s", inOneLine(e.up.Err)).withReason(observe.ReasonFor(e.up.Err))
	default:
		e.addStep(StepObject, Waiting, "it is not in the mailbox; a config selects it for coming up from the cluster")
	}
}
