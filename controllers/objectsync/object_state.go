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
	"maps"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// ObjectRef names a mailbox object of a SyncTarget.
type ObjectRef struct {
	SyncTarget types.UID
	Mailbox    logicalcluster.Name
	Resource   schema.GroupVersionResource
	Key        types.NamespacedName
}

// PlacementCopyVersion identifies the content of a marked mailbox object: a copy that a placement made. Its mark changes with the
// content. A copy
// that was deleted and made again with the same content has another UID: its object may be gone from the target meanwhile. The zero
// PlacementCopyVersion is that of no object.
type PlacementCopyVersion struct {
	UID  types.UID
	Mark string
}

// CRDResource is the resource of CustomResourceDefinitions.
var CRDResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// InstalledCRD is the version of a CustomResourceDefinition that the hub installs on a target for a placement: the mailbox has no copy.
var InstalledCRD = PlacementCopyVersion{Mark: "installed"}

// PlacementCopyVersionOf returns the version of a mailbox object; zero if it has no mark, or is nil.
func PlacementCopyVersionOf(object *unstructured.Unstructured) PlacementCopyVersion {
	if object == nil {
		return PlacementCopyVersion{}
	}
	mark, _ := plan.Annotation(object, ownership.MarkAnnotation)
	if mark == "" {
		return PlacementCopyVersion{}
	}
	return PlacementCopyVersion{UID: object.GetUID(), Mark: mark}
}

// ObjectState is how far the hub has come with a version of a marked mailbox object.
type ObjectState struct {
	// Synced is true if the target was in sync with this version when it was last in sync with the object.
	Synced bool
	// Excluded is true if the object is not synced because a config selects its name on the target for upsync.
	Excluded bool
	// Failure is why the last pass failed; nil if it did not.
	Failure *Failure
	// Health is the health of the copy on the target, as the hub observed it last; InProgress if there is none yet.
	Health health.Health
}

// Equal reports whether two states are the same.
func (s ObjectState) Equal(other ObjectState) bool {
	if (s.Failure == nil) != (other.Failure == nil) || s.Failure != nil && *s.Failure != *other.Failure {
		return false
	}
	return s.Synced == other.Synced && s.Excluded == other.Excluded && s.Health == other.Health
}

// PlacementCopy is a marked mailbox object, or a CustomResourceDefinition that the hub installs for a placement, with the state of the version that the target was last in sync with.
type PlacementCopy struct {
	Resource schema.GroupVersionResource
	Key      types.NamespacedName
	// Version is zero if the target was never in sync with the object.
	Version PlacementCopyVersion
	State   ObjectState
}

// ObjectState returns the state of a version of a marked mailbox object; known is false before the first pass for the object.
func (c *Controller) ObjectState(key types.NamespacedName, version PlacementCopyVersion) (state ObjectState, known bool) {
	state, synced, known := c.syncedState(key)
	state.Synced = known && synced != PlacementCopyVersion{} && synced == version
	return state, known
}

// Copies returns all marked mailbox objects whose state is known.
func (c *Controller) Copies() []PlacementCopy {
	keys := c.states.placementCopyKeys()
	copies := make([]PlacementCopy, 0, len(keys))
	for _, key := range keys {
		if state, synced, known := c.syncedState(key); known {
			state.Synced = synced != PlacementCopyVersion{}
			copies = append(copies, PlacementCopy{c.Resource.GroupVersionResource, key, synced, state})
		}
	}
	return copies
}

// syncedState returns the state of a marked mailbox object, and the version that the target was last in sync with.
func (c *Controller) syncedState(key types.NamespacedName) (state ObjectState, synced PlacementCopyVersion, known bool) {
	marked, failure, known := c.states.placementCopy(key)
	if !known {
		return ObjectState{}, PlacementCopyVersion{}, false
	}
	state = ObjectState{Excluded: marked.excluded, Failure: failure, Health: health.Health{Status: health.InProgress}}
	if inMailbox, known := c.mailboxObject(key); known && inMailbox != nil && c.states.isFinished(key) {
		// The last status is all that is left of the copy.
		state.Health = c.Resource.GetRules().Health.Of(inMailbox)
	}
	for i, copied := range c.observeCopiesOf(key) {
		// A copy under an old name goes once the new one exists.
		if i == 0 || copied.Observed.Health.Status != health.Terminating {
			state.Health = copied.Observed.Health
		}
	}
	return state, marked.synced, true
}

// recordPlacementCopy records the result of a pass for a marked object, and publishes a change of its state.
func (c *Controller) recordPlacementCopy(key types.NamespacedName, result outcome, failureChanged bool) {
	if c.states.recordPlacementCopy(key, result) || failureChanged && result.placementCopy.version != (PlacementCopyVersion{}) {
		c.publishState(key)
	}
}

// publishPlacementCopies publishes that the copies of marked objects have changed on the target.
func (c *Controller) publishPlacementCopies(keys []types.NamespacedName) {
	for _, key := range keys {
		if _, _, known := c.states.placementCopy(key); known {
			c.publishState(key)
		}
	}
}

func (c *Controller) publishState(key types.NamespacedName) {
	c.ObjectStates.Publish(ObjectRef{c.Owner.SyncTarget, c.Mailbox, c.Resource.GroupVersionResource, key})
}

// placementCopyState is the hub's memory of a marked object.
type placementCopyState struct {
	// synced is the version of the object when the target was last in sync with it.
	synced   PlacementCopyVersion
	excluded bool
}

// recordPlacementCopy records the result of a pass for an object, and reports whether its state has changed.
func (s *keyStates) recordPlacementCopy(key types.NamespacedName, result outcome) (changed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	before, known := s.placementCopies[key]
	if result.placementCopy.version == (PlacementCopyVersion{}) {
		delete(s.placementCopies, key)
		return known
	}
	now := placementCopyState{synced: before.synced, excluded: result.placementCopy.excluded}
	if result.placementCopy.synced {
		now.synced = result.placementCopy.version
	}
	s.placementCopies[key] = now
	return !known || now != before
}

// placementCopy returns the state of a marked object.
func (s *keyStates) placementCopy(key types.NamespacedName) (state placementCopyState, failure *Failure, known bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if state, known = s.placementCopies[key]; !known {
		return placementCopyState{}, nil, false
	}
	if details := s.keys[key].details; details != nil && details.failure != nil {
		copied := *details.failure
		failure = &copied
	}
	return state, failure, true
}

// placementCopyKeys returns the keys of all marked objects whose state is known.
func (s *keyStates) placementCopyKeys() []types.NamespacedName {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Collect(maps.Keys(s.placementCopies))
}

// placementCopyOutcome is the outcome of one pass for a marked object.
type placementCopyOutcome struct {
	// version is that of the mailbox object; zero if a user made the object, or it came up from the target.
	version PlacementCopyVersion
	// synced is true if the target has the content of the object. excluded is true if upsync takes precedence.
	synced, excluded bool
}

// newPlacementCopyOutcome returns the outcome for a marked object, given that of the way down.
func newPlacementCopyOutcome(s *plan.Snapshot, down outcome, err error) placementCopyOutcome {
	if s.InMailbox == nil {
		return placementCopyOutcome{}
	}
	return placementCopyOutcome{
		version:  PlacementCopyVersionOf(s.InMailbox),
		synced:   err == nil && !down.outdated && isSynced(s.Down, down.decision),
		excluded: down.decision.Cause == plan.ExcludedByUpsync,
	}
}

// isSynced reports whether the target has the content of the source after a plan was carried out without an error.
func isSynced(d *plan.DownSnapshot, decision plan.Decision) bool {
	switch decision.Action {
	case plan.Create, plan.Apply, plan.UpdateMark:
		return true
	case plan.None:
		return d.State == plan.Selected && (decision.Cause == plan.InSync || decision.Cause == plan.Finished)
	default:
		return false
	}
}
