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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requests"
)

// placed is an object on the target that came from the mailbox.
type placed struct {
	side     *side
	key      types.NamespacedName
	object   *unstructured.Unstructured
	observed *decide.Observed
	// awaitsEcho is true if the cache does not show the object yet, which was created a moment ago.
	awaitsEcho bool
}

func (p placed) at() place { return p.side.at(p.key) }

// again returns when to look whether the echo has come; zero if none is awaited.
func (p placed) again() time.Duration {
	if p.awaitsEcho {
		return echoTimeout
	}
	return 0
}

// reconcileDown brings in step what an object of the mailbox is on the target. source is nil if there is none.
func (c *Controller) reconcileDown(ctx context.Context, key types.NamespacedName, source *unstructured.Unstructured) (outcome, error) {
	seen := c.placedFrom(key)
	state, chosen, err := c.lookDown(key, source, seen)
	switch {
	case err != nil:
		c.relatives.doubt(key)
		c.spoke(key)
		return outcome{}, err
	case state == decide.InStep:
		if err := c.hold(ctx, key, source); err != nil {
			return retried(outcome{}, err)
		}
		return retried(c.bringDown(ctx, key, source, chosen, seen))
	case state == decide.Suspended:
		return outcome{decision: decide.Decision{Action: decide.None, Cause: state}}, c.relateSuspended(key, source, chosen, seen)
	case state == decide.Unknown:
		if chosen.doubt != nil {
			c.relatives.doubt(key)
		}
		c.spoke(key)
		return outcome{decision: decide.Decision{Action: decide.None, Cause: state}}, nil
	default:
		result, err := c.withdraw(ctx, key, c.absence(key, state, seen), seen)
		if err != nil || slices.ContainsFunc(seen, func(p placed) bool { return !p.observed.Former }) {
			return result, err
		}
		return retried(result, c.takeLeave(ctx, key, source, state, len(seen) > 0))
	}
}

// takeLeave lets an object go of which nothing is left on the target: nothing travels with it any more.
func (c *Controller) takeLeave(ctx context.Context, key types.NamespacedName, source *unstructured.Unstructured, state decide.Cause, former bool) error {
	if len(c.relatives.relations) > 0 && len(c.raised.at(key)) == 0 {
		// That it wants nothing is as grave as that it is gone.
		if c.relatives.wants(key) && !c.Mailboxes.Proven(c.Mailbox, c.suspect(key, state)) {
			c.Mailboxes.Prove(c.Mailbox, c.suspect(key, state))
			return nil
		}
		c.relatives.forget(key)
		c.spoke(key)
	}
	if !former && (!c.Synced() || c.isBeingPlaced(key)) {
		return nil
	}
	return c.letGoOf(ctx, key, source)
}

// bringDown brings in step an object of the mailbox that goes down.
func (c *Controller) bringDown(ctx context.Context, key types.NamespacedName, source *unstructured.Unstructured, chosen choice, seen []placed) (outcome, error) {
	here, wish, err := c.destination(source, chosen, seen)
	if err != nil {
		c.relatives.doubt(key)
		c.spoke(key)
		return outcome{}, err
	}
	if len(seen) == 0 && c.isLeftOut(source, here) {
		c.relatives.forget(key)
		c.spoke(key)
		return outcome{decision: decide.Decision{Action: decide.None, Cause: decide.LeftOut}}, nil
	}
	related := c.relate(key, chosen, source, here)
	desired, err := c.desire(source, wish, here.observed)
	if err != nil {
		return outcome{}, errors.Join(err, related)
	}
	decision, err := decide.Down(decide.Source{State: decide.InStep, Desired: desired}, here.observed, c.onTarget.droppedBy(here.at()))
	if err != nil {
		return outcome{decision: decision}, err
	}
	returnStatus := func() (bool, error) { return c.returnStatus(ctx, key, source, here, desired, chosen) }
	if decision.Cause == decide.InStep {
		returned, err := returnStatus()
		return outcome{decision: decision, deferred: deferredPaths(desired), returned: returned, again: here.again()}, errors.Join(related, err, c.removeStrays(ctx, here, seen))
	}
	if restless := c.isRestless(key, source, wish, decision); restless || decision.Cause == decide.Drifted {
		if wait := c.failures.repair(key); wait > 0 {
			contended := c.contended(ctx, here, desired.Object, decision.Fields)
			_, err := returnStatus()
			return outcome{decision: decision, again: wait}, errors.Join(contended, err)
		}
	}
	result := outcome{decision: decision, again: here.again()}
	if decision.Action == decide.Create {
		result.again = echoTimeout
	}
	err = c.act(ctx, here, decision, desired)
	if err == nil && wish.Mutation.UsesOther() {
		c.failures.changed(key, source.GetResourceVersion())
	}
	if err != nil && decision.Action == decide.Apply {
		// What the target holds lives on although it could not be changed.
		_, failed := returnStatus()
		err = errors.Join(err, failed)
	}
	return result, errors.Join(err, related)
}

// destination returns where an object of the mailbox belongs on the target, with what is there of ours, and what it is to
// be there; seen is what came from it.
func (c *Controller) destination(source *unstructured.Unstructured, chosen choice, seen []placed) (placed, transform.Wish, error) {
	wish, err := c.wishDown(chosen, source)
	if err != nil {
		return placed{}, wish, err
	}
	name, err := c.down.Name(source, wish)
	if err != nil {
		return placed{}, wish, err
	}
	here, err := c.placeOf(name, seen)
	if err == nil {
		wish.Version = here.side.Version
		err = c.admits(here.side, here.key)
	}
	if err == nil && here.object != nil && c.wholeOnTarget {
		wish.Other = here.object.Object
	}
	return here, wish, err
}

// desire returns what the target must hold for an object of the mailbox, given what it holds.
func (c *Controller) desire(source *unstructured.Unstructured, wish transform.Wish, observed *decide.Observed) (*transform.Desired, error) {
	if observed != nil && wish.Relation != "" {
		wish.Relation = c.relationOf(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.candidateAbove(c.matcher.Load(), source), wish.Relation, observed.Mark.Relation)
	}
	if observed == nil {
		return c.down.Desire(source, wish)
	}
	return c.down.DesireObserved(source, wish, observed.Mark, func(before *transform.Desired) bool { return before.Mark.Hash == observed.Mark.Hash })
}

// deferredPaths names the fields that are left to the target until the source changes.
func deferredPaths(desired *transform.Desired) (paths []string) {
	for _, field := range desired.Deferred {
		paths = append(paths, field.Path.String())
	}
	return paths
}

// withdraw takes away all that came from an object that is gone or does not go down any more, or leaves it as it is.
func (c *Controller) withdraw(ctx context.Context, key types.NamespacedName, state decide.Source, seen []placed) (outcome, error) {
	result := outcome{decision: decide.Decision{Action: decide.None, Cause: state.State}}
	var errs []error
	for _, placed := range seen {
		decision, err := decide.Down(state, placed.observed, nil)
		if err == nil {
			result.decision = decision
			if decision.Action == decide.Prove {
				c.Mailboxes.Prove(c.Mailbox, c.suspect(key, state.State))
				continue
			}
			err = c.act(ctx, placed, decision, nil)
		}
		errs = append(errs, err)
	}
	return result, errors.Join(errs...)
}

// removeStrays takes away what an object was on the target under another name or kind, now that it is there under this
// one.
func (c *Controller) removeStrays(ctx context.Context, here placed, seen []placed) error {
	var errs []error
	for _, placed := range seen {
		if placed.at() != here.at() {
			errs = append(errs, c.act(ctx, placed, decide.Stray(placed.observed), nil))
		}
	}
	return errors.Join(errs...)
}

// act carries out a decision about one object on the target.
func (c *Controller) act(ctx context.Context, here placed, decision decide.Decision, desired *transform.Desired) error {
	var err error
	switch decision.Action {
	case decide.None:
		return nil
	case decide.Create:
		err = c.create(ctx, here, desired)
	case decide.Apply:
		err = c.apply(ctx, here, desired, here.observed.UID)
		if err == nil && here.observed.Mark.Policy == ownership.PolicyCreateOnly {
			err = c.thaw(ctx, here, desired)
		}
	case decide.Remark:
		err = c.remark(ctx, here, desired, here.observed)
	case decide.Delete:
		err = c.delete(ctx, here, here.observed.UID)
	case decide.Release:
		err = c.release(ctx, here)
	case decide.Conflict:
		err = &takenError{at: here.at(), why: "it came from " + describeSource(here.observed.Mark.Source)}
	case decide.Prove, decide.Update:
		err = fmt.Errorf("%s is no action on the target", decision)
	}
	log.FromContext(ctx).V(1).Info("acted", "decision", decision.String(), "target", here.side.GroupResource(), "name", here.key)
	if err == nil {
		c.Changed()
	}
	return err
}

// lookDown returns the state of an object that may go down, and how it is chosen.
func (c *Controller) lookDown(key types.NamespacedName, source *unstructured.Unstructured, seen []placed) (decide.Cause, choice, error) {
	matcher := c.matcher.Load()
	if source == nil {
		c.failures.forget(key)
		if c.isFrozen(matcher, c.named(key)) || c.isFrozenKin(key, seen) {
			return decide.Suspended, choice{}, nil
		}
		return decide.Vanished, choice{}, nil
	}
	chosen, ok := c.chooseDown(matcher, source)
	if !ok && matcher.IsPartial() {
		chosen.doubt = errPartial
	}
	if !ok || source.GetDeletionTimestamp() != nil {
		return c.lookAtLeaving(matcher, source, chosen, ok, seen), chosen, nil
	}
	switch {
	case errors.Is(chosen.doubt, errUnseen):
		missing := c.missing(source)
		if !isBeyondLimits(missing) {
			return decide.Unknown, chosen, nil
		}
		if _, selected := c.selects(matcher, source); selected || chosen.kin != nil {
			return decide.Unknown, chosen, missing
		}
		return decide.Unknown, chosen, nil
	case chosen.doubt != nil:
		return decide.Unknown, chosen, chosen.doubt
	case chosen.Suspended:
		return decide.Suspended, chosen, nil
	default:
		return decide.InStep, chosen, nil
	}
}

// lookAtLeaving returns the state of an object that is not chosen any more, or is being deleted.
func (c *Controller) lookAtLeaving(matcher *selection.Matcher, source *unstructured.Unstructured, chosen choice, ok bool, seen []placed) decide.Cause {
	switch terminating := source.GetDeletionTimestamp() != nil; {
	case c.isFrozen(matcher, c.describe(source)), terminating && ok && chosen.kin != nil && chosen.Suspended:
		return decide.Suspended
	case terminating:
		return decide.Terminating
	case matcher.IsPartial(), len(seen) > 0 && c.mayStillBeKin(matcher, source, seen):
		return decide.Unknown
	default:
		return decide.Deselected
	}
}

// isFrozen tells whether all that speaks of objects of a name is suspended.
func (c *Controller) isFrozen(matcher *selection.Matcher, object selection.Object) bool {
	if c.Resource.Companion || c.Resource.All && selection.IsEveryday(object) {
		return false
	}
	return matcher.Frozen(object)
}

// isLeftOut tells whether what an object would be on the target is selected for coming up. What went down already stays.
func (c *Controller) isLeftOut(source *unstructured.Unstructured, here placed) bool {
	return c.Resource.IsLeftOut(c.matcher.Load(), source, here.side.TargetResource, here.key)
}

// absence is the state of a source that does not go down; of one that is gone nothing may be left on the target.
func (c *Controller) absence(key types.NamespacedName, state decide.Cause, seen []placed) decide.Source {
	if !state.IsAbsence() {
		return decide.Source{State: state}
	}
	return decide.Source{State: state, Proven: len(seen) > 0 && c.Mailboxes.Proven(c.Mailbox, c.suspect(key, state))}
}

func (c *Controller) suspect(key types.NamespacedName, cause decide.Cause) mailboxes.Suspect {
	return mailboxes.Suspect{Resource: c.Resource.GroupVersionResource, Key: key, Vanished: cause == decide.Vanished}
}

// isRestless tells whether an object is to be changed although its source has not changed since the last time: a mutation
// that looks at the target's object may never come to an end.
func (c *Controller) isRestless(key types.NamespacedName, source *unstructured.Unstructured, wish transform.Wish, decision decide.Decision) bool {
	if !wish.Mutation.UsesOther() || decision.Action != decide.Apply || decision.Cause != decide.Changed {
		return false
	}
	return c.failures.hasChanged(key, source.GetResourceVersion())
}

// contended returns the error that names who holds the fields we keep losing.
func (c *Controller) contended(ctx context.Context, here placed, desired *unstructured.Unstructured, fields []string) error {
	if len(fields) == 0 {
		return fmt.Errorf("%w: spec.mutation.down of the PublishedResource makes another object of it each time", errContended)
	}
	object, err := c.Connection.Get(requests.As(ctx, requests.Extra), here.side.GroupVersionResource, here.key)
	if err != nil {
		return err
	}
	holders, err := ownership.Holders(desired.Object, object.GetManagedFields(), fields)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %v keeps changing %v", errContended, holders, fields)
}

func describeSource(source ownership.Source) string {
	return fmt.Sprintf("%s %s of the mailbox", source.Resource, types.NamespacedName{Namespace: source.Namespace, Name: source.Name})
}
