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

package objectsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// reconcileUp brings in sync what an object of the target is in the mailbox. held is what the mailbox has of the name, or
// nil.
func (c *Controller) reconcileUp(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured) (outcome, error) {
	source, object, err := c.upState(ctx, key, inMailbox)
	if err != nil {
		return outcome{up: true}, err
	}
	if missing := c.incompleteReason(inMailbox); missing != nil && source.Desired != nil {
		return outcome{decision: plan.Decision{Action: plan.None, Cause: plan.Unknown}, up: true}, limitErrorOnly(missing)
	}
	existing := c.observeInMailbox(inMailbox, source.Desired)
	if existing != nil && existing.Mark.Adopted && source.Desired != nil {
		source.Desired = source.Desired.AsAdopted()
	}
	decision, err := plan.Up(source, existing, c.mailboxExpectations.droppedPaths(key))
	if err != nil {
		return outcome{decision: decision, up: true}, err
	}
	if wait := c.upBackoff(key, object, decision); wait > 0 {
		return outcome{decision: decision, up: true, requeueAfter: wait}, fmt.Errorf("%w: somebody in the mailbox, or spec.mutation.up of the PublishedResource, keeps changing it %v", errFieldConflict, decision.Fields)
	}
	log.FromContext(ctx).V(1).Info("upwards", "decision", decision.String())
	result, err := c.executeUp(ctx, key, decision, inMailbox, source.Desired, object)
	if err == nil && c.upsyncReadsMailbox && decision.Action == plan.Update {
		c.failures.recordWrite(key, object.GetResourceVersion())
	}
	return result, err
}

// upBackoff returns how long a repair in the mailbox must wait, since somebody there, or a rule that does not settle, keeps
// changing the object.
func (c *Controller) upBackoff(key types.NamespacedName, object *unstructured.Unstructured, decision plan.Decision) time.Duration {
	restless := c.upsyncReadsMailbox && decision.Action == plan.Update && decision.Cause == plan.Changed && c.failures.hasWritten(key, object.GetResourceVersion())
	if !restless && decision.Cause != plan.Drifted {
		return 0
	}
	return c.failures.driftBackoff(key)
}

// limitErrorOnly returns why an object is not held whole, but nil if it is being fetched.
func limitErrorOnly(missing error) error {
	if isLimitError(missing) {
		return missing
	}
	return nil
}

// executeUp carries out a decision about one object in the mailbox.
func (c *Controller) executeUp(ctx context.Context, key types.NamespacedName, decision plan.Decision, inMailbox *unstructured.Unstructured, desired *transform.Desired, object *unstructured.Unstructured) (outcome, error) {
	result := outcome{decision: decision, up: true}
	switch decision.Action {
	case plan.None:
		if decision.Cause == plan.InSync {
			returned, err := c.writeUpsyncedStatus(ctx, key, inMailbox, object)
			result.statusReturned = returned
			return result, errors.Join(err, c.updateUpsyncedRelated(key, inMailbox, object), c.nameConflicts(key, inMailbox))
		}
		return result, nil
	case plan.Create:
		result.requeueAfter = expectationTimeout
		return result, c.createInMailbox(ctx, key, desired, object)
	case plan.Update:
		return requeueIfStale(result, c.updateInMailbox(ctx, key, inMailbox, desired, object))
	case plan.Conflict:
		return requeueIfStale(result, c.resolveMailboxConflict(ctx, key, inMailbox, desired, object))
	case plan.VerifyAbsence:
		c.Mailboxes.VerifyAbsence(c.Mailbox, c.absenceCandidate(key, plan.Deselected))
		return result, nil
	case plan.Delete:
		return result, c.deleteFromMailbox(ctx, key, inMailbox)
	case plan.Release:
		return result, c.releaseInMailbox(ctx, key, inMailbox)
	default:
		return result, fmt.Errorf("%s is no decision about an object of the mailbox", decision)
	}
}

// requeueIfStale makes of a write that came too late no failure: the cache is about to show what came between.
func requeueIfStale(result outcome, err error) (outcome, error) {
	if errors.Is(err, errStale) {
		result.requeueAfter, result.stale, err = expectationTimeout, true, nil
	}
	return result, err
}

// observeInMailbox is what there is to decide by of an object in the mailbox.
func (c *Controller) observeInMailbox(object *unstructured.Unstructured, desired *transform.Desired) *plan.MailboxObject {
	if object == nil {
		return nil
	}
	inMailbox := &plan.MailboxObject{UID: object.GetUID(), Terminating: object.GetDeletionTimestamp() != nil, Retain: c.Resource.Retain}
	mark, err := mailboxMark(c.Owner, object)
	if inMailbox.Owned = err == nil; !inMailbox.Owned {
		return inMailbox
	}
	inMailbox.Mark = mark
	// Only what the hub created goes with all that it holds.
	inMailbox.Retain = inMailbox.Retain || c.Resource.Container && mark.Adopted
	if desired != nil {
		inMailbox.Missing = transform.MissingPaths(desired.Object.Object, object.Object)
	}
	return inMailbox
}

// upState returns the state of the object of the target that comes up under a name, and the object.
func (c *Controller) upState(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured) (plan.Source, *unstructured.Unstructured, error) {
	target, object := c.upsyncSource(key, inMailbox)
	if object == nil {
		state, err := c.missingSourceState(ctx, key, inMailbox)
		return state, nil, err
	}
	if c.isReplacement(key, inMailbox, target.ref(keyOf(object))) {
		// What came up before is decided about first; its end lets the other come.
		state, err := c.missingSourceState(ctx, key, inMailbox)
		return state, nil, err
	}
	selected, ok := c.selectUp(c.matcher.Load(), target, object)
	switch {
	case !ok:
		// The matcher was replaced a moment ago; its feed decides.
		return plan.Source{State: plan.Unknown}, nil, nil
	case selected.Suspended:
		return plan.Source{State: plan.Suspended}, nil, nil
	}
	spec := c.upSpec(selected, object)
	if inMailbox != nil {
		spec.Other = inMailbox.Object
		if mark, err := mailboxMark(c.Owner, inMailbox); err == nil {
			spec.Relation = c.relationForMark(synchubv1alpha1.RelatedOriginTarget, target.GroupResource(), c.relatedObjectOnTarget(c.matcher.Load(), object), spec.Relation, mark.Relation)
		}
	}
	desired, err := c.up.Desired(object, target.GroupResource(), spec)
	if err == nil {
		c.recordDroppedFields(selected.Configs, desired.DroppedPaths)
		err = c.checkUpsync(target, keyOf(object), keyOf(desired.Object))
	}
	if err == nil && keyOf(desired.Object) != key {
		// Another conversion holds; the feed is being replaced.
		return plan.Source{State: plan.Unknown}, nil, nil
	}
	return plan.Source{State: plan.InSync, Desired: desired}, object, err
}

// upsyncSource returns the object of the target that comes up under a name: that which came up before, else the first.
func (c *Controller) upsyncSource(key types.NamespacedName, inMailbox *unstructured.Unstructured) (*targetResource, *unstructured.Unstructured) {
	places := c.upsyncIndex.refsOf(key)
	if inMailbox != nil {
		if mark, err := mailboxMark(c.Owner, inMailbox); err == nil {
			for i, ref := range places {
				if ref == upsyncSourceRef(mark) {
					places[0], places[i] = places[i], places[0]
				}
			}
		}
	}
	for _, ref := range places {
		target := c.targetResourceFor(ref.resource)
		if target == nil {
			continue
		}
		if feed := target.currentUpsyncCache(); feed != nil {
			if object := feed.Get(ref.key); object != nil {
				return target, object
			}
		}
	}
	return nil, nil
}

// isReplacement tells whether an object of the target is not the one that came up before under a name, which does not come up
// any more.
func (c *Controller) isReplacement(key types.NamespacedName, inMailbox *unstructured.Unstructured, ref targetRef) bool {
	if inMailbox == nil {
		return false
	}
	mark, err := mailboxMark(c.Owner, inMailbox)
	return err == nil && upsyncSourceRef(mark) != ref && !slices.Contains(c.upsyncIndex.refsOf(key), upsyncSourceRef(mark))
}

// upsyncSourceRef is where the object is, or was, that came up.
func upsyncSourceRef(mark ownership.Mark) targetRef {
	return targetRef{schema.GroupResource{Group: mark.Source.Group, Resource: mark.Source.Resource}, sourceKey(mark)}
}

// missingSourceState returns the state of the source of what came up, which is not among what comes up now. Nothing is
// concluded from a cache that cannot be relied on.
func (c *Controller) missingSourceState(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured) (plan.Source, error) {
	unknown := plan.Source{State: plan.Unknown}
	if inMailbox == nil {
		return plan.Source{State: plan.SourceNotFound}, nil
	}
	mark, err := mailboxMark(c.Owner, inMailbox)
	if err != nil {
		return unknown, nil //nolint:nilerr // it did not come up: nothing is to be done about it
	}
	// A proof serves once, so it is taken only where it decides.
	deselected := func() plan.Source {
		return plan.Source{State: plan.Deselected, AbsenceVerified: c.Mailboxes.TakeVerifiedAbsence(c.Mailbox, c.absenceCandidate(key, plan.Deselected))}
	}
	ref := upsyncSourceRef(mark)
	target := c.targetResourceFor(ref.resource)
	if mark.Relation != "" {
		return c.missingRelatedState(ctx, key, mark, target)
	}
	matcher := c.matcher.Load()
	selected, ok := c.selectsUpsynced(matcher, target, mark, inMailbox)
	switch {
	case !ok && matcher.IsPartial():
		return unknown, nil
	case !ok:
		return deselected(), nil
	case selected.Suspended:
		return plan.Source{State: plan.Suspended}, nil
	}
	if err := c.checkUpsync(target, ref.key, key); err != nil {
		// That it may not come up any more is no reason to remove what did.
		return unknown, err
	}
	feed := target.currentUpsyncCache()
	switch {
	case feed == nil, !feed.HasSynced(), feed.Availability().Reason != "":
		return unknown, nil
	case feed.Get(ref.key) != nil && slices.Contains(c.upsyncIndex.refsOf(key), ref):
		// It has just come, after it was looked for; its event brings us back.
		return unknown, nil
	case feed.Get(ref.key) != nil:
		// It comes up under another name by now, by another conversion.
		if c.awaitsRename(key, target, feed.Get(ref.key)) {
			return unknown, nil
		}
		return plan.Source{State: plan.Deselected, AbsenceVerified: true}, nil
	case c.upsyncIndex.isDeleted(ref, mark.Source.UID):
		return plan.Source{State: plan.SourceNotFound, AbsenceVerified: true}, nil
	default:
		return c.confirmMissingSource(ctx, key, target, ref)
	}
}

// selectsUpsynced returns how the object of a side is selected that came up as what the mailbox holds.
func (c *Controller) selectsUpsynced(matcher *selection.Matcher, target *targetResource, mark ownership.Mark, inMailbox *unstructured.Unstructured) (selection.Selection, bool) {
	if target == nil {
		return selection.Selection{}, false
	}
	return matcher.MatchUp(selection.Object{
		Resource: target.configResource(), Versions: target.versions, Kind: target.Kind, Namespace: mark.Source.Namespace, Name: mark.Source.Name,
		Labels: metadataMap(inMailbox, "labels"), Annotations: metadataMap(inMailbox, "annotations"),
	})
}

// awaitsRename tells whether what came up under a name, and comes up under another one from now on, is not there yet though
// that name is free: the new one comes before the old one goes. The old one is looked at again when the new one has come.
func (c *Controller) awaitsRename(from types.NamespacedName, target *targetResource, object *unstructured.Unstructured) bool {
	to, comesUp := c.upsyncKey(target, c.matcher.Load(), object)
	if !comesUp || to == from {
		return false
	}
	isFree := func() bool {
		inMailbox, known := c.mailboxObject(to)
		return known && inMailbox == nil
	}
	if !isFree() {
		return false
	}
	c.pendingRenames.add(from, to)
	// It may have come just before.
	return isFree()
}

// renameCompleted has what came up under a former name looked at, now that it is there under this one.
func (c *Controller) renameCompleted(to types.NamespacedName) {
	if from, waits := c.pendingRenames.complete(to); waits {
		c.enqueue(changePriority, from)
	}
}

// missingRelatedState returns the state of the source of what came up by a relation. As long as a primary may still want it,
// nothing is concluded.
func (c *Controller) missingRelatedState(ctx context.Context, key types.NamespacedName, mark ownership.Mark, target *targetResource) (plan.Source, error) {
	ref := upsyncSourceRef(mark)
	unknown := plan.Source{State: plan.Unknown}
	if c.hasUnpublishedRelation(mark) || target == nil || !c.relatedSynced(target) {
		return unknown, nil
	}
	if err := c.checkUpsync(target, ref.key, key); err != nil {
		return unknown, err
	}
	switch {
	case !c.Registry.IsComplete(synchubv1alpha1.RelatedOriginTarget, ref.resource):
		// A feed that is being filled by now, because a primary has spoken meanwhile, asks again when it is; and what it had
		// passed over, and a primary wants by now, is being fetched.
		c.RequestCompleteness(func() bool { return !c.relatedSynced(target) || c.isRelatedOnTarget(target, ref.key) })
		return unknown, nil
	case c.upsyncIndex.isDeleted(ref, mark.Source.UID):
		return plan.Source{State: plan.SourceNotFound, AbsenceVerified: true}, nil
	}
	feed := target.currentUpsyncCache()
	if feed != nil && feed.Get(ref.key) != nil {
		if !c.isUnrelatedOnTarget(target, feed.Get(ref.key)) {
			return unknown, nil
		}
		return plan.Source{State: plan.Deselected, AbsenceVerified: c.Mailboxes.TakeVerifiedAbsence(c.Mailbox, c.absenceCandidate(key, plan.Deselected))}, nil
	}
	return c.confirmMissingSource(ctx, key, target, ref)
}

// relatedSynced tells whether all that is related on a side can be seen.
func (c *Controller) relatedSynced(target *targetResource) bool {
	if feed := target.currentUpsyncCache(); feed != nil {
		return feed.HasSynced() && feed.Availability().Reason == ""
	}
	names, namespaces, all := c.relatedScope(target.GroupResource())
	return len(names) == 0 && len(namespaces) == 0 && !all
}

// isRelatedOnTarget tells whether a primary wants an object of the target that the feed shows.
func (c *Controller) isRelatedOnTarget(target *targetResource, key types.NamespacedName) bool {
	feed := target.currentUpsyncCache()
	if feed == nil {
		return false
	}
	shown := feed.GetMetadata(key)
	if shown == nil {
		return false
	}
	_, related := c.selectRelatedUp(c.matcher.Load(), target, shown)
	return related
}

// isUnrelatedOnTarget tells whether it is sure that no primary wants an object of the target.
func (c *Controller) isUnrelatedOnTarget(target *targetResource, object *unstructured.Unstructured) bool {
	return c.Registry.IsUnrelated(synchubv1alpha1.RelatedOriginTarget, target.GroupResource(), c.relatedObjectOnTarget(c.matcher.Load(), object))
}

// confirmMissingSource asks the target about an object whose end was not seen: it may have ended while the hub was away.
func (c *Controller) confirmMissingSource(ctx context.Context, key types.NamespacedName, target *targetResource, ref targetRef) (plan.Source, error) {
	object, err := c.Connection.Get(requestmetrics.WithClass(ctx, requestmetrics.Extra), target.GroupVersionResource, ref.key)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		if name, comesUp := c.upsyncKey(target, c.matcher.Load(), object); comesUp && name == key {
			// The feed will show it.
			return plan.Source{State: plan.Unknown}, nil
		}
		if !IsNeverUpsynced(c.Owner, object) && !c.isUnrelatedOnTarget(target, object) {
			return plan.Source{State: plan.Unknown}, nil
		}
		return plan.Source{State: plan.Deselected, AbsenceVerified: true}, nil
	case apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == ref.key.Name:
		return plan.Source{State: plan.SourceNotFound, AbsenceVerified: true}, nil
	default:
		// That an API is not served says nothing about its objects.
		return plan.Source{State: plan.Unknown}, fmt.Errorf("cannot find out whether %s %s is gone from the target: %w", ref.resource, ref.key, err)
	}
}

// nameConflicts reports that more than one object of the target comes up under a name.
func (c *Controller) nameConflicts(key types.NamespacedName, inMailbox *unstructured.Unstructured) error {
	target, selected := c.upsyncSource(key, inMailbox)
	if selected == nil {
		return nil
	}
	for _, ref := range c.upsyncIndex.refsOf(key) {
		if ref != target.ref(keyOf(selected)) {
			return fmt.Errorf("%w: %s %s of the target would have the same name", errNameTakenInMailbox, ref.resource, ref.key)
		}
	}
	return nil
}

// resolveMailboxConflict takes over the object of the mailbox that has the name, if it is a namespace that the hub made for what came
// up, or if KubeStellar's syncer brought it up and the PublishedResource allows that; else it reports it.
func (c *Controller) resolveMailboxConflict(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured, desired *transform.Desired, object *unstructured.Unstructured) error {
	ctx = requestmetrics.WithClass(ctx, requestmetrics.Extra)
	_, reason := mailboxMark(c.Owner, inMailbox)
	if mark, proven := c.unsealedMark(inMailbox, ownership.DirectionUp, desired, reason); proven {
		if mark.Adopted {
			desired = desired.AsAdopted()
		}
		return c.updateInMailbox(ctx, key, inMailbox, desired, object)
	}
	switch {
	case c.isEnsured(inMailbox, reason):
		return c.updateInMailbox(ctx, key, inMailbox, desired, object)
	case c.mayAdoptInMailbox(inMailbox, reason):
		return c.updateInMailbox(ctx, key, inMailbox, desired.AsAdopted(), object)
	case isKubeStellarUpsynced(inMailbox, reason):
		return fmt.Errorf("%w, or let spec.adoption of the PublishedResource be KubeStellar, whose syncer brought it up", errNameTakenInMailbox)
	default:
		return errNameTakenInMailbox
	}
}

// mayAdoptInMailbox tells whether an object of the mailbox may be taken over. One with a mark of another hub never is.
func (c *Controller) mayAdoptInMailbox(inMailbox *unstructured.Unstructured, reason error) bool {
	return c.Resource.Adoption == synchubv1alpha1.AdoptionKubeStellar && isKubeStellarUpsynced(inMailbox, reason)
}

// isKubeStellarUpsynced tells whether KubeStellar's syncer, and no hub, brought up an object of the mailbox.
func isKubeStellarUpsynced(inMailbox *unstructured.Unstructured, reason error) bool {
	return ownership.IsAdoptable(reason) &&
		ownership.IsFromKubeStellar(inMailbox.GetAnnotations(), ownership.KubeStellarUpsynced, transform.SelfOf(inMailbox))
}
