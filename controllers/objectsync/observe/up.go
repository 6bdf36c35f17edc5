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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// Up returns the facts about a target object that may be upsynced: whether and how it is selected, its name in the mailbox, and
// the reason if it is denied. The state is Unknown if nothing selects the object. mark is the mailbox object's mark (see
// [Observer.UpsyncMark]). The caller adds its own state.
func (o *Observer) Up(s *plan.Snapshot, mark *ownership.Mark, api plan.TargetAPI, object *unstructured.Unstructured) *plan.UpSnapshot {
	u := &plan.UpSnapshot{Mark: mark, API: api, Object: object}
	var ok bool
	u.Selection, ok = o.SelectUp(s.Matcher, api, object)
	switch {
	case !ok:
		u.State = plan.Unknown
	case u.Selection.Suspended:
		u.State = plan.Suspended
	default:
		u.State = plan.Selected
		o.setNameInMailbox(s, u)
	}
	return u
}

// setNameInMailbox sets the spec that transforms the object for the mailbox, and its name there.
func (o *Observer) setNameInMailbox(s *plan.Snapshot, u *plan.UpSnapshot) {
	if s.InMailbox != nil && o.Mailbox.PartOf(s.InMailbox) != Whole {
		u.Incomplete, u.IncompleteErr = true, o.Mailbox.LimitError(s.InMailbox)
		u.Wants.FullObject = u.IncompleteErr == nil
	}
	u.Spec = o.UpSpec(u.Selection, u.Object)
	u.Spec.Inputs.SyncTarget = o.SyncTargetInput()
	if s.InMailbox != nil {
		u.Spec.Inputs.Other = s.InMailbox.Object
	}
	if u.Mark != nil {
		candidate := o.relatedObjectOnTarget(s.Matcher, u.Object)
		u.Spec.Relation = o.relationForMark(synchubv1alpha1.RelatedOriginTarget, u.API.GroupResource(), candidate, u.Spec.Relation, u.Mark.Relation, &u.Wants)
	}
	if name, err := o.Planner.Up.Name(u.Object, u.Spec); err == nil {
		u.Name = types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
		u.Denied = o.CheckUpsync(u.API, keyOf(u.Object), u.Name)
	}
}

// UpSpec returns the spec that transforms a target object for the mailbox.
func (o *Observer) UpSpec(selected plan.ObjectSelection, object *unstructured.Unstructured) transform.SyncSpec {
	if selected.Related != nil {
		return relatedUpSpec(selected, object)
	}
	return o.resource().UpSpec(selected.Policy, selected.Conversion)
}

// UpsyncMark returns the mark of a mailbox object, which may be nil. The result is nil if the hub did not upsync it.
func (o *Observer) UpsyncMark(inMailbox *unstructured.Unstructured) *ownership.Mark {
	if inMailbox == nil {
		return nil
	}
	mark, err := plan.MailboxMark(o.Planner.Down.Owner, inMailbox)
	if err != nil {
		return nil
	}
	return &mark
}

// SelectsUpsynced returns how configs select the source of an upsynced object, by its mark and the labels in the mailbox. The API
// is zero if it is no longer synced.
func (o *Observer) SelectsUpsynced(matcher *selection.Matcher, api plan.TargetAPI, mark ownership.Mark, inMailbox *unstructured.Unstructured) (selected selection.Selection, ok, unresolved bool) {
	source := selection.Object{
		Resource:  schema.GroupVersionResource{Group: mark.Source.Group, Resource: mark.Source.Resource},
		Namespace: mark.Source.Namespace, Name: mark.Source.Name,
		Labels: plan.MetadataMap(inMailbox, "labels"), Annotations: plan.MetadataMap(inMailbox, "annotations"),
	}
	if api != (plan.TargetAPI{}) {
		source.Resource, source.Versions = o.ConfigResource(api)
		source.Kind = api.Kind
		selected, ok = matcher.MatchUp(source)
	}
	return selected, ok, !ok && matcher.IsUnresolvedUp(source)
}

// A denied object stays unchanged on both sides: a new rule does not delete objects that were synced before.

// CheckTargetNamespace returns why the hub does not use a place on the target; nil if it does. A Namespace counts as inside
// itself.
func (o *Observer) CheckTargetNamespace(target plan.TargetAPI, key types.NamespacedName) error {
	namespace := effectiveNamespace(target.GroupResource(), key)
	if namespace == "" {
		return nil
	}
	return o.Target.CheckNamespace(namespace, target.Allowed.ProtectedNamespaces)
}

// effectiveNamespace returns the namespace that contains an object, or the name of a Namespace; empty for other cluster-scoped
// objects.
func effectiveNamespace(resource schema.GroupResource, key types.NamespacedName) string {
	if resource == (schema.GroupResource{Resource: "namespaces"}) {
		return key.Name
	}
	return key.Namespace
}

// CheckUpsyncSource returns why no object of a target API may be upsynced; nil if objects may be.
func (o *Observer) CheckUpsyncSource(target plan.TargetAPI) error {
	if err := o.Target.CheckKind(schema.GroupKind{Group: target.Group, Kind: target.Kind}); err != nil {
		return err
	}
	return o.resource().CheckUpsync(target)
}

// CheckUpsync returns why a target object may not be upsynced under a name; nil if it may be.
func (o *Observer) CheckUpsync(target plan.TargetAPI, from, to types.NamespacedName) error {
	if err := o.CheckUpsyncSource(target); err != nil {
		return err
	}
	if err := o.CheckTargetNamespace(target, from); err != nil {
		return err
	}
	above := effectiveNamespace(o.resource().GroupResource(), to)
	if above != effectiveNamespace(target.GroupResource(), from) {
		if err := o.Target.CheckProtected(above, target.Allowed.ProtectedNamespaces); err != nil {
			return err
		}
	}
	return policy.CheckReservedName(o.resource().GroupResource(), to)
}
