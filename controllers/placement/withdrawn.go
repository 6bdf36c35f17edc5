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
	"cmp"
	"fmt"
	"slices"
	"strings"
	gosync "sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/withdrawal"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/wording"
)

// ReasonWithdrawn is the reason of the event about copies that were withdrawn from destinations, and ReasonReleased of the one about
// copies that the clusters keep.
const (
	ReasonWithdrawn = "Withdrawn"
	ReasonReleased  = "Released"
)

const (
	// withdrawnDelay is how long the event about withdrawn copies waits for further copies. With a steady stream it waits for
	// maxWithdrawnDelay.
	withdrawnDelay    = 2 * time.Second
	maxWithdrawnDelay = 30 * time.Second
)

// placementRef names an EdgePlacement, which may be gone.
type placementRef struct {
	name string
	uid  types.UID
}

// refsOf returns the references of placements.
func refsOf(all []*resolvedPlacement) []placementRef {
	refs := make([]placementRef, 0, len(all))
	for _, one := range all {
		refs = append(refs, placementRef{one.Name, one.UID})
	}
	return refs
}

// recordFormer records which placements selected an object that none selects any more. It requires the lock.
func (p *pairs) recordFormer(key objectKey, entry *object, next selectionResult) {
	switch {
	case next.isSelected():
		delete(p.formerly, key)
	case entry.isSelected():
		p.formerly[key] = refsOf(slices.Concat(entry.selectedBy, entry.containerFor))
	}
}

// withdrawalCause returns why the copy of a pair is withdrawn, and the placements that had it.
func (p *pairs) withdrawalCause(key pairKey, syncTarget types.UID, decision plan.Decision, active *placements) (cause withdrawal.Cause, placements []placementRef) {
	p.inspect(key, func(entry *object, _ *pair) {
		selectedBy := slices.Concat(entry.selectedBy, entry.containerFor)
		placements, cause = p.formerly[key.objectKey], withdrawal.DestinationLost
		switch {
		case active == nil:
		case decision.Cause == plan.Superseded:
			// The new object gets a copy of its own.
			placements, cause = nil, withdrawal.Replaced
		case active.withdrawAll:
			cause = withdrawal.WorkspaceUnbound
		case entry.absence == plan.SourceNotFound, entry.absence == plan.Terminating:
			cause = withdrawal.ObjectDeleted
		case entry.absence == plan.Deselected:
			cause = withdrawal.Deselected
			if !slices.ContainsFunc(placements, active.has) {
				cause = withdrawal.PlacementDeleted
			}
		default:
			placements = refsOf(selectedBy)
			for _, one := range selectedBy {
				cause = cmp.Or(active.outcomes[one.UID].lost[syncTarget].Cause, cause)
			}
		}
	})
	return cause, placements
}

// has reports whether a placement exists.
func (p *placements) has(one placementRef) bool {
	_, found := p.outcomes[one.uid]
	return found
}

// withdrawnKey is what all copies of one event have in common.
type withdrawnKey struct {
	placement placementRef
	reason    string
	cause     withdrawal.Cause
}

// withdrawnCopies are the copies of one event. syncTargets counts them by the name of the SyncTarget, names has these names by UID, since
// two inventories may have the same name, and objects are the first of the copies.
type withdrawnCopies struct {
	count       int
	syncTargets map[string]int
	names       map[types.UID]string
	objects     []string
}

// withdrawn gathers the copies of a workspace that were withdrawn, so that each placement gets one event for all copies of a moment.
type withdrawn struct {
	lock gosync.Mutex
	all  map[withdrawnKey]*withdrawnCopies
	// first and last are when the first and the last copy was withdrawn.
	first, last time.Time
}

// add adds a copy for each of its placements.
func (w *withdrawn) add(placements []placementRef, reason string, cause withdrawal.Cause, syncTarget *fleet.SyncTarget, object string, now time.Time) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, placement := range placements {
		if len(w.all) == 0 {
			w.all, w.first = map[withdrawnKey]*withdrawnCopies{}, now
		}
		key := withdrawnKey{placement, reason, cause}
		found := w.all[key]
		if found == nil {
			found = &withdrawnCopies{syncTargets: map[string]int{}, names: map[types.UID]string{}}
			w.all[key] = found
		}
		found.count++
		found.syncTargets[syncTarget.Name]++
		found.names[syncTarget.UID] = syncTarget.Name
		if len(found.objects) < maxNamed && !slices.Contains(found.objects, object) {
			found.objects = append(found.objects, object)
		}
		w.last = now
	}
}

// take returns the copies whose event is due, or how long it must wait; zero for ever if there are none.
func (w *withdrawn) take(now time.Time) (due map[withdrawnKey]*withdrawnCopies, again time.Duration) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if len(w.all) == 0 {
		return nil, 0
	}
	until := w.last.Add(withdrawnDelay)
	if latest := w.first.Add(maxWithdrawnDelay); latest.Before(until) {
		until = latest
	}
	if wait := until.Sub(now); wait > 0 {
		return nil, wait
	}
	due, w.all = w.all, nil
	return due, 0
}

// event returns the event about the copies. away are the SyncTargets that are not Ready: their clusters still have what the hub has
// withdrawn from the mailbox.
func (w *withdrawnCopies) event(key withdrawnKey, away []string) status.Event {
	eventType, done, later := corev1.EventTypeNormal, count(w.count, "copy was withdrawn from", "copies were withdrawn from"), ""
	if !key.cause.IsDeliberate() {
		eventType = corev1.EventTypeWarning
	}
	if key.reason == ReasonReleased {
		done = count(w.count, "copy was released, and stays on", "copies were released, and stay on")
	} else if len(away) > 0 {
		later = fmt.Sprintf(" Not Ready, so that their clusters remove them later: %s.", wording.First(maxNamed, away))
	}
	return status.Event{Type: eventType, Reason: key.reason, Message: fmt.Sprintf("%s %s, because %s.%s Objects: %s.",
		done, firstUnsynced(w.syncTargets), key.cause, later, strings.Join(w.objects, ", "))}
}

// count returns a number with its noun.
func count(number int, one, many string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", number, many)
}

// recordWithdrawal returns a function that records that a copy was withdrawn, for events and the log. The cause is read before the
// request, because the pair may be dropped with its copy.
func (r *pairReconciler) recordWithdrawal(key pairKey, s *pairSnapshot, decision plan.Decision) (record func()) {
	reason := ReasonWithdrawn
	switch decision.Action {
	case plan.Delete:
	case plan.Release:
		reason = ReasonReleased
	default:
		return func() {}
	}
	cause, placements := r.pairs.withdrawalCause(key, s.syncTarget.UID, decision, r.observer.active.get())
	return func() {
		r.journal.Record(r.journalEntry(status.JournalWithdrawn, key, s, string(cause)), key.name, "")
		if len(placements) > 0 {
			object := key.resource.GroupResource().String() + " " + strings.TrimPrefix(key.name.String(), "/")
			r.withdrawn.add(placements, reason, cause, &s.syncTarget, object, r.clock.Now())
			r.pairs.reports.request()
		}
	}
}

// journalEntry returns the entry of the journal for a pair.
func (r *pairReconciler) journalEntry(message string, key pairKey, s *pairSnapshot, reason string) status.JournalEntry {
	return status.JournalEntry{
		Message: message, SyncTarget: s.syncTarget.Name, Inventory: s.syncTarget.Inventory.String(), Workspace: r.pairs.cluster.String(),
		Resource: key.resource.GroupResource(), Reason: reason,
	}
}
