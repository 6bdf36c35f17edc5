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
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/wording"
)

// explainSyncTarget explains the settings of the SyncTarget that stop a sync, such as suspend.
func explainSyncTarget(o *observation) *Step {
	spec, name := &o.SyncTarget.Spec, o.SyncTarget.Name
	switch isDeleted := o.SyncTarget.DeletionTimestamp != nil; {
	case isDeleted && spec.DeletionPolicy == edgev2alpha1.DeletionPolicyDelete:
		return newStep(Stopped, "Deleting", "it is being deleted, together with the hub's objects on the cluster")
	case isDeleted:
		return newStep(Stopped, "Deleting", "it is being deleted; the hub's objects stay on the cluster, without marks")
	case spec.Suspend:
		return newStep(Stopped, "Suspended", "it is suspended: nothing is written to the cluster").advise("kubectl synchub resume %s", name)
	case spec.Drain:
		return newStep(Stopped, "Draining", "it is drained: the hub's objects are removed from the cluster").advise("kubectl synchub uncordon %s", name)
	case spec.Unschedulable:
		return newStep(OK, "Cordoned", "it is cordoned: nothing new is created on the cluster, and existing objects stay in sync")
	default:
		return newStep(OK, "", "it is registered")
	}
}

// explainConnection explains whether the hub reaches the cluster and syncs with it. That it does not sync may follow from what other steps
// explain.
func explainConnection(o *observation) *Step {
	spec, row := &o.SyncTarget.Spec, overview.RowOf(o.SyncTarget, o.Now)
	mustSync := !spec.Suspend && !spec.Drain && o.SyncTarget.DeletionTimestamp == nil && o.SyncTarget.Status.Mailbox != nil
	healthy, syncer, authorized := o.condition(edgev2alpha1.ConditionHeartbeatHealthy), o.condition(edgev2alpha1.ConditionSyncerReady), o.condition(edgev2alpha1.ConditionSyncerAuthorized)
	switch {
	case row.Reason == overview.ReasonHubSilent:
		return newStep(Unknown, row.Reason, "%s", sentence(row.Message))
	case healthy != nil && healthy.Status != metav1.ConditionTrue:
		return conditionStep(healthy)
	case healthy == nil, syncer == nil:
		return newStep(Unknown, "", "the hub has not reported %s and %s yet", edgev2alpha1.ConditionHeartbeatHealthy, edgev2alpha1.ConditionSyncerReady)
	case syncer.Status != metav1.ConditionTrue && mustSync:
		return conditionStep(syncer)
	case authorized != nil && authorized.Status == metav1.ConditionFalse:
		return newStep(OK, authorized.Reason, "the hub reaches the cluster").advise("%s", sentence(authorized.Message))
	default:
		return newStep(OK, "", "the hub reaches the cluster")
	}
}

func (o *observation) condition(kind string) *metav1.Condition {
	return meta.FindStatusCondition(o.SyncTarget.Status.Conditions, kind)
}

// explainMailbox explains whether the mailbox exists and is readable.
func explainMailbox(o *observation) *Step {
	mailbox, condition := o.SyncTarget.Status.Mailbox, o.condition(edgev2alpha1.ConditionMailboxReady)
	switch {
	case condition != nil && condition.Status != metav1.ConditionTrue:
		return conditionStep(condition)
	case mailbox == nil:
		return newStep(Waiting, "", "it has no mailbox workspace yet")
	case o.Served.Err != nil:
		return newStep(Unknown, "", "the workspace %s cannot be looked into: %s", mailbox.Workspace, inOneLine(o.Served.Err)).
			advise("ask for a role there in spec.mailboxAccess of the SyncTarget")
	default:
		return newStep(OK, "", "it is the workspace %s", mailbox.Workspace)
	}
}

// explainPublished explains whether the resource is published and whether the mailbox serves it. If the rules are unknown, the next steps leave
// out what follows from them.
func explainPublished(o *observation) *Step {
	missing := o.apisMissing()
	var notReady *metav1.Condition
	if o.published != nil && !meta.IsStatusConditionTrue(o.published.Status.Conditions, synchubv1alpha1.ConditionReady) {
		// A PublishedResource from a file has no conditions.
		notReady = meta.FindStatusCondition(o.published.Status.Conditions, synchubv1alpha1.ConditionReady)
	}
	switch {
	case o.published == nil && o.Published.Err == nil:
		return explainUnpublished(o)
	case missing != nil:
		return newStep(Stopped, missing.Reason, "the mailbox does not have the published API %s: %s", o.Resource, sentence(missing.Message))
	case o.Served.Err == nil && o.Served.Value == nil && notReady == nil:
		return newStep(Stopped, "", "the mailbox does not serve %s", o.Resource).
			advise("it must be published by a PublishedResource in the hosting cluster, or asked for by its name in mailboxes")
	case o.published == nil:
		return newStep(Unknown, "", "which PublishedResource is about it cannot be seen: %s", inOneLine(o.Published.Err)).advise("give -f, or --hosting-kubeconfig")
	case notReady != nil:
		return newStep(Stopped, notReady.Reason, "the PublishedResource %s is not ready: %s", o.published.Name, sentence(notReady.Message))
	case o.compileErr != nil:
		return newStep(Stopped, plan.ReasonInvalid, "the PublishedResource %s is wrong: %s", o.published.Name, inOneLine(o.compileErr))
	}
	step := newStep(OK, "", "the PublishedResource %s publishes it", o.published.Name)
	if target := o.resource().WithTargetVersion("").TargetAPI(); target.GroupVersionResource != o.resource().GroupVersionResource || target.Kind != o.resource().Kind {
		step.What += ", on targets as " + target.Kind + " (" + target.GroupVersion().String() + ")"
	}
	if o.version != "" {
		step.What += "; it is written on the cluster in version " + o.version
	}
	return step
}

// explainUnpublished explains a resource that no PublishedResource publishes.
func explainUnpublished(o *observation) *Step {
	other := publishedresource.FindOldest(o.Published.Value, publishedresource.OnTarget, o.Resource, o.resource().Kind)
	switch {
	case o.relation != "":
		return newStep(OK, "", "no PublishedResource is about it; it travels with objects of another, by %s", o.relation)
	case other != nil:
		mailbox := publishedresource.InMailbox(&other.Spec)
		return newStep(Stopped, "", "the PublishedResource %s gives it another name in mailboxes: %s (%s)", other.Name, cmp.Or(mailbox.Resource, mailbox.Kind), cmp.Or(mailbox.Group, "core")).
			advise("ask for that")
	}
	step := newStep(Stopped, "NotPublished", "no PublishedResource publishes %s", o.Resource).advise("make one in the hosting cluster")
	if relations := o.relations(); relations != "" {
		step.advise("it goes down only with related objects, by %s", relations)
	}
	return step
}

// apisMissing returns the SyncTarget's condition that its mailbox lacks the published API, or nil. The mailbox then
// serves another API of the same name.
func (o *observation) apisMissing() *metav1.Condition {
	missing := o.condition(edgev2alpha1.ConditionAPIsMissing)
	if missing == nil || missing.Status != metav1.ConditionTrue {
		return nil
	}
	// The names precede the colon, with commas between them.
	names, _, _ := strings.Cut(missing.Message, ":")
	if !slices.Contains(strings.Fields(strings.ReplaceAll(names, ",", " ")), o.Resource.String()) {
		return nil
	}
	return missing
}

// relations names the entries of related, as "<PublishedResource>/<identifier>", that can select objects of the resource.
func (o *observation) relations() string {
	var names []string
	for _, candidate := range o.Published.Value {
		relations, _ := related.Compile(candidate.Spec.Related)
		for _, one := range relations {
			if one != nil && one.Origin == synchubv1alpha1.RelatedOriginMailbox && one.InMailbox.GroupResource() == o.Resource {
				names = append(names, candidate.Name+"/"+one.Identifier)
			}
		}
	}
	slices.Sort(names)
	return wording.First(maxListed, names)
}

// explainObject explains whether the object is in the mailbox.
func explainObject(o *observation) *Step {
	object := o.Object.Value
	switch {
	case o.Served.Err != nil, o.Served.Value == nil:
		return nil
	case o.Object.Err != nil:
		return newStep(Unknown, "", "it cannot be read in the mailbox: %s", inOneLine(o.Object.Err))
	case object == nil && o.copied == nil:
		return explainUpsync(o)
	case object == nil && o.decided(StepObject) != nil:
		return o.decided(StepObject)
	case object == nil:
		return newStep(Waiting, "", "it is not in the mailbox any more; once that is verified it goes from the cluster, with the policy %s", o.copied.Mark.Policy)
	case object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), plan.Finalizer):
		return newStep(Waiting, "Terminating", "it is being deleted, and waits in the mailbox until it is gone from the cluster")
	case object.GetDeletionTimestamp() != nil:
		return newStep(Stopped, "Terminating", "it is being deleted in the mailbox, and so it goes from the cluster")
	default:
		return newStep(OK, "", "it is in the mailbox")
	}
}

// explainUpsync explains an object that the mailbox lacks, and that the hub has not copied to the target. A config may select the target's
// object for upsync.
func explainUpsync(o *observation) *Step {
	switch {
	case o.up == nil:
		return newStep(Stopped, "", "there is no such object in the mailbox").advise("make it there")
	case plan.IsNeverUpsynced(o.owner(), o.Target.Value):
		return newStep(Stopped, "BroughtByHub", "it is not in the mailbox; a config selects it for coming up from the cluster, but by its label or mark a hub brought it there, "+
			"and such objects are never upsynced")
	case o.up.Err != nil:
		step := errorStep(o.up.Err)
		step.What = "it does not come up from the cluster, though a config selects it: " + step.What
		return step
	default:
		return newStep(Waiting, "", "it is not in the mailbox; a config selects it for coming up from the cluster")
	}
}

// explainSelected explains which configs select the object, or why the closest entry does not.
func explainSelected(o *observation) *Step {
	switch object := o.Object.Value; {
	case object == nil, object.GetDeletionTimestamp() != nil:
		return nil
	case o.noDownsync == plan.NoDownsyncUpsynced:
		return newStep(OK, "", "it came up from the cluster, where it is %s; so it does not go down", o.ref.displayName())
	case o.noDownsync == plan.NoDownsyncMailboxAccess:
		return newStep(Stopped, "", "it gives users their rights in the mailbox, by spec.mailboxAccess of the SyncTarget; such bindings never go down")
	case o.noDownsync == plan.NoDownsyncEnsured:
		return newStep(Stopped, "", "the hub created this namespace only for upsynced objects; it does not go down")
	case o.isSelected && o.selected.Suspended:
		return newStep(Stopped, "Suspended", "all configs that select it are suspended: %s", wording.First(maxListed, o.selected.Configs)).advise("set spec.suspend of one of them to false")
	case o.isSelected:
		return explainSelection(o)
	case o.Configs.Err != nil:
		return newStep(Unknown, "", "the configs of the mailbox cannot be read: %s", inOneLine(o.Configs.Err))
	case o.relation != "":
		return newStep(OK, "", "no config selects it; it went down because it is related to another object, by %s", o.relation)
	default:
		return explainNearestEntry(o)
	}
}

// explainSelection names the entries of configs that select the object.
func explainSelection(o *observation) *Step {
	var entries []string
	for _, reading := range o.matcher.Explain(o.resource().SelectionObject(o.Object.Value)) {
		if reading.Why == "" {
			entries = append(entries, reading.Config+" "+reading.Field)
		}
	}
	step := newStep(OK, "", "selected by %s", wording.First(maxListed, entries))
	switch {
	case len(entries) == 0:
		step.What = "the PublishedResource selects all objects of it"
	case len(o.selected.Overruled) > 0:
		step.What += "; an older one decides its name, not " + wording.First(maxListed, o.selected.Overruled)
	}
	return step
}

// explainNearestEntry explains why the closest entry does not select the object.
func explainNearestEntry(o *observation) *Step {
	step := newStep(Stopped, "NotSelected", "no config of the mailbox names %s", o.Resource).advise("select it in a SyncerConfig of the mailbox")
	readings, relations := o.matcher.Explain(o.resource().SelectionObject(o.Object.Value)), o.relations()
	switch {
	case len(readings) > 0:
		step.What = fmt.Sprintf("no config selects it; nearest comes %s %s, but %s", readings[0].Config, readings[0].Field, cmp.Or(readings[0].Why, "it is not published"))
	case o.published != nil && o.published.Spec.Select == synchubv1alpha1.SelectAll:
		step.What = "the PublishedResource selects all objects, but not what Kubernetes itself makes in each cluster, and " + step.What
	}
	switch {
	case o.copied != nil && plan.IsUpsyncedBy(o.owner().ForPlacements(), o.Object.Value):
		step.What += "; by its mark, which only the hub can verify, a placement put it into the mailbox: if so, the hub keeps it on the cluster and writes the config for placements again"
		step.Do = "wait, and see the log of the hub if the config does not return"
	case o.copied != nil:
		step.What += "; it goes from the cluster once that is verified, with the policy " + string(o.copied.Mark.Policy)
	case relations != "":
		step.Do += "; it also goes down if it is related to an object that does, by " + relations
	}
	return step
}

// explainFilter explains whether the filter of the PublishedResource lets the object pass.
func explainFilter(o *observation) *Step {
	switch state := o.down.State; {
	case !o.isSelected, o.selected.Suspended, state == plan.Terminating, o.noDownsync != "", o.published == nil:
		return nil
	case o.filterErr != nil:
		return newStep(Unknown, "", "the labels of its namespace, for which spec.filter asks, cannot be seen")
	case o.resource().GetRules().Filter == nil:
		return nil
	case o.down.Err != nil:
		return errorStep(o.down.Err)
	case state == plan.Selected:
		return newStep(OK, "", "spec.filter of the PublishedResource lets it pass")
	case o.relation != "":
		return newStep(OK, "", "spec.filter of the PublishedResource %s does not let it pass, but it went down because it is related to another object, by %s", o.published.Name, o.relation)
	default:
		return newStep(Stopped, "Filtered", "spec.filter of the PublishedResource %s holds it back", o.published.Name).
			advise("change its labels, the labels of its namespace, or the fields that the filter's expression reads")
	}
}

// explainName explains the name of the object on the target.
func explainName(o *observation) *Step {
	isConverted := o.resource().Kind != "" && o.ref.Kind != o.resource().Kind
	switch {
	case !o.goesDown:
		return nil
	case o.down.DestinationErr != nil:
		return errorStep(o.down.DestinationErr)
	case o.decided(StepName) != nil:
		return o.decided(StepName)
	case isConverted, o.ref.NamespacedName != o.Key:
		return newStep(OK, "", "on the cluster it is the %s %s", cmp.Or(o.ref.Kind, o.ref.Resource), o.ref.displayName())
	default:
		return nil
	}
}
