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
	"cmp"
	"errors"
	"maps"
	"slices"
	gosync "sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/topic"
)

// ObjectRef names a mailbox object of a SyncTarget.
type ObjectRef struct {
	SyncTarget types.UID
	Mailbox    logicalcluster.Name
	Resource   schema.GroupVersionResource
	Key        types.NamespacedName
	// Workspace is the workload workspace of a stuck copy: the mailbox does not have it any more, and the target does not let the hub
	// remove its object. It is also set when that ends, and empty for all other objects.
	Workspace logicalcluster.Name
}

// CopyVersion identifies the content of a marked mailbox object: a copy that a placement made. The mark changes with the
// content. The UID differs after a copy was deleted and created again with the same content, when its object may be gone from the
// target. The zero value belongs to no object.
type CopyVersion struct {
	UID  types.UID
	Mark string
}

// CRDResource is the resource of CustomResourceDefinitions.
var CRDResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// InstalledCRD is the version of a CustomResourceDefinition that the hub installs on a target for a placement: the mailbox has no copy.
var InstalledCRD = CopyVersion{Mark: "installed"}

// CopyVersionOf returns the version of a mailbox object; zero if it has no mark, or is nil.
func CopyVersionOf(object *unstructured.Unstructured) CopyVersion {
	if object == nil {
		return CopyVersion{}
	}
	mark, _ := plan.Annotation(object, ownership.MarkAnnotation)
	if mark == "" {
		return CopyVersion{}
	}
	return CopyVersion{UID: object.GetUID(), Mark: mark}
}

// isPlacedCopy reports whether a mailbox object has the mark of a placement, which need not be valid; false for nil.
func isPlacedCopy(object *unstructured.Unstructured) bool {
	return CopyVersionOf(object) != CopyVersion{}
}

// SyncStatus is the state on the target of one version of a marked mailbox object.
type SyncStatus struct {
	// Synced is true if this is the version that the target was last in sync with.
	Synced bool
	// Excluded is true if the object is not downsynced, because a config selects its name on the target for upsync.
	Excluded bool
	// Failure is why the last pass failed; nil if it did not.
	Failure *Failure
	// Health is the health of the copy on the target, as the hub observed it last; InProgress if there is none yet.
	Health health.Health
}

// Equal reports whether two states are the same.
func (s SyncStatus) Equal(other SyncStatus) bool {
	if (s.Failure == nil) != (other.Failure == nil) || s.Failure != nil && !s.Failure.Equal(*other.Failure) {
		return false
	}
	return s.Synced == other.Synced && s.Excluded == other.Excluded && s.Health == other.Health
}

// PlacedCopy is a marked mailbox object, or a CustomResourceDefinition that the hub installs for a placement, with the status of the
// version that the target was last in sync with.
type PlacedCopy struct {
	Resource schema.GroupVersionResource
	Key      types.NamespacedName
	// Version is zero if the target was never in sync with the object.
	Version CopyVersion
	State   SyncStatus
	// Workspace is the workload workspace of a stuck copy, see [ObjectRef].
	Workspace logicalcluster.Name
}

// recordedStatus is the recorded state of a marked object.
type recordedStatus struct {
	// synced is the version of the object when the target was last in sync with it.
	synced   CopyVersion
	excluded bool
	// workspace is the workload workspace of a stuck copy, see [ObjectRef].
	workspace logicalcluster.Name
}

// syncStatuses are the states of the copies that placements made in the mailbox, by their keys.
type syncStatuses struct {
	// ref names the mailbox and the resource. topic carries the objects whose state changed; nil carries nothing.
	ref   ObjectRef
	topic *topic.Topic[ObjectRef]

	lock   gosync.Mutex
	states map[types.NamespacedName]recordedStatus
}

func newSyncStatuses(o *Options) *syncStatuses {
	return &syncStatuses{
		ref:   ObjectRef{SyncTarget: o.Owner.SyncTarget, Mailbox: o.Mailbox, Resource: o.Resource.GroupVersionResource},
		topic: o.SyncStatusChanged,
	}
}

// record records the result of a pass for an object, and publishes a change of its state.
func (p *syncStatuses) record(key types.NamespacedName, result syncStatusOutcome, failureChanged bool) {
	before, _ := p.get(key)
	if changed := p.update(key, result); changed || failureChanged && (result.version != CopyVersion{} || result.workspace != "") {
		p.publishOne(key, cmp.Or(result.workspace, before.workspace))
	}
}

// update records the result of a pass for an object, and reports whether its state has changed.
func (p *syncStatuses) update(key types.NamespacedName, result syncStatusOutcome) (changed bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	before, known := p.states[key]
	isGone := result.version == CopyVersion{}
	switch {
	case isGone && result.isVerifying && before.workspace != "":
		// Another try to remove the object follows.
		return false
	case isGone && result.workspace == "":
		delete(p.states, key)
		return known
	}
	now := recordedStatus{synced: before.synced, excluded: result.excluded, workspace: result.workspace}
	if isGone {
		now.synced = CopyVersion{}
	}
	if result.synced {
		now.synced = result.version
	}
	if p.states == nil {
		p.states = map[types.NamespacedName]recordedStatus{}
	}
	p.states[key] = now
	return !known || now != before
}

// get returns the state of an object. known is false if no placement made the object, and before its first pass.
func (p *syncStatuses) get(key types.NamespacedName) (state recordedStatus, known bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	state, known = p.states[key]
	return state, known
}

// keys returns the keys of all objects whose state is known.
func (p *syncStatuses) keys() []types.NamespacedName {
	p.lock.Lock()
	defer p.lock.Unlock()
	return slices.Collect(maps.Keys(p.states))
}

// stuck returns the stuck copies.
func (p *syncStatuses) stuck() (refs []ObjectRef) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for key, state := range p.states {
		if state.workspace != "" {
			ref := p.ref
			ref.Key, ref.Workspace = key, state.workspace
			refs = append(refs, ref)
		}
	}
	return refs
}

// publish publishes that the copies of objects have changed on the target.
func (p *syncStatuses) publish(keys []types.NamespacedName) {
	for _, key := range keys {
		if state, known := p.get(key); known {
			p.publishOne(key, state.workspace)
		}
	}
}

func (p *syncStatuses) publishOne(key types.NamespacedName, workspace logicalcluster.Name) {
	ref := p.ref
	ref.Key, ref.Workspace = key, workspace
	p.topic.Publish(ref)
}

// syncStatusOutcome is the outcome of one pass for a marked object.
type syncStatusOutcome struct {
	// version is the mailbox object's version; zero if a user created the object, or the hub upsynced it.
	version CopyVersion
	// synced is true if the target has the content of the object. excluded is true if upsync takes precedence.
	synced, excluded bool
	// workspace is the workload workspace of a stuck copy, see [ObjectRef]. isVerifying is true if the hub verifies the absence of the
	// mailbox object before it tries to remove the copy.
	workspace   logicalcluster.Name
	isVerifying bool
}

// newSyncStatusOutcome returns the outcome for a marked object, given the downsync's outcome and error.
func newSyncStatusOutcome(s *plan.Snapshot, down outcome, err error) syncStatusOutcome {
	if s.InMailbox == nil {
		result := syncStatusOutcome{isVerifying: err == nil && down.decision.Action == plan.VerifyAbsence}
		if stuck, is := errors.AsType[*cannotWithdrawError](err); is {
			result.workspace = stuck.workspace
		}
		return result
	}
	isDone := err == nil || err == down.drift.asError() //nolint:errorlint // the pass has no other error
	return syncStatusOutcome{
		version:  CopyVersionOf(s.InMailbox),
		synced:   isDone && !down.outdated && isSynced(s.Down, down.decision),
		excluded: down.decision.Cause == plan.ExcludedByUpsync,
	}
}

// isSynced reports whether the target has the content of the source after a plan was executed without an error. A copy that another
// client changed afterwards counts.
func isSynced(d *plan.DownSnapshot, decision plan.Decision) bool {
	switch decision.Action {
	case plan.Create, plan.Apply, plan.UpdateMark, plan.Report:
		return true
	case plan.None:
		return d.State == plan.Selected && (decision.Cause == plan.InSync || decision.Cause == plan.Finished)
	default:
		return false
	}
}
