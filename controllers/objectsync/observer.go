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
}

// observe reads all facts that one pass needs about a key.
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

// observeDown reads all copies of the mailbox object, and the place where the object belongs. It adds the state of the key.
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
	case d.State.IsAbsence():
		d.MayClaim = s.Up == nil && len(o.primaries.relations) > 0 && o.primaries.mayClaim(s.Key)
		d.Deletion = o.states.deletionOf(s.Key)
		d.AllCopiesCached = o.target.hasSynced() && !o.target.hasUncachedCopy(s.Key)
	}
	o.observeAbsence(s, d)
	return d
}

// observeAbsence reads whether the absence that the decision depends on is verified. A verification can be used only once, so it is
// read only if a decision depends on it.
func (o *observer) observeAbsence(s *plan.Snapshot, d *plan.DownSnapshot) {
	relevant := relevantAbsence(s, d)
	if relevant == "" {
		return
	}
	d.Rebound = o.mailbox.mailboxes.Absences.WasRebound(o.mailbox.name)
	if d.AbsenceVerified = o.mailbox.hasVerifiedAbsence(s.Key, relevant); d.AbsenceVerified {
		d.Wants.TakeAbsence = relevant
	}
}

// relevantAbsence returns the absence that the decision depends on, empty for none: the absence of the object, or of a former object
// of the same name if that is the source of the copy.
func relevantAbsence(s *plan.Snapshot, d *plan.DownSnapshot) plan.State {
	observed := d.Destination.Observed
	switch {
	case d.Err != nil, d.DestinationErr != nil:
		return ""
	case d.State == plan.Selected && observed != nil && observed.Mark.Source.UID != s.InMailbox.GetUID():
		return plan.Deselected
	case d.State.IsAbsence() && (len(d.Copies) > 0 || d.MayClaim):
		return d.State
	default:
		return ""
	}
}

// observeUp reads the target object that is upsynced under the key, or the facts about a source that is no longer upsynced. It
// adds the state of the key.
func (o *observer) observeUp(s *plan.Snapshot) *plan.UpSnapshot {
	mark := o.rules.UpsyncMark(s.InMailbox)
	api, object := o.upsync.sourceOf(s.Key, mark)
	u := &plan.UpSnapshot{Mark: mark, State: plan.Unknown}
	switch {
	case object != nil && !o.isReplacement(s.Key, mark, api.Ref(keyOf(object))):
		u = o.observeSource(s, mark, api, object)
	case s.InMailbox == nil:
		u.State = plan.SourceNotFound
	case mark != nil:
		// The mailbox object of the former source must be deleted first. Then the key is free for the new one.
		u.Missing = o.observeMissing(s, *mark)
	}
	u.DroppedPaths, u.Removed = o.mailbox.writes.DroppedPaths(s.Key), o.states.removal(s.Key)
	if m := u.Missing; m != nil && (m.IsRelated || !m.IsSelected) {
		m.AbsenceVerified = o.mailbox.hasVerifiedAbsence(s.Key, plan.Deselected)
	}
	return u
}

// observeSource reads an object of the target that is upsynced.
func (o *observer) observeSource(s *plan.Snapshot, mark *ownership.Mark, api plan.TargetAPI, object *unstructured.Unstructured) *plan.UpSnapshot {
	// If nothing selects the object, the matcher was replaced a moment ago, and the next upsync cache enqueues the key.
	u := o.rules.Up(s, mark, api, object)
	if u.State != plan.Selected {
		return u
	}
	for _, ref := range o.upsynced.refsOf(s.Key) {
		if ref != u.Ref() {
			u.Conflicting = &ref
			break
		}
	}
	u.WrittenBefore = o.states.hasWritten(s.Key, u.Object.GetResourceVersion())
	return u
}

// isReplacement reports whether another target object was upsynced under the key before, and no longer is.
func (o *observer) isReplacement(key types.NamespacedName, mark *ownership.Mark, now plan.Ref) bool {
	if mark == nil {
		return false
	}
	before := upsyncSourceRef(*mark)
	return before != now && !o.upsynced.has(key, before)
}

// observeMissing reads the facts about the source of an upsynced object if the source is no longer upsynced.
func (o *observer) observeMissing(s *plan.Snapshot, mark ownership.Mark) *plan.MissingSource {
	ref := upsyncSourceRef(mark)
	m := &plan.MissingSource{Ref: ref, IsRelated: mark.Relation != ""}
	api := o.target.apiOf(ref.Resource)
	object := o.upsync.cached(ref)
	m.IsCached = object != nil
	if api.Resource != "" {
		m.Denied = o.rules.CheckUpsync(api, ref.Key, s.Key)
	}
	if m.IsRelated {
		o.observeMissingRelated(s, mark, api, object, m)
	} else {
		o.observeMissingSelected(s, mark, api, object, m)
	}
	// A deletion is recorded after the cache has dropped the object.
	m.IsDeleted = o.upsynced.isSourceDeleted(ref, mark.Source.UID)
	return m
}

// observeMissingSelected reads the facts about an object that a config selected.
func (o *observer) observeMissingSelected(s *plan.Snapshot, mark ownership.Mark, api plan.TargetAPI, object *unstructured.Unstructured, m *plan.MissingSource) {
	var selected selection.Selection
	selected, m.IsSelected, m.IsUnresolved = o.rules.SelectsUpsynced(s.Matcher, api, mark, s.InMailbox)
	m.IsSuspended = selected.Suspended
	upsynced := o.upsync.cacheOf(m.Ref.Resource)
	m.IsCacheComplete = upsynced != nil && upsynced.knowsAll()
	m.MayBeClaimed = !m.IsSelected && api.Resource != "" && o.upsync.mayBeClaimed(s.Matcher, api, m.Ref.Key)
	if object == nil {
		return
	}
	to, ok := o.upsync.keyFor(api, s.Matcher, object)
	m.IsIndexed = ok && to == s.Key || o.upsynced.has(s.Key, m.Ref)
	if ok && o.mailbox.isFree(to) {
		m.RenameTo = &to
	}
}

// observeMissingRelated reads the facts about an object that was upsynced by a relation.
func (o *observer) observeMissingRelated(s *plan.Snapshot, mark ownership.Mark, api plan.TargetAPI, object *unstructured.Unstructured, m *plan.MissingSource) {
	m.IsUnpublished = o.rules.HasUnpublishedRelation(mark)
	m.IsCacheComplete = api.Resource != "" && o.upsync.knowsRelated(m.Ref.Resource)
	m.IsClaimsComplete = o.registry.IsComplete(synchubv1alpha1.RelatedOriginTarget, m.Ref.Resource)
	m.IsUnclaimed = object != nil && o.rules.IsUnrelatedOnTarget(s.Matcher, api, object)
	// An upsync cache that is being filled for new claims enqueues the key when it has synced. A filtered object that a primary
	// has claimed since is being fetched.
	m.IsClaimed = func() bool {
		return !o.upsync.knowsRelated(m.Ref.Resource) || o.upsync.isRelated(s.Matcher, api, m.Ref.Key)
	}
}
