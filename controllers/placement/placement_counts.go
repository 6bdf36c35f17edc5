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
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
)

// slowMailboxMessage is the message of a pair whose mailbox is slow. The hub sees only that requests take long.
const slowMailboxMessage = "the mailbox takes long to accept objects; an admission webhook in the mailbox may be slow"

// pairLimitMessage is the message of an object that the limit of pairs excludes from a destination.
const pairLimitMessage = "the workspace has as many pairs of an object and a destination as it may have: nothing new is placed until there are fewer; ask the operator of the hub for a larger --max-placed-objects"

// placementCounts counts the pairs of one placement, except selected, which counts objects.
type placementCounts struct {
	selected, placed, failed int64
	// fingerprint is the fingerprint of the selected objects. unobserved is true if no pass has been made for
	// some pair since its object changed.
	fingerprint rules.Fingerprint
	unobserved  bool
	// waiting counts the pairs that the rollout holds back.
	waiting int64
	// synced counts the placed pairs that are in sync with the cluster. healthy and unhealthy count the synced
	// pairs by the health of the object.
	synced, healthy, unhealthy int64
	// pending is true if some pair is neither synced nor failed. Soon after a start pending proves little.
	// There may have been no pass for the pair, no sync controller may have tried the copy, or it tried before
	// it knew that a config selects the copy.
	pending bool
	// unserved are the APIs that a mailbox or a cluster lacks.
	unserved map[string]struct{}
	// slow counts the pairs that are not placed yet because their mailbox is slow, by SyncTarget.
	slow map[string]int
	// unsynced counts the placed pairs that are neither synced nor failed, by SyncTarget.
	unsynced map[string]int
	// failures are the first failed and unhealthy pairs, and inProgressPairs the first pairs that are not done.
	failures, inProgressPairs []edgev2alpha1.PlacementPair
	// onClusters are the first of the failures that happened on clusters, and not in mailboxes.
	onClusters []edgev2alpha1.PlacementPair
	// away are the destinations that are not Ready, with the time since when.
	away []string
	// rollout is the placement's rollout; nil if it has none.
	rollout *rolloutSummary
	// held are the copies at former destinations that stay for now; nil if there are none.
	held *heldCopies
	// reflections counts what came up into the workspace.
	reflections reflectionCounts
	// namespaces are the namespaces of the selected objects.
	namespaces map[string]struct{}
	// excluded counts the objects that concern the placement and that no placement places. excludedObjects are
	// the first of these objects.
	excluded        int64
	excludedObjects []edgev2alpha1.ObjectFailure
}

// add counts the pairs of an object that a placement selects. Copies at former destinations that cannot be
// withdrawn count as failed.
func (t *placementCounts) add(key objectKey, object *object, placement *resolvedPlacement, slow map[logicalcluster.Name]bool) {
	t.selected++
	if t.namespaces == nil {
		t.namespaces = map[string]struct{}{}
	}
	t.namespaces[key.name.Namespace] = struct{}{}
	t.fingerprint.Add(object.contentHash)
	if object.isOverLimit {
		t.addBeyondLimit(key, object, placement)
	}
	for at, found := range object.pairs {
		destination, isDestination := placement.mailboxes[at.mailbox]
		isBehind := found.observedChanges != found.changes
		t.unobserved = t.unobserved || found.desired && (isBehind || found.undecided)
		if isDestination || !found.desired {
			t.addPair(pairKey{key, at}, destination.Name, found, isBehind, slow[at.mailbox])
		}
	}
}

// addContainer counts the copies of a Namespace, which the placement does not select, that cannot contain the copies of the selected
// objects in it.
func (t *placementCounts) addContainer(key objectKey, object *object, placement *resolvedPlacement) {
	for at, found := range object.pairs {
		destination := placement.mailboxes[at.mailbox]
		switch of := (pairKey{key, at}); {
		case !found.desired || !placement.wants(of):
		case found.failure != nil:
			t.fail(of, destination.Name, *found.failure)
		case found.syncStatus != nil && found.syncStatus.failure != nil:
			t.fail(of, destination.Name, *found.syncStatus.failure)
		}
	}
}

// addBeyondLimit counts the destinations where an object has no pair as failed, and lists the first of them.
func (t *placementCounts) addBeyondLimit(key objectKey, object *object, placement *resolvedPlacement) {
	isFirst := true
	for _, destination := range placement.Destinations {
		if destination.Mailbox == "" {
			continue
		}
		at := placement.siteAt(key, &destination.SyncTarget)
		if found := object.pairs[at]; found != nil && found.desired {
			continue
		}
		t.failed++
		if isFirst {
			addFirst(&t.failures, pairKey{key, at}, destination.Name, failure{rules.ReasonLimitExceeded, pairLimitMessage})
		}
		isFirst = false
	}
}

// addPair counts a pair by its next step. isBehind is true if a change of the pair is not observed yet, and
// isSlow if its mailbox is slow.
func (t *placementCounts) addPair(key pairKey, syncTarget string, found *pair, isBehind, isSlow bool) {
	switch {
	case found.placed && (!isBehind || !isSlow):
		t.placed++
		t.addSyncStatus(key, syncTarget, found.syncStatus)
	case found.failure != nil:
		t.fail(key, syncTarget, *found.failure)
	case found.waiting:
		t.waiting++
		addFirst(&t.inProgressPairs, key, syncTarget, failure{rules.ReasonWaitingForRollout, ""})
	case found.desired && isSlow:
		t.pending = true
		if t.slow == nil {
			t.slow = map[string]int{}
		}
		t.slow[syncTarget]++
		addFirst(&t.inProgressPairs, key, syncTarget, failure{rules.ReasonMailboxSlow, slowMailboxMessage})
	case found.desired:
		t.pending = true
		addFirst(&t.inProgressPairs, key, syncTarget, failure{rules.ReasonPlacing, ""})
	}
}

// fail counts a failed pair.
func (t *placementCounts) fail(key pairKey, syncTarget string, why failure) {
	t.failPair(newPlacementPair(key, syncTarget, why), key)
}

// failPair counts a failed pair.
func (t *placementCounts) failPair(failed edgev2alpha1.PlacementPair, key pairKey) {
	t.failed++
	t.failures = insertFirst(t.failures, failed, comparePairs)
	if failed.Reason == plan.ReasonNotServed {
		if t.unserved == nil {
			t.unserved = map[string]struct{}{}
		}
		t.unserved[key.resource.GroupResource().String()] = struct{}{}
	}
}

// addSyncStatus counts a placed pair by its sync status.
func (t *placementCounts) addSyncStatus(key pairKey, syncTarget string, state *syncStatus) {
	switch {
	case state != nil && state.failure != nil:
		failed := newPlacementPair(key, syncTarget, *state.failure)
		if state.differences != nil {
			failed.Differences = *state.differences
		}
		t.failPair(failed, key)
		t.onClusters = insertFirst(t.onClusters, failed, comparePairs)
		return
	case state == nil || !state.synced:
		t.pending = true
		if t.unsynced == nil {
			t.unsynced = map[string]int{}
		}
		t.unsynced[syncTarget]++
		addFirst(&t.inProgressPairs, key, syncTarget, failure{rules.ReasonSyncing, ""})
		return
	}
	t.synced++
	switch state.health.Status {
	case health.Current:
		t.healthy++
	case health.Failed, health.Unknown:
		t.unhealthy++
		why := failure{rules.ReasonUnhealthy, state.health.Status.String() + ": " + state.health.Message}
		addFirst(&t.failures, key, syncTarget, why)
		addFirst(&t.onClusters, key, syncTarget, why)
	case health.InProgress, health.Terminating:
		addFirst(&t.inProgressPairs, key, syncTarget, failure{state.health.Status.String(), state.health.Message})
	}
}

// addFirst adds a pair to a list that keeps the first pairs in a stable order.
func addFirst(first *[]edgev2alpha1.PlacementPair, key pairKey, syncTarget string, why failure) {
	*first = insertFirst(*first, newPlacementPair(key, syncTarget, why), comparePairs)
}

// newPlacementPair returns a pair with the reason why it is not healthy, for a status.
func newPlacementPair(key pairKey, syncTarget string, why failure) edgev2alpha1.PlacementPair {
	added := edgev2alpha1.PlacementPair{ObjectFailure: key.objectFailure(why), SyncTarget: syncTarget}
	if key.inMailbox != key.namespace() {
		added.ClusterNamespace = key.inMailbox
	}
	return added
}

// summary contains the outcomes and counts of a workspace's placements by UID, and the number of copies to
// withdraw. allSelected is true if all objects are known and selected, so that rollouts continue. reselecting
// is true while some object was selected by former placements: further pairs may follow.
type summary struct {
	outcomes    map[types.UID]outcome
	counts      map[types.UID]*placementCounts
	withdrawing int
	// blockedWithdrawal is why one of these copies cannot be withdrawn; empty if none is blocked.
	blockedWithdrawal        string
	allSelected, reselecting bool
	// awaitsReflections is true if no pass was made for a reflection yet.
	awaitsReflections bool
	// pendingWithdrawals counts the copies of all placements that stay for now. The keys have no workspace and no number.
	pendingWithdrawals map[findings.PendingWithdrawal]int
	// recheck is when another mailbox may count as slow; zero for never.
	recheck time.Duration
}

// summarize returns the summary of the workspace; known is false before its placements are resolved with a view
// of all inventories.
func (r *reporter) summarize() (summed summary, known bool) {
	view := r.fleet.Snapshot()
	slow, recheck := r.pairs.tasks.slowMailboxes()
	r.pairs.locked(func(objects map[objectKey]*object) {
		state := r.active.read()
		if known = state.placements != nil && state.placements.fleetSynced; !known {
			return
		}
		summed = summary{
			recheck: recheck, outcomes: state.placements.outcomes, counts: map[types.UID]*placementCounts{}, pendingWithdrawals: map[findings.PendingWithdrawal]int{},
			allSelected: state.allSelected, reselecting: state.isReselecting,
		}
		for _, placement := range state.placements.all {
			// A destination without a mailbox has no pairs yet.
			if rollout, isPending := placement.summarizeRollout(), placement.awaitsMailbox(); rollout != nil || isPending {
				summed.counts[placement.UID] = &placementCounts{rollout: rollout, pending: isPending}
			}
		}
		for key, entry := range objects {
			summed.add(key, entry, view, slow)
		}
	})
	if known {
		summed.awaitsReflections = summed.addReflections(r.reflecting.reflections)
	}
	return summed, known
}

// add counts the pairs of an object.
func (s *summary) add(key objectKey, entry *object, view *fleet.Snapshot, slow map[logicalcluster.Name]bool) {
	for _, placement := range entry.selectedBy {
		found := s.counts[placement.UID]
		if found == nil {
			found = &placementCounts{}
			s.counts[placement.UID] = found
		}
		found.add(key, entry, placement, slow)
	}
	for _, placement := range entry.containerFor {
		if found := s.counts[placement.UID]; found != nil {
			found.addContainer(key, entry, placement)
		}
	}
	for at, found := range entry.pairs {
		if !found.desired && found.hasCopy {
			s.withdrawing++
			s.addHeld(entry, view, at.mailbox)
			s.blockedWithdrawal = firstBlockedWithdrawal(s.blockedWithdrawal, key, view, at.mailbox, found.failure)
		}
	}
}

// firstBlockedWithdrawal returns a sentence about a copy that cannot be withdrawn, or the sentence before if
// that sorts first.
func firstBlockedWithdrawal(before string, key objectKey, view *fleet.Snapshot, mailbox logicalcluster.Name, why *failure) string {
	if why == nil {
		return before
	}
	syncTarget, _ := view.SyncTargetOf(mailbox)
	text := fmt.Sprintf(" %s %s cannot be withdrawn from %s: %s: %s.", key.resource.GroupResource(), strings.TrimPrefix(key.name.String(), "/"), syncTarget.Name, why.Reason, why.Message)
	if before == "" {
		return text
	}
	return min(before, text)
}

// isPending reports whether some pair is neither synced nor failed, or whether a rollout has no decision.
func (s *summary) isPending() bool {
	if s.reselecting || s.awaitsReflections {
		return true
	}
	for _, counted := range s.counts {
		if counted.pending || counted.rollout != nil && !counted.rollout.decided {
			return true
		}
	}
	return false
}
