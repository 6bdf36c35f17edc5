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
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/related"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// relatedMatch is a relation with the primary because of which an object travels.
type relatedMatch = related.Match

// selectRelatedDown returns how an object of the mailbox goes down because it is related to others.
func (c *Controller) selectRelatedDown(matcher *selection.Matcher, source *unstructured.Unstructured) (objectSelection, bool) {
	return relatedSelection(c.Registry.Find(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.relatedObjectInMailbox(matcher, source)))
}

// selectRelatedUp returns how an object of the target comes up because it is related to others.
func (c *Controller) selectRelatedUp(matcher *selection.Matcher, target *targetResource, object metav1.Object) (objectSelection, bool) {
	found, ok := c.Registry.Find(synchubv1alpha1.RelatedOriginTarget, target.GroupResource(), c.relatedObjectOnTarget(matcher, object))
	// It may come up as another resource of the mailbox.
	return relatedSelection(found, ok && found.Relation.InMailbox.GroupResource() == c.Resource.GroupResource())
}

// relatedObjectInMailbox is what the register is asked of an object of the mailbox. Outside the primaries' namespaces nothing is
// reached but what the configs of the mailbox select.
func (c *Controller) relatedObjectInMailbox(matcher *selection.Matcher, source *unstructured.Unstructured) related.Object {
	return related.Object{
		Key: keyOf(source), Labels: source.GetLabels(), OwnerReferences: source.GetOwnerReferences(),
		NamespaceSelected: matcher.SelectsInNamespace(source.GetNamespace()),
		NamespaceLabels:   func() (map[string]string, bool) { return c.mailboxNamespaceLabels(source.GetNamespace()) },
	}
}

// relatedObjectOnTarget is what the register is asked of an object of the target.
func (c *Controller) relatedObjectOnTarget(matcher *selection.Matcher, object metav1.Object) related.Object {
	return related.Object{
		Key:    types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
		Labels: object.GetLabels(), OwnerReferences: object.GetOwnerReferences(),
		NamespaceSelected: matcher.SelectsInNamespace(object.GetNamespace()),
		NamespaceLabels:   func() (map[string]string, bool) { return c.Connection.NamespaceLabels(object.GetNamespace()) },
	}
}

// relatedSelection returns how an object travels as kin of the primary found.
func relatedSelection(found related.Match, ok bool) (objectSelection, bool) {
	if !ok {
		return objectSelection{}, false
	}
	selected := objectSelection{related: &found, Selection: selection.Selection{
		Policy: ownership.PolicyDelete, StatusReturn: found.Relation.StatusReturn,
		Configs: found.Query.PrimaryInfo.Configs, Suspended: found.Query.PrimaryInfo.Suspended,
	}}
	if found.Relation.Orphan {
		selected.Policy = ownership.PolicyOrphan
	}
	return selected, true
}

// relatedDownSpec returns what a related object of the mailbox is to be on the target.
func (c *Controller) relatedDownSpec(selected objectSelection, source *unstructured.Unstructured) (transform.SyncSpec, error) {
	related := selected.related.Relation
	spec := relatedSpec(selected, source)
	spec.Mutation = related.Down
	if spec.Kind = c.targetKind(related.OnTarget.GroupResource()); spec.Kind.Kind == "" {
		return spec, fmt.Errorf("%w: %s, which the object is to be there", errNotServed, related.OnTarget.GroupResource())
	}
	return spec, nil
}

// relatedUpSpec returns what a related object of the target is to be in the mailbox.
func relatedUpSpec(selected objectSelection, object *unstructured.Unstructured) transform.SyncSpec {
	spec := relatedSpec(selected, object)
	spec.Mutation = selected.related.Relation.Up
	return spec
}

func relatedSpec(selected objectSelection, object *unstructured.Unstructured) transform.SyncSpec {
	kin := selected.related
	spec := transform.SyncSpec{
		Policy:    selected.Policy,
		Naming:    kin.Relation.Naming,
		Variables: map[string]any{"Primary": kin.Query.PrimaryInfo.Object},
		Relation:  kin.PublishedResource + "/" + kin.Relation.Identifier,
	}
	if object.GetNamespace() == kin.Query.SourceNamespace {
		spec.Namespace = kin.Query.PrimaryInfo.DestinationNamespace
	}
	return spec
}

// mayBeRelated tells whether a primary that has not spoken may want an object, so that nothing may be concluded from
// nobody's wanting it. Then it has it found out.
func (c *Controller) mayBeRelated(matcher *selection.Matcher, source *unstructured.Unstructured, existing []targetCopy) bool {
	if slices.ContainsFunc(existing, func(p targetCopy) bool { return c.hasUnpublishedRelation(p.observed.Mark) }) {
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

// isRelatedSuspended tells whether an object that is gone travelled with suspended primaries.
func (c *Controller) isRelatedSuspended(matcher *selection.Matcher, key types.NamespacedName, existing []targetCopy) bool {
	found, ok := c.Registry.Find(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), related.Object{
		Key: key, NamespaceSelected: matcher.SelectsInNamespace(key.Namespace),
	})
	if ok {
		return found.Query.PrimaryInfo.Suspended
	}
	// What it was related by cannot be told of what is gone: labels, owners.
	return slices.ContainsFunc(existing, func(p targetCopy) bool {
		contributor, identifier, related := strings.Cut(p.observed.Mark.Relation, "/")
		return related && c.Registry.HasSuspended(contributor, identifier)
	})
}

// hasUnpublishedRelation tells whether an object came by a relation of a PublishedResource that is not in force any more. Such
// objects are kept: removing a PublishedResource removes no data.
func (c *Controller) hasUnpublishedRelation(mark ownership.Mark) bool {
	return mark.Relation != "" && !c.IsPublished(publishedResourceOf(mark.Relation))
}

// publishedResourceOf returns the PublishedResource that a mark's relation is of.
func publishedResourceOf(relation string) string {
	publishedResource, _, _ := strings.Cut(relation, "/")
	return publishedResource
}

// relationForMark returns the relation that a mark is to name, given the one found now and the one that it names. Of several
// PublishedResources that want an object, it goes on naming the one that it names; when that lets go, another. At a start
// they speak in any order, so until all have, the mark is left as it is.
func (c *Controller) relationForMark(target synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, candidate related.Object, found, named string) string {
	stillWanted := func() bool { return c.Registry.IsWantedBy(publishedResourceOf(named), target, resource, candidate) }
	switch {
	case found == "" || named == "":
		return found
	case publishedResourceOf(found) == publishedResourceOf(named), stillWanted():
		return named
	case !c.Registry.IsComplete(target, resource):
		c.RequestCompleteness(stillWanted)
		return named
	default:
		return found
	}
}

// subscribeToRelated makes the controller look again at what begins or ceases to be related.
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
		// A primary has named others: whatever else there is need not be looked through.
		c.enqueue(changePriority, c.existingKeys(change.Names)...)
		return
	}
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		if key := keyOf(source); change.Affects(key) {
			c.enqueue(createPriority, key)
		}
	}
	// What is gone from the mailbox may have been kept until now.
	for _, target := range c.targetResources {
		for _, object := range target.cache.List() {
			c.enqueue(createPriority, slices.DeleteFunc(c.sourceKeysOf(object), func(key types.NamespacedName) bool { return !change.Affects(key) })...)
		}
	}
}

// existingKeys returns those of the names under which there is something in the mailbox, or was and is left on the target.
func (c *Controller) existingKeys(names []types.NamespacedName) (keys []types.NamespacedName) {
	for _, key := range names {
		if !c.Resource.Namespaced {
			key.Namespace = ""
		}
		_, state := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, key)
		if state == mailboxes.Present || len(c.targetMarksOf(key)) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// relatedChangedOnTarget widens the feed if it must, and otherwise asks for what it has passed over until now.
func (c *Controller) relatedChangedOnTarget(ctx context.Context, target *targetResource, change related.Change) {
	matcher := c.matcher.Load()
	if c.updateUpsyncCache(target, matcher) {
		return
	}
	c.enqueue(createPriority, c.upsyncedRelatedKeys(target, change)...)
	feed := target.currentUpsyncCache()
	if feed == nil {
		return
	}
	for _, object := range feed.List() {
		if at := target.ref(keyOf(object)); change.Affects(at.key) {
			c.updateUpsyncName(target, matcher, at, object)
		}
	}
	for _, bystander := range feed.FilteredMetadata() {
		if change.Affects(types.NamespacedName{Namespace: bystander.Namespace, Name: bystander.Name}) {
			c.fetchIfRelated(ctx, target, bystander)
		}
	}
}

// allRelatedChangedOnTarget does so for all there is.
func (c *Controller) allRelatedChangedOnTarget(ctx context.Context) {
	for _, target := range c.targetResources {
		c.relatedChangedOnTarget(ctx, target, related.Change{All: true})
	}
}

// fetchIfRelated makes the feed hold an object after all that it has passed over, if that is related by now.
func (c *Controller) fetchIfRelated(ctx context.Context, target *targetResource, bystander metav1.ObjectMeta) {
	if _, selected := c.selectRelatedUp(c.matcher.Load(), target, &bystander); !selected {
		return
	}
	c.withLock(func() {
		// No work is begun once the controller ends.
		if feed := target.upsyncCache; feed != nil && c.upsyncContext != nil {
			c.runningTasks.Go(func() {
				c.fetchObject(ctx, feed, types.NamespacedName{Namespace: bystander.Namespace, Name: bystander.Name})
			})
		}
	})
}

// upsyncedRelatedKeys returns what came up by a relation and may not be related any more.
func (c *Controller) upsyncedRelatedKeys(target *targetResource, change related.Change) (keys []types.NamespacedName) {
	inMailbox, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, object := range inMailbox {
		mark, err := mailboxMark(c.Owner, object)
		if err != nil || mark.Relation == "" {
			continue
		}
		if at := upsyncSourceRef(mark); at.resource == target.GroupResource() && change.Affects(at.key) {
			keys = append(keys, keyOf(object))
		}
	}
	return keys
}

// updateUpsyncName notes anew under which name an object of the target comes up, if it does.
func (c *Controller) updateUpsyncName(target *targetResource, matcher *selection.Matcher, at targetRef, object *unstructured.Unstructured) {
	key, ok := c.upsyncKey(target, matcher, object)
	c.enqueue(createPriority, c.upsyncIndex.move(at, key, ok)...)
}

// fetchBackoff is how an object is asked for that the feed has passed over. If all tries fail, the watch shows it as soon as it
// changes, and a new feed asks for all.
var fetchBackoff = wait.Backoff{Duration: retryBaseDelay, Factor: 2, Jitter: 0.1, Steps: 10}

func (c *Controller) fetchObject(ctx context.Context, feed *upsyncCache, key types.NamespacedName) {
	err := wait.ExponentialBackoffWithContext(ctx, fetchBackoff, func(ctx context.Context) (bool, error) {
		return feed.Fetch(requestmetrics.WithClass(ctx, requestmetrics.Extra), key) == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		c.Log.Info("cannot read a related object of the target", "object", key.String())
	}
}

// relatedScope returns where objects of the target's resource are that are related.
func (c *Controller) relatedScope(resource schema.GroupResource) (names []types.NamespacedName, namespaces []string, all bool) {
	names, namespaces, all = c.Registry.SourceScope(synchubv1alpha1.RelatedOriginTarget, resource)
	if c.Resource.Namespaced {
		return names, namespaces, all
	}
	// What is in no namespace is wanted by its name alone.
	for i := range names {
		names[i].Namespace = ""
	}
	return names, nil, all || len(namespaces) > 0
}
