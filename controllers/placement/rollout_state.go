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
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rollout"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
)

// pairPhase is the phase of a pair for the present content of its object.
type pairPhase uint8

const (
	// notCounted: the pair is not desired.
	notCounted pairPhase = iota
	// phaseUnobserved: the object may have changed since the last pass for the pair.
	phaseUnobserved
	// phasePending: the mailbox does not have the present content, or that is unknown.
	phasePending
	// phaseProgressing: the cluster does not have the content yet, or the object is not healthy there yet.
	phaseProgressing
	// phaseBlocked: the object was never there, and cannot be, for a reason that does not concern the other
	// objects.
	phaseBlocked
	phaseFailed
	phaseSucceeded
	phases
)

// phase returns the phase of a pair.
func (p *pair) phase() pairPhase {
	switch {
	case !p.desired:
		return notCounted
	case p.observedChanges != p.changes:
		return phaseUnobserved
	case p.failure != nil && !p.hasCopy && p.failure.Reason != plan.ReasonMailboxRefused:
		return phaseBlocked
	case p.failure != nil:
		return phaseFailed
	case p.undecided || !p.placed:
		return phasePending
	default:
		return p.syncStatus.phase()
	}
}

func (p *syncStatus) phase() pairPhase {
	switch {
	case p == nil:
		return phaseProgressing
	case p.failure != nil && p.isBlocked:
		return phaseBlocked
	case p.failure != nil && !isDrifted(p.failure.Reason):
		return phaseFailed
	case !p.synced:
		return phaseProgressing
	}
	switch p.health.Status {
	case health.Current:
		return phaseSucceeded
	case health.Failed, health.Unknown:
		return phaseFailed
	default:
		return phaseProgressing
	}
}

// phaseCounts counts the pairs of one placement in one mailbox by their phases.
type phaseCounts [phases]int

// progress returns the progress of a destination.
func (c *phaseCounts) progress(isAdmitted bool) rollout.Progress {
	switch {
	case c == nil:
		return rollout.Succeeded
	case c[phaseUnobserved]+c[phasePending] > 0 && !isAdmitted:
		return rollout.Waiting
	case c[phaseUnobserved]+c[phasePending] > 0:
		return rollout.Progressing
	case c[phaseFailed] > 0:
		return rollout.Failed
	case c[phaseProgressing] > 0:
		return rollout.Progressing
	default:
		return rollout.Succeeded
	}
}

// rolloutState is the rollout of one placement. The lock of the [pairs] guards it, since its counts change with them.
type rolloutState struct {
	counts map[logicalcluster.Name]*phaseCounts
	// unobserved is the number of pairs in phaseUnobserved.
	unobserved int
	// decision is valid if decided is true: all pairs have been observed since their objects changed. changes
	// increases with each change of an object, so that a decision about former content is discarded.
	decision rollout.Decision
	decided  bool
	// due is true if the decision may change, and is about to be made again.
	due     bool
	changes int
	// evaluated is false after a resolve, which may change the strategy or the destinations, until the next
	// decision. That decision is valid until recheckAt; zero means no limit. succeeded is true if all
	// destinations were successful.
	evaluated, succeeded bool
	recheckAt            time.Time
	// kept is the number of changes after which the objects were last kept in a PlacementRevision, and
	// lastRevision refers to it; nil if it is unknown. notKept is why no PlacementRevision keeps the present
	// objects. attemptedAt is when the hub last tried to write one.
	kept         int
	attemptedAt  time.Time
	lastRevision *edgev2alpha1.RevisionReference
	notKept      string
	// slots are the PlacementRevisions; nil before they are read. Only the controller of rollouts uses them, without the lock.
	slots *revisionSlots
	// lastProgress is the progress of each destination at the last decision.
	lastProgress map[types.UID]destinationProgress
}

type destinationProgress struct {
	rollout.Progress
	since time.Time
}

func newRolloutState() *rolloutState {
	return &rolloutState{kept: -1, counts: map[logicalcluster.Name]*phaseCounts{}, lastProgress: map[types.UID]destinationProgress{}}
}

// move moves a pair from one phase to another in the counts, and reports whether the decision may change.
func (s *rolloutState) move(mailbox logicalcluster.Name, from, to pairPhase) bool {
	counts := s.counts[mailbox]
	if counts == nil {
		counts = &phaseCounts{}
		s.counts[mailbox] = counts
	}
	before, wereUnobserved := counts.progress(false), s.unobserved
	if from != notCounted {
		counts[from]--
	}
	if to != notCounted {
		counts[to]++
	}
	if from == phaseUnobserved {
		s.unobserved--
	}
	if to == phaseUnobserved {
		s.unobserved++
	}
	after := counts.progress(false)
	if *counts == (phaseCounts{}) {
		delete(s.counts, mailbox)
	}
	mayChange := s.unobserved == 0 && (wereUnobserved > 0 || before != after)
	s.due = s.due || mayChange
	return mayChange
}

// reset invalidates the decision, because an object may have changed.
func (s *rolloutState) reset() {
	s.decided = false
	s.changes++
}

// isAdmitted reports whether a destination may get the present content.
func (s *rolloutState) isAdmitted(syncTarget types.UID) bool {
	return s.decided && s.decision.Admitted.Has(syncTarget)
}

// scheduleRecheck records after which delay the decision may change without an event; zero for never.
func (s *rolloutState) scheduleRecheck(succeeded bool, recheckAfter time.Duration, now time.Time) {
	s.evaluated, s.succeeded, s.recheckAt = true, succeeded, time.Time{}
	if recheckAfter > 0 {
		s.recheckAt = now.Add(recheckAfter)
	}
}

// isCurrent reports whether the decision is valid and cannot have changed, and after which delay it may change;
// zero for never. A workspace with many placements then decides only about the changed ones.
func (s *rolloutState) isCurrent(now time.Time) (recheckAfter time.Duration, ok bool) {
	if !s.decided || !s.evaluated || s.due {
		return 0, false
	}
	if s.recheckAt.IsZero() {
		return 0, true
	}
	recheckAfter = s.recheckAt.Sub(now)
	return recheckAfter, recheckAfter > 0
}

// progressOf returns the progress of a destination.
func (s *rolloutState) progressOf(destination *rules.Destination) rollout.Progress {
	isAdmitted := s.isAdmitted(destination.UID)
	if destination.Mailbox == "" {
		return (&phaseCounts{phasePending: 1}).progress(isAdmitted)
	}
	return s.counts[destination.Mailbox].progress(isAdmitted)
}

// updateProgress updates lastProgress, and returns the destinations with their progress and the start of that
// progress.
func (s *rolloutState) updateProgress(destinations []rules.Destination, groupBy string, now time.Time) []rollout.Destination {
	observed, next := make([]rollout.Destination, len(destinations)), make(map[types.UID]destinationProgress, len(destinations))
	for i := range destinations {
		of := &destinations[i]
		progress := s.progressOf(of)
		known, ok := s.lastProgress[of.UID]
		if !ok || known.Progress != progress {
			known = destinationProgress{progress, now}
		}
		next[of.UID] = known
		observed[i] = rollout.Destination{SyncTarget: of.UID, Name: of.Name, Progress: progress, Since: known.since}
		if groupBy != "" {
			observed[i].Group = of.Group(groupBy)
		}
	}
	s.lastProgress, s.due = next, false
	return observed
}

// admit activates a decision, and returns the mailboxes of the newly admitted destinations.
func (s *rolloutState) admit(decision rollout.Decision, destinations []rules.Destination, now time.Time) (mailboxes map[logicalcluster.Name]struct{}) {
	mailboxes = map[logicalcluster.Name]struct{}{}
	for i := range destinations {
		of := &destinations[i]
		if !decision.Admitted.Has(of.UID) || s.isAdmitted(of.UID) {
			continue
		}
		mailboxes[of.Mailbox] = struct{}{}
		if s.lastProgress[of.UID].Progress == rollout.Waiting {
			s.lastProgress[of.UID] = destinationProgress{rollout.Progressing, now}
		}
	}
	s.decision, s.decided = decision, true
	return mailboxes
}

// rolloutSummary holds the reported state of a rollout.
type rolloutSummary struct {
	paused, stopped bool
	// decided is true if the counts come from a valid decision.
	decided bool
	// counts are the numbers of destinations by their progress. Destinations that missed the deadline count as
	// failed.
	counts [rollout.Failed + 1]int
	// failed are the names of the failed SyncTargets.
	failed []string
	// revision is the last PlacementRevision; nil if it is unknown.
	revision *edgev2alpha1.RevisionReference
	// notKept is why no PlacementRevision keeps the present objects; empty if one does, or if none has failed
	// to.
	notKept string
}

// summarizeRollout returns the reported state of the placement's rollout; nil if it has none. It requires the lock of the [pairs].
func (p *resolvedPlacement) summarizeRollout() *rolloutSummary {
	state := p.rollout
	if state == nil {
		return nil
	}
	summed := &rolloutSummary{
		paused: p.Rollout.Paused, stopped: state.decided && state.decision.Stopped, decided: state.decided && !state.due,
		revision: state.lastRevision, notKept: state.notKept,
	}
	for i := range p.Destinations {
		of := &p.Destinations[i]
		progress := state.progressOf(of)
		if progress == rollout.Progressing && state.decided && state.decision.TimedOut.Has(of.UID) {
			progress = rollout.Failed
		}
		summed.counts[progress]++
		if progress == rollout.Failed {
			summed.failed = append(summed.failed, of.Name)
		}
	}
	slices.Sort(summed.failed)
	return summed
}
