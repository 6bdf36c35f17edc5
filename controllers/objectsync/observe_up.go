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
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// observeUp reads the object of the target that is upsynced under the key, or the reason why the target object is no longer upsynced. It
// adds what the hub remembers of them.
func (c *Controller) observeUp(s *plan.Snapshot) *plan.UpSnapshot {
	mark := c.observer.UpsyncMark(s.InMailbox)
	target, object := c.upsyncSource(s.Key, mark)
	var u *plan.UpSnapshot
	if object == nil || c.isReplacement(s.Key, mark, target.Ref(keyOf(object))) {
		// The former object is deleted first. Then its key is free for the new one.
		u = &plan.UpSnapshot{Mark: mark}
		c.observeMissingSource(s, u)
	} else if u = c.observer.Up(s, mark, target.TargetAPI, object); u.State == plan.Selected {
		for _, ref := range c.states.upsyncedRefs(s.Key) {
			if ref != u.Ref() {
				u.Conflicting = &ref
				break
			}
		}
		u.WrittenBefore = c.upsyncReadsMailbox && c.states.hasWritten(s.Key, u.Object.GetResourceVersion())
	}
	// If nothing selects the object, the matcher was replaced a moment ago; the upsync cache that follows it decides.
	u.DroppedPaths, u.Removed = c.states.mailboxExpectations.DroppedPaths(s.Key), c.states.removal(s.Key)
	return u
}

// upsyncSource returns the object of the target that is upsynced under a key: the one that the mailbox object names as its source, if
// that is still upsynced, else the first.
func (c *Controller) upsyncSource(key types.NamespacedName, mark *ownership.Mark) (*targetResource, *unstructured.Unstructured) {
	refs := c.states.upsyncedRefs(key)
	if mark != nil {
		if i := slices.Index(refs, upsyncSourceRef(*mark)); i > 0 {
			refs[0], refs[i] = refs[i], refs[0]
		}
	}
	for _, ref := range refs {
		target := c.targetResourceFor(ref.Resource)
		if target == nil {
			continue
		}
		if upsynced := target.currentUpsyncCache(); upsynced != nil {
			if object := upsynced.Get(ref.Key); object != nil {
				return target, object
			}
		}
	}
	return nil, nil
}

// isReplacement reports whether another object of the target was upsynced under the key before, and is not any more.
func (c *Controller) isReplacement(key types.NamespacedName, mark *ownership.Mark, now plan.Ref) bool {
	if mark == nil {
		return false
	}
	before := upsyncSourceRef(*mark)
	return before != now && !slices.Contains(c.states.upsyncedRefs(key), before)
}

// upsyncSourceRef returns where the source of an upsynced object is, or was.
func upsyncSourceRef(mark ownership.Mark) plan.Ref {
	return plan.Ref{Resource: schema.GroupResource{Group: mark.Source.Group, Resource: mark.Source.Resource}, Key: sourceKey(mark)}
}

// observeMissingSource finds out why the source of an upsynced object is not upsynced any more. A cache that has not synced proves
// nothing, so the state is Unknown then.
func (c *Controller) observeMissingSource(s *plan.Snapshot, u *plan.UpSnapshot) {
	switch {
	case s.InMailbox == nil:
		u.State = plan.SourceNotFound
	case u.Mark == nil:
		// The hub did not upsync this object, so the hub does not own it.
		u.State = plan.Unknown
	case u.Mark.Relation != "":
		c.observeMissingRelated(s, u)
	default:
		c.observeMissingSelected(s, u)
	}
}

// observeMissingSelected finds out why an object that a config selected is not upsynced any more.
func (c *Controller) observeMissingSelected(s *plan.Snapshot, u *plan.UpSnapshot) {
	ref := upsyncSourceRef(*u.Mark)
	target := c.targetResourceFor(ref.Resource)
	selected, ok, unresolved := c.observer.SelectsUpsynced(s.Matcher, target.api(), *u.Mark, s.InMailbox)
	switch {
	case unresolved:
		u.State = plan.Unknown
		return
	case !ok:
		c.observeDeselected(s, u)
		return
	case selected.Suspended:
		u.State = plan.Suspended
		return
	}
	u.State = plan.Unknown
	if u.Err = c.observer.CheckUpsync(target.TargetAPI, ref.Key, s.Key); u.Err != nil {
		// A denied upsync does not remove an object that was upsynced before.
		return
	}
	upsynced := target.currentUpsyncCache()
	switch {
	case upsynced == nil, !upsynced.HasSynced(), upsynced.Availability().Reason != "":
	case upsynced.Get(ref.Key) != nil && slices.Contains(c.states.upsyncedRefs(s.Key), ref):
		// It appeared after the index was read; its event enqueues the key again.
	case upsynced.Get(ref.Key) != nil:
		// A conversion gives it another name by now.
		if !c.awaitRename(s, target, upsynced.Get(ref.Key)) {
			u.State, u.AbsenceVerified = plan.Deselected, true
		}
	case c.states.isSourceDeleted(ref, u.Mark.Source.UID):
		u.State, u.AbsenceVerified = plan.SourceNotFound, true
	default:
		u.Unconfirmed = &ref
	}
}

// observeDeselected takes the verified absence of the config that selected the object. It takes the verification, so
// that the next pass needs another one.
func (c *Controller) observeDeselected(s *plan.Snapshot, u *plan.UpSnapshot) {
	u.State = plan.Deselected
	u.AbsenceVerified = c.Mailboxes.TakeVerifiedAbsence(c.Mailbox, c.absenceCandidate(s.Key, plan.Deselected))
}

// awaitRename reports whether the object is to be created under another name, which is free: the new one comes before the old one
// goes. If so, it notes the rename, and the key is enqueued again when the new one is there.
func (c *Controller) awaitRename(s *plan.Snapshot, target *targetResource, object *unstructured.Unstructured) bool {
	to, ok := c.upsyncKey(target, s.Matcher, object)
	if !ok || to == s.Key {
		return false
	}
	isFree := func() bool {
		inMailbox, known := c.mailboxObject(to)
		return known && inMailbox == nil
	}
	if !isFree() {
		return false
	}
	c.states.addRename(s.Key, to)
	// It may have been created just before.
	return isFree()
}

// observeMissingRelated finds out why an object that was upsynced by a relation is not upsynced any more. As long as a primary may still claim
// the object, the state is Unknown.
func (c *Controller) observeMissingRelated(s *plan.Snapshot, u *plan.UpSnapshot) {
	ref := upsyncSourceRef(*u.Mark)
	target := c.targetResourceFor(ref.Resource)
	u.State = plan.Unknown
	if c.observer.HasUnpublishedRelation(*u.Mark) || target == nil || !c.relatedSynced(target) {
		return
	}
	if u.Err = c.observer.CheckUpsync(target.TargetAPI, ref.Key, s.Key); u.Err != nil {
		return
	}
	switch {
	case !c.Registry.IsComplete(synchubv1alpha1.RelatedOriginTarget, ref.Resource):
		// An upsync cache that is being filled, because a primary claims more by now, enqueues the key when it has synced; and an object that
		// it had filtered, and a primary claims by now, is being fetched.
		c.RequestCompleteness(func() bool { return !c.relatedSynced(target) || c.isRelatedOnTarget(s.Matcher, target, ref.Key) })
		return
	case c.states.isSourceDeleted(ref, u.Mark.Source.UID):
		u.State, u.AbsenceVerified = plan.SourceNotFound, true
		return
	}
	if upsynced := target.currentUpsyncCache(); upsynced != nil && upsynced.Get(ref.Key) != nil {
		if c.observer.IsUnrelatedOnTarget(s.Matcher, target.TargetAPI, upsynced.Get(ref.Key)) {
			c.observeDeselected(s, u)
		}
		return
	}
	u.Unconfirmed = &ref
}

// relatedSynced reports whether the hub caches all related objects of a resource of the target.
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
	_, related := c.observer.SelectRelatedUp(matcher, target.TargetAPI, metadata)
	return related
}
