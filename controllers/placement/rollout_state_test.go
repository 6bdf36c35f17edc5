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
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rollout"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
)

func TestPairPhase(t *testing.T) {
	t.Parallel()
	healthy := &syncStatus{synced: true, health: health.Health{Status: health.Current}}
	for name, c := range map[string]struct {
		pair pair
		want pairPhase
	}{
		"not desired":         {pair{placed: true}, notCounted},
		"changed":             {pair{desired: true, placed: true, syncStatus: healthy, changes: 2, observedChanges: 1}, phaseUnobserved},
		"not placed":          {pair{desired: true}, phasePending},
		"undecided":           {pair{desired: true, placed: true, undecided: true, syncStatus: healthy}, phasePending},
		"refused":             {pair{desired: true, failure: &failure{Reason: plan.ReasonMailboxRefused}}, phaseFailed},
		"refused a change":    {pair{desired: true, hasCopy: true, failure: &failure{Reason: plan.ReasonInvalid}}, phaseFailed},
		"never placed":        {pair{desired: true, failure: &failure{Reason: rules.ReasonPrivileged}}, phaseBlocked},
		"never there":         {pair{desired: true, placed: true, syncStatus: &syncStatus{isBlocked: true, failure: &failure{Reason: plan.ReasonConflict}}}, phaseBlocked},
		"nobody has tried it": {pair{desired: true, placed: true}, phaseProgressing},
		"on its way":          {pair{desired: true, placed: true, syncStatus: &syncStatus{}}, phaseProgressing},
		"refused there":       {pair{desired: true, placed: true, syncStatus: &syncStatus{failure: &failure{}}}, phaseFailed},
		"starting":            {pair{desired: true, placed: true, syncStatus: &syncStatus{synced: true, health: health.Health{Status: health.InProgress}}}, phaseProgressing},
		"given up":            {pair{desired: true, placed: true, syncStatus: &syncStatus{synced: true, health: health.Health{Status: health.Failed}}}, phaseFailed},
		"nobody can tell":     {pair{desired: true, placed: true, syncStatus: &syncStatus{synced: true, health: health.Health{Status: health.Unknown}}}, phaseFailed},
		"at work":             {pair{desired: true, placed: true, syncStatus: healthy}, phaseSucceeded},
	} {
		if got := c.pair.phase(); got != c.want {
			t.Errorf("%s: phase %d, not %d", name, got, c.want)
		}
	}
}

// After a change of its objects, a destination waits until it is admitted again.
func TestRolloutState(t *testing.T) {
	t.Parallel()
	const mailbox = logicalcluster.Name("m")
	destinations := []rules.Destination{{SyncTarget: fleet.SyncTarget{UID: "1", Name: "florin", Mailbox: mailbox}}, {SyncTarget: fleet.SyncTarget{UID: "2", Name: "guilder"}}}
	start := time.Unix(0, 0)
	state := newRolloutState()
	expect := func(what string, now time.Time, first, second rollout.Progress, since time.Time) {
		t.Helper()
		observed := state.updateProgress(destinations, "", now)
		if observed[0].Progress != first || observed[1].Progress != second || !observed[0].Since.Equal(since) {
			t.Errorf("%s: %+v", what, observed)
		}
	}
	admit := func(now time.Time, uids ...types.UID) []logicalcluster.Name {
		var mailboxes []logicalcluster.Name
		for name := range state.admit(rollout.Decision{Admitted: sets.New(uids...)}, destinations, now) {
			mailboxes = append(mailboxes, name)
		}
		slices.Sort(mailboxes)
		return mailboxes
	}
	expect("no object yet, and no mailbox", start, rollout.Succeeded, rollout.Waiting, start)
	if state.move(mailbox, notCounted, phaseUnobserved) {
		t.Error("got a decision without a pass")
	}
	if !state.move(mailbox, phaseUnobserved, phasePending) {
		t.Error("all passes are made, and no decision is requested")
	}
	expect("it lacks the object", start.Add(1), rollout.Waiting, rollout.Waiting, start.Add(1))
	if got := admit(start.Add(2), "1"); !slices.Equal(got, []logicalcluster.Name{mailbox}) {
		t.Errorf("admitted: %v", got)
	}
	if got := admit(start.Add(3), "1"); len(got) > 0 {
		t.Errorf("admitted twice: %v", got)
	}
	expect("admitted", start.Add(4), rollout.Progressing, rollout.Waiting, start.Add(2))
	if !state.move(mailbox, phasePending, phaseProgressing) {
		t.Error("the destination may be successful, and no decision is requested")
	}
	state.move(mailbox, phaseProgressing, phaseSucceeded)
	expect("successful", start.Add(5), rollout.Succeeded, rollout.Waiting, start.Add(5))
	state.move(mailbox, phaseSucceeded, phaseUnobserved)
	state.reset()
	expect("changed", start.Add(6), rollout.Waiting, rollout.Waiting, start.Add(6))
	state.move(mailbox, phaseUnobserved, notCounted)
	if len(state.counts) > 0 || state.unobserved != 0 {
		t.Errorf("%+v", state)
	}
}

func TestRolloutCondition(t *testing.T) {
	t.Parallel()
	three := outcome{resolution: rules.Resolution{Destinations: make([]rules.Destination, 3), Locations: 1}}
	// counts are the numbers of waiting, progressing, succeeded and failed destinations.
	for name, c := range map[string]struct {
		outcome         outcome
		placementCounts placementCounts
		reason          string
	}{
		"no strategy":          {three, placementCounts{selected: 1}, ""},
		"nothing selected":     {three, placementCounts{rollout: &rolloutSummary{counts: [4]int{0, 0, 3, 0}}}, ""},
		"not in force":         {outcome{reason: plan.ReasonInvalid}, placementCounts{selected: 1, rollout: &rolloutSummary{}}, ""},
		"complete":             {three, placementCounts{selected: 1, rollout: &rolloutSummary{counts: [4]int{0, 0, 3, 0}}}, rules.ReasonComplete},
		"complete and paused":  {three, placementCounts{selected: 1, rollout: &rolloutSummary{paused: true, counts: [4]int{0, 0, 3, 0}}}, rules.ReasonComplete},
		"paused":               {three, placementCounts{selected: 1, rollout: &rolloutSummary{paused: true, counts: [4]int{1, 1, 1, 0}}}, rules.ReasonPaused},
		"on its way":           {three, placementCounts{selected: 1, rollout: &rolloutSummary{counts: [4]int{1, 1, 0, 1}, failed: []string{"florin"}}}, rules.ReasonProgressing},
		"stopped":              {three, placementCounts{selected: 1, rollout: &rolloutSummary{stopped: true, counts: [4]int{1, 0, 1, 1}, failed: []string{"florin"}}}, rules.ReasonStopped},
		"some cannot be there": {three, placementCounts{selected: 2, failed: 3, failures: []edgev2alpha1.PlacementPair{{SyncTarget: "florin"}}, rollout: &rolloutSummary{counts: [4]int{0, 0, 3, 0}}}, rules.ReasonObjectsFailed},
		"failed at last":       {three, placementCounts{selected: 1, rollout: &rolloutSummary{counts: [4]int{0, 0, 2, 1}, failed: []string{"florin"}}}, rules.ReasonDestinationsFailed},
	} {
		condition := rolloutCondition(c.outcome, &c.placementCounts)
		if condition.Reason != c.reason || (condition.Status == "True") != (c.reason == rules.ReasonComplete) || (condition.Message == "") != (c.reason == "") {
			t.Errorf("%s: %+v", name, condition)
		}
		if status := rolloutStatus(c.outcome, &c.placementCounts); (status == nil) != (c.reason == "") {
			t.Errorf("%s: %+v", name, status)
		}
	}
}

// A merge patch that lacks a field leaves the former value.
func TestStatusPatchReplacesARollout(t *testing.T) {
	fields, err := statusFields(&edgev2alpha1.EdgePlacementStatus{}, &edgev2alpha1.EdgePlacementStatus{Rollout: &edgev2alpha1.RolloutStatus{Waiting: 1}})
	if rolled, ok := fields["rollout"].(map[string]any); err != nil || !ok || rolled["failedClusters"] != nil || rolled["succeeded"] != int64(0) {
		t.Errorf("a merge patch would leave former values: %v, %v", fields["rollout"], err)
	}
	if fields, err = statusFields(&edgev2alpha1.EdgePlacementStatus{}, &edgev2alpha1.EdgePlacementStatus{}); err != nil {
		t.Fatal(err)
	}
	if value, ok := fields["rollout"]; !ok || value != nil {
		t.Error("a merge patch would leave a former rollout")
	}
}

// An object that cannot be placed blocks no other object: its destination can be successful.
func TestBlockedObjectsStopNoRollout(t *testing.T) {
	blocked := &phaseCounts{}
	blocked[phaseBlocked], blocked[phaseSucceeded] = 1, 3
	if got := blocked.progress(true); got != rollout.Succeeded {
		t.Errorf("one is blocked, and the others are healthy: %d", got)
	}
	blocked[phaseFailed] = 1
	if got := blocked.progress(true); got != rollout.Failed {
		t.Errorf("another one has failed: %d", got)
	}
	for name, c := range map[string]struct {
		state objectsync.SyncStatus
		want  bool
	}{
		"no right to create it": {objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: plan.ReasonForbidden}, Health: health.Health{Status: health.InProgress}}, true},
		"no right to change it": {objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: plan.ReasonForbidden}, Health: health.Health{Status: health.Current}}, false},
		"refused by a policy":   {objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: "AdmissionDenied"}, Health: health.Health{Status: health.InProgress}}, false},
	} {
		if got := newSyncStatus(c.state).isBlocked; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
