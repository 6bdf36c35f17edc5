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

package sync

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
	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/requests"
)

// reconcileUp brings in step what an object of the target is in the mailbox. held is what the mailbox has of the name, or
// nil.
func (c *Controller) reconcileUp(ctx context.Context, key types.NamespacedName, held *unstructured.Unstructured) (outcome, error) {
	source, object, err := c.lookUp(ctx, key, held)
	if err != nil {
		return outcome{up: true}, err
	}
	if missing := c.missing(held); missing != nil && source.Desired != nil {
		return outcome{decision: decide.Decision{Action: decide.None, Cause: decide.Unknown}, up: true}, unlessFetched(missing)
	}
	seen := c.held(held, source.Desired)
	if seen != nil && seen.Mark.Adopted && source.Desired != nil {
		source.Desired = source.Desired.AsAdopted()
	}
	decision, err := decide.Up(source, seen, c.inMailbox.droppedBy(key))
	if err != nil {
		return outcome{decision: decision, up: true}, err
	}
	if wait := c.repairAfter(key, object, decision); wait > 0 {
		return outcome{decision: decision, up: true, again: wait}, fmt.Errorf("%w: somebody in the mailbox, or spec.mutation.up of the PublishedResource, keeps changing it %v", errContended, decision.Fields)
	}
	log.FromContext(ctx).V(1).Info("upwards", "decision", decision.String())
	result, err := c.actUp(ctx, key, decision, held, source.Desired, object)
	if err == nil && c.looksAtOther && decision.Action == decide.Update {
		c.failures.changed(key, object.GetResourceVersion())
	}
	return result, err
}

// repairAfter returns how long a repair in the mailbox must wait, since somebody there, or a rule that does not settle, keeps
// changing the object.
func (c *Controller) repairAfter(key types.NamespacedName, object *unstructured.Unstructured, decision decide.Decision) time.Duration {
	restless := c.looksAtOther && decision.Action == decide.Update && decision.Cause == decide.Changed && c.failures.hasChanged(key, object.GetResourceVersion())
	if !restless && decision.Cause != decide.Drifted {
		return 0
	}
	return c.failures.repair(key)
}

// unlessFetched returns why an object is not held whole, but nil if it is being fetched.
func unlessFetched(missing error) error {
	if isBeyondLimits(missing) {
		return missing
	}
	return nil
}

// actUp carries out a decision about one object in the mailbox.
func (c *Controller) actUp(ctx context.Context, key types.NamespacedName, decision decide.Decision, held *unstructured.Unstructured, desired *transform.Desired, object *unstructured.Unstructured) (outcome, error) {
	result := outcome{decision: decision, up: true}
	switch decision.Action {
	case decide.None:
		if decision.Cause == decide.InStep {
			returned, err := c.raiseStatus(ctx, key, held, object)
			result.returned = returned
			return result, errors.Join(err, c.relateRaised(key, held, object), c.rivals(key, held))
		}
		return result, nil
	case decide.Create:
		result.again = echoTimeout
		return result, c.raise(ctx, key, desired, object)
	case decide.Update:
		return retried(result, c.update(ctx, key, held, desired, object))
	case decide.Conflict:
		return retried(result, c.conflictAbove(ctx, key, held, desired, object))
	case decide.Prove:
		c.Mailboxes.Prove(c.Mailbox, c.suspect(key, decide.Deselected))
		return result, nil
	case decide.Delete:
		return result, c.lower(ctx, key, held)
	case decide.Release:
		return result, c.letGo(ctx, key, held)
	default:
		return result, fmt.Errorf("%s is no decision about an object of the mailbox", decision)
	}
}

// retried makes of a write that came too late no failure: the cache is about to show what came between.
func retried(result outcome, err error) (outcome, error) {
	if errors.Is(err, errStale) {
		result.again, result.late, err = echoTimeout, true, nil
	}
	return result, err
}

// held is what there is to decide by of an object in the mailbox.
func (c *Controller) held(object *unstructured.Unstructured, desired *transform.Desired) *decide.Held {
	if object == nil {
		return nil
	}
	held := &decide.Held{UID: object.GetUID(), Terminating: object.GetDeletionTimestamp() != nil, Retain: c.Resource.Retain}
	mark, err := markAbove(c.Owner, object)
	if held.Ours = err == nil; !held.Ours {
		return held
	}
	held.Mark = mark
	// Only what the hub created goes with all that it holds.
	held.Retain = held.Retain || c.Resource.Container && mark.Adopted
	if desired != nil {
		held.Missing = transform.Missing(desired.Object.Object, object.Object)
	}
	return held
}

// lookUp returns the state of the object of the target that comes up under a name, and the object.
func (c *Controller) lookUp(ctx context.Context, key types.NamespacedName, held *unstructured.Unstructured) (decide.Source, *unstructured.Unstructured, error) {
	side, object := c.sourceBelow(key, held)
	if object == nil {
		state, err := c.lookForMissing(ctx, key, held)
		return state, nil, err
	}
	if c.isSuccessor(key, held, side.at(keyOf(object))) {
		// What came up before is decided about first; its end lets the other come.
		state, err := c.lookForMissing(ctx, key, held)
		return state, nil, err
	}
	chosen, ok := c.chooseUp(c.matcher.Load(), side, object)
	switch {
	case !ok:
		// The matcher was replaced a moment ago; its feed decides.
		return decide.Source{State: decide.Unknown}, nil, nil
	case chosen.Suspended:
		return decide.Source{State: decide.Suspended}, nil, nil
	}
	wish := c.wishUp(chosen, object)
	if held != nil {
		wish.Other = held.Object
		if mark, err := markAbove(c.Owner, held); err == nil {
			wish.Relation = c.relationOf(synchubv1alpha1.RelatedOriginTarget, side.GroupResource(), c.candidateBelow(c.matcher.Load(), object), wish.Relation, mark.Relation)
		}
	}
	desired, err := c.up.Desire(object, side.GroupResource(), wish)
	if err == nil {
		c.notesDropped(chosen.Configs, desired.Dropped)
		err = c.admitsUp(side, keyOf(object), keyOf(desired.Object))
	}
	if err == nil && keyOf(desired.Object) != key {
		// Another conversion holds; the feed is being replaced.
		return decide.Source{State: decide.Unknown}, nil, nil
	}
	return decide.Source{State: decide.InStep, Desired: desired}, object, err
}

// sourceBelow returns the object of the target that comes up under a name: that which came up before, else the first.
func (c *Controller) sourceBelow(key types.NamespacedName, held *unstructured.Unstructured) (*side, *unstructured.Unstructured) {
	places := c.raised.at(key)
	if held != nil {
		if mark, err := markAbove(c.Owner, held); err == nil {
			for i, at := range places {
				if at == placeBelow(mark) {
					places[0], places[i] = places[i], places[0]
				}
			}
		}
	}
	for _, at := range places {
		side := c.sideOf(at.resource)
		if side == nil {
			continue
		}
		if feed := side.feeding(); feed != nil {
			if object := feed.Get(at.key); object != nil {
				return side, object
			}
		}
	}
	return nil, nil
}

// isSuccessor tells whether an object of the target is not the one that came up before under a name, which does not come up
// any more.
func (c *Controller) isSuccessor(key types.NamespacedName, held *unstructured.Unstructured, at place) bool {
	if held == nil {
		return false
	}
	mark, err := markAbove(c.Owner, held)
	return err == nil && placeBelow(mark) != at && !slices.Contains(c.raised.at(key), placeBelow(mark))
}

// placeBelow is where the object is, or was, that came up.
func placeBelow(mark ownership.Mark) place {
	return place{schema.GroupResource{Group: mark.Source.Group, Resource: mark.Source.Resource}, keyOfSource(mark)}
}

// lookForMissing returns the state of the source of what came up, which is not among what comes up now. Nothing is
// concluded from a cache that cannot be relied on.
func (c *Controller) lookForMissing(ctx context.Context, key types.NamespacedName, held *unstructured.Unstructured) (decide.Source, error) {
	unknown := decide.Source{State: decide.Unknown}
	if held == nil {
		return decide.Source{State: decide.Vanished}, nil
	}
	mark, err := markAbove(c.Owner, held)
	if err != nil {
		return unknown, nil //nolint:nilerr // it did not come up: nothing is to be done about it
	}
	// A proof serves once, so it is taken only where it decides.
	deselected := func() decide.Source {
		return decide.Source{State: decide.Deselected, Proven: c.Mailboxes.Proven(c.Mailbox, c.suspect(key, decide.Deselected))}
	}
	at := placeBelow(mark)
	side := c.sideOf(at.resource)
	if mark.Relation != "" {
		return c.lookForMissingKin(ctx, key, mark, side)
	}
	matcher := c.matcher.Load()
	selected, ok := c.selectsHeld(matcher, side, mark, held)
	switch {
	case !ok && matcher.IsPartial():
		return unknown, nil
	case !ok:
		return deselected(), nil
	case selected.Suspended:
		return decide.Source{State: decide.Suspended}, nil
	}
	if err := c.admitsUp(side, at.key, key); err != nil {
		// That it may not come up any more is no reason to remove what did.
		return unknown, err
	}
	feed := side.feeding()
	switch {
	case feed == nil, !feed.Synced(), feed.Availability().Reason != "":
		return unknown, nil
	case feed.Get(at.key) != nil && slices.Contains(c.raised.at(key), at):
		// It has just come, after it was looked for; its event brings us back.
		return unknown, nil
	case feed.Get(at.key) != nil:
		// It comes up under another name by now, by another conversion.
		if c.awaitsMove(key, side, feed.Get(at.key)) {
			return unknown, nil
		}
		return decide.Source{State: decide.Deselected, Proven: true}, nil
	case c.raised.hasEnded(at, mark.Source.UID):
		return decide.Source{State: decide.Vanished, Proven: true}, nil
	default:
		return c.askForMissing(ctx, key, side, at)
	}
}

// selectsHeld returns how the object of a side is selected that came up as what the mailbox holds.
func (c *Controller) selectsHeld(matcher *selection.Matcher, side *side, mark ownership.Mark, held *unstructured.Unstructured) (selection.Selection, bool) {
	if side == nil {
		return selection.Selection{}, false
	}
	return matcher.MatchUp(selection.Object{
		Resource: side.inConfigs(), Versions: side.versions, Kind: side.Kind, Namespace: mark.Source.Namespace, Name: mark.Source.Name,
		Labels: entriesOf(held, "labels"), Annotations: entriesOf(held, "annotations"),
	})
}

// awaitsMove tells whether what came up under a name, and comes up under another one from now on, is not there yet though
// that name is free: the new one comes before the old one goes. The old one is looked at again when the new one has come.
func (c *Controller) awaitsMove(from types.NamespacedName, side *side, object *unstructured.Unstructured) bool {
	to, comesUp := c.comesUpAs(side, c.matcher.Load(), object)
	if !comesUp || to == from {
		return false
	}
	isFree := func() bool {
		held, known := c.mailboxObject(to)
		return known && held == nil
	}
	if !isFree() {
		return false
	}
	c.moves.await(from, to)
	// It may have come just before.
	return isFree()
}

// moved has what came up under a former name looked at, now that it is there under this one.
func (c *Controller) moved(to types.NamespacedName) {
	if from, waits := c.moves.arrived(to); waits {
		c.enqueue(changePriority, from)
	}
}

// lookForMissingKin returns the state of the source of what came up by a relation. As long as a primary may still want it,
// nothing is concluded.
func (c *Controller) lookForMissingKin(ctx context.Context, key types.NamespacedName, mark ownership.Mark, side *side) (decide.Source, error) {
	at := placeBelow(mark)
	unknown := decide.Source{State: decide.Unknown}
	if c.cameByLostRelation(mark) || side == nil || !c.showsKin(side) {
		return unknown, nil
	}
	if err := c.admitsUp(side, at.key, key); err != nil {
		return unknown, err
	}
	switch {
	case !c.Register.Settled(synchubv1alpha1.RelatedOriginTarget, at.resource):
		// A feed that is being filled by now, because a primary has spoken meanwhile, asks again when it is; and what it had
		// passed over, and a primary wants by now, is being fetched.
		c.Demand(func() bool { return !c.showsKin(side) || c.isKinBelow(side, at.key) })
		return unknown, nil
	case c.raised.hasEnded(at, mark.Source.UID):
		return decide.Source{State: decide.Vanished, Proven: true}, nil
	}
	feed := side.feeding()
	if feed != nil && feed.Get(at.key) != nil {
		if !c.isUnrelatedBelow(side, feed.Get(at.key)) {
			return unknown, nil
		}
		return decide.Source{State: decide.Deselected, Proven: c.Mailboxes.Proven(c.Mailbox, c.suspect(key, decide.Deselected))}, nil
	}
	return c.askForMissing(ctx, key, side, at)
}

// showsKin tells whether all that is related on a side can be seen.
func (c *Controller) showsKin(side *side) bool {
	if feed := side.feeding(); feed != nil {
		return feed.Synced() && feed.Availability().Reason == ""
	}
	names, namespaces, all := c.kinScope(side.GroupResource())
	return len(names) == 0 && len(namespaces) == 0 && !all
}

// isKinBelow tells whether a primary wants an object of the target that the feed shows.
func (c *Controller) isKinBelow(side *side, key types.NamespacedName) bool {
	feed := side.feeding()
	if feed == nil {
		return false
	}
	shown := feed.Shown(key)
	if shown == nil {
		return false
	}
	_, related := c.chooseKinUp(c.matcher.Load(), side, shown)
	return related
}

// isUnrelatedBelow tells whether it is sure that no primary wants an object of the target.
func (c *Controller) isUnrelatedBelow(side *side, object *unstructured.Unstructured) bool {
	return c.Register.Unrelated(synchubv1alpha1.RelatedOriginTarget, side.GroupResource(), c.candidateBelow(c.matcher.Load(), object))
}

// askForMissing asks the target about an object whose end was not seen: it may have ended while the hub was away.
func (c *Controller) askForMissing(ctx context.Context, key types.NamespacedName, side *side, at place) (decide.Source, error) {
	object, err := c.Connection.Get(requests.As(ctx, requests.Extra), side.GroupVersionResource, at.key)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		if name, comesUp := c.comesUpAs(side, c.matcher.Load(), object); comesUp && name == key {
			// The feed will show it.
			return decide.Source{State: decide.Unknown}, nil
		}
		if !StaysBelow(c.Owner, object) && !c.isUnrelatedBelow(side, object) {
			return decide.Source{State: decide.Unknown}, nil
		}
		return decide.Source{State: decide.Deselected, Proven: true}, nil
	case apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == at.key.Name:
		return decide.Source{State: decide.Vanished, Proven: true}, nil
	default:
		// That an API is not served says nothing about its objects.
		return decide.Source{State: decide.Unknown}, fmt.Errorf("cannot find out whether %s %s is gone from the target: %w", at.resource, at.key, err)
	}
}

// rivals reports that more than one object of the target comes up under a name.
func (c *Controller) rivals(key types.NamespacedName, held *unstructured.Unstructured) error {
	side, chosen := c.sourceBelow(key, held)
	if chosen == nil {
		return nil
	}
	for _, at := range c.raised.at(key) {
		if at != side.at(keyOf(chosen)) {
			return fmt.Errorf("%w: %s %s of the target would have the same name", errTakenAbove, at.resource, at.key)
		}
	}
	return nil
}

// conflictAbove takes over the object of the mailbox that has the name, if it is a namespace that the hub made for what came
// up, or if KubeStellar's syncer brought it up and the PublishedResource allows that; else it reports it.
func (c *Controller) conflictAbove(ctx context.Context, key types.NamespacedName, held *unstructured.Unstructured, desired *transform.Desired, object *unstructured.Unstructured) error {
	ctx = requests.As(ctx, requests.Extra)
	_, reason := markAbove(c.Owner, held)
	if mark, proven := c.unsealedMark(held, ownership.DirectionUp, desired, reason); proven {
		if mark.Adopted {
			desired = desired.AsAdopted()
		}
		return c.update(ctx, key, held, desired, object)
	}
	switch {
	case c.isEnsured(held, reason):
		return c.update(ctx, key, held, desired, object)
	case c.mayAdoptAbove(held, reason):
		return c.update(ctx, key, held, desired.AsAdopted(), object)
	case isKubeStellarsAbove(held, reason):
		return fmt.Errorf("%w, or let spec.adoption of the PublishedResource be KubeStellar, whose syncer brought it up", errTakenAbove)
	default:
		return errTakenAbove
	}
}

// mayAdoptAbove tells whether an object of the mailbox may be taken over. One with a mark of another hub never is.
func (c *Controller) mayAdoptAbove(held *unstructured.Unstructured, reason error) bool {
	return c.Resource.Adoption == synchubv1alpha1.AdoptionKubeStellar && isKubeStellarsAbove(held, reason)
}

// isKubeStellarsAbove tells whether KubeStellar's syncer, and no hub, brought up an object of the mailbox.
func isKubeStellarsAbove(held *unstructured.Unstructured, reason error) bool {
	return ownership.IsNobodys(reason) &&
		ownership.IsKubeStellars(held.GetAnnotations(), ownership.KubeStellarUpsynced, transform.SelfOf(held))
}
