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
	"fmt"
	"strings"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
)

// few is how many configs or fields are told.
const few = 3

// lookAtSelection tells which configs select the object, or how the nearest entry misses it.
func (e *explainer) lookAtSelection() {
	object := e.facts.Object.It
	if object == nil || !e.isMailboxOpen() || object.GetDeletionTimestamp() != nil || e.stays() {
		return
	}
	switch {
	case e.facts.Configs.Error != nil && !e.isSelected:
		e.say(StepSelected, Unknown, "the configs of the mailbox cannot be read: %s", inOneLine(e.facts.Configs.Error))
	case e.isSelected && e.selected.Suspended:
		e.say(StepSelected, Stopped, "all configs that select it are suspended: %s", firstOf(e.selected.Configs)).
			because("Suspended").do("set spec.suspend of one of them to false")
	case e.isSelected:
		e.goesDown = true
		e.say(StepSelected, OK, "%s", e.whySelected())
	case e.relation() != "":
		e.say(StepSelected, OK, "no config selects it; it went down because it is related to another object, by %s", e.relation())
	default:
		e.lookAtNearest()
	}
}

// stays tells of an object that never goes down.
func (e *explainer) stays() bool {
	object := e.facts.Object.It
	switch stay := e.stay; {
	case stay == sync.StayCameUp:
		e.say(StepSelected, OK, "it came up from the cluster, where it is %s; so it does not go down", sourceName(e.source))
	case stay == sync.StayAccess:
		e.say(StepSelected, Stopped, "it gives users their rights in the mailbox, by spec.mailboxAccess of the SyncTarget; such bindings never go down")
	case stay == sync.StayEnsured, e.owner.Hub == "" && object.GetAnnotations()[ownership.EnsuredAnnotation] != "":
		e.say(StepSelected, Stopped, "the hub made this namespace only for what came up; it does not go down")
	default:
		return false
	}
	return true
}

func sourceName(mark *ownership.Mark) string {
	return strings.TrimPrefix(mark.Source.Namespace+"/"+mark.Source.Name, "/")
}

// whySelected names what selects the object, with the first entry of each config.
func (e *explainer) whySelected() string {
	described := e.resource.Describe(e.facts.Object.It)
	var entries []string
	for _, reading := range e.matcher.Readings(described) {
		if reading.Why == "" {
			entries = append(entries, reading.Config+" "+reading.Field)
		}
	}
	if len(entries) == 0 {
		return "the PublishedResource selects all objects of it"
	}
	text := "selected by " + firstOf(entries)
	if len(e.selected.Overruled) > 0 {
		text += "; an older one decides what it is called, not " + firstOf(e.selected.Overruled)
	}
	return text
}

// lookAtNearest tells how the entry that comes nearest misses the object.
func (e *explainer) lookAtNearest() {
	what, do := "no config of the mailbox names "+e.facts.Resource.String(), "select it in a SyncerConfig of the mailbox"
	if e.publisher != nil && e.publisher.Spec.Select == synchubv1alpha1.SelectAll {
		what = "the PublishedResource selects all objects, but not what Kubernetes itself makes in each cluster, and " + what
	}
	if readings := e.matcher.Readings(e.resource.Describe(e.facts.Object.It)); len(readings) > 0 {
		nearest := readings[0]
		if nearest.Why == "" {
			nearest.Why = "it is not published"
		}
		what = fmt.Sprintf("no config selects it; nearest comes %s %s, but %s", nearest.Config, nearest.Field, nearest.Why)
	}
	switch others := e.relating(); {
	case len(others) > 0:
		do += "; it also goes down if it is related to an object that does, by " + firstOf(others)
	case e.facts.Published.Error != nil:
		do += "; whether it could go down with another object, to which it is related, cannot be seen"
	}
	if e.observed != nil {
		what += fmt.Sprintf("; it goes from the cluster once that is proven, with the policy %s", e.observed.Mark.Policy)
	}
	e.say(StepSelected, Stopped, "%s", what).because("NotSelected").do("%s", do)
}

// isFrozen tells whether all that speaks of objects of the name is suspended.
func (e *explainer) isFrozen() bool {
	return e.facts.Configs.Error == nil && e.matcher.Frozen(selection.Object{
		Resource: e.resource.GroupVersionResource, Kind: e.resource.Kind, Namespace: e.facts.Key.Namespace, Name: e.facts.Key.Name,
	})
}

// comesUp tells whether the target's object is selected for coming up.
func (e *explainer) comesUp() bool {
	object := e.facts.Target.It
	if object == nil || e.observed != nil || e.facts.Configs.Error != nil {
		return false
	}
	described := e.resource.Describe(object)
	described.Resource, described.Kind = e.place.GroupVersionResource, e.place.Kind
	_, up := e.matcher.MatchUp(described)
	return up
}

// lookAtFilter tells whether the PublishedResource lets the object pass.
func (e *explainer) lookAtFilter() {
	if !e.goesDown {
		return
	}
	if e.publisher == nil {
		e.say(StepFilter, Unknown, "whether a filter of the PublishedResource holds it back cannot be seen")
		return
	}
	if e.resource.Rules == nil || e.resource.Rules.Filter == nil {
		return
	}
	filter := e.resource.Rules.Filter
	var labels map[string]string
	if filter.NeedsNamespace() && e.resource.Namespaced {
		if e.facts.Namespace.Error != nil || e.facts.Namespace.It == nil {
			e.say(StepFilter, Unknown, "the labels of its namespace, for which spec.filter asks, cannot be seen")
			return
		}
		labels = e.facts.Namespace.It.GetLabels()
	}
	passes, err := filter.Passes(e.facts.Object.It, labels)
	switch {
	case err != nil:
		e.say(StepFilter, Stopped, "spec.filter of the PublishedResource %s fails: %s", e.publisher.Name, inOneLine(err)).because(sync.ReasonRuleFailed)
	case !passes && e.relation() != "":
		e.goesDown = false
		e.say(StepFilter, OK, "spec.filter of the PublishedResource %s does not let it pass, but it went down because it is related to another object, by %s", e.publisher.Name, e.relation())
	case !passes:
		e.goesDown = false
		e.say(StepFilter, Stopped, "spec.filter of the PublishedResource %s holds it back", e.publisher.Name).because("Filtered").
			do("change its labels, those of its namespace, or what the filter's expression looks at")
	default:
		e.say(StepFilter, OK, "spec.filter of the PublishedResource lets it pass")
	}
}

// lookAtName tells what the object is called on the target.
func (e *explainer) lookAtName() {
	if !e.goesDown {
		return
	}
	if e.placeError != nil {
		e.say(StepName, Stopped, "%s", inOneLine(e.placeError)).because(sync.ReasonInvalid)
		return
	}
	if refusal := e.outside(); refusal != nil {
		e.say(StepName, Stopped, "%s", refusal.Message).because(refusal.Reason)
		return
	}
	if e.resource.IsLeftOut(e.matcher, e.facts.Object.It, e.place.TargetResource, e.place.NamespacedName) && e.observed == nil {
		e.goesDown = false
		e.say(StepName, Stopped, "what it would be on the cluster is selected for coming up as well, so it does not go down").because("SelectedUp").
			do("take it out of upsync, or do not select it for going down")
		return
	}
	if e.place.NamespacedName != e.facts.Key || e.isConverted() {
		e.say(StepName, OK, "on the cluster it is the %s %s", orElse(e.place.Kind, e.place.Resource), e.place.called())
		return
	}
	if e.publisher == nil {
		e.say(StepName, Unknown, "whether the PublishedResource gives it another name cannot be seen")
	}
}

func (e *explainer) isConverted() bool {
	return e.place.Kind != e.resource.Kind && e.resource.Kind != ""
}

func firstOf(names []string) string {
	if more := len(names) - few; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), more)
	}
	return strings.Join(names, ", ")
}
