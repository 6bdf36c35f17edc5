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
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
)

// observeUp reads the object of the target that is upsynced under the key, or finds out why none is any more.
func (c *Controller) observeUp(s *snapshot) *upSnapshot {
	u := &upSnapshot{tolerated: c.mailboxExpectations.droppedPaths(s.key)}
	u.mark = c.upsyncMark(s.source)
	u.target, u.object = c.upsyncSource(s.key, u.mark)
	if u.object == nil || c.isReplacement(s.key, u) {
		// What was upsynced before is decided about first; its end lets the other come.
		u.target, u.object = nil, nil
		c.observeMissingSource(s, u)
		return u
	}
	var ok bool
	u.selection, ok = c.selectUp(s.matcher, u.target, u.object)
	switch {
	case !ok:
		// The matcher was replaced a moment ago; the upsync cache that follows it decides.
		u.state = plan.Unknown
	case u.selection.Suspended:
		u.state = plan.Suspended
	default:
		u.state = plan.InSync
		c.observeUpsyncedObject(s, u)
	}
	return u
}

// observeUpsyncedObject finds out what becomes of the object in the mailbox.
func (c *Controller) observeUpsyncedObject(s *snapshot, u *upSnapshot) {
	u.incomplete = c.incompleteReason(s.source)
	u.spec = c.upSpec(u.selection, u.object)
	if s.source != nil {
		u.spec.Other = s.source.Object
	}
	if u.mark != nil {
		candidate := c.relatedObjectOnTarget(s.matcher, u.object)
		u.spec.Relation = c.relationForMark(synchubv1alpha1.RelatedOriginTarget, u.target.GroupResource(), candidate, u.spec.Relation, u.mark.Relation)
	}
	if name, err := c.up.Name(u.object, u.spec); err == nil {
		u.name = types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
		u.denied = c.checkUpsync(u.target, keyOf(u.object), u.name)
	}
	for _, ref := range c.upsyncIndex.refsOf(s.key) {
		if ref != u.target.ref(keyOf(u.object)) {
			u.conflicting = &ref
			break
		}
	}
	u.writtenBefore = c.upsyncReadsMailbox && c.failures.hasWritten(s.key, u.object.GetResourceVersion())
}

// upsyncMark returns the mark of a mailbox object, which may be nil; nil if the hub did not upsync it.
func (c *Controller) upsyncMark(inMailbox *unstructured.Unstructured) *ownership.Mark {
	if inMailbox == nil {
		return nil
	}
	mark, err := mailboxMark(c.Owner, inMailbox)
	if err != nil {
		return nil
	}
	return &mark
}

// upsyncSource returns the object of the target that is upsynced under a key: the one that the mailbox object names as its source, if
// that is still upsynced, else the first.
func (c *Controller) upsyncSource(key types.NamespacedName, mark *ownership.Mark) (*targetResource, *unstructured.Unstructured) {
	refs := c.upsyncIndex.refsOf(key)
	if mark != nil {
		if i := slices.Index(refs, upsyncSourceRef(*mark)); i > 0 {
			refs[0], refs[i] = refs[i], refs[0]
		}
	}
	for _, ref := range refs {
		target := c.targetResourceFor(ref.resource)
		if target == nil {
			continue
		}
		if upsynced := target.currentUpsyncCache(); upsynced != nil {
			if object := upsynced.Get(ref.key); object != nil {
				return target, object
			}
		}
	}
	return nil, nil
}

// isReplacement reports whether another object of the target was upsynced under the key before, and is not any more.
func (c *Controller) isReplacement(key types.NamespacedName, u *upSnapshot) bool {
	if u.mark == nil {
		return false
	}
	before := upsyncSourceRef(*u.mark)
	return before != u.target.ref(keyOf(u.object)) && !slices.Contains(c.upsyncIndex.refsOf(key), before)
}

// upsyncSourceRef returns where the source of an upsynced object is, or was.
func upsyncSourceRef(mark ownership.Mark) targetRef {
	return targetRef{schema.GroupResource{Group: mark.Source.Group, Resource: mark.Source.Resource}, sourceKey(mark)}
}

// observeMissingSource finds out why the source of an upsynced object is not upsynced any more. A cache that has not synced proves
// nothing, so the state is Unknown then.
func (c *Controller) observeMissingSource(s *snapshot, u *upSnapshot) {
	switch {
	case s.source == nil:
		u.state = plan.SourceNotFound
	case u.mark == nil:
		// It was not upsynced: it is not the hub's.
		u.state = plan.Unknown
	case u.mark.Relation != "":
		c.observeMissingRelated(s, u)
	default:
		c.observeMissingSelected(s, u)
	}
}

// observeMissingSelected does so for an object that a config selected.
func (c *Controller) observeMissingSelected(s *snapshot, u *upSnapshot) {
	ref := upsyncSourceRef(*u.mark)
	target := c.targetResourceFor(ref.resource)
	selected, ok := c.selectsUpsynced(s.matcher, target, *u.mark, s.source)
	switch {
	case !ok && s.matcher.IsPartial():
		u.state = plan.Unknown
		return
	case !ok:
		c.observeDeselected(s, u)
		return
	case selected.Suspended:
		u.state = plan.Suspended
		return
	}
	u.state = plan.Unknown
	if u.err = c.checkUpsync(target, ref.key, s.key); u.err != nil {
		// That upsync is denied now is no reason to remove what was upsynced before.
		return
	}
	upsynced := target.currentUpsyncCache()
	switch {
	case upsynced == nil, !upsynced.HasSynced(), upsynced.Availability().Reason != "":
	case upsynced.Get(ref.key) != nil && slices.Contains(c.upsyncIndex.refsOf(s.key), ref):
		// It appeared after the index was read; its event enqueues the key again.
	case upsynced.Get(ref.key) != nil:
		// A conversion gives it another name by now.
		if !c.awaitsRename(s, target, upsynced.Get(ref.key)) {
			u.state, u.absenceVerified = plan.Deselected, true
		}
	case c.upsyncIndex.isDeleted(ref, u.mark.Source.UID):
		u.state, u.absenceVerified = plan.SourceNotFound, true
	default:
		u.unconfirmed = &unconfirmedSource{target, ref}
	}
}

// observeDeselected takes the verified absence of the config that selected the object. It counts once.
func (c *Controller) observeDeselected(s *snapshot, u *upSnapshot) {
	u.state = plan.Deselected
	u.absenceVerified = c.Mailboxes.TakeVerifiedAbsence(c.Mailbox, c.absenceCandidate(s.key, plan.Deselected))
}

// selectsUpsynced returns how the source of an upsynced object is selected, by what the mailbox object shows of it.
func (c *Controller) selectsUpsynced(matcher *selection.Matcher, target *targetResource, mark ownership.Mark, inMailbox *unstructured.Unstructured) (selection.Selection, bool) {
	if target == nil {
		return selection.Selection{}, false
	}
	return matcher.MatchUp(selection.Object{
		Resource: target.configResource(), Versions: target.versions, Kind: target.Kind, Namespace: mark.Source.Namespace, Name: mark.Source.Name,
		Labels: metadataMap(inMailbox, "labels"), Annotations: metadataMap(inMailbox, "annotations"),
	})
}

// awaitsRename reports whether the object is to be created under another name, which is free: the new one comes before the old one
// goes. The key is enqueued again when the new one is there.
func (c *Controller) awaitsRename(s *snapshot, target *targetResource, object *unstructured.Unstructured) bool {
	to, ok := c.upsyncKey(target, s.matcher, object)
	if !ok || to == s.key {
		return false
	}
	isFree := func() bool {
		inMailbox, known := c.mailboxObject(to)
		return known && inMailbox == nil
	}
	if !isFree() {
		return false
	}
	c.pendingRenames.add(s.key, to)
	// It may have been created just before.
	return isFree()
}

// observeMissingRelated does so for an object that a relation brought up. As long as a primary may still claim it, the state is
// Unknown.
func (c *Controller) observeMissingRelated(s *snapshot, u *upSnapshot) {
	ref := upsyncSourceRef(*u.mark)
	target := c.targetResourceFor(ref.resource)
	u.state = plan.Unknown
	if c.hasUnpublishedRelation(*u.mark) || target == nil || !c.relatedSynced(target) {
		return
	}
	if u.err = c.checkUpsync(target, ref.key, s.key); u.err != nil {
		return
	}
	switch {
	case !c.Registry.IsComplete(synchubv1alpha1.RelatedOriginTarget, ref.resource):
		// An upsync cache that is being filled, because a primary claims more by now, enqueues the key when it has synced; and an object that
		// it had filtered, and a primary claims by now, is being fetched.
		c.RequestCompleteness(func() bool { return !c.relatedSynced(target) || c.isRelatedOnTarget(s.matcher, target, ref.key) })
		return
	case c.upsyncIndex.isDeleted(ref, u.mark.Source.UID):
		u.state, u.absenceVerified = plan.SourceNotFound, true
		return
	}
	if upsynced := target.currentUpsyncCache(); upsynced != nil && upsynced.Get(ref.key) != nil {
		if c.isUnrelatedOnTarget(s.matcher, target, upsynced.Get(ref.key)) {
			c.observeDeselected(s, u)
		}
		return
	}
	u.unconfirmed = &unconfirmedSource{target, ref}
}

// relatedSynced reports whether the hub sees all related objects of a resource of the target.
func (c *Controller) relatedSynced(target *targetResource) bool {
	if upsynced := target.currentUpsyncCache(); upsynced != nil {
		return upsynced.HasSynced() && upsynced.Availability().Reason == ""
	}
	names, namespaces, all := c.relatedScope(target.GroupResource())
	return len(names) == 0 && len(namespaces) == 0 && !all
}

// isRelatedOnTarget reports whether a primary claims an object of the target that the upsync cache knows.
func (c *Controller) isRelatedOnTarget(matcher *selection.Matcher, target *targetResource, key types.NamespacedName) bool {
	upsynced := target.currentUpsyncCache()
	if upsynced == nil {
		return false
	}
	metadata := upsynced.GetMetadata(key)
	if metadata == nil {
		return false
	}
	_, related := c.selectRelatedUp(matcher, target, metadata)
	return related
}

// isUnrelatedOnTarget reports whether no primary claims an object of the target, for certain.
func (c *Controller) isUnrelatedOnTarget(matcher *selection.Matcher, target *targetResource, object *unstructured.Unstructured) bool {
	return c.Registry.IsUnrelated(synchubv1alpha1.RelatedOriginTarget, target.GroupResource(), c.relatedObjectOnTarget(matcher, object))
}

// observeInMailbox returns the facts about the mailbox object that plan.Up decides by; nil if there is no object.
func (p planner) observeInMailbox(object *unstructured.Unstructured, desired *transform.Desired) *plan.MailboxObject {
	if object == nil {
		return nil
	}
	held := &plan.MailboxObject{UID: object.GetUID(), Terminating: object.GetDeletionTimestamp() != nil, Retain: p.resource.Retain}
	mark, err := mailboxMark(p.owner, object)
	if held.Owned = err == nil; !held.Owned {
		return held
	}
	held.Mark = mark
	// Only what the hub created goes with all that it holds.
	held.Retain = held.Retain || p.resource.Container && mark.Adopted
	if desired != nil {
		held.Missing = transform.MissingPaths(desired.Object.Object, object.Object)
	}
	return held
}
