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
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requests"
)

// kin is a relation with the primary because of which an object travels.
type kin = relation.Answer

// chooseAsKin returns how an object of the mailbox goes down because it is related to others.
func (c *Controller) chooseAsKin(matcher *selection.Matcher, source *unstructured.Unstructured) (choice, bool) {
	return chosenAs(c.Register.Find(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.candidateAbove(matcher, source)))
}

// chooseKinUp returns how an object of the target comes up because it is related to others.
func (c *Controller) chooseKinUp(matcher *selection.Matcher, side *side, object metav1.Object) (choice, bool) {
	found, ok := c.Register.Find(synchubv1alpha1.RelatedOriginTarget, side.GroupResource(), c.candidateBelow(matcher, object))
	// It may come up as another resource of the mailbox.
	return chosenAs(found, ok && found.Relation.InMailbox.GroupResource() == c.Resource.GroupResource())
}

// candidateAbove is what the register is asked of an object of the mailbox. Outside the primaries' namespaces nothing is
// reached but what the configs of the mailbox select.
func (c *Controller) candidateAbove(matcher *selection.Matcher, source *unstructured.Unstructured) relation.Candidate {
	return relation.Candidate{
		Key: keyOf(source), Labels: source.GetLabels(), Owners: source.GetOwnerReferences(),
		Selected:        matcher.ReachesNamespace(source.GetNamespace()),
		NamespaceLabels: func() (map[string]string, bool) { return c.namespaceAbove(source.GetNamespace()) },
	}
}

// candidateBelow is what the register is asked of an object of the target.
func (c *Controller) candidateBelow(matcher *selection.Matcher, object metav1.Object) relation.Candidate {
	return relation.Candidate{
		Key:    types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
		Labels: object.GetLabels(), Owners: object.GetOwnerReferences(),
		Selected:        matcher.ReachesNamespace(object.GetNamespace()),
		NamespaceLabels: func() (map[string]string, bool) { return c.Connection.NamespaceLabels(object.GetNamespace()) },
	}
}

// chosenAs returns how an object travels as kin of the primary found.
func chosenAs(found relation.Answer, ok bool) (choice, bool) {
	if !ok {
		return choice{}, false
	}
	chosen := choice{kin: &found, Selection: selection.Selection{
		Policy: ownership.PolicyDelete, StatusReturn: found.Relation.StatusReturn,
		Configs: found.Wanted.About.Configs, Suspended: found.Wanted.About.Suspended,
	}}
	if found.Relation.Orphan {
		chosen.Policy = ownership.PolicyOrphan
	}
	return chosen, true
}

// wishForKin returns what a related object of the mailbox is to be on the target.
func (c *Controller) wishForKin(chosen choice, source *unstructured.Unstructured) (transform.Wish, error) {
	related := chosen.kin.Relation
	wish := wishOf(chosen, source)
	wish.Mutation = related.Down
	if wish.Kind = c.kindOf(related.OnTarget.GroupResource()); wish.Kind.Kind == "" {
		return wish, fmt.Errorf("%w: %s, which the object is to be there", errNotServed, related.OnTarget.GroupResource())
	}
	return wish, nil
}

// wishForKinUp returns what a related object of the target is to be in the mailbox.
func wishForKinUp(chosen choice, object *unstructured.Unstructured) transform.Wish {
	wish := wishOf(chosen, object)
	wish.Mutation = chosen.kin.Relation.Up
	return wish
}

func wishOf(chosen choice, object *unstructured.Unstructured) transform.Wish {
	kin := chosen.kin
	wish := transform.Wish{
		Policy:    chosen.Policy,
		Naming:    kin.Relation.Naming,
		Variables: map[string]any{"Primary": kin.Wanted.About.Object},
		Relation:  kin.Contributor + "/" + kin.Relation.Identifier,
	}
	if object.GetNamespace() == kin.Wanted.Home {
		wish.Namespace = kin.Wanted.About.Away
	}
	return wish
}

// mayStillBeKin tells whether a primary that has not spoken may want an object, so that nothing may be concluded from
// nobody's wanting it. Then it has it found out.
func (c *Controller) mayStillBeKin(matcher *selection.Matcher, source *unstructured.Unstructured, seen []placed) bool {
	if slices.ContainsFunc(seen, func(p placed) bool { return c.cameByLostRelation(p.observed.Mark) }) {
		return true
	}
	if c.Register.Unrelated(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.candidateAbove(matcher, source)) {
		return false
	}
	c.Demand(func() bool {
		_, related := c.chooseAsKin(matcher, source)
		return related
	})
	return true
}

// isFrozenKin tells whether an object that is gone travelled with suspended primaries.
func (c *Controller) isFrozenKin(key types.NamespacedName, seen []placed) bool {
	found, ok := c.Register.Find(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), relation.Candidate{
		Key: key, Selected: c.matcher.Load().ReachesNamespace(key.Namespace),
	})
	if ok {
		return found.Wanted.About.Suspended
	}
	// What it was related by cannot be told of what is gone: labels, owners.
	return slices.ContainsFunc(seen, func(p placed) bool {
		contributor, identifier, related := strings.Cut(p.observed.Mark.Relation, "/")
		return related && c.Register.HasSuspended(contributor, identifier)
	})
}

// cameByLostRelation tells whether an object came by a relation of a PublishedResource that is not in force any more. Such
// objects are kept: removing a PublishedResource removes no data.
func (c *Controller) cameByLostRelation(mark ownership.Mark) bool {
	return mark.Relation != "" && !c.Publishes(contributorOf(mark.Relation))
}

// contributorOf returns the PublishedResource that a mark's relation is of.
func contributorOf(relation string) string {
	publishedResource, _, _ := strings.Cut(relation, "/")
	return publishedResource
}

// relationOf returns the relation that a mark is to name, given the one found now and the one that it names. Of several
// PublishedResources that want an object, it goes on naming the one that it names; when that lets go, another. At a start
// they speak in any order, so until all have, the mark is left as it is.
func (c *Controller) relationOf(side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, candidate relation.Candidate, found, named string) string {
	stillWanted := func() bool { return c.Register.Wants(contributorOf(named), side, resource, candidate) }
	switch {
	case found == "" || named == "":
		return found
	case contributorOf(found) == contributorOf(named), stillWanted():
		return named
	case !c.Register.Settled(side, resource):
		c.Demand(stillWanted)
		return named
	default:
		return found
	}
}

// listenToRelations makes the controller look again at what begins or ceases to be related.
func (c *Controller) listenToRelations(ctx context.Context) (stop func()) {
	stops := []func(){c.Register.Subscribe(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.kinChangedAbove)}
	for _, side := range c.sides {
		stops = append(stops, c.Register.Subscribe(synchubv1alpha1.RelatedOriginTarget, side.GroupResource(), func(change relation.Change) {
			c.kinChangedBelow(ctx, side, change)
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

func (c *Controller) kinChangedAbove(change relation.Change) {
	if !change.All && len(change.Namespaces) == 0 {
		// A primary has named others: whatever else there is need not be looked through.
		c.enqueue(changePriority, c.among(change.Names)...)
		return
	}
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		if key := keyOf(source); change.Concerns(key) {
			c.enqueue(createPriority, key)
		}
	}
	// What is gone from the mailbox may have been kept until now.
	for _, side := range c.sides {
		for _, object := range side.cache.List() {
			c.enqueue(createPriority, slices.DeleteFunc(c.sourcesOf(object), func(key types.NamespacedName) bool { return !change.Concerns(key) })...)
		}
	}
}

// among returns those of the names under which there is something in the mailbox, or was and is left on the target.
func (c *Controller) among(names []types.NamespacedName) (keys []types.NamespacedName) {
	for _, key := range names {
		if !c.Resource.Namespaced {
			key.Namespace = ""
		}
		_, state := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, key)
		if state == mailboxes.Present || len(c.marksFrom(key)) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// kinChangedBelow widens the feed if it must, and otherwise asks for what it has passed over until now.
func (c *Controller) kinChangedBelow(ctx context.Context, side *side, change relation.Change) {
	matcher := c.matcher.Load()
	if c.setFeed(side, matcher) {
		return
	}
	c.enqueue(createPriority, c.raisedKin(side, change)...)
	feed := side.feeding()
	if feed == nil {
		return
	}
	for _, object := range feed.List() {
		if at := side.at(keyOf(object)); change.Concerns(at.key) {
			c.reroute(side, matcher, at, object)
		}
	}
	for _, bystander := range feed.Bystanders() {
		if change.Concerns(types.NamespacedName{Namespace: bystander.Namespace, Name: bystander.Name}) {
			c.passed(ctx, side, bystander)
		}
	}
}

// kinChangedBelowAll does so for all there is.
func (c *Controller) kinChangedBelowAll(ctx context.Context) {
	for _, side := range c.sides {
		c.kinChangedBelow(ctx, side, relation.Change{All: true})
	}
}

// passed makes the feed hold an object after all that it has passed over, if that is related by now.
func (c *Controller) passed(ctx context.Context, side *side, bystander metav1.ObjectMeta) {
	if _, chosen := c.chooseKinUp(c.matcher.Load(), side, &bystander); !chosen {
		return
	}
	c.locked(func() {
		// No work is begun once the controller ends.
		if feed := side.feed; feed != nil && c.feeding != nil {
			c.running.Go(func() { c.fetch(ctx, feed, types.NamespacedName{Namespace: bystander.Namespace, Name: bystander.Name}) })
		}
	})
}

// raisedKin returns what came up by a relation and may not be related any more.
func (c *Controller) raisedKin(side *side, change relation.Change) (keys []types.NamespacedName) {
	above, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, object := range above {
		mark, err := markAbove(c.Owner, object)
		if err != nil || mark.Relation == "" {
			continue
		}
		if at := placeBelow(mark); at.resource == side.GroupResource() && change.Concerns(at.key) {
			keys = append(keys, keyOf(object))
		}
	}
	return keys
}

// reroute notes anew under which name an object of the target comes up, if it does.
func (c *Controller) reroute(side *side, matcher *selection.Matcher, at place, object *unstructured.Unstructured) {
	key, ok := c.comesUpAs(side, matcher, object)
	c.enqueue(createPriority, c.raised.move(at, key, ok)...)
}

// fetching is how an object is asked for that the feed has passed over. If all tries fail, the watch shows it as soon as it
// changes, and a new feed asks for all.
var fetching = wait.Backoff{Duration: firstRetry, Factor: 2, Jitter: 0.1, Steps: 10}

func (c *Controller) fetch(ctx context.Context, feed *feed, key types.NamespacedName) {
	err := wait.ExponentialBackoffWithContext(ctx, fetching, func(ctx context.Context) (bool, error) {
		return feed.Fetch(requests.As(ctx, requests.Extra), key) == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		c.Log.Info("cannot read a related object of the target", "object", key.String())
	}
}

// kinScope returns where objects of the target's resource are that are related.
func (c *Controller) kinScope(resource schema.GroupResource) (names []types.NamespacedName, namespaces []string, all bool) {
	names, namespaces, all = c.Register.Wanted(synchubv1alpha1.RelatedOriginTarget, resource)
	if c.Resource.Namespaced {
		return names, namespaces, all
	}
	// What is in no namespace is wanted by its name alone.
	for i := range names {
		names[i].Namespace = ""
	}
	return names, nil, all || len(namespaces) > 0
}
