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

package placement

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// selector decides which placements select the objects of a workspace, and so which pairs are desired.
type selector struct {
	sources     *sources
	pairs       *pairs
	reflections *reflections
	active      *activePlacements
	reports     *reports
	tasks       *tasks
	marks       marks
	// requests get the workspace when the decisions about its rollouts are due.
	requests *requests
}

// selectObject decides which placements select an object, and enqueues its pairs: all of them if the object may
// have changed, else the changed ones.
func (s *selector) selectObject(key objectKey, changed bool) {
	for !s.trySelectObject(key, changed) {
	}
}

// observedSource contains the facts that decide which placements select an object.
type observedSource struct {
	placements *placements
	source     *unstructured.Unstructured
	state      mailboxes.State
	// version is the version of the source and, if labels of Namespaces matter, of its Namespace.
	version string
}

// observe reads the active placements and an object of the workspace.
func (s *selector) observe(key objectKey) observedSource {
	active := s.active.get()
	observed := observedSource{placements: active}
	observed.source, observed.state = s.sources.get(key)
	observed.version = versionOf(observed.source)
	if active != nil && active.byNamespaceLabels && key.name.Namespace != "" {
		namespace, _ := s.sources.get(namespaceKey(key.name.Namespace))
		observed.version += "/" + versionOf(namespace)
	}
	return observed
}

// versionOf returns a text that differs between any two states of a cached object; nil is no object.
func versionOf(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	return fmt.Sprint(object.GetUID(), object.GetResourceVersion(), mailboxes.ProjectionOf(object))
}

// isSame reports whether two observations lead to the same selection.
func (o observedSource) isSame(other observedSource) bool {
	return o.placements == other.placements && o.state == other.state && o.version == other.version
}

// trySelectObject is selectObject, except that it returns false if something has changed since it read the
// object. Users write the selectors, and the event handlers of all mailboxes wait for the lock of the pairs. So
// trySelectObject evaluates the selectors without the lock.
func (s *selector) trySelectObject(key objectKey, changed bool) (done bool) {
	resource, published := s.sources.policy.placeable(key.resource)
	s.pairs.locked(func(objects map[objectKey]*object) {
		if objects[key] == nil {
			s.pairs.deletions.forget(key)
		}
	})
	observed := s.observe(key)
	if observed.placements == nil || !published || !s.isDecidable(key, observed.state) {
		return true
	}
	source := observed.source
	next, decided := selectionResult{absent: plan.SourceNotFound}, true
	if observed.state == mailboxes.Present {
		next.selectedBy, next.absent, decided = s.selectPresent(observed.placements, resource, source)
	}
	isVerified := func() bool {
		return observed.placements.withdrawAll || s.sources.workloads.Absences.TakeVerifiedAbsence(s.sources.cluster, key.candidate(next.absent))
	}
	done = true
	s.pairs.ifOpen(func() {
		switch {
		case !observed.isSame(s.observe(key)):
			done = false
		case !decided:
			// The object may be the first one beyond a limit.
			s.reports.request()
		default:
			next.containerFor = s.containerFor(key, observed, next.selectedBy)
			s.pairs.setSelected(key, next, isVerified, changed)
			s.pairs.recordSource(key, source)
			if source != nil && len(next.selectedBy) == 0 && s.marks.hasReturnedStatus(s.sources.cluster, source) {
				// The returned status must be removed.
				s.tasks.add(key.statusTask())
			}
		}
	})
	return done
}

// containerFor returns the placements that select objects in a Namespace, and not the Namespace itself. It requires the lock of the pairs.
func (s *selector) containerFor(key objectKey, observed observedSource, selected []*resolvedPlacement) (containerFor []*resolvedPlacement) {
	if key.resource != namespaces || observed.state != mailboxes.Present {
		return nil
	}
	for _, one := range observed.placements.all {
		if s.pairs.contents.has(key.name.Name, one.UID) && !slices.Contains(selected, one) {
			containerFor = append(containerFor, one)
		}
	}
	return containerFor
}

// isDecidable reports whether the cache shows whether an object exists. Without an accepted claim kcp shows an
// empty list.
func (s *selector) isDecidable(key objectKey, state mailboxes.State) bool {
	return state != mailboxes.Unknown && (state != mailboxes.Absent || !s.sources.workloads.IsKnownNotServed(s.sources.cluster, key.resource.GroupResource()))
}

// selectPresent returns the placements that select an object of the workspace. If none does, absent is the
// reason. decided is false if the decision depends on labels that are not cached.
func (s *selector) selectPresent(active *placements, resource plan.Resource, source *unstructured.Unstructured) (selected []*resolvedPlacement, absent plan.State, decided bool) {
	if rules.IsPlaceable(resource, source) && !s.reflections.owns(keyOf(resource.GroupVersionResource, source), source.GetUID()) {
		var known bool
		selected, known = active.forObject(s.sources.describe(resource, source))
		if len(selected) == 0 && (!known || mailboxes.ProjectionOf(source) == mailboxes.IdentityOnly) {
			return nil, "", false
		}
	}
	if source.GetDeletionTimestamp() != nil {
		return nil, plan.Terminating, true
	}
	return selected, plan.Deselected, true
}

// activate replaces the active placements. It selects all objects again if they differ. It enqueues the copies
// to withdraw in any case, because the view of an inventory may have changed.
func (s *selector) activate(next *placements) {
	isBelowLimit, hasCustomized := false, false
	s.pairs.locked(func(map[objectKey]*object) {
		isBelowLimit, hasCustomized = s.pairs.limit.retry(next, s.sources.clock.Now()), len(s.pairs.customized) > 0
	})
	before, changed, all := s.active.replace(next)
	// A decision by the former placements may have been made until now.
	s.pairs.locked(func(map[objectKey]*object) { next.requireNewDecisions() })
	s.sources.policy.set(s.sources.cluster, next)
	s.reports.request()
	if changed || isBelowLimit {
		s.sources.workloads.Reviews.EnqueueCacheReview(s.sources.cluster)
		s.selectAll(all)
	}
	for mailbox := range before.mailboxesWithOtherTenancy(next) {
		s.pairs.enqueueAt(mailbox)
	}
	if hasCustomized {
		s.pairs.enqueueCustomizedAt(before.mailboxesWithOtherParameters(next))
	}
	s.endSelection()
	s.reflections.activate(before, next, changed, s.sources.clock.Now())
}

// selectAll selects all objects that the workspace shows, and the known ones that it no longer shows. If all is
// true, it enqueues all pairs of the known ones.
func (s *selector) selectAll(all bool) {
	known := map[objectKey]bool{}
	s.pairs.locked(func(objects map[objectKey]*object) {
		for key := range objects {
			known[key] = true
		}
	})
	for resource, source := range s.sources.all() {
		key := keyOf(resource.GroupVersionResource, source)
		s.selectObject(key, all && known[key])
		delete(known, key)
	}
	// The workspace shows no source for these.
	for key := range known {
		s.selectObject(key, all)
	}
}

// endSelection records that the active placements have selected all objects, and requests the decisions about rollouts and
// the withdrawals. Only now it is certain which copies must be withdrawn.
func (s *selector) endSelection() {
	s.active.update(func(state *selectionState) { state.isReselecting = false })
	s.reports.requestExcluded()
	s.requests.rollout.Publish(s.sources.cluster)
	s.pairs.locked(func(objects map[objectKey]*object) {
		for key, entry := range objects {
			s.pairs.enqueueWithdrawals(key, entry, site{})
		}
	})
}

// hasSelectedEverything reports whether the hub knows all objects of the workspace, and the placements that
// select them. Before that, a destination could count as successful although an object is not listed yet.
func (s *selector) hasSelectedEverything() bool {
	state := s.active.read()
	if state.isReselecting || state.placements == nil || !state.placements.fleetSynced {
		return false
	}
	if !state.allSelected && s.hasSelectedListed() {
		s.active.update(func(now *selectionState) {
			now.allSelected = now.placements != nil
			state = *now
		})
		s.pairs.enqueueNamespaces()
	}
	return state.allSelected
}

// hasSelectedListed reports whether the hub has listed all objects of the workspace, and each one that a placement selects
// is counted. After a cache has been filled, its events are still to come.
func (s *selector) hasSelectedListed() bool {
	active := s.active.get()
	if active == nil || !s.sources.areListed() {
		return false
	}
	for key, described := range s.sources.placeable() {
		selected, _ := active.forObject(described)
		isCounted := false
		s.pairs.locked(func(map[objectKey]*object) { isCounted = s.pairs.isCounted(key, selected, active) })
		if !isCounted {
			return false
		}
	}
	return s.active.get() == active
}
