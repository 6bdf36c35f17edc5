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

package reflection

import (
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// Snapshot holds all facts about a reflection in one pass.
type Snapshot struct {
	Resource plan.Resource
	// State is plan.Selected if the workspace must have the reflection. Otherwise it is why it must not, or why that is unknown.
	State           plan.State
	AbsenceVerified bool
	// Desired is the desired reflection without its status, and Status its status. They are set if the state is plan.Selected.
	Desired *transform.Desired
	Status  map[string]any
	// Owners is the state of the owners, see [OwnerReferences]. MayWait is true if the reflection may wait for pending owners.
	Owners  OwnerState
	MayWait bool
	// Object is the object of the workspace with the name of the reflection; nil if there is none. Mark is its mark; nil if it is not the
	// reflection. A reflection whose mark somebody removed has the mark of the zero source.
	Object *unstructured.Unstructured
	Mark   *ownership.Mark
	// IsOutdated is true if the object is not cached whole, and the rest is being fetched.
	IsOutdated bool
	// DroppedPaths are the fields that the workspace dropped from the last write, and AddedPaths those that it added.
	DroppedPaths, AddedPaths []string
}

// Plan is the result of [Decide].
type Plan struct {
	plan.Decision
	// WritesStatus is true if the status differs from the desired one, and is not part of the object.
	WritesStatus bool
	// Waits is true if the reflection waits for its owners.
	Waits bool
	// AddedPaths are the fields of the object that the desired reflection does not have. They count as added by the workspace if the
	// object is in sync.
	AddedPaths []string
}

// Decide decides what to write.
func Decide(s *Snapshot) (p Plan, err error) {
	waits := s.waitsForOwners()
	if s.State == plan.Selected && (s.IsOutdated || s.Owners == OwnerUnknown || waits) {
		return Plan{Decision: plan.Decision{Action: plan.None, Cause: plan.Cause(plan.Unknown)}, Waits: waits && !s.IsOutdated}, nil
	}
	observed := s.observed()
	p.Decision, err = plan.DecideUp(plan.SourceState{State: s.State, Desired: s.Desired, AbsenceVerified: s.AbsenceVerified}, observed, s.DroppedPaths)
	if err != nil || observed == nil || !observed.Owned || s.Desired == nil {
		return p, err
	}
	p.AddedPaths = AddedPaths(s.Desired.Object, s.Object)
	if p.Cause == plan.InSync {
		if fields := s.differences(p.AddedPaths); len(fields) > 0 {
			p.Decision = plan.Decision{Action: plan.Update, Cause: plan.Drifted, Fields: fields}
		}
	}
	if p.Action == plan.None && p.Cause == plan.InSync || p.Action == plan.Update {
		p.WritesStatus = s.hasOtherStatus()
	}
	return p, nil
}

// waitsForOwners reports whether a reflection must not exist before its owners do. Kubernetes' garbage collector deletes a reflection whose
// owner is gone: it must not come back before the cluster has deleted its origin too.
func (s *Snapshot) waitsForOwners() bool {
	return s.Owners == OwnerGone || s.Owners == OwnerPending && s.MayWait
}

// hasOtherStatus reports whether the status of the object is written by itself, and differs from the desired one.
func (s *Snapshot) hasOtherStatus() bool {
	return s.Resource.StatusSubresource && !s.Resource.Native && !transform.EqualStatus(transform.StatusOf(s.Object.Object["status"]), transform.StatusOf(s.Status))
}

// observed returns the facts about the object; nil if there is none.
func (s *Snapshot) observed() *plan.MailboxObject {
	if s.Object == nil {
		return nil
	}
	observed := &plan.MailboxObject{Owned: s.Mark != nil, Terminating: s.Object.GetDeletionTimestamp() != nil}
	if s.Mark == nil {
		return observed
	}
	observed.Mark = *s.Mark
	if observed.Mark.Source == (ownership.Source{}) && s.Desired != nil {
		observed.Mark.Source = s.Desired.Mark.Source
	}
	observed.Mark.Policy = ownership.PolicyDelete
	if s.Desired != nil {
		observed.Missing = transform.MissingPaths(s.Desired.Object.Object, s.Object.Object)
	}
	return observed
}

// differences returns the fields that somebody added to a reflection, or changed and [transform.MissingPaths] does not compare.
func (s *Snapshot) differences(added []string) (fields []string) {
	for _, path := range added {
		if s.AddedPaths != nil && !slices.Contains(s.AddedPaths, path) {
			fields = append(fields, path)
		}
	}
	if !hasNoOther(s.Object.GetLabels(), s.Desired.Object.GetLabels()) {
		fields = append(fields, ".metadata.labels")
	}
	if !hasNoOther(s.Object.GetAnnotations(), s.Desired.Object.GetAnnotations()) {
		fields = append(fields, ".metadata.annotations")
	}
	if !apiequality.Semantic.DeepEqual(s.Object.GetOwnerReferences(), s.Desired.Object.GetOwnerReferences()) {
		fields = append(fields, ".metadata.ownerReferences")
	}
	if len(s.Object.GetFinalizers()) > 0 {
		fields = append(fields, ".metadata.finalizers")
	}
	if !s.Resource.StatusSubresource && len(s.Status) > 0 && !transform.EqualStatus(transform.StatusOf(s.Object.Object["status"]), transform.StatusOf(s.Status)) {
		fields = append(fields, ".status")
	}
	return fields
}

// AddedPaths returns the fields of the object, except its metadata, that the desired one does not have; never nil.
func AddedPaths(desired, object *unstructured.Unstructured) []string {
	content := maps.Clone(object.Object)
	delete(content, "metadata")
	return append([]string{}, transform.MissingPaths(content, desired.Object)...)
}

// hasNoOther reports whether a map has no keys but the desired ones and kcp's.
func hasNoOther(entries, desired map[string]string) bool {
	for key := range entries {
		if _, ok := desired[key]; !ok && !transform.BelongsToKCP(key) {
			return false
		}
	}
	return true
}
