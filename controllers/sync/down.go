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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/controllers/sync/conversion"
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
}

func (p placed) at() place { return p.side.at(p.key) }

// reconcileDown brings in step what an object of the mailbox is on the target. source is nil if there is none.
func (c *Controller) reconcileDown(ctx context.Context, key types.NamespacedName, source *unstructured.Unstructured) (outcome, error) {
	seen := c.placedFrom(key)
	state, selected, err := c.lookDown(key, source, seen)
	if err != nil {
		return outcome{}, err
	}
	if state.State != decide.InStep {
		return c.withdraw(ctx, key, state, seen)
	}
	here, err := c.placeOf(state.Desired)
	if err != nil {
		return outcome{}, err
	}
	if here.observed != nil && here.observed.Mark.Adopted {
		state.Desired = state.Desired.AsAdopted()
	}
	decision, err := decide.Down(state, here.observed, c.onTarget.droppedBy(here.at()))
	if err != nil {
		return outcome{decision: decision}, err
	}
	returnStatus := func() error { return c.returnStatus(ctx, key, source, here, state.Desired, selected) }
	if decision.Cause == decide.InStep {
		return outcome{decision: decision}, errors.Join(returnStatus(), c.removeStrays(ctx, here, seen))
	}
	if decision.Cause == decide.Drifted {
		if wait, contended := c.failures.repair(key); contended {
			return outcome{decision: decision, again: wait}, errors.Join(c.contended(ctx, here, state.Desired.Object, decision.Fields), returnStatus())
		}
	}
	result := outcome{decision: decision}
	if decision.Action == decide.Create {
		result.again = echoTimeout
	}
	err = c.act(ctx, here, decision, state.Desired)
	if err != nil && decision.Action == decide.Apply {
		// What the target holds lives on although it could not be changed.
		err = errors.Join(err, returnStatus())
	}
	return result, err
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

// lookDown returns the state of an object that may go down, and how it is selected.
func (c *Controller) lookDown(key types.NamespacedName, source *unstructured.Unstructured, seen []placed) (decide.Source, selection.Selection, error) {
	matcher := c.matcher.Load()
	if source == nil {
		c.failures.forget(key)
		if matcher.Frozen(c.named(key)) {
			return decide.Source{State: decide.Suspended}, selection.Selection{}, nil
		}
		return c.absence(key, decide.Vanished, seen), selection.Selection{}, nil
	}
	selected, ok := c.selectedBy(matcher, source)
	switch {
	case (!ok || source.GetDeletionTimestamp() != nil) && matcher.Frozen(c.describe(source)):
		return decide.Source{State: decide.Suspended}, selected, nil
	case source.GetDeletionTimestamp() != nil:
		return c.absence(key, decide.Terminating, seen), selected, nil
	case !ok:
		return c.absence(key, decide.Deselected, seen), selected, nil
	case selected.Suspended:
		return decide.Source{State: decide.Suspended}, selected, nil
	case len(seen) == 0 && c.isLeftOut(matcher, source, selected):
		return decide.Source{State: decide.LeftOut}, selected, nil
	}
	policy := selected.Policy
	if c.Resource.Orphan {
		policy = ownership.PolicyOrphan
	}
	desired, err := c.down.Desire(source, policy, selected.Conversion)
	return decide.Source{State: decide.InStep, Desired: desired}, selected, err
}

// isLeftOut tells whether what an object would be on the target is selected for coming up. What went down already stays.
func (c *Controller) isLeftOut(matcher *selection.Matcher, source *unstructured.Unstructured, selected selection.Selection) bool {
	name, ok := selected.Conversion.Down(c.nameOf(source))
	if !ok {
		return false
	}
	side := c.sideOfKind(name.GVK.GroupKind())
	if side == nil {
		return false
	}
	onTarget := c.describe(source)
	onTarget.Resource, onTarget.Kind, onTarget.Namespace, onTarget.Name = side.GroupVersionResource, side.Kind, name.Namespace, name.Name
	_, up := matcher.MatchUp(onTarget)
	return up
}

func (c *Controller) nameOf(source *unstructured.Unstructured) conversion.Name {
	return conversion.Name{GVK: source.GroupVersionKind(), Namespace: source.GetNamespace(), Name: source.GetName()}
}

// absence is the state of a source of which nothing may be left on the target.
func (c *Controller) absence(key types.NamespacedName, cause decide.Cause, seen []placed) decide.Source {
	return decide.Source{State: cause, Proven: len(seen) > 0 && c.Mailboxes.Proven(c.Mailbox, c.suspect(key, cause))}
}

func (c *Controller) suspect(key types.NamespacedName, cause decide.Cause) mailboxes.Suspect {
	return mailboxes.Suspect{Resource: c.Resource.GroupVersionResource, Key: key, Vanished: cause == decide.Vanished}
}

// contended returns the error that names who holds the fields we keep losing.
func (c *Controller) contended(ctx context.Context, here placed, desired *unstructured.Unstructured, fields []string) error {
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
