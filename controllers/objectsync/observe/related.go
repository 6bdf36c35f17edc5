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
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// SelectRelatedDown returns how a mailbox object is downsynced because a primary claims it.
func (o *Observer) SelectRelatedDown(matcher *selection.Matcher, source *unstructured.Unstructured) (plan.ObjectSelection, bool) {
	return relatedSelection(o.Registry.Find(synchubv1alpha1.RelatedOriginMailbox, o.resource().GroupResource(), o.relatedObjectInMailbox(matcher, source)))
}

// SelectRelatedUp returns how a target object is upsynced because a primary claims it.
func (o *Observer) SelectRelatedUp(matcher *selection.Matcher, api plan.TargetAPI, object metav1.Object) (plan.ObjectSelection, bool) {
	found, ok := o.Registry.Find(synchubv1alpha1.RelatedOriginTarget, api.GroupResource(), o.relatedObjectOnTarget(matcher, object))
	// The object may be upsynced as another resource of the mailbox.
	return relatedSelection(found, ok && found.Relation.InMailbox.GroupResource() == o.resource().GroupResource())
}

// IsUnrelatedOnTarget reports whether no primary claims an object of the target, for certain.
func (o *Observer) IsUnrelatedOnTarget(matcher *selection.Matcher, api plan.TargetAPI, object metav1.Object) bool {
	return o.Registry.IsUnrelated(synchubv1alpha1.RelatedOriginTarget, api.GroupResource(), o.relatedObjectOnTarget(matcher, object))
}

// relatedObjectInMailbox returns the facts about a mailbox object that relations select by. Outside the primary's namespace, a
// relation selects objects only in namespaces that a config of the mailbox selects.
func (o *Observer) relatedObjectInMailbox(matcher *selection.Matcher, source *unstructured.Unstructured) related.Object {
	return related.Object{
		Key: keyOf(source), Labels: source.GetLabels(), OwnerReferences: source.GetOwnerReferences(),
		NamespaceSelected: matcher.SelectsInNamespace(source.GetNamespace()),
		NamespaceLabels:   func() (map[string]string, bool) { return o.Mailbox.NamespaceLabels(source.GetNamespace()) },
	}
}

// relatedObjectOnTarget returns the facts about a target object that relations select by.
func (o *Observer) relatedObjectOnTarget(matcher *selection.Matcher, object metav1.Object) related.Object {
	return related.Object{
		Key: keyOf(object), Labels: object.GetLabels(), OwnerReferences: object.GetOwnerReferences(),
		NamespaceSelected: matcher.SelectsInNamespace(object.GetNamespace()),
		NamespaceLabels:   func() (map[string]string, bool) { return o.Target.NamespaceLabels(object.GetNamespace()) },
	}
}

// relatedSelection returns how a related object is synced.
func relatedSelection(found related.Match, ok bool) (plan.ObjectSelection, bool) {
	if !ok {
		return plan.ObjectSelection{}, false
	}
	selected := plan.ObjectSelection{Related: &found, Selection: selection.Selection{
		Policy: ownership.PolicyDelete, StatusReturn: found.Relation.StatusReturn,
		Configs: found.Query.PrimaryInfo.Configs, Suspended: found.Query.PrimaryInfo.Suspended,
	}}
	if found.Relation.Orphan {
		selected.Policy = ownership.PolicyOrphan
	}
	return selected, true
}

// relatedDownSpec returns the spec that transforms a related mailbox object for the target.
func (o *Observer) relatedDownSpec(selected plan.ObjectSelection, source *unstructured.Unstructured) (transform.SyncSpec, error) {
	related := selected.Related.Relation
	spec := relatedSpec(selected, source)
	spec.Mutation, spec.ReportsDrift = related.Down, o.resource().ReportsDrift
	if spec.Kind = o.Target.KindOf(related.OnTarget.GroupResource()); spec.Kind.Kind == "" {
		return spec, fmt.Errorf("%w %s, the API of the copy", ErrNotServed, related.OnTarget.GroupResource())
	}
	return spec, nil
}

// relatedUpSpec returns the spec that transforms a related target object for the mailbox.
func relatedUpSpec(selected plan.ObjectSelection, object *unstructured.Unstructured) transform.SyncSpec {
	spec := relatedSpec(selected, object)
	spec.Mutation = selected.Related.Relation.Up
	return spec
}

func relatedSpec(selected plan.ObjectSelection, object *unstructured.Unstructured) transform.SyncSpec {
	match := selected.Related
	spec := transform.SyncSpec{
		Policy:    selected.Policy,
		Naming:    match.Relation.Naming,
		Variables: map[string]any{"Primary": match.Query.PrimaryInfo.Object},
		Relation:  match.PublishedResource + "/" + match.Relation.Identifier,
	}
	if object.GetNamespace() == match.Query.SourceNamespace {
		spec.Namespace = match.Query.PrimaryInfo.DestinationNamespace
	}
	return spec
}

// mayBeRelated reports whether a primary that was not processed yet may claim the object. If so, the hub does not know whether
// the object is deselected.
func (o *Observer) mayBeRelated(s *plan.Snapshot, d *plan.DownSnapshot) bool {
	if slices.ContainsFunc(d.Copies, func(p plan.Copy) bool { return o.HasUnpublishedRelation(p.Observed.Mark) }) {
		return true
	}
	if o.Registry.IsUnrelated(synchubv1alpha1.RelatedOriginMailbox, o.resource().GroupResource(), o.relatedObjectInMailbox(s.Matcher, s.InMailbox)) {
		return false
	}
	d.Wants.Claims = func() bool {
		_, related := o.SelectRelatedDown(s.Matcher, s.InMailbox)
		return related
	}
	return true
}

// mayBelongToCopy reports whether the known claims give a related object another place than its copy's, but a claim that is not
// known yet may give it the copy's place. During the initial sync claims appear in any order, and the first of several claims
// decides about the namespace.
func (o *Observer) mayBelongToCopy(s *plan.Snapshot, d *plan.DownSnapshot) bool {
	if d.Selection.Related == nil || len(d.Copies) == 0 || hasCopyAt(d.Copies, d.Destination.Ref()) {
		return false
	}
	belongs := func() bool {
		selected, related := o.SelectRelatedDown(s.Matcher, s.InMailbox)
		if !related {
			return false
		}
		destination, _, err := o.DestinationOf(s.Matcher, s.InMailbox, selected, d.Copies, &plan.Wants{})
		return err == nil && hasCopyAt(d.Copies, destination.Ref())
	}
	if !o.Registry.IsComplete(synchubv1alpha1.RelatedOriginMailbox, o.resource().GroupResource()) {
		d.Wants.Claims = belongs
		return true
	}
	// The claim may have appeared since the pass began. Its event enqueues the key again.
	return belongs()
}

func hasCopyAt(copies []plan.Copy, ref plan.Ref) bool {
	return slices.ContainsFunc(copies, func(existing plan.Copy) bool { return existing.Ref() == ref })
}

// isRelatedSuspended reports whether the primaries of an absent object are suspended.
func (o *Observer) isRelatedSuspended(matcher *selection.Matcher, key types.NamespacedName, existing []plan.Copy) bool {
	found, ok := o.Registry.Find(synchubv1alpha1.RelatedOriginMailbox, o.resource().GroupResource(), related.Object{
		Key: key, NamespaceSelected: matcher.SelectsInNamespace(key.Namespace),
	})
	if ok {
		return found.Query.PrimaryInfo.Suspended
	}
	// The labels and owners of an absent object are unknown, so the relation in its mark decides.
	return slices.ContainsFunc(existing, func(p plan.Copy) bool {
		publishedResource, identifier, related := strings.Cut(p.Observed.Mark.Relation, "/")
		return related && o.Registry.HasSuspended(publishedResource, identifier)
	})
}

// HasUnpublishedRelation reports whether an object was synced by a relation of a PublishedResource that is no longer active. The
// hub keeps such objects: deleting a PublishedResource deletes no data.
func (o *Observer) HasUnpublishedRelation(mark ownership.Mark) bool {
	return mark.Relation != "" && !o.IsPublished(publishedResourceOf(mark.Relation))
}

// publishedResourceOf returns the PublishedResource of the relation that a mark names.
func publishedResourceOf(relation string) string {
	publishedResource, _, _ := strings.Cut(relation, "/")
	return publishedResource
}

// relationForMark returns the relation to write into the mark, given the relation found now and the one named in the mark. If
// primaries of several PublishedResources claim the object, the mark keeps its relation as long as a primary of that
// PublishedResource claims the object. During the initial sync claims appear in any order, so the mark does not change.
func (o *Observer) relationForMark(origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, candidate related.Object, found, named string, wants *plan.Wants) string {
	stillWanted := func() bool { return o.Registry.IsWantedBy(publishedResourceOf(named), origin, resource, candidate) }
	switch {
	case found == "" || named == "":
		return found
	case publishedResourceOf(found) == publishedResourceOf(named), stillWanted():
		return named
	case !o.Registry.IsComplete(origin, resource):
		wants.Claims = stillWanted
		return named
	default:
		return found
	}
}
