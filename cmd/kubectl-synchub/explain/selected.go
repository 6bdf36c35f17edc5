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
	"errors"
	"fmt"
	"strings"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
)

// maxListed is the maximum number of configs or fields in a message.
const maxListed = 3

// explainSelection explains which configs select the object, or why the closest entry does not.
func (e *explainer) explainSelection() {
	object := e.facts.Object.Value
	if object == nil || !e.isMailboxReadable() || object.GetDeletionTimestamp() != nil || e.explainNoDownsync() {
		return
	}
	switch {
	case e.facts.Configs.Err != nil && !e.isSelected:
		e.addStep(StepSelected, Unknown, "the configs of the mailbox cannot be read: %s", inOneLine(e.facts.Configs.Err))
	case e.isSelected && e.selected.Suspended:
		e.addStep(StepSelected, Stopped, "all configs that select it are suspended: %s", joinFirst(e.selected.Configs)).
			withReason("Suspended").withAdvice("set spec.suspend of one of them to false")
	case e.isSelected:
		e.addStep(StepSelected, OK, "%s", e.selectionMessage())
	case e.relation() != "":
		e.addStep(StepSelected, OK, "no config selects it; it went down because it is related to another object, by %s", e.relation())
	default:
		e.explainNearestEntry()
	}
}

// explainNoDownsync explains an object that the hub never downsyncs. It reports whether the object is one.
func (e *explainer) explainNoDownsync() bool {
	switch reason := e.noDownsyncReason(); {
	case reason == plan.NoDownsyncUpsynced:
		e.addStep(StepSelected, OK, "it came up from the cluster, where it is %s; so it does not go down", strings.TrimPrefix(e.source.Source.Namespace+"/"+e.source.Source.Name, "/"))
	case reason == plan.NoDownsyncMailboxAccess:
		e.addStep(StepSelected, Stopped, "it gives users their rights in the mailbox, by spec.mailboxAccess of the SyncTarget; such bindings never go down")
	case reason == plan.NoDownsyncEnsured, e.owner.Hub == "" && e.facts.Object.Value.GetAnnotations()[ownership.EnsuredAnnotation] != "":
		e.addStep(StepSelected, Stopped, "the hub created this namespace only for upsynced objects; it does not go down")
	default:
		return false
	}
	return true
}

// noDownsyncReason returns why the hub never downsyncs the object. It is empty if the hub may.
func (e *explainer) noDownsyncReason() plan.NoDownsyncReason {
	if e.facts.Object.Value == nil {
		return ""
	}
	return plan.WhyNotDownsynced(e.owner, e.facts.Object.Value)
}

// selectionMessage names the configs that select the object, with the first entry of each.
func (e *explainer) selectionMessage() string {
	described := e.resource().SelectionObject(e.facts.Object.Value)
	var entries []string
	for _, reading := range e.matcher.Explain(described) {
		if reading.Why == "" {
			entries = append(entries, reading.Config+" "+reading.Field)
		}
	}
	if len(entries) == 0 {
		return "the PublishedResource selects all objects of it"
	}
	text := "selected by " + joinFirst(entries)
	if len(e.selected.Overruled) > 0 {
		text += "; an older one decides its name, not " + joinFirst(e.selected.Overruled)
	}
	return text
}

// explainNearestEntry explains why the closest entry does not select the object.
func (e *explainer) explainNearestEntry() {
	what, do := "no config of the mailbox names "+e.facts.Resource.String(), "select it in a SyncerConfig of the mailbox"
	if e.publishedResource != nil && e.publishedResource.Spec.Select == synchubv1alpha1.SelectAll {
		what = "the PublishedResource selects all objects, but not what Kubernetes itself makes in each cluster, and " + what
	}
	if readings := e.matcher.Explain(e.resource().SelectionObject(e.facts.Object.Value)); len(readings) > 0 {
		nearest := readings[0]
		if nearest.Why == "" {
			nearest.Why = "it is not published"
		}
		what = fmt.Sprintf("no config selects it; nearest comes %s %s, but %s", nearest.Config, nearest.Field, nearest.Why)
	}
	switch others := e.relatedEntries(); {
	case len(others) > 0:
		do += "; it also goes down if it is related to an object that does, by " + joinFirst(others)
	case e.facts.Published.Err != nil:
		do += "; whether it could go down with another object, to which it is related, cannot be seen"
	}
	switch {
	case e.observed != nil && plan.IsUpsyncedBy(e.owner.ForPlacements(), e.facts.Object.Value):
		what += "; by its mark, which only the hub can verify, a placement put it into the mailbox: if so, the hub keeps it on the cluster and writes the config for placements again"
		do = "wait, and look at the log of the hub if the config does not come back"
	case e.observed != nil:
		what += fmt.Sprintf("; it goes from the cluster once that is verified, with the policy %s", e.observed.Mark.Policy)
	}
	e.addStep(StepSelected, Stopped, "%s", what).withReason("NotSelected").withAdvice("%s", do)
}

// explainFilter explains whether the filter of the PublishedResource lets the object pass.
func (e *explainer) explainFilter() {
	switch state := e.down.State; {
	case !e.isSelected || e.selected.Suspended || !e.isMailboxReadable() || state == plan.Terminating || e.noDownsyncReason() != "":
	case e.publishedResource == nil:
		e.addStep(StepFilter, Unknown, "whether a filter of the PublishedResource holds it back cannot be seen")
	case e.filterErr != nil:
		e.addStep(StepFilter, Unknown, "the labels of its namespace, for which spec.filter asks, cannot be seen")
	case e.resource().GetRules().Filter == nil:
	case e.down.Err != nil:
		e.addStep(StepFilter, Stopped, "spec.filter of the PublishedResource %s fails: %s", e.publishedResource.Name, inOneLine(errors.Unwrap(e.down.Err))).withReason(plan.ReasonRuleFailed)
	case state == plan.Selected:
		e.addStep(StepFilter, OK, "spec.filter of the PublishedResource lets it pass")
	case e.relation() != "":
		e.addStep(StepFilter, OK, "spec.filter of the PublishedResource %s does not let it pass, but it went down because it is related to another object, by %s", e.publishedResource.Name, e.relation())
	default:
		e.addStep(StepFilter, Stopped, "spec.filter of the PublishedResource %s holds it back", e.publishedResource.Name).withReason("Filtered").
			withAdvice("change its labels, the labels of its namespace, or the fields that the filter's expression reads")
	}
}

// explainName explains the name of the object on the target.
func (e *explainer) explainName() {
	if !e.goesDown() {
		return
	}
	isConverted := e.resource().Kind != "" && e.targetRef.Kind != e.resource().Kind
	switch err := e.down.DestinationErr; {
	case err != nil:
		e.addStep(StepName, Stopped, "%s", inOneLine(err)).withReason(observe.ReasonFor(err))
	case e.isExcluded():
		e.addStep(StepName, Stopped, "its object on the cluster is selected for upsync as well, so it does not go down").withReason("SelectedUp").
			withAdvice("take it out of upsync, or do not select it for going down")
	case isConverted || e.targetRef.NamespacedName != e.facts.Key:
		e.addStep(StepName, OK, "on the cluster it is the %s %s", cmp.Or(e.targetRef.Kind, e.targetRef.Resource), e.targetRef.displayName())
	case e.publishedResource == nil:
		e.addStep(StepName, Unknown, "whether the PublishedResource gives it another name cannot be seen")
	}
}

func joinFirst(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}
