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
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
)

func destinations(count int) rules.Resolution {
	resolved := rules.Resolution{Locations: min(count, 1)}
	for i := range count {
		resolved.Destinations = append(resolved.Destinations, rules.Destination{SyncTarget: fleet.SyncTarget{Name: fmt.Sprintf("cluster-%d", i)}})
	}
	return resolved
}

func TestReadyCondition(t *testing.T) {
	for name, c := range map[string]struct {
		outcome         outcome
		placementCounts placementCounts
		reason          string
	}{
		"it is invalid":                      {outcome{reason: plan.ReasonInvalid, message: "spec.downsync[0]", resolution: destinations(1)}, placementCounts{selected: 1, placed: 1}, plan.ReasonInvalid},
		"no Location":                        {outcome{}, placementCounts{selected: 1}, rules.ReasonNoLocation},
		"a Location without SyncTargets":     {outcome{resolution: rules.Resolution{Locations: 1}}, placementCounts{selected: 1}, rules.ReasonNoSyncTarget},
		"no object":                          {outcome{resolution: destinations(2)}, placementCounts{}, rules.ReasonSelectsNothing},
		"one fails":                          {outcome{resolution: destinations(2)}, placementCounts{selected: 3, placed: 5, failed: 1}, rules.ReasonObjectsFailed},
		"one is on its way":                  {outcome{resolution: destinations(2)}, placementCounts{selected: 3, placed: 5}, rules.ReasonPending},
		"a mailbox is not there yet":         {outcome{resolution: destinations(2)}, placementCounts{selected: 3, placed: 3}, rules.ReasonPending},
		"all are placed at all destinations": {outcome{resolution: destinations(2)}, placementCounts{selected: 3, placed: 6, synced: 6}, rules.ReasonInSync},
		"a mailbox is slow":                  {outcome{resolution: destinations(2)}, placementCounts{selected: 3, placed: 5, slow: map[string]int{"cluster-1": 1}}, rules.ReasonMailboxSlow},
		"a cluster is behind":                {outcome{resolution: destinations(2)}, placementCounts{selected: 3, placed: 6, synced: 5, unsynced: map[string]int{"cluster-1": 1}}, rules.ReasonSyncing},
		"a cluster refuses one":              {outcome{resolution: destinations(2)}, placementCounts{selected: 3, placed: 6, synced: 5, failed: 1}, rules.ReasonObjectsFailed},
	} {
		ready := readyCondition(c.outcome, &c.placementCounts)
		if ready.Reason != c.reason || ready.Message == "" || (ready.Status == "True") != (c.reason == rules.ReasonInSync) {
			t.Errorf("%s: %s %s: %s", name, ready.Status, ready.Reason, ready.Message)
		}
	}
}

// The condition names all APIs that a mailbox or a cluster lacks: the first failures may not contain all of
// them.
func TestReadyNamesMissingAPIs(t *testing.T) {
	const inMailbox, onCluster = logicalcluster.Name("m"), logicalcluster.Name("c")
	one := &resolvedPlacement{mailboxes: map[logicalcluster.Name]rules.Destination{inMailbox: {}, onCluster: {}}}
	unserved := failure{Reason: plan.ReasonNotServed, Message: "no"}
	counted := &placementCounts{}
	for resource, failing := range map[string]map[site]*pair{
		"widgets": {at(inMailbox): {desired: true, failure: &unserved}}, "gadgets": {at(onCluster): {desired: true, placed: true, syncStatus: &syncStatus{failure: &unserved}}},
		"secrets": {at(inMailbox): {desired: true, failure: &failure{Reason: plan.ReasonConflict}}},
	} {
		counted.add(objectKey{resource: schema.GroupVersionResource{Group: "acme.io", Resource: resource}}, &object{pairs: failing}, one, nil)
	}
	ready := readyCondition(outcome{resolution: destinations(2)}, counted)
	if ready.Reason != rules.ReasonObjectsFailed || !strings.HasSuffix(ready.Message, "see status.failures. Some destinations do not serve gadgets.acme.io, widgets.acme.io.") {
		t.Errorf("%s: %s", ready.Reason, ready.Message)
	}
	counted.unserved = map[string]struct{}{}
	for i := range 2 * maxNamed {
		counted.unserved[fmt.Sprintf("a%02d", i)] = struct{}{}
	}
	if message := unservedMessage(counted.unserved); !strings.Contains(message, fmt.Sprintf("and %d more", maxNamed)) {
		t.Errorf("%s", message)
	}
}

// A pair that waits for a slow mailbox is listed, even if the mailbox has the former content of the source.
func TestSlowMailboxesAreNamed(t *testing.T) {
	const slow, quick = logicalcluster.Name("s"), logicalcluster.Name("q")
	one := &resolvedPlacement{mailboxes: map[logicalcluster.Name]rules.Destination{
		slow: {SyncTarget: fleet.SyncTarget{Name: "slow"}}, quick: {SyncTarget: fleet.SyncTarget{Name: "quick"}},
	}}
	for name, c := range map[string]struct {
		pair  pair
		named int
	}{
		"new":        {pair{desired: true}, 1},
		"changed":    {pair{desired: true, placed: true, changes: 2, observedChanges: 1}, 1},
		"placed":     {pair{desired: true, placed: true}, 0},
		"failed":     {pair{desired: true, failure: &failure{Reason: plan.ReasonConflict}}, 0},
		"undesired":  {pair{hasCopy: true}, 0},
		"rolled out": {pair{desired: true, waiting: true}, 0},
	} {
		counted, other := &placementCounts{}, c.pair
		counted.add(objectKey{name: types.NamespacedName{Name: "a"}}, &object{pairs: map[site]*pair{at(slow): &c.pair, at(quick): &other}}, one, map[logicalcluster.Name]bool{slow: true})
		if counted.slow["slow"] != c.named || counted.slow["quick"] != 0 {
			t.Errorf("%s: %v", name, counted.slow)
		}
	}
}

// The status lists the same failures in any order of the pairs.
func TestFailuresAreStable(t *testing.T) {
	failing := func(name string, mailboxes ...logicalcluster.Name) (objectKey, *object) {
		entry := &object{pairs: map[site]*pair{}}
		for _, mailbox := range mailboxes {
			entry.pairs[at(mailbox)] = &pair{desired: true, failure: &failure{Reason: plan.ReasonConflict, Message: "taken"}}
		}
		return objectKey{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, types.NamespacedName{Namespace: "shop", Name: name}}, entry
	}
	placement := &resolvedPlacement{mailboxes: map[logicalcluster.Name]rules.Destination{}}
	var all []logicalcluster.Name
	for i := range 7 {
		mailbox := logicalcluster.Name(fmt.Sprintf("m%d", i))
		placement.mailboxes[mailbox] = rules.Destination{SyncTarget: fleet.SyncTarget{Name: fmt.Sprintf("cluster-%d", i)}}
		all = append(all, mailbox)
	}
	var first []edgev2alpha1.PlacementPair
	for round := range 20 {
		counted := &placementCounts{}
		names := []string{"c", "a", "b"}
		for i := range names {
			key, entry := failing(names[(i+round)%len(names)], all...)
			counted.add(key, entry, placement, nil)
		}
		if counted.failed != 21 || counted.selected != 3 || len(counted.failures) != edgev2alpha1.MaxFailures {
			t.Fatalf("%d failed of %d, %d listed", counted.failed, counted.selected, len(counted.failures))
		}
		if first == nil {
			first = counted.failures
		}
		if fmt.Sprint(first) != fmt.Sprint(counted.failures) {
			t.Fatalf("first %v\nthen  %v", first, counted.failures)
		}
	}
	if first[0].Name != "a" || first[0].SyncTarget != "cluster-0" || first[9].Name != "b" {
		t.Errorf("%v", first)
	}
}

func TestConditionsAboutParts(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("cluster-%d", i))
	}
	found := outcome{missingAPIs: missingAPIs{unaccepted: []string{"secrets"}}, upsyncDenied: many}
	for condition, word := range map[string]string{
		apisMissingCondition(found).Message: "bind compute", upsyncCondition(found).Message: "30 destinations",
	} {
		if !strings.Contains(condition, word) || len(condition) > 1000 {
			t.Errorf("%q: %s", word, condition)
		}
	}
	for _, absent := range []string{apisMissingCondition(outcome{}).Reason, upsyncCondition(outcome{}).Reason} {
		if absent != "" {
			t.Errorf("a condition without cause: %s", absent)
		}
	}
}

// The remedies differ: `bind compute` does not help while a name is taken.
func TestMissingAPIsHaveTheirOwnRemedies(t *testing.T) {
	unbound := apisMissingCondition(outcome{missingAPIs: missingAPIs{unbound: []string{"rugs.shop.io"}, conflict: "naming conflict with the CustomResourceDefinition rugs.shop.io."}})
	if unbound.Reason != edgev2alpha1.ReasonNamingConflict || strings.Contains(unbound.Message, "bind compute") || !strings.Contains(unbound.Message, "delete it") {
		t.Errorf("%s: %s", unbound.Reason, unbound.Message)
	}
	both := apisMissingCondition(outcome{missingAPIs: missingAPIs{unaccepted: []string{"secrets"}, unbound: []string{"rugs.shop.io"}, conflict: "taken"}})
	if !strings.Contains(both.Message, "bind compute") || !strings.Contains(both.Message, "taken") {
		t.Errorf("%s: %s", both.Reason, both.Message)
	}
}

// After a start, placements may be active that were resolved without a view of all inventories. No status is
// written from them.
func TestStatusWaitsForACompleteView(t *testing.T) {
	w := newTestWorkspace()
	w.active.state.placements = nil
	if _, known := w.reporter.summarize(); known {
		t.Error("a summary exists before the first resolve")
	}
	for _, seen := range []bool{false, true} {
		w.active.state.placements = &placements{fleetSynced: seen}
		if _, known := w.reporter.summarize(); known != seen {
			t.Errorf("view complete: %v, known: %v", seen, known)
		}
	}
}

func TestHealthyCondition(t *testing.T) {
	for name, c := range map[string]struct {
		outcome         outcome
		placementCounts placementCounts
		reason          string
	}{
		"it is invalid":          {outcome{reason: plan.ReasonInvalid, resolution: destinations(1)}, placementCounts{selected: 1, placed: 1, synced: 1, healthy: 1}, ""},
		"no object":              {outcome{resolution: destinations(2)}, placementCounts{}, ""},
		"one does not work yet":  {outcome{resolution: destinations(2)}, placementCounts{selected: 1, placed: 2, synced: 2, healthy: 1}, rules.ReasonInProgress},
		"one is not synced":      {outcome{resolution: destinations(2)}, placementCounts{selected: 1, placed: 2, synced: 1, healthy: 1}, rules.ReasonInProgress},
		"a cluster has given up": {outcome{resolution: destinations(2)}, placementCounts{selected: 1, placed: 2, synced: 2, healthy: 1, unhealthy: 1}, rules.ReasonUnhealthy},
		"all work":               {outcome{resolution: destinations(2)}, placementCounts{selected: 1, placed: 2, synced: 2, healthy: 2}, rules.ReasonCurrent},
	} {
		healthy := healthyCondition(c.outcome, &c.placementCounts)
		if healthy.Reason != c.reason || (healthy.Message == "") != (c.reason == "") || (healthy.Status == "True") != (c.reason == rules.ReasonCurrent) {
			t.Errorf("%s: %s %s: %s", name, healthy.Status, healthy.Reason, healthy.Message)
		}
	}
}

// Only a placed copy counts as synced, only a synced one as healthy, and each failed pair once.
func TestPlacementCounts(t *testing.T) {
	const mailbox = logicalcluster.Name("m")
	placement := &resolvedPlacement{mailboxes: map[logicalcluster.Name]rules.Destination{mailbox: {SyncTarget: fleet.SyncTarget{Name: "cluster"}}}}
	refused := &failure{Reason: "Forbidden", Message: "no"}
	for name, c := range map[string]struct {
		pair pair
		want placementCounts
		// progressing is the reason of the pair in status.progressing; empty if it is not listed.
		progressing string
	}{
		"not placed":               {pair{desired: true}, placementCounts{pending: true}, "Placing"},
		"changed since":            {pair{desired: true, placed: true, changes: 1, syncStatus: &syncStatus{}}, placementCounts{placed: 1, unobserved: true, pending: true, unsynced: map[string]int{"cluster": 1}}, "Syncing"},
		"waiting":                  {pair{desired: true, waiting: true}, placementCounts{waiting: 1}, "WaitingForRollout"},
		"nobody has tried it":      {pair{desired: true, placed: true}, placementCounts{placed: 1, pending: true, unsynced: map[string]int{"cluster": 1}}, "Syncing"},
		"on its way":               {pair{desired: true, placed: true, syncStatus: &syncStatus{}}, placementCounts{placed: 1, pending: true, unsynced: map[string]int{"cluster": 1}}, "Syncing"},
		"the cluster refuses it":   {pair{desired: true, placed: true, syncStatus: &syncStatus{failure: refused}}, placementCounts{placed: 1, failed: 1}, ""},
		"the mailbox refuses it":   {pair{desired: true, failure: refused}, placementCounts{failed: 1}, ""},
		"synced":                   {pair{desired: true, placed: true, syncStatus: &syncStatus{synced: true, health: health.Health{Status: health.InProgress}}}, placementCounts{placed: 1, synced: 1}, "InProgress"},
		"healthy":                  {pair{desired: true, placed: true, syncStatus: &syncStatus{synced: true, health: health.Health{Status: health.Current}}}, placementCounts{placed: 1, synced: 1, healthy: 1}, ""},
		"the cluster has given up": {pair{desired: true, placed: true, syncStatus: &syncStatus{synced: true, health: health.Health{Status: health.Failed}}}, placementCounts{placed: 1, synced: 1, unhealthy: 1}, ""},
	} {
		counted := placementCounts{}
		counted.add(objectKey{name: types.NamespacedName{Name: "a"}}, &object{pairs: map[site]*pair{at(mailbox): &c.pair}}, placement, nil)
		if failures := int64(len(counted.failures)); failures != c.want.failed+c.want.unhealthy {
			t.Errorf("%s: %d failures listed", name, failures)
		}
		progressing := ""
		for _, found := range counted.inProgressPairs {
			progressing += found.Reason
		}
		if progressing != c.progressing {
			t.Errorf("%s: got the progressing reason %q", name, progressing)
		}
		c.want.fingerprint.Add(0)
		c.want.selected, c.want.namespaces, counted.failures, counted.inProgressPairs, counted.onClusters = 1, map[string]struct{}{"": {}}, nil, nil, nil
		if !reflect.DeepEqual(counted, c.want) {
			t.Errorf("%s: %+v", name, counted)
		}
	}
}

// A sync status counts only for the content that it describes, and does not reveal the owner of a conflicting
// object.
func TestSyncStatus(t *testing.T) {
	healthy := health.Health{Status: health.Current}
	for name, c := range map[string]struct {
		state objectsync.SyncStatus
		want  syncStatus
	}{
		"in sync with this content": {objectsync.SyncStatus{Synced: true, Health: healthy}, syncStatus{synced: true, health: healthy}},
		"in sync with an older one": {objectsync.SyncStatus{Health: healthy}, syncStatus{}},
		"it fails":                  {objectsync.SyncStatus{Synced: true, Failure: &objectsync.Failure{Reason: "Forbidden", Message: "no"}, Health: healthy}, syncStatus{failure: &failure{"Forbidden", "no"}}},
		"it has drifted from this content": {
			objectsync.SyncStatus{Synced: true, Failure: &objectsync.Failure{Reason: plan.ReasonDrifted, Message: "m", Differences: differing("1")}, Health: healthy},
			syncStatus{synced: true, failure: &failure{plan.ReasonDrifted, "m"}, differences: differing("1"), health: healthy},
		},
		"it has drifted from an older one": {
			objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: plan.ReasonDrifted, Message: "m"}, Health: healthy},
			syncStatus{failure: &failure{plan.ReasonDrifted, "m"}, health: healthy},
		},
		"it would be taken over": {
			objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: plan.ReasonAdoptionReported, Message: "m"}, Health: healthy},
			syncStatus{isBlocked: true, failure: &failure{plan.ReasonAdoptionReported, "m"}},
		},
	} {
		if got := newSyncStatus(c.state); !got.equal(&c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	one, other := syncStatus{synced: true, differences: differing("1")}, syncStatus{synced: true, differences: differing("2")}
	if one.equal(&other) {
		t.Error("another value is not the same")
	}
	taken := newSyncStatus(objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: plan.ReasonConflict, Message: "it came from secrets other/password"}})
	if taken.failure.Reason != plan.ReasonConflict || strings.Contains(taken.failure.Message, "password") {
		t.Errorf("%+v", taken.failure)
	}
	if excluded := newSyncStatus(objectsync.SyncStatus{Synced: true, Excluded: true}); excluded.synced || excluded.failure.Reason != rules.ReasonExcludedByUpsync {
		t.Errorf("%+v", excluded)
	}
}

// Before a destination has its mailbox, there are no pairs, and the hub has not caught up: the previous
// leader's status is still better.
func TestDestinationsWithoutAMailboxArePending(t *testing.T) {
	w := newTestWorkspace()
	w.active.state.placements = &placements{fleetSynced: true}
	one := placementAt(0, nil, 0)
	one.Destinations = []rules.Destination{{SyncTarget: fleet.SyncTarget{Name: "florin"}}}
	w.active.get().setAll([]*resolvedPlacement{one})
	if summed, _ := w.reporter.summarize(); !summed.isPending() {
		t.Error("nothing is pending")
	}
	one.Destinations[0].Mailbox = "m"
	if summed, _ := w.reporter.summarize(); summed.isPending() {
		t.Error("something is pending")
	}
}

// Placements become active before their objects are selected again. Until then there are no pairs at new
// destinations.
func TestObjectsThatAreSelectedAgainArePending(t *testing.T) {
	w := newTestWorkspace()
	w.active.state.placements, w.active.state.isReselecting = &placements{fleetSynced: true}, true
	if summed, _ := w.reporter.summarize(); !summed.isPending() {
		t.Error("nothing is pending")
	}
	w.active.state.isReselecting = false
	if summed, _ := w.reporter.summarize(); summed.isPending() {
		t.Error("something is pending")
	}
}

// The status of the previous leader is replaced once the hub knows as much, or after a while.
func TestCaughtUp(t *testing.T) {
	t.Parallel()
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	pending := summary{counts: map[types.UID]*placementCounts{"p": {pending: true}}}
	for name, c := range map[string]struct {
		selected    bool
		summary     summary
		want, after bool
	}{
		"nothing is pending":     {true, summary{}, true, true},
		"objects are missing":    {false, summary{}, false, true},
		"a pair is pending":      {true, pending, false, true},
		"a rollout is undecided": {true, summary{counts: map[types.UID]*placementCounts{"p": {rollout: &rolloutSummary{}}}}, false, true},
	} {
		r := &reporter{startup: &startup{clock: clock}}
		if got := r.isCaughtUp(c.selected, c.summary); got != c.want {
			t.Errorf("%s, before the start: %v", name, got)
		}
		r.startup.begin()
		if got := r.isCaughtUp(c.selected, c.summary); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		clock.Step(2 * startupGrace)
		if got := r.isCaughtUp(c.selected, c.summary); got != c.after {
			t.Errorf("%s, later: %v", name, got)
		}
		r.caughtUp = true
		if !r.isCaughtUp(false, pending) {
			t.Errorf("%s: the hub falls behind again", name)
		}
	}
}

// A report waits for the decision about a rollout that is due, and not for ever.
func TestReportsWaitForDecisions(t *testing.T) {
	t.Parallel()
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	r := &reporter{clock: clock, reportedAt: clock.Now()}
	due, decided := &placementCounts{rollout: &rolloutSummary{}}, &placementCounts{rollout: &rolloutSummary{decided: true}}
	for name, c := range map[string]struct {
		summary summary
		counted *placementCounts
		want    bool
	}{
		"due":              {summary{allSelected: true}, due, true},
		"decided":          {summary{allSelected: true}, decided, false},
		"no rollout":       {summary{allSelected: true}, &placementCounts{}, false},
		"nothing selected": {summary{allSelected: true}, nil, false},
		"not all selected": {summary{}, due, false},
	} {
		if got := r.mustAwaitDecision(c.summary, c.counted); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if clock.Step(2 * maxReportDelay); r.mustAwaitDecision(summary{allSelected: true}, due) {
		t.Error("a report waits for ever")
	}
}

// Conditions without a cause are removed, and the known revision stays until the hub has read it.
func TestNextStatus(t *testing.T) {
	t.Parallel()
	before := &edgev2alpha1.EdgePlacementStatus{
		Conditions:      []metav1.Condition{{Type: edgev2alpha1.ConditionUpsyncDenied, Status: metav1.ConditionTrue}},
		Rollout:         &edgev2alpha1.RolloutStatus{Revision: &edgev2alpha1.RevisionReference{Revision: 3}},
		ObservedObjects: "before",
	}
	found := outcome{generation: 7, resolution: destinations(2)}
	counted := &placementCounts{selected: 1, placed: 2, synced: 2, healthy: 2, unobserved: true, rollout: &rolloutSummary{decided: true, counts: [4]int{0, 0, 2, 0}}}
	next := nextStatus(before, found, counted, nil)
	var present []string
	for _, condition := range next.Conditions {
		present = append(present, condition.Type)
		if condition.ObservedGeneration != 7 || condition.Status != metav1.ConditionTrue {
			t.Errorf("%+v", condition)
		}
	}
	slices.Sort(present)
	if want := []string{edgev2alpha1.ConditionHealthy, edgev2alpha1.ConditionReady, edgev2alpha1.ConditionRolledOut}; !slices.Equal(present, want) {
		t.Errorf("got the conditions %v, want %v", present, want)
	}
	want := edgev2alpha1.EdgePlacementStatus{
		SpecGeneration: 7, MatchingLocationCount: 1, Destinations: 2, Selected: 1, Placed: 2, Synced: 2, Healthy: 2, ObservedObjects: "before",
		Conditions: next.Conditions, Rollout: &edgev2alpha1.RolloutStatus{Succeeded: 2, Revision: before.Rollout.Revision},
	}
	if !apiequality.Semantic.DeepEqual(*next, want) {
		t.Errorf("%+v", next)
	}
	if len(before.Conditions) != 1 {
		t.Error("the cached status has changed")
	}
	counted.unobserved, counted.rollout.revision = false, &edgev2alpha1.RevisionReference{Revision: 4}
	if next := nextStatus(before, found, counted, []string{"florin"}); next.Rollout.Revision.Revision != 4 || next.ObservedObjects == "before" ||
		meta.FindStatusCondition(next.Conditions, edgev2alpha1.ConditionStoreWentBack) == nil {
		t.Errorf("%+v", next)
	}
}

func TestWithdrawingOutcome(t *testing.T) {
	t.Parallel()
	if message := withdrawing(7, summary{withdrawing: 3}, true).message; !strings.Contains(message, "Left to withdraw: 3 copies") || !strings.Contains(message, "Another placement") {
		t.Errorf("%s", message)
	}
}

// differing returns the difference of a field with an observed value.
func differing(observed string) *[]edgev2alpha1.FieldDifference {
	return &[]edgev2alpha1.FieldDifference{{Path: ".data.a", Managers: []string{"somebody"}, Desired: "0", Observed: observed}}
}

// A drifted copy fails in the status of its placement, with its fields, and stops no rollout.
func TestDriftedCopies(t *testing.T) {
	drifted := &syncStatus{synced: true, failure: &failure{plan.ReasonDrifted, "m"}, differences: differing("1"), health: health.Health{Status: health.Current}}
	counts := &placementCounts{}
	counts.addSyncStatus(pairKey{}, "florin", drifted)
	if counts.failed != 1 || counts.pending || len(counts.failures) != 1 || counts.failures[0].Reason != plan.ReasonDrifted || len(counts.failures[0].Differences) != 1 || len(counts.onClusters) != 1 {
		t.Errorf("%+v", counts)
	}
	if got := drifted.phase(); got != phaseSucceeded {
		t.Errorf("the phase is %d", got)
	}
	drifted.synced = false
	if got := drifted.phase(); got != phaseProgressing {
		t.Errorf("before the cluster has a change, the phase is %d", got)
	}
}
