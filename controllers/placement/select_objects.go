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

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// ruleObject returns the facts about an object that placements select it by.
func ruleObject(workloads mailboxes.Reader, cluster logicalcluster.Name, resource plan.Resource, object *unstructured.Unstructured) *rules.Object {
	return rules.ObjectOf(resource.GroupResource(), object, func() (labels.Labels, bool) {
		namespace, state := workloads.Get(namespaces, cluster, types.NamespacedName{Name: object.GetNamespace()})
		if state != mailboxes.Present {
			return nil, false
		}
		return plan.MetadataMap(namespace, "labels"), true
	})
}

// selectObject decides which placements select an object, and enqueues its pairs: all of them if the object may
// have changed, else the changed ones.
func (w *workspace) selectObject(key objectKey, changed bool) {
	for !w.trySelectObject(key, changed) {
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

// observeObject reads the active placements and an object of the workspace. It requires the lock.
func (w *workspace) observeObject(key objectKey) observedSource {
	observed := observedSource{placements: w.placements}
	observed.source, observed.state = w.Workloads.Get(key.resource, w.cluster, key.name)
	observed.version = versionOf(observed.source)
	if w.placements != nil && w.placements.byNamespaceLabels && key.name.Namespace != "" {
		namespace, _ := w.Workloads.Get(namespaces, w.cluster, types.NamespacedName{Name: key.name.Namespace})
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
// object. Users write the selectors, and the event handlers of all mailboxes wait for the lock. So
// trySelectObject evaluates the selectors without the lock.
func (w *workspace) trySelectObject(key objectKey, changed bool) bool {
	resource, published := w.resource(key.resource)
	w.lock.Lock()
	if w.objects[key] == nil {
		w.deletions.forget(key)
	}
	observed, closed := w.observeObject(key), w.closed
	w.lock.Unlock()
	if observed.placements == nil || closed || !published {
		return true
	}
	source := observed.source
	if !w.isDecidable(key, observed.state) {
		return true
	}
	var selected []*resolvedPlacement
	absent, decided := plan.SourceNotFound, true
	if observed.state == mailboxes.Present {
		selected, absent, decided = w.selectPresent(observed.placements, resource, source)
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	switch {
	case w.closed:
		return true
	case !observed.isSame(w.observeObject(key)):
		return false
	case !decided:
		w.noteUnread(source)
		return true
	}
	w.setSelected(key, selected, absent, changed)
	w.updateCustomization(key, source)
	if source != nil {
		w.recordSource(key, source, len(selected) > 0)
	}
	return true
}

// isDecidable reports whether the cache shows whether an object exists. Without an accepted claim kcp shows an
// empty list.
func (w *workspace) isDecidable(key objectKey, state mailboxes.State) bool {
	return state != mailboxes.Unknown && (state != mailboxes.Absent || !w.Workloads.IsKnownNotServed(w.cluster, key.resource.GroupResource()))
}

// recordSource records the content hash of an object. If no placement selects the object any more, it enqueues
// the removal of the returned status. It requires the lock.
func (w *workspace) recordSource(key objectKey, source *unstructured.Unstructured, selected bool) {
	if entry := w.objects[key]; entry != nil {
		entry.contentHash = rules.ContentHash(key.resource.GroupResource(), source)
	}
	if !selected && w.hasReturnedStatus(source) {
		w.enqueue(key.statusTask())
	}
}

// selectPresent returns the placements that select an object of the workspace. If none does, absent is the
// reason. decided is false if the decision depends on labels that are not cached.
func (w *workspace) selectPresent(placements *placements, resource plan.Resource, source *unstructured.Unstructured) (selected []*resolvedPlacement, absent plan.State, decided bool) {
	if rules.IsPlaceable(resource, source) {
		var known bool
		selected, known = placements.forObject(ruleObject(w.Workloads, w.cluster, resource, source))
		if len(selected) == 0 && (!known || mailboxes.ProjectionOf(source) == mailboxes.IdentityOnly) {
			return nil, "", false
		}
	}
	if source.GetDeletionTimestamp() != nil {
		return nil, plan.Terminating, true
	}
	return selected, plan.Deselected, true
}

// setSelected sets the placements that select an object, and enqueues its pairs. It requires the lock.
func (w *workspace) setSelected(key objectKey, selected []*resolvedPlacement, absent plan.State, changed bool) {
	wasSelected := w.objects[key] != nil && len(w.objects[key].selectedBy) > 0
	if wasSelected != (len(selected) > 0) || !wasSelected && changed {
		w.noteExcluded()
	}
	if w.objects[key] == nil && len(selected) == 0 {
		return
	}
	entry := w.ensureObject(key)
	changed = changed || !samePlacements(entry.selectedBy, selected)
	if len(selected) > 0 {
		absent = ""
	}
	changed = w.setAbsence(key, entry, absent) || changed
	wantedStatus := wantsStatus(entry.selectedBy)
	w.countAll(entry, false)
	entry.selectedBy = selected
	w.setDesired(key, entry, mailboxesOf(selected), changed)
	if changed {
		entry.resetRollouts()
	}
	w.countAll(entry, true)
	if wantedStatus || wantsStatus(selected) {
		w.enqueueStatus(key, entry)
	}
	w.reportRequests.Publish(w.cluster)
}

// setAbsence sets the reason why an object is absent; empty if it is not. It returns true if the absence has
// just been verified. It requires the lock.
func (w *workspace) setAbsence(key objectKey, entry *object, absent plan.State) bool {
	if entry.absence != absent {
		entry.absence, entry.verified = absent, false
	}
	if absent == "" || entry.verified {
		return false
	}
	entry.verified = absent == plan.Terminating || w.placements.withdrawAll || w.Workloads.TakeVerifiedAbsence(w.cluster, key.candidate(absent))
	return entry.verified
}

// mailboxesOf returns the mailboxes of the destinations of some placements.
func mailboxesOf(selected []*resolvedPlacement) map[logicalcluster.Name]struct{} {
	wanted := map[logicalcluster.Name]struct{}{}
	for _, placement := range selected {
		for mailbox := range placement.mailboxes {
			wanted[mailbox] = struct{}{}
		}
	}
	return wanted
}

// countAll adds all pairs of an object to the rollouts of the placements that select it, or removes them. It
// requires the lock.
func (w *workspace) countAll(entry *object, in bool) {
	if !slices.ContainsFunc(entry.selectedBy, func(one *resolvedPlacement) bool { return one.rollout != nil }) {
		return
	}
	for mailbox, found := range entry.pairs {
		if in {
			w.count(entry.selectedBy, mailbox, notCounted, found.phase())
		} else {
			w.count(entry.selectedBy, mailbox, found.phase(), notCounted)
		}
	}
}

// setDesired sets the mailboxes in which an object is desired, and enqueues its pairs: all of them if the
// object has changed, else the changed ones. At MaxPairs it adds no new pairs, to bound memory. It requires the
// lock.
func (w *workspace) setDesired(key objectKey, entry *object, wanted map[logicalcluster.Name]struct{}, changed bool) {
	entry.isBeyondLimit = false
	for mailbox := range wanted {
		at, found := pairKey{key, mailbox}, entry.pairs[mailbox]
		if w.isFull() && (found == nil || !found.desired && !found.hasCopy) {
			w.setBeyondLimit(entry)
			continue
		}
		if found == nil {
			found = &pair{}
			entry.pairs[mailbox] = found
			w.countPair(at)
		}
		if !found.desired {
			w.setPairDesired(found)
		} else if !changed {
			continue
		} else {
			found.changes++
		}
		w.enqueue(at.task())
	}
	for mailbox, found := range entry.pairs {
		at := pairKey{key, mailbox}
		if _, ok := wanted[mailbox]; ok {
			continue
		}
		if found.desired || changed {
			w.enqueue(at.task())
		}
		if found.desired {
			found.desired = false
			found.setResult(false, false, nil, nil)
			w.desired--
		}
		w.dropIfUnused(at)
	}
	w.dropObjectIfUnused(key, entry)
}

// setPairDesired makes a pair desired. It requires the lock.
func (w *workspace) setPairDesired(found *pair) {
	found.desired = true
	found.changes++
	w.desired++
}

// isWantedAt reports whether a placement wants the object in a mailbox.
func (o *object) isWantedAt(mailbox logicalcluster.Name) bool {
	return slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool {
		_, ok := one.mailboxes[mailbox]
		return ok
	})
}

// samePlacements reports whether the same placements select an object as before, with the same policies. If a
// placement loses its rollout, all of its waiting pairs must continue.
func samePlacements(before, after []*resolvedPlacement) bool {
	return slices.EqualFunc(before, after, func(a, b *resolvedPlacement) bool {
		return a.Name == b.Name && a.DeletionPolicy == b.DeletionPolicy && (a.rollout == nil) == (b.rollout == nil)
	})
}

func (k pairKey) task() task { return task{resource: k.resource, name: k.name, mailbox: k.mailbox} }

func (k objectKey) candidate(cause plan.State) absence.Candidate {
	return absence.Candidate{Resource: k.resource, Key: k.name, Missing: cause == plan.SourceNotFound}
}

// deletionPolicyOf returns the deletion policy of the withdrawn copies of an object: Orphan if any placement
// has it.
func deletionPolicyOf(selectedBy []*resolvedPlacement) ownership.Policy {
	if slices.ContainsFunc(selectedBy, func(p *resolvedPlacement) bool { return p.DeletionPolicy == ownership.PolicyOrphan }) {
		return ownership.PolicyOrphan
	}
	return ownership.PolicyDelete
}
