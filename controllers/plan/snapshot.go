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

// CacheTimeout bounds the wait for a created object to appear in the cache. The object never appears if the watch breaks and somebody
// deletes the object before the next list; without a timeout nobody would recreate it.
const CacheTimeout = 30 * time.Second

// Snapshot holds all facts for one pass about one key. The caller fills it from its caches, which it only reads: what it must
// ask for becomes [Wants].
type Snapshot struct {
	Key     types.NamespacedName
	Matcher *selection.Matcher
	// InMailbox is the mailbox object; nil if there is none. Readable is false while the mailbox cannot be read: then nothing else is
	// known either, and nothing may be done.
	InMailbox *unstructured.Unstructured
	Readable  bool
	// Down is nil if the mailbox object was upsynced, which is never downsynced again.
	Down *DownSnapshot
	// Up is nil if nothing on the target is, or was, upsynced under the key.
	Up *UpSnapshot
}

// DownSnapshot holds the facts about a mailbox object and its copies on the target.
type DownSnapshot struct {
	// Copies are all objects on the target that came from the mailbox object, under any name and kind.
	Copies []Copy
	// State is Selected if the object belongs on the target, else why it does not, or why that is unknown.
	State State
	// Err is why the object fails, independently of the target.
	Err       error
	Selection ObjectSelection
	// Destination is the place on the target where the object belongs, with the copy that is there; DestinationErr is why there
	// is no such place. The destination is set if the state is Selected or Suspended. Spec is how the object changes on its way; it is
	// set if the state is Selected.
	Destination    Copy
	Spec           transform.SyncSpec
	DestinationErr error
	// Excluded is true if the destination is selected for upsync, and the object has no copy yet.
	Excluded bool
	// AbsenceVerified is true if the state is an absence that kcp has confirmed since it was suspected. In the state Selected it is
	// the absence of the object that the present one supersedes.
	AbsenceVerified bool
	// Deletion is how the object was deleted; nil if that is not known.
	Deletion *Deletion
	// Rebound is true if kcp deleted the objects of the mailbox without a user's order.
	Rebound bool
	// Removed is the copy that somebody else removed from the target; nil if nobody did since the last write.
	Removed *Removal
	// MayClaim is true if the object may have related objects that are synced with it.
	MayClaim bool
	// DroppedPaths are the fields that the target was found not to keep.
	DroppedPaths []string
	// WrittenBefore is true if the last write to the copy was for the same version of the source.
	WrittenBefore bool
	// AllCopiesCached is true if the caches show all copies that there are.
	AllCopiesCached bool
	// Held is true while no copy may be removed, or overwritten, because kcp went back to an earlier state.
	Held bool
	// Lost is the highest version that kcp is known to have lost. The mark of a copy may have it though the source is older.
	Lost  uint64
	Wants Wants
}

// Wants are what a pass asks for, beside its writes.
type Wants struct {
	// FullObject is true if the cache has only a part of the mailbox object. An event follows when it has all.
	FullObject bool
	// Claims is set if a primary that was not processed yet may claim the object: all primaries are to finish their initial sync. It
	// reports whether the missing claim is known by now.
	Claims func() (known bool)
	// TakeAbsence is the verified absence that the plan relies on, if it is set. It counts once.
	TakeAbsence State
	// RenameTo is the name under which the source is upsynced first: the new object comes before the old one goes.
	RenameTo *types.NamespacedName
}

// Deletion is how an object of the mailbox was deleted.
type Deletion struct {
	UID         types.UID
	Propagation metav1.DeletionPropagation
}

// Removal is a copy that vanished from the target, or from the mailbox, though the hub did not delete it.
type Removal struct {
	Mark ownership.Mark
	// Finished is the copy as it was last, if it had run to completion; else nil.
	Finished *unstructured.Unstructured
}

// isOf reports whether the copy had the desired content. readsCopy is true if that depends on the copy: then nobody can tell.
func (r *Removal) isOf(desired *transform.Desired, readsCopy bool) bool {
	return r != nil && r.Mark.Source == desired.Mark.Source && (readsCopy || r.Mark.Hash == desired.Mark.Hash)
}

// Copy is a place on the target, with the copy of a mailbox object that is there.
type Copy struct {
	API TargetAPI
	Key types.NamespacedName
	// Object and Observed are nil if no copy of the hub's is there.
	Object   *unstructured.Unstructured
	Observed *TargetObject
	// Uncached is true if the hub created the object and the cache does not show it yet.
	Uncached bool
}

// Ref names the place.
func (c Copy) Ref() Ref { return c.API.Ref(c.Key) }

// requeueAfter returns the delay until the next check whether the cache shows the copy; zero if it does, or if there is none.
func (c Copy) requeueAfter() time.Duration {
	if c.Uncached {
		return CacheTimeout
	}
	return 0
}

// HasNoSource reports whether the key has no source on either side.
func (s *Snapshot) HasNoSource() bool {
	return (s.InMailbox == nil || s.Down.State.IsAbsence()) && (s.Up == nil || s.Up.Object == nil)
}

// Ref names the object of the target.
func (u *UpSnapshot) Ref() Ref {
	return u.API.Ref(types.NamespacedName{Namespace: u.Object.GetNamespace(), Name: u.Object.GetName()})
}

// UpSnapshot holds the facts about an object of the target that is, or was, upsynced under the key.
type UpSnapshot struct {
	// Mark is that of the mailbox object; nil if the hub did not upsync it.
	Mark *ownership.Mark
	// Object is the upsynced object of the target, nil if there is none; API is how the target serves it.
	Object *unstructured.Unstructured
	API    TargetAPI
	// State is Selected if the object belongs in the mailbox, else why not, or why that is unknown.
	State     State
	Selection ObjectSelection
	// Spec is how the object changes on its way, Name its mailbox key; Denied is why it may not be there. Set if the state
	// is Selected.
	Spec   transform.SyncSpec
	Name   types.NamespacedName
	Denied error
	// Conflicting is another object of the target that would have the same name in the mailbox.
	Conflicting *Ref
	// Incomplete is true if the mailbox object cannot be compared: the cache holds only a part of it. IncompleteErr is why, unless the
	// rest is only being fetched.
	Incomplete    bool
	IncompleteErr error
	// AbsenceVerified is true if the absence that the state stands for is certain.
	AbsenceVerified bool
	// DroppedPaths are the fields that the mailbox was found not to keep.
	DroppedPaths []string
	// WrittenBefore is true if the last write to the mailbox was for the same version of the object, and a rule reads the mailbox.
	WrittenBefore bool
	// Missing is set if the source of the mailbox object is not upsynced any more. The state follows from it.
	Missing *MissingSource
	// Removed is the mailbox object that somebody else removed from the mailbox; nil if nobody did since the last write.
	Removed *Removal
	Wants   Wants
}

// ObjectSelection is why and how an object is synced.
type ObjectSelection struct {
	selection.Selection
	// Related is set if the object is synced because a primary claims it.
	Related *related.Match
	// Unresolved is why the hub cannot tell whether the object is synced. Nothing may be done about the object then.
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
