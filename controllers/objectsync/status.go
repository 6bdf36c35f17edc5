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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Status reports on the objects of a controller: counts, failures and states.
type Status struct {
	resource *plan.Resource
	matcher  *atomic.Pointer[selection.Matcher]
	rules    *observe.Observer
	mailbox  *mailboxView
	target   *targetView
	upsync   *upsyncCaches
	upsynced *upsyncIndex
	states   *keyStates
	changes  *pendingChanges
	placed   *syncStatuses
	dropped  *droppedFields
	// pods explains the health of workloads; nil for other resources.
	pods *podReasons
}

// knownStates are facts about objects that the caches do not contain.
type knownStates struct {
	failures map[types.NamespacedName]Failure
	deferred map[types.NamespacedName][]string
}

// SummarizeConfigs adds this controller's objects to the summaries of the configs that select them.
func (s *Status) SummarizeConfigs(summaries map[string]*ConfigSummary) {
	matcher := s.matcher.Load()
	known := knownStates{s.states.failures(), s.states.deferredFields()}
	sources, _ := s.mailbox.list()
	for _, source := range sources {
		if selected, ok := s.rules.SelectDown(matcher, source); ok {
			s.countDown(summaries, source, selected, known)
		} else if _, failed := known.failures[keyOf(source)]; failed && len(s.upsynced.refsOf(keyOf(source))) == 0 {
			s.countFormerlyUpsynced(summaries, matcher, source, known)
		}
	}
	for _, key := range s.upsynced.allKeys() {
		s.countUp(summaries, matcher, key, known)
	}
	for key, failure := range known.failures {
		s.countUndeleted(summaries, matcher, key, failure)
	}
	s.dropped.addTo(summaries, s.resource.GroupResource())
}

func (s *Status) countDown(summaries map[string]*ConfigSummary, source *unstructured.Unstructured, selected plan.ObjectSelection, known knownStates) {
	key := keyOf(source)
	copies := s.target.CopiesOf(key)
	if len(copies) == 0 && mailboxes.ProjectionOf(source) == mailboxes.FullObject && s.isExcludedByUpsync(source, selected) {
		for _, config := range selected.Configs {
			summary := summaryOf(summaries, config)
			summary.ExcludedByUpsync = append(summary.ExcludedByUpsync, s.nameOf(key))
		}
		return
	}
	s.addOverruled(summaries, selected.Overruled, key)
	uid := source.GetUID()
	state := summaryState{}
	if at := slices.IndexFunc(copies, func(copied plan.Copy) bool { return copied.Observed.Mark.Source.UID == uid }); at >= 0 {
		state = summaryState{synced: true, ready: copies[at].Observed.Health.Status == health.Current}
	} else if s.states.isFinished(key) {
		// The last status is all that is left of the copy.
		state = summaryState{synced: true, ready: s.resource.GetRules().Health.Of(source).Status == health.Current}
	}
	s.addToSummaries(summaries, selected.Selection, key, state, known)
}

// isExcludedByUpsync reports whether an object stays in the mailbox because upsync selects its name on the target.
func (s *Status) isExcludedByUpsync(source *unstructured.Unstructured, selected plan.ObjectSelection) bool {
	matcher := s.matcher.Load()
	destination, _, err := s.rules.DestinationOf(matcher, source, selected, nil, &plan.Wants{})
	return err == nil && s.resource.IsExcludedByUpsync(matcher, source, destination.API, destination.Key)
}

func (s *Status) countUp(summaries map[string]*ConfigSummary, matcher *selection.Matcher, key types.NamespacedName, known knownStates) {
	inMailbox, _ := s.mailbox.get(key)
	api, object := s.upsync.sourceOf(key, s.rules.UpsyncMark(inMailbox))
	if object == nil {
		return
	}
	selected, ok := s.rules.SelectUp(matcher, api, object)
	if !ok {
		return
	}
	s.addOverruled(summaries, selected.Overruled, key)
	s.addToSummaries(summaries, selected.Selection, key, summaryState{synced: s.mailbox.isUpsynced(inMailbox)}, known)
}

// countFormerlyUpsynced counts an object that was upsynced before, and is now denied.
func (s *Status) countFormerlyUpsynced(summaries map[string]*ConfigSummary, matcher *selection.Matcher, inMailbox *unstructured.Unstructured, known knownStates) {
	mark := s.rules.UpsyncMark(inMailbox)
	if mark == nil {
		return
	}
	if selected, ok, _ := s.rules.SelectsUpsynced(matcher, s.target.apiOf(upsyncSourceRef(*mark).Resource), *mark, inMailbox); ok {
		s.addToSummaries(summaries, selected, keyOf(inMailbox), summaryState{}, known)
	}
}

// countUndeleted counts an object that is gone from the mailbox, and whose copies stay because of the failure. Its labels are
// unknown, so it counts for all configs with entries that can select its name.
func (s *Status) countUndeleted(summaries map[string]*ConfigSummary, matcher *selection.Matcher, key types.NamespacedName, failure Failure) {
	source, known := s.mailbox.get(key)
	if !known || source != nil || len(s.upsynced.refsOf(key)) > 0 {
		return
	}
	for _, config := range matcher.ConfigsNaming(s.rules.SelectionObjectByName(key)) {
		summary := summaryOf(summaries, config)
		summary.Failed++
		summary.Undeleted++
		summary.Failures = append(summary.Failures, ObjectFailure{Resource: *s.resource, Key: key, Failure: failure})
	}
}

// addOverruled adds an object to the summaries of the configs that give it another name than the oldest config does.
func (s *Status) addOverruled(summaries map[string]*ConfigSummary, configs []string, key types.NamespacedName) {
	for _, config := range configs {
		summary := summaryOf(summaries, config)
		summary.Overruled = append(summary.Overruled, s.nameOf(key))
	}
}

func (s *Status) nameOf(key types.NamespacedName) ObjectName {
	return ObjectName{Resource: s.resource.GroupResource(), Key: key}
}

// summaryState is the state of one object: synced if both sides are in sync, and ready if the copy on the target is healthy.
type summaryState struct{ synced, ready bool }

func (s *Status) addToSummaries(summaries map[string]*ConfigSummary, selected selection.Selection, key types.NamespacedName, state summaryState, known knownStates) {
	failure, failed := known.failures[key]
	deferred := known.deferred[key]
	if failure.Reason == plan.ReasonMailboxLimitExceeded {
		// The mailbox's usage and limits change without an event for this object.
		inMailbox, _ := s.mailbox.cached(key)
		failure = newFailure(s.mailbox.mailboxes.Limits.ObjectLimitError(s.resource.GroupVersionResource, s.mailbox.name, inMailbox))
	}
	for _, config := range selected.Configs {
		summary := summaryOf(summaries, config)
		summary.Selected++
		switch {
		case failed:
			summary.Failed++
			summary.Failures = append(summary.Failures, ObjectFailure{Resource: *s.resource, Key: key, Failure: failure})
		case state.synced && len(deferred) > 0:
			summary.Deferred = append(summary.Deferred, DeferredObject{s.nameOf(key), deferred})
		case state.synced:
			summary.Synced++
			if state.ready {
				summary.Ready++
			}
		}
	}
}

// Summary counts the objects that were downsynced or upsynced.
func (s *Status) Summary() Summary {
	sum := Summary{Synced: s.target.count()}
	inMailbox, _ := s.mailbox.list()
	failures := s.states.failures()
	for _, object := range inMailbox {
		if _, failed := failures[keyOf(object)]; s.mailbox.isUpsynced(object) && !failed {
			sum.Synced++
		}
	}
	for key, failure := range failures {
		sum.Failed++
		sum.Failures = append(sum.Failures, ObjectFailure{Resource: *s.resource, Key: key, Failure: failure})
		switch {
		case failure.Reason != plan.ReasonStoreWentBack:
		case failure.Removal:
			sum.HeldRemovals++
		default:
			sum.HeldOverwrites++
		}
		sum.Synced -= copiedAPIs(s.target.CopiesOf(key))
	}
	for key := range s.states.deferredFields() {
		if _, failed := failures[key]; !failed {
			// The hub does not know whether the deferred fields differ.
			sum.Synced -= copiedAPIs(s.target.CopiesOf(key))
		}
	}
	for _, key := range s.states.formerKeys() {
		copies := s.target.CopiesOf(key)
		sum.Former += len(copies)
		sum.Synced -= copiedAPIs(copies)
	}
	_, sum.PendingSince = s.changes.count()
	return sum
}

// Progress reports whether some objects are in sync, whether some failed, and whether no change is pending. Unlike [Status.Summary] it
// visits no objects. It does not count upsynced objects as synced.
func (s *Status) Progress() Progress {
	pending, _ := s.changes.count()
	return Progress{HasSynced: s.target.count() > 0, HasFailed: s.states.failedCount() > 0, IsSettled: pending == 0}
}

// copiedAPIs returns the number of target APIs among the copies of a mailbox object: [Status.CopiedObjectCount] counts the object
// once for each.
func copiedAPIs(copies []plan.Copy) int {
	apis := map[schema.GroupResource]struct{}{}
	for _, existing := range copies {
		apis[existing.API.GroupResource()] = struct{}{}
	}
	return len(apis)
}

// CopiedObjectCount returns how many mailbox objects have a copy, counted once for each target API.
func (s *Status) CopiedObjectCount() int { return s.target.count() }

// IsServed reports whether the target serves the resource itself, as far as the hub knows.
func (s *Status) IsServed() bool {
	return s.target.apis[0].cache.Availability().Reason != targets.ReasonNotServed
}

// SyncStatus returns the state of a version of a marked mailbox object; known is false before the first pass for the object.
func (s *Status) SyncStatus(key types.NamespacedName, version CopyVersion) (state SyncStatus, known bool) {
	state, synced, known := s.syncedState(key)
	state.Synced = known && synced != CopyVersion{} && synced == version
	return state, known
}

// Copies returns all marked mailbox objects whose state is known, and the stuck copies.
func (s *Status) Copies() []PlacedCopy {
	keys := s.placed.keys()
	copies := make([]PlacedCopy, 0, len(keys))
	for _, key := range keys {
		if state, synced, known := s.syncedState(key); known {
			state.Synced = synced != CopyVersion{}
			marked, _ := s.placed.get(key)
			copies = append(copies, PlacedCopy{s.resource.GroupVersionResource, key, synced, state, marked.workspace})
		}
	}
	return copies
}

// StuckCopies returns the copies that the mailbox does not have any more, and whose objects the target does not let the hub remove.
func (s *Status) StuckCopies() []ObjectRef { return s.placed.stuck() }

// syncedState returns the state of a marked mailbox object, and the version that the target was last in sync with.
func (s *Status) syncedState(key types.NamespacedName) (state SyncStatus, synced CopyVersion, known bool) {
	marked, known := s.placed.get(key)
	if !known {
		return SyncStatus{}, CopyVersion{}, false
	}
	state = SyncStatus{Excluded: marked.excluded, Failure: s.states.failureOf(key), Health: health.Health{Status: health.InProgress}}
	if inMailbox, known := s.mailbox.get(key); known && inMailbox != nil && s.states.isFinished(key) {
		// The last status is all that is left of the copy.
		state.Health = s.resource.GetRules().Health.Of(inMailbox)
	}
	for i, copied := range s.target.CopiesOf(key) {
		// A copy under an old name goes once the new one exists.
		if i == 0 || copied.Observed.Health.Status != health.Terminating {
			state.Health = s.pods.explain(key, copied.Observed.Health)
		}
	}
	return state, marked.synced, true
}

// NotListedReason is the [Status.UnreadableReason] of a resource whose objects the hub has not listed.
const NotListedReason = "the hub cannot list it now"

// UnreadableReason returns why the hub cannot read the mailbox objects of the resource now; empty if it can.
func (s *Status) UnreadableReason() string {
	if s.mailbox.mailboxes.IsKnownNotServed(s.mailbox.name, s.resource.GroupResource()) {
		if s.resource.Exported {
			return "kcp has not bound it in the mailbox"
		}
		return "the APIBinding of the mailbox does not accept the hub's claim on it, or kcp has not applied that"
	}
	if _, known := s.mailbox.get(types.NamespacedName{}); !known {
		return NotListedReason
	}
	return ""
}

// UnavailableResources returns the APIs that the target does not serve or does not let the hub read, and the kinds that
// conversions may not produce.
func (s *Status) UnavailableResources() []UnavailableResource {
	unavailable := slices.Clone(s.target.unresolvedKinds)
	for _, target := range s.target.apis {
		availability := target.cache.Availability()
		if upsynced := s.upsync.cacheOf(target.GroupResource()); availability.Reason == "" && upsynced != nil {
			availability = upsynced.Availability()
		}
		if availability.Reason != "" {
			unavailable = append(unavailable, UnavailableResource{
				GroupResource: target.GroupResource(), Kind: target.Kind, Reason: availability.Reason, Message: availability.Message,
			})
		}
	}
	return unavailable
}

// TargetKind returns the kind of a target API; empty if there is none.
func (s *Status) TargetKind(resource schema.GroupResource) string {
	return s.target.apiOf(resource).Kind
}
