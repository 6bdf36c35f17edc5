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
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
)

// snapshot is everything one pass knows about one key. [Controller.observe] fills it, and no later step of the pass reads a cache: what
// is decided and what is written rest on one state of both sides.
type snapshot struct {
	key     types.NamespacedName
	matcher *selection.Matcher
	// source is the mailbox object; nil if there is none. readable is false while the mailbox cannot be read: then nothing else is
	// known either, and nothing may be done.
	source   *unstructured.Unstructured
	readable bool
	// down is nil if the mailbox object was upsynced, which is never downsynced again.
	down *downSnapshot
	// up is nil if nothing on the target is, or was, upsynced under the key.
	up *upSnapshot
}

// downSnapshot is what one pass knows about a mailbox object and its copies on the target.
type downSnapshot struct {
	// copies are all objects on the target that came from the mailbox object, under whatever name and kind.
	copies []targetCopy
	// state is plan.InSync if the object belongs on the target, else why it does not, or why that is unknown.
	state plan.Cause
	// err is why the object fails, whatever the target has.
	err       error
	selection objectSelection
	// destination is the place on the target where the object belongs, with the copy that is there; spec is how it changes on its way.
	// Both are set if the state is InSync or Suspended, unless destinationErr says why there is no such place.
	destination    targetCopy
	spec           transform.SyncSpec
	destinationErr error
	// excluded is true if the destination is selected for upsync, and the object has no copy yet.
	excluded bool
	// absenceVerified is true if the state is an absence that kcp has confirmed since it was suspected.
	absenceVerified bool
	// mayClaim is true if the object may have related objects that travel with it.
	mayClaim bool
	// tolerated are the fields that the target was found not to keep.
	tolerated []string
	// writtenBefore is true if the last write to the copy was for the same version of the source.
	writtenBefore bool
	// settled is true if the caches show all copies that there are.
	settled bool
}

// targetCopy is a place on the target, with the copy of a mailbox object that is there.
type targetCopy struct {
	target *targetResource
	key    types.NamespacedName
	// object and observed are nil if nothing of the hub is there.
	object   *unstructured.Unstructured
	observed *plan.TargetObject
	// uncached is true if the hub created the object and the cache does not show it yet.
	uncached bool
}

func (t targetCopy) ref() targetRef { return t.target.ref(t.key) }

// requeueAfter returns when to look whether the cache shows the copy; zero if it does, or if there is none.
func (t targetCopy) requeueAfter() time.Duration {
	if t.uncached {
		return expectationTimeout
	}
	return 0
}

// upSnapshot is what one pass knows about an object of the target that is, or was, upsynced under the key.
type upSnapshot struct {
	// mark is that of the mailbox object; nil if the hub did not upsync it.
	mark *ownership.Mark
	// target and object are what is upsynced now; nil if nothing is.
	target *targetResource
	object *unstructured.Unstructured
	// state is plan.InSync if the object belongs in the mailbox, else why not, or why that is unknown.
	state plan.Cause
	// err is why the mailbox object fails although there is nothing to write.
	err       error
	selection objectSelection
	// spec is how the object changes on its way, name what the mailbox calls it; denied is why it may not be there. Set if the state
	// is InSync.
	spec   transform.SyncSpec
	name   types.NamespacedName
	denied error
	// conflicting is another object of the target that would have the same name in the mailbox.
	conflicting *targetRef
	// incomplete is why the mailbox object cannot be compared: the cache holds only a part of it.
	incomplete error
	// absenceVerified is true if the absence that the state stands for is certain.
	absenceVerified bool
	// tolerated are the fields that the mailbox was found not to keep.
	tolerated []string
	// writtenBefore is true if the last write to the mailbox was for the same version of the object, and a rule reads the mailbox.
	writtenBefore bool
	// unconfirmed is the object to ask the target about, whose end nobody saw.
	unconfirmed *unconfirmedSource
}

// unconfirmedSource is an object that the caches of the target lack, though nobody saw its end.
type unconfirmedSource struct {
	target *targetResource
	ref    targetRef
}
