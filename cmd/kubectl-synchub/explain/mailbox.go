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
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/controllers/sync"
)

// lookAtPublished tells whether the resource is published, and whether the mailbox has it.
func (e *explainer) lookAtPublished() {
	if e.facts.Published.Error == nil && e.publisher == nil {
		e.lookAtUnpublished()
		return
	}
	if missing := e.whyMissing(); missing != nil {
		e.say(StepPublished, Stopped, "the mailbox does not have what is published as %s: %s", e.facts.Resource, sentence(missing.Message)).because(missing.Reason)
		return
	}
	switch served := e.facts.Served; {
	case served.Error == nil && served.It == nil && e.publisher != nil && e.whyNotReady() != nil:
		// What is wrong with the PublishedResource tells more.
	case served.Error == nil && served.It == nil:
		e.say(StepPublished, Stopped, "the mailbox does not serve %s", e.facts.Resource).
			do("it must be published by a PublishedResource in the hosting cluster, or asked for by its name in mailboxes")
		return
	}
	if e.publisher == nil {
		e.say(StepPublished, Unknown, "which PublishedResource is about it cannot be seen: %s", inOneLine(e.facts.Published.Error)).
			do("give -f, or --hosting-kubeconfig")
		return
	}
	name := e.publisher.Name
	if ready := e.whyNotReady(); ready != nil {
		e.say(StepPublished, Stopped, "the PublishedResource %s is not ready: %s", name, sentence(ready.Message)).because(ready.Reason)
		return
	}
	if e.compileError != nil {
		e.say(StepPublished, Stopped, "the PublishedResource %s is wrong: %s", name, inOneLine(e.compileError)).because("Invalid")
		return
	}
	e.say(StepPublished, OK, "the PublishedResource %s publishes it%s", name, e.asWhat())
}

// asWhat says what the resource is on the target, as far as that is another thing or was chosen.
func (e *explainer) asWhat() (what string) {
	if below := e.resource.In("").OnTarget(); below.GroupVersionResource != e.resource.GroupVersionResource || below.Kind != e.resource.Kind {
		what += ", on targets as " + below.Kind + " (" + below.GroupVersionResource.GroupVersion().String() + ")"
	}
	if e.version != "" {
		what += "; it is written " + e.version
	}
	return what
}

// whyMissing returns the condition by which the SyncTarget says that its mailbox does not have the published API, nil if it does
// not. What the mailbox serves then is something else of that name.
func (e *explainer) whyMissing() *metav1.Condition {
	missing := meta.FindStatusCondition(e.facts.SyncTarget.Status.Conditions, edgev2alpha1.ConditionAPIsMissing)
	if missing == nil || missing.Status != metav1.ConditionTrue {
		return nil
	}
	// The names stand before the colon.
	names, _, _ := strings.Cut(missing.Message, ":")
	if !slices.Contains(strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' }), e.facts.Resource.String()) {
		return nil
	}
	return missing
}

// whyNotReady returns the condition by which the PublishedResource says that it is not ready. One that comes from a file says
// nothing.
func (e *explainer) whyNotReady() *metav1.Condition {
	ready := meta.FindStatusCondition(e.publisher.Status.Conditions, synchubv1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return nil
	}
	return ready
}

// lookAtUnpublished tells of a resource that no PublishedResource gives mailboxes.
func (e *explainer) lookAtUnpublished() {
	if relation := e.relation(); relation != "" {
		e.say(StepPublished, OK, "no PublishedResource is about it; it travels with objects of another, by %s", relation)
		return
	}
	onTarget := func(spec *synchubv1alpha1.PublishedResourceSpec) synchubv1alpha1.ResourceDescriptor {
		return spec.Resource
	}
	if other := e.publisherOf(onTarget, e.resource.Kind); other != nil {
		above := published.InMailbox(&other.Spec)
		e.say(StepPublished, Stopped, "the PublishedResource %s gives it another name in mailboxes: %s (%s)", other.Name, orElse(above.Resource, above.Kind), orElse(above.Group, "core")).
			do("ask for that")
		return
	}
	step := e.say(StepPublished, Stopped, "no PublishedResource publishes %s", e.facts.Resource).because("NotPublished")
	if others := e.relating(); len(others) > 0 {
		step.do("it goes down only with what is related to it, by %s", strings.Join(others, ", "))
		return
	}
	step.do("make one in the hosting cluster")
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// isMailboxOpen tells whether the mailbox can be looked into and has the resource.
func (e *explainer) isMailboxOpen() bool {
	return e.facts.Served.Error == nil && e.facts.Served.It != nil
}

// lookAtObject tells whether the object is in the mailbox.
func (e *explainer) lookAtObject() {
	if !e.isMailboxOpen() {
		return
	}
	object := e.facts.Object.It
	switch {
	case e.facts.Object.Error != nil:
		e.say(StepObject, Unknown, "it cannot be read in the mailbox: %s", inOneLine(e.facts.Object.Error))
	case object == nil:
		e.lookAtNoObject()
	case object.GetDeletionTimestamp() != nil && sync.IsHeld(object):
		e.say(StepObject, Waiting, "it is being deleted, and waits in the mailbox until it is gone from the cluster").because("Terminating")
	case object.GetDeletionTimestamp() != nil:
		e.say(StepObject, Stopped, "it is being deleted in the mailbox, and so it goes from the cluster").because("Terminating")
	default:
		e.say(StepObject, OK, "it is in the mailbox")
	}
}

// lookAtNoObject tells of an object that is not in the mailbox, but may be on the target.
func (e *explainer) lookAtNoObject() {
	switch {
	case e.observed != nil && e.observed.Former:
		e.say(StepObject, Stopped, "it is not in the mailbox; what is on the cluster came from a mailbox that was lost, and is kept until the SyncTarget is drained")
	case e.observed != nil && e.isFrozen():
		e.say(StepObject, Stopped, "it is not in the mailbox any more; all that selects its name is suspended, so it is left on the cluster").because("Suspended")
	case e.observed != nil:
		e.say(StepObject, Waiting, "it is not in the mailbox any more; once that is proven it goes from the cluster, with the policy %s", e.observed.Mark.Policy)
	case e.comesUp() && sync.StaysBelow(e.owner, e.facts.Target.It):
		e.say(StepObject, Stopped, "it is not in the mailbox; a config selects it for coming up from the cluster, but by its label or mark a hub brought it there, "+
			"and what a hub brought to a cluster comes up nowhere").because("BroughtByHub")
	case e.comesUp():
		e.lookAtComingUp()
	default:
		e.say(StepObject, Stopped, "there is no such object in the mailbox").do("make it there")
	}
}
