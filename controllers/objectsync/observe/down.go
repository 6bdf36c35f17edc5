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

package observe

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// Down returns the facts about a mailbox object and its copies: all copies on the target, whether the object belongs on the
// target, and its place there. The caller adds its own state.
func (o *Observer) Down(s *plan.Snapshot) *plan.DownSnapshot {
	d := &plan.DownSnapshot{Copies: o.Target.CopiesOf(s.Key)}
	d.State, d.Selection, d.Err = o.downState(s, d)
	switch {
	case d.Err != nil:
	case d.State == plan.Selected:
		d.Destination, d.Spec, d.DestinationErr = o.DestinationOf(s.Matcher, s.InMailbox, d.Selection, d.Copies, &d.Wants)
		if d.DestinationErr == nil {
			d.Excluded = len(d.Copies) == 0 && o.resource().IsExcludedByUpsync(s.Matcher, s.InMailbox, d.Destination.API, d.Destination.Key)
			if o.mayBelongToCopy(s, d) {
				d.State = plan.Unknown
			}
		}
	case d.State == plan.Suspended:
		o.setSuspendedDestination(s, d)
	}
	return d
}

// setSuspendedDestination sets the place of a suspended object on the target, because its related objects stay suspended with it.
func (o *Observer) setSuspendedDestination(s *plan.Snapshot, d *plan.DownSnapshot) {
	d.Selection.Suspended = true
	switch {
	case s.InMailbox == nil:
		d.DestinationErr = ErrNotReadable
	case len(d.Copies) > 0:
		d.Destination = d.Copies[0]
	default:
		d.Destination, d.Spec, d.DestinationErr = o.DestinationOf(s.Matcher, s.InMailbox, d.Selection, nil, &d.Wants)
	}
}

// DestinationOf returns the place on the target where a mailbox object belongs, and the spec that transforms the object. It
// reuses the observed copies, and adds to wants the facts that are missing.
func (o *Observer) DestinationOf(matcher *selection.Matcher, source *unstructured.Unstructured, selected plan.ObjectSelection, copies []plan.Copy, wants *plan.Wants) (plan.Copy, transform.SyncSpec, error) {
	spec, err := o.downSpec(selected, source)
	if err != nil {
		return plan.Copy{}, spec, err
	}
	spec.Inputs.SyncTarget = o.SyncTargetInput()
	name, err := o.Planner.Down.Name(source, spec)
	if err != nil {
		return plan.Copy{}, spec, err
	}
	destination, err := o.copyNamed(name, copies)
	if err != nil {
		return destination, spec, err
	}
	spec.Version = destination.API.Version
	if err := o.CheckTargetNamespace(destination.API, destination.Key); err != nil {
		return destination, spec, err
	}
	if destination.Object != nil && o.ReadsCopies {
		spec.Inputs.Other = destination.Object.Object
	}
	if destination.Observed != nil && spec.Relation != "" {
		candidate := o.relatedObjectInMailbox(matcher, source)
		spec.Relation = o.relationForMark(synchubv1alpha1.RelatedOriginMailbox, o.resource().GroupResource(), candidate, spec.Relation, destination.Observed.Mark.Relation, wants)
	}
	return destination, spec, nil
}

// downSpec returns the spec that transforms a mailbox object for the target.
func (o *Observer) downSpec(selected plan.ObjectSelection, source *unstructured.Unstructured) (spec transform.SyncSpec, err error) {
	if selected.Related != nil {
		spec, err = o.relatedDownSpec(selected, source)
	} else {
		spec = o.resource().DownSpec(selected.Policy, selected.Conversion)
	}
	if err != nil {
		return spec, err
	}
	return spec, plan.ApplySettings(&spec, selected.Settings, source)
}

// copyNamed returns the place on the target with the given name, and the copy there. It reuses copies that were observed before.
func (o *Observer) copyNamed(name conversion.Name, existing []plan.Copy) (plan.Copy, error) {
	api, err := o.Target.APIOf(name.GVK.GroupKind())
	if err != nil {
		return plan.Copy{}, err
	}
	key := types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
	for _, observed := range existing {
		if observed.Ref() == api.Ref(key) {
			return observed, nil
		}
	}
	return o.Target.CopyAt(api, key), nil
}

// downState returns whether the mailbox object belongs on the target, and how it is selected. The error is why the object fails.
func (o *Observer) downState(s *plan.Snapshot, d *plan.DownSnapshot) (plan.State, plan.ObjectSelection, error) {
	if s.InMailbox == nil {
		if o.isSuspended(s.Matcher, o.SelectionObjectByName(s.Key)) || o.isRelatedSuspended(s.Matcher, s.Key, d.Copies) {
			return plan.Suspended, plan.ObjectSelection{}, nil
		}
		return plan.SourceNotFound, plan.ObjectSelection{}, nil
	}
	selected, ok := o.SelectDown(s.Matcher, s.InMailbox)
	if !ok && o.isUnresolved(s.Matcher, s.InMailbox) {
		selected.Unresolved = ErrPartialMatcher
	}
	switch {
	case !ok || s.InMailbox.GetDeletionTimestamp() != nil:
		return o.unselectedState(s, d, selected, ok), selected, nil
	case o.Mailbox.PartOf(s.InMailbox) != Whole:
		beyondLimit := o.Mailbox.LimitError(s.InMailbox)
		d.Wants.FullObject = beyondLimit == nil
		if _, byConfig := o.resource().Selects(s.Matcher, s.InMailbox); byConfig || selected.Related != nil {
			return plan.Unknown, selected, beyondLimit
		}
		return plan.Unknown, selected, nil
	case errors.Is(selected.Unresolved, ErrNotReadable):
		return plan.Unknown, selected, nil
	case selected.Unresolved != nil:
		return plan.Unknown, selected, selected.Unresolved
	case selected.Suspended:
		return plan.Suspended, selected, nil
	default:
		return plan.Selected, selected, nil
	}
}

// unselectedState returns the state of an object that nothing selects, or that is being deleted.
func (o *Observer) unselectedState(s *plan.Snapshot, d *plan.DownSnapshot, selected plan.ObjectSelection, ok bool) plan.State {
	switch terminating := s.InMailbox.GetDeletionTimestamp() != nil; {
	case o.isSuspended(s.Matcher, o.resource().SelectionObject(s.InMailbox)), terminating && ok && selected.Related != nil && selected.Suspended:
		return plan.Suspended
	case terminating:
		return plan.Terminating
	case o.isUnresolved(s.Matcher, s.InMailbox), len(d.Copies) > 0 && o.mayBeRelated(s, d):
		return plan.Unknown
	case len(d.Copies) > 0 && plan.IsUpsyncedBy(o.Planner.Down.Owner.ForPlacements(), s.InMailbox):
		// The hub placed the object. The hub withdraws an object by deleting it from the mailbox, so somebody else changed the
		// config for placements or the object's label. The hub will repair that.
		return plan.Unknown
	default:
		return plan.Deselected
	}
}
