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
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// observer reads all facts that a pass needs.
type observer struct {
	matcher   *atomic.Pointer[selection.Matcher]
	registry  *related.Registry
	rules     *observe.Observer
	mailbox   *mailboxView
	target    *targetView
	upsync    *upsyncCaches
	upsynced  *upsyncIndex
	states    *keyStates
	primaries *primaryTracker
	// held and lost are nil if kcp never went back to an earlier state.
	held func() bool
	lost func() uint64
	// upsyncReadsMailbox is true if a rule for upsync reads the mailbox object.
	upsyncReadsMailbox  bool
	requestCompleteness func(answered func() bool)
}

// observe reads all facts that one pass needs about a key. It also takes a verified absence, and asks for full objects, for the
// initial sync of primaries and for a rename; it writes to neither side.
func (o *observer) observe(key types.NamespacedName) *plan.Snapshot {
	s := &plan.Snapshot{Key: key, Matcher: o.matcher.Load()}
	s.InMailbox, s.Readable = o.mailbox.get(key)
	switch {
	case !s.Readable, o.mailbox.resource.Unpublishing:
	case o.mailbox.isUpsynced(s.InMailbox):
		s.Up = o.observeUp(s)
	default:
		if len(o.upsynced.refsOf(key)) > 0 {
			s.Up = o.observeUp(s)
		}
		s.Down = o.observeDown(s)
	}
	return s
}

// observeDown reads all copies of the mailbox object, and the place where the object belongs. It adds what the hub remembers of them.
func (o *observer) observeDown(s *plan.Snapshot) *plan.DownSnapshot {
	d := o.rules.Down(s)
	if o.held != nil {
		d.Held, d.Lost = o.held(), o.lost()
	}
	switch {
	case d.Err != nil:
	case d.State == plan.Selected && d.DestinationErr == nil:
		d.DroppedPaths = o.target.writes.DroppedPaths(d.Destination.Ref())
		d.WrittenBefore = o.states.hasWritten(s.Key, s.InMailbox.GetResourceVersion())
		d.Removed = o.states.removal(s.Key)
		o.observeSuperseded(s, d)
	case d.State.IsAbsence():
		o.observeAbsence(s, d)
	}
	return d
}

// observeAbsence reads whether the absence of the object is verified. A verified absence counts once, so observeAbsence takes it
// only where a decision depends on it.
func (o *observer) observeAbsence(s *plan.Snapshot, d *plan.DownSnapshot) {
	d.MayClaim = s.Up == nil && len(o.primaries.relations) > 0 && o.primaries.mayClaim(s.Key)
	if len(d.Copies) > 0 || d.MayClaim {
		d.AbsenceVerified = o.mailbox.takeVerifiedAbsence(s.Key, d.State)
	}
	d.Deletion = o.states.deletionOf(s.Key)
	d.AllCopiesCached = o.target.hasSynced() && !o.target.hasUncachedCopy(s.Key)
}

// observeSuperseded reads whether the absence of a former object of the same name is verified, if the copy may be of one.
func (o *observer) observeSuperseded(s *plan.Snapshot, d *plan.DownSnapshot) {
	if observed := d.Destination.Observed; observed != nil && observed.Mark.Source.UID != s.InMailbox.GetUID() {
		d.AbsenceVerified = o.mailbox.takeVerifiedAbsence(s.Key, plan.Deselected)
		d.Rebound = o.mailbox.mailboxes.WasRebound(o.mailbox.name)
	}
}

// observeUp reads the object of the target that is upsynced under the key, or the reason why the target object is no longer upsynced. It
// adds what the hub remembers of them.
func (o *observer) observeUp(s *plan.Snapshot) *plan.UpSnapshot {
	mark := o.rules.UpsyncMark(s.InMailbox)
	api, object := o.upsync.sourceOf(s.Key, mark)
	var u *plan.UpSnapshot
	if object == nil || o.isReplacement(s.Key, mark, api.Ref(keyOf(object))) {
		// The former object is deleted first. Then its key is free for the new one.
		u = &plan.UpSnapshot{Mark: mark}
		o.observeMissingSource(s, u)
	} else if u = o.rules.Up(s, mark, api, object); u.State == plan.Selected {
		for _, ref := range o.upsynced.refsOf(s.Key) {
			if ref != u.Ref() {
				u.Conflicting = &ref
				break
			}
		}
		u.WrittenBefore = o.upsyncReadsMailbox && o.states.hasWritten(s.Key, u.Object.GetResourceVersion())
	}
	// If nothing selects the object, the matcher was replaced a moment ago; the upsync cache that follows it decides.
	u.DroppedPaths, u.Removed = o.mailbox.writes.DroppedPaths(s.Key), o.states.removal(s.Key)
	return u
}

// isReplacement reports whether another object of the target was upsynced under the key before, and is not any more.
func (o *observer) isReplacement(key types.NamespacedName, mark *ownership.Mark, now plan.Ref) bool {
	if mark == nil {
		return false
	}
	before := upsyncSourceRef(*mark)
	return before != now && !slices.Contains(o.upsynced.refsOf(key), before)
}

// observeMissingSource finds out why the source of an upsynced object is not upsynced any more. A cache that has not synced proves
// nothing, so the state is Unknown then.
func (o *observer) observeMissingSource(s *plan.Snapshot, u *plan.UpSnapshot) {
	switch {
	case s.InMailbox == nil:
		u.State = plan.SourceNotFound
	case u.Mark == nil:
		// The hub did not upsync this object, so the hub does not own it.
		u.State = plan.Unknown
	case u.Mark.Relation != "":
		o.observeMissingRelated(s, u)
	default:
		o.observeMissingSelected(s, u)
	}
}

// observeMissingSelected finds out why an object that a config selected is not upsynced any more.
func (o *observer) observeMissingSelected(s *plan.Snapshot, u *plan.UpSnapshot) {
	ref := upsyncSourceRef(*u.Mark)
	target := o.target.resourceFor(ref.Resource)
	selected, ok, unresolved := o.rules.SelectsUpsynced(s.Matcher, o.target.apiOf(ref.Resource), *u.Mark, s.InMailbox)
	switch {
	case unresolved:
		u.State = plan.Unknown
		return
	case !ok:
		o.observeDeselected(s, u)
		return
	case selected.Suspended:
		u.State = plan.Suspended
		return
	}
	u.State = plan.Unknown
	if u.Err = o.rules.CheckUpsync(target.TargetAPI, ref.Key, s.Key); u.Err != nil {
		// A denied upsync does not remove an object that was upsynced before.
		return
	}
	upsynced := o.upsync.cacheOf(ref.Resource)
	switch {
	case upsynced == nil, !upsynced.HasSynced(), upsynced.Availability().Reason != "":
	case upsynced.Get(ref.Key) != nil && slices.Contains(o.upsynced.refsOf(s.Key), ref):
		// It appeared after the index was read; its event enqueues the key again.
	case upsynced.Get(ref.Key) != nil:
		// A conversion gives it another name by now.
		if !o.awaitRename(s, target, upsynced.Get(ref.Key)) {
			u.State, u.AbsenceVerified = plan.Deselected, true
		}
	case o.upsynced.isSourceDeleted(ref, u.Mark.Source.UID):
		u.State, u.AbsenceVerified = plan.SourceNotFound, true
	default:
		u.Unconfirmed = &ref
	}
}

// observeDeselected takes the verified absence of the config that selected the object. It takes the verification, so
// that the next pass needs another one.
func (o *observer) observeDeselected(s *plan.Snapshot, u *plan.UpSnapshot) {
	u.State = plan.Deselected
	u.AbsenceVerified = o.mailbox.takeVerifiedAbsence(s.Key, plan.Deselected)
}

// awaitRename reports whether the object is to be created under another name, which is free: the new one comes before the old one
// goes. If so, it notes the rename, and the key is enqueued again when the new one is there.
func (o *observer) awaitRename(s *plan.Snapshot, target *targetResource, object *unstructured.Unstructured) bool {
	to, ok := o.upsync.keyFor(target.TargetAPI, s.Matcher, object)
	if !ok || to == s.Key {
		return false
	}
	isFree := func() bool {
		inMailbox, known := o.mailbox.get(to)
		return known && inMailbox == nil
	}
	if !isFree() {
		return false
	}
	o.states.addRename(s.Key, to)
	// It may have been created just before.
	return isFree()
}

// observeMissingRelated finds out why an object that was upsynced by a relation is not upsynced any more. As long as a primary may still claim
// the object, the state is Unknown.
func (o *observer) observeMissingRelated(s *plan.Snapshot, u *plan.UpSnapshot) {
	ref := upsyncSourceRef(*u.Mark)
	target := o.target.resourceFor(ref.Resource)
	u.State = plan.Unknown
	if o.rules.HasUnpublishedRelation(*u.Mark) || target == nil || !o.upsync.knowsRelated(ref.Resource) {
		return
	}
	if u.Err = o.rules.CheckUpsync(target.TargetAPI, ref.Key, s.Key); u.Err != nil {
		return
	}
	switch {
	case !o.registry.IsComplete(synchubv1alpha1.RelatedOriginTarget, ref.Resource):
		// An upsync cache that is being filled, because a primary claims more by now, enqueues the key when it has synced; and an object that
		// it had filtered, and a primary claims by now, is being fetched.
		o.requestCompleteness(func() bool {
			return !o.upsync.knowsRelated(ref.Resource) || o.upsync.isRelated(s.Matcher, target.TargetAPI, ref.Key)
		})
		return
	case o.upsynced.isSourceDeleted(ref, u.Mark.Source.UID):
		u.State, u.AbsenceVerified = plan.SourceNotFound, true
		return
	}
	if upsynced := o.upsync.cacheOf(ref.Resource); upsynced != nil && upsynced.Get(ref.Key) != nil {
		if o.rules.IsUnrelatedOnTarget(s.Matcher, target.TargetAPI, upsynced.Get(ref.Key)) {
			o.observeDeselected(s, u)
		}
		return
	}
	u.Unconfirmed = &ref
}
