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

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// CacheTimeout bounds the wait for a created object to appear in the cache. The object never appears if the watch breaks and
// another client deletes the object before the next list. Without a timeout the hub would not recreate it.
const CacheTimeout = 30 * time.Second

// Snapshot holds all facts for one pass about one key. The caller fills it from its caches, and makes no requests: a missing fact
// becomes a part of [Wants].
type Snapshot struct {
	Key     types.NamespacedName
	Matcher *selection.Matcher
	// InMailbox is the mailbox object; nil if there is none. Readable is false while the mailbox cannot be read. Then the other
	// facts are unknown too, and the pass must do nothing.
	InMailbox *unstructured.Unstructured
	Readable  bool
	// Down is nil if the mailbox object was upsynced: the hub never downsyncs such an object.
	Down *DownSnapshot
	// Up is nil if nothing on the target is, or was, upsynced under the key.
	Up *UpSnapshot
}

// DownSnapshot holds the facts about a mailbox object and its copies on the target.
type DownSnapshot struct {
	// Copies are all copies of the mailbox object on the target, under any name and kind.
	Copies []Copy
	// State is Selected if the object belongs on the target. Otherwise it is the reason why the object does not, or why that is
	// unknown.
	State State
	// Err is why the object fails, independently of the target.
	Err       error
	Selection ObjectSelection
	// Destination is the place on the target where the object belongs, with the copy there. DestinationErr is the reason why
	// there is no such place. They are set if the state is Selected or Suspended. Spec transforms the object; it is set if the
	// state is Selected.
	Destination    Copy
	Spec           transform.SyncSpec
	DestinationErr error
	// Excluded is true if the destination is selected for upsync, and the object has no copy yet.
	Excluded bool
	// AbsenceVerified is true if the state is an absence that kcp has confirmed. In the state Selected, the absence is about the
	// former object of the same name.
	AbsenceVerified bool
	// Deletion is the object's deletion; nil if its propagation policy is unknown.
	Deletion *Deletion
	// Rebound is true if kcp deleted the objects of the mailbox although no user did.
	Rebound bool
	// Removed is the copy that another client removed from the target since the last write; nil for none.
	Removed *Removal
	// MayClaim is true if the object may have related objects that are synced with it.
	MayClaim bool
	// DroppedPaths are the fields that the target dropped from the last write.
	DroppedPaths []string
	// WrittenBefore is true if the last write to the copy was for the same version of the source.
	WrittenBefore bool
	// AllCopiesCached is true if the caches contain all existing copies.
	AllCopiesCached bool
	// Held is true while removing and overwriting copies is forbidden, because kcp went back to an earlier state.
	Held bool
	// Lost is the highest resourceVersion that kcp is known to have lost. The mark of a copy may contain a lost version although
	// the source is older.
	Lost  uint64
	Wants Wants
}

// Deletion is the deletion of a mailbox object.
type Deletion struct {
	UID         types.UID
	Propagation metav1.DeletionPropagation
}

// Removal is a copy that vanished from the target, or from the mailbox, although the hub did not delete it.
type Removal struct {
	Mark ownership.Mark
	// Finished is the last version of the copy if it had run to completion; otherwise nil.
	Finished *unstructured.Unstructured
}

// isOf reports whether the copy had the desired content, or may have had it. readsCopy is true if the desired content depends on
// the copy: then this is unknown.
func (r *Removal) isOf(desired *transform.Desired, readsCopy bool) bool {
	return r != nil && r.Mark.Source == desired.Mark.Source && (readsCopy || r.Mark.Hash == desired.Mark.Hash)
}

// Copy is a place on the target, with the copy of a mailbox object there.
type Copy struct {
	API TargetAPI
	Key types.NamespacedName
	// Object and Observed are nil if there is no copy of the hub's.
	Object   *unstructured.Unstructured
	Observed *TargetObject
	// Uncached is true if the hub created the object and the cache does not contain it yet.
	Uncached bool
}

// Ref names the place.
func (c Copy) Ref() Ref { return c.API.Ref(c.Key) }

// requeueAfter returns the delay until the next check of a copy that the cache does not contain yet; otherwise zero.
func (c Copy) requeueAfter() time.Duration {
	if c.Uncached {
		return CacheTimeout
	}
	return 0
}

// hasNoSource reports whether the key has no source on either side.
func (s *Snapshot) hasNoSource() bool {
	return (s.InMailbox == nil || s.Down.State.IsAbsence()) && (s.Up == nil || s.Up.Object == nil)
}

// Ref names the object of the target.
func (u *UpSnapshot) Ref() Ref {
	return u.API.Ref(types.NamespacedName{Namespace: u.Object.GetNamespace(), Name: u.Object.GetName()})
}

// UpSnapshot holds the facts about an object of the target that is, or was, upsynced under the key.
type UpSnapshot struct {
	// Mark is the mailbox object's mark; nil if the hub did not upsync the object.
	Mark *ownership.Mark
	// Object is the upsynced target object; nil if there is none. API is its API on the target.
	Object *unstructured.Unstructured
	API    TargetAPI
	// State is Selected if the object belongs in the mailbox. Otherwise it is the reason why the object does not, or why that is
	// unknown.
	State     State
	Selection ObjectSelection
	// Spec transforms the object, Name is its key in the mailbox, and Denied is the reason why it may not be upsynced. They are
	// set if the state is Selected.
	Spec   transform.SyncSpec
	Name   types.NamespacedName
	Denied error
	// Conflicting is another object of the target that would have the same name in the mailbox.
	Conflicting *Ref
	// Incomplete is true if the mailbox object cannot be compared, because the cache has only a part of it. IncompleteErr is the
	// reason, unless the rest is being fetched.
	Incomplete    bool
	IncompleteErr error
	// AbsenceVerified is true if the state is an absence that is certain.
	AbsenceVerified bool
	// DroppedPaths are the fields that the mailbox dropped from the last write.
	DroppedPaths []string
	// WrittenBefore is true if the last write to the mailbox was for the same version of the object.
	WrittenBefore bool
	// Missing is set if the source of the mailbox object is no longer upsynced. The planner computes the state from it.
	Missing *MissingSource
	// Removed is the mailbox object that another client removed since the last write; nil for none.
	Removed *Removal
	Wants   Wants
}

// ObjectSelection is why and how an object is synced.
type ObjectSelection struct {
	selection.Selection
	// Related is set if the object is synced because a primary claims it.
	Related *related.Match
	// Unresolved is the reason why the hub does not know whether the object is selected. Then the hub must not change the object
	// or its copies.
	Unresolved error
}

// SameEffect reports whether two selections have the same effect on an object.
func (s ObjectSelection) SameEffect(other ObjectSelection) bool {
	return s.Equal(other.Selection) && (s.Related == nil) == (other.Related == nil)
}

// Ref names an object on the target.
type Ref struct {
	Resource schema.GroupResource
	Key      types.NamespacedName
}
