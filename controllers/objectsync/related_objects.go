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
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/related"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// selectRelatedDown returns how a mailbox object is downsynced because a primary claims it.
func (c *Controller) selectRelatedDown(matcher *selection.Matcher, source *unstructured.Unstructured) (plan.ObjectSelection, bool) {
	return relatedSelection(c.Registry.Find(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.relatedObjectInMailbox(matcher, source)))
}

// selectRelatedUp returns how a target object is upsynced because a primary claims it.
func (c *Controller) selectRelatedUp(matcher *selection.Matcher, target *targetResource, object metav1.Object) (plan.ObjectSelection, bool) {
	found, ok := c.Registry.Find(synchubv1alpha1.RelatedOriginTarget, target.GroupResource(), c.relatedObjectOnTarget(matcher, object))
	// The object may be upsynced as another resource of the mailbox.
	return relatedSelection(found, ok && found.Relation.InMailbox.GroupResource() == c.Resource.GroupResource())
}

// relatedObjectInMailbox returns the facts about a mailbox object by which relations select. Outside the namespaces of
// primaries, relations reach only namespaces that a config of the mailbox selects.
func (c *Controller) relatedObjectInMailbox(matcher *selection.Matcher, source *unstructured.Unstructured) related.Object {
	return related.Object{
		Key: keyOf(source), Labels: source.GetLabels(), OwnerReferences: source.GetOwnerReferences(),
		NamespaceSelected: matcher.SelectsInNamespace(source.GetNamespace()),
		NamespaceLabels:   func() (map[string]string, bool) { return c.mailboxNamespaceLabels(source.GetNamespace()) },
	}
}

// relatedObjectOnTarget returns the facts about a target object by which relations select.
func (c *Controller) relatedObjectOnTarget(matcher *selection.Matcher, object metav1.Object) related.Object {
	return related.Object{
		Key:    types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
		Labels: object.GetLabels(), OwnerReferences: object.GetOwnerReferences(),
		NamespaceSelected: matcher.SelectsInNamespace(object.GetNamespace()),
		NamespaceLabels:   func() (map[string]string, bool) { return c.Connection.NamespaceLabels(object.GetNamespace()) },
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

// relatedDownSpec returns how a related mailbox object changes on its way down.
func (c *Controller) relatedDownSpec(selected plan.ObjectSelection, source *unstructured.Unstructured) (transform.SyncSpec, error) {
	related := selected.Related.Relation
	spec := relatedSpec(selected, source)
	spec.Mutation = related.Down
	if spec.Kind = c.targetGVK(related.OnTarget.GroupResource()); spec.Kind.Kind == "" {
		return spec, fmt.Errorf("%w %s, the API of the copy", errNotServed, related.OnTarget.GroupResource())
	}
	return spec, nil
}

// relatedUpSpec returns how a related target object changes on its way up.
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

// askMayBeRelated reports whether a primary that was not processed yet may claim the object: then its deselection is unknown. It
// asks for the initial sync of the primaries.
func (c *Controller) askMayBeRelated(matcher *selection.Matcher, source *unstructured.Unstructured, existing []plan.Copy) bool {
	if slices.ContainsFunc(existing, func(p plan.Copy) bool { return c.hasUnpublishedRelation(p.Observed.Mark) }) {
		return true
	}
	if c.Registry.IsUnrelated(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.relatedObjectInMailbox(matcher, source)) {
		return false
	}
	c.RequestCompleteness(func() bool {
		_, related := c.selectRelatedDown(matcher, source)
		return related
	})
	return true
}

// askMayBelongToCopy reports whether a related object belongs elsewhere by the claims that are known now, but may yet turn out to belong
// where it has a copy. During the initial sync claims appear in any order, and the first of several decides about the namespace.
// It asks for the initial sync of the primaries if that can decide.
func (c *Controller) askMayBelongToCopy(s *plan.Snapshot, d *plan.DownSnapshot) bool {
	if d.Selection.Related == nil || len(d.Copies) == 0 || hasCopyAt(d.Copies, d.Destination.Ref()) {
		return false
	}
	belongs := func() bool {
		selected, related := c.selectRelatedDown(s.Matcher, s.InMailbox)
		if !related {
			return false
		}
		destination, _, err := c.destinationOf(s.Matcher, s.InMailbox, selected, d.Copies)
		return err == nil && hasCopyAt(d.Copies, destination.Ref())
	}
	if !c.Registry.IsComplete(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource()) {
		c.RequestCompleteness(belongs)
		return true
	}
	// The claim may have appeared since the pass began. Its event enqueues the key again.
	return belongs()
}

func hasCopyAt(copies []plan.Copy, ref plan.Ref) bool {
	return slices.ContainsFunc(copies, func(existing plan.Copy) bool { return existing.Ref() == ref })
}

// isRelatedSuspended reports whether the primaries of an absent object are suspended.
func (c *Controller) isRelatedSuspended(matcher *selection.Matcher, key types.NamespacedName, existing []plan.Copy) bool {
	found, ok := c.Registry.Find(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), related.Object{
		Key: key, NamespaceSelected: matcher.SelectsInNamespace(key.Namespace),
	})
	if ok {
		return found.Query.PrimaryInfo.Suspended
	}
	// The labels and owners of an absent object are unknown, so the relation of its mark has to do.
	return slices.ContainsFunc(existing, func(p plan.Copy) bool {
		publishedResource, identifier, related := strings.Cut(p.Observed.Mark.Relation, "/")
		return related && c.Registry.HasSuspended(publishedResource, identifier)
	})
}

// hasUnpublishedRelation reports whether an object was synced by a relation of a PublishedResource that is not in force any
// more. Such objects are kept: deleting a PublishedResource deletes no data.
func (c *Controller) hasUnpublishedRelation(mark ownership.Mark) bool {
	return mark.Relation != "" && !c.IsPublished(publishedResourceOf(mark.Relation))
}

// publishedResourceOf returns the PublishedResource of the relation that a mark names.
func publishedResourceOf(relation string) string {
	publishedResource, _, _ := strings.Cut(relation, "/")
	return publishedResource
}

// relationForMark returns the relation that the mark names from now on, given the one found now and the one that it names. If
// primaries of several PublishedResources claim the object, the mark keeps the one that it names as long as that claim holds.
// During the initial sync claims appear in any order, so the mark stays as it is.
func (c *Controller) relationForMark(origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, candidate related.Object, found, named string) string {
	stillWanted := func() bool { return c.Registry.IsWantedBy(publishedResourceOf(named), origin, resource, candidate) }
	switch {
	case found == "" || named == "":
		return found
	case publishedResourceOf(found) == publishedResourceOf(named), stillWanted():
		return named
	case !c.Registry.IsComplete(origin, resource):
		c.RequestCompleteness(stillWanted)
		return named
	default:
		return found
	}
}

// subscribeToRelated enqueues objects that begin or cease to be related.
func (c *Controller) subscribeToRelated(ctx context.Context) (stop func()) {
	stops := []func(){c.Registry.Subscribe(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.relatedChangedInMailbox)}
	for _, target := range c.targetResources {
		stops = append(stops, c.Registry.Subscribe(synchubv1alpha1.RelatedOriginTarget, target.GroupResource(), func(change related.Change) {
			c.relatedChangedOnTarget(ctx, target, change)
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

func (c *Controller) relatedChangedInMailbox(change related.Change) {
	if !change.All && len(change.Namespaces) == 0 {
		// A primary claims other names: no other objects are concerned.
		c.enqueue(changePriority, c.existingKeys(change.Names)...)
		return
	}
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		if key := keyOf(source); change.Affects(key) {
			c.enqueue(defaultPriority, key)
		}
	}
	// Copies of absent mailbox objects may have been kept for a primary.
	for _, target := range c.targetResources {
		for _, object := range target.cache.List() {
			c.enqueue(defaultPriority, slices.DeleteFunc(c.sourceKeysOf(object.(*cachedCopy)), func(key types.NamespacedName) bool { return !change.Affects(key) })...)
		}
	}
}

// existingKeys returns the keys of objects that the mailbox has, or of which the target has a copy.
func (c *Controller) existingKeys(names []types.NamespacedName) (keys []types.NamespacedName) {
	for _, key := range names {
		if !c.Resource.Namespaced {
			key.Namespace = ""
		}
		_, state := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, key)
		if state == mailboxes.Present || len(c.observeCopiesOf(key)) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// relatedChangedOnTarget replaces the upsync cache if the change is outside its scope. Otherwise it updates the names of cached
// objects, and fetches filtered objects that are related now.
func (c *Controller) relatedChangedOnTarget(ctx context.Context, target *targetResource, change related.Change) {
	matcher := c.matcher.Load()
	if c.updateUpsyncCache(target, matcher) {
		return
	}
	c.enqueue(defaultPriority, c.upsyncedRelatedKeys(target, change)...)
	upsynced := target.currentUpsyncCache()
	if upsynced == nil {
		return
	}
	for _, object := range upsynced.List() {
		if at := target.Ref(keyOf(object)); change.Affects(at.Key) {
			c.updateUpsyncName(target, matcher, at, object)
		}
	}
	for _, metadata := range upsynced.RejectedMetadata() {
		if change.Affects(types.NamespacedName{Namespace: metadata.Namespace, Name: metadata.Name}) {
			c.fetchIfRelated(ctx, target, metadata)
		}
	}
}

// allRelatedChangedOnTarget calls relatedChangedOnTarget for all objects of all target APIs.
func (c *Controller) allRelatedChangedOnTarget(ctx context.Context) {
	for _, target := range c.targetResources {
		c.relatedChangedOnTarget(ctx, target, related.Change{All: true})
	}
}

// fetchIfRelated makes the upsync cache fetch an object that it had filtered out, if a primary claims the object by now.
func (c *Controller) fetchIfRelated(ctx context.Context, target *targetResource, metadata metav1.ObjectMeta) {
	if _, selected := c.selectRelatedUp(c.matcher.Load(), target, &metadata); !selected {
		return
	}
	c.withLock(func() {
		// Nothing may start once the controller ends.
		if upsynced := target.upsyncCache; upsynced != nil && c.runContext != nil {
			c.runningTasks.Go(func() {
				c.fetchObject(ctx, upsynced, types.NamespacedName{Namespace: metadata.Namespace, Name: metadata.Name})
			})
		}
	})
}

// upsyncedRelatedKeys returns the keys of upsynced related objects that the change concerns.
func (c *Controller) upsyncedRelatedKeys(target *targetResource, change related.Change) (keys []types.NamespacedName) {
	inMailbox, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, object := range inMailbox {
		mark, err := plan.MailboxMark(c.Owner, object)
		if err != nil || mark.Relation == "" {
			continue
		}
		if at := upsyncSourceRef(mark); at.Resource == target.GroupResource() && change.Affects(at.Key) {
			keys = append(keys, keyOf(object))
		}
	}
	return keys
}

// updateUpsyncName indexes a target object under its present mailbox key, if it is upsynced.
func (c *Controller) updateUpsyncName(target *targetResource, matcher *selection.Matcher, at plan.Ref, object *unstructured.Unstructured) {
	key, ok := c.upsyncKey(target, matcher, object)
	c.enqueue(defaultPriority, c.states.moveUpsynced(at, key, ok)...)
}

// fetchBackoff spaces the attempts to fetch an object. If all fail, the watch delivers the object with its next change, and
// the next cache lists it.
var fetchBackoff = wait.Backoff{Duration: retryBaseDelay, Factor: 2, Jitter: 0.1, Steps: 10}

func (c *Controller) fetchObject(ctx context.Context, upsynced *upsyncCache, key types.NamespacedName) {
	err := wait.ExponentialBackoffWithContext(ctx, fetchBackoff, func(ctx context.Context) (bool, error) {
		return upsynced.Fetch(requestmetrics.WithClass(ctx, requestmetrics.Extra), key) == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		c.Log.Info("cannot read a related object of the target", "object", key.String())
	}
}

// relatedScope returns where related objects of a target API are.
func (c *Controller) relatedScope(resource schema.GroupResource) (names []types.NamespacedName, namespaces []string, all bool) {
	names, namespaces, all = c.Registry.SourceScope(synchubv1alpha1.RelatedOriginTarget, resource)
	if c.Resource.Namespaced {
		return names, namespaces, all
	}
	// Cluster-scoped objects are claimed by their names.
	for i := range names {
		names[i].Namespace = ""
	}
	return names, nil, all || len(namespaces) > 0
}
