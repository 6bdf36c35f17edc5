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
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
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
		outcome outcome
		tally   tally
		reason  string
	}{
		"it is invalid":                      {outcome{reason: ReasonInvalid, message: "spec.downsync[0]", resolution: destinations(1)}, tally{selected: 1, placed: 1}, ReasonInvalid},
		"no Location":                        {outcome{}, tally{selected: 1}, ReasonNoLocation},
		"a Location without SyncTargets":     {outcome{resolution: rules.Resolution{Locations: 1}}, tally{selected: 1}, ReasonNoSyncTarget},
		"no object":                          {outcome{resolution: destinations(2)}, tally{}, ReasonSelectsNothing},
		"one fails":                          {outcome{resolution: destinations(2)}, tally{selected: 3, placed: 5, failed: 1}, ReasonObjectsFailed},
		"one is on its way":                  {outcome{resolution: destinations(2)}, tally{selected: 3, placed: 5}, ReasonPending},
		"a mailbox is not there yet":         {outcome{resolution: destinations(2)}, tally{selected: 3, placed: 3}, ReasonPending},
		"all are placed at all destinations": {outcome{resolution: destinations(2)}, tally{selected: 3, placed: 6}, ReasonPlaced},
	} {
		ready := readyCondition(c.outcome, &c.tally)
		if ready.Reason != c.reason || ready.Message == "" || (ready.Status == "True") != (c.reason == ReasonPlaced) {
			t.Errorf("%s: %s %s: %s", name, ready.Status, ready.Reason, ready.Message)
		}
	}
}

// The status shows the same failures whatever the order in which pairs are counted.
func TestFailuresAreStable(t *testing.T) {
	failing := func(name string, mailboxes ...logicalcluster.Name) (objectKey, *object) {
		entry := &object{pairs: map[logicalcluster.Name]*pair{}}
		for _, mailbox := range mailboxes {
			entry.pairs[mailbox] = &pair{desired: true, failure: &Failure{Reason: ReasonConflict, Message: "taken"}}
		}
		return objectKey{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, types.NamespacedName{Namespace: "shop", Name: name}}, entry
	}
	placement := &placementInForce{mailboxes: map[logicalcluster.Name]rules.Destination{}}
	var all []logicalcluster.Name
	for i := range 7 {
		mailbox := logicalcluster.Name(fmt.Sprintf("m%d", i))
		placement.mailboxes[mailbox] = rules.Destination{SyncTarget: fleet.SyncTarget{Name: fmt.Sprintf("cluster-%d", i)}}
		all = append(all, mailbox)
	}
	var first []edgev2alpha1.PlacementFailure
	for round := range 20 {
		counted := &tally{}
		names := []string{"c", "a", "b"}
		for i := range names {
			key, entry := failing(names[(i+round)%len(names)], all...)
			counted.add(key, entry, placement)
		}
		if counted.failed != 21 || counted.selected != 3 || len(counted.failures) != edgev2alpha1.MaxFailures {
			t.Fatalf("%d failed of %d, %d told", counted.failed, counted.selected, len(counted.failures))
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
	found := outcome{notImplemented: []string{"spec.wantSingletonReportedState"}, missing: []string{"secrets"}, upsyncDenied: many}
	for condition, word := range map[string]string{
		notImplementedCondition(found).Message: "spec.wantSingletonReportedState", missingCondition(found).Message: "bind compute", upsyncCondition(found).Message: "30 destinations",
	} {
		if !strings.Contains(condition, word) || len(condition) > 1000 {
			t.Errorf("%q: %s", word, condition)
		}
	}
	for _, absent := range []string{notImplementedCondition(outcome{}).Reason, missingCondition(outcome{}).Reason, upsyncCondition(outcome{}).Reason} {
		if absent != "" {
			t.Errorf("a condition without cause: %s", absent)
		}
	}
}

// After a start, placements may be in force that were resolved by a view without all inventories. No status tells of them.
func TestStatusWaitsForACompleteView(t *testing.T) {
	w := &workspace{objects: map[objectKey]*object{}}
	if _, known := w.summarize(); known {
		t.Error("before anything is resolved")
	}
	for _, seen := range []bool{false, true} {
		w.placements = &placements{fleetSeen: seen}
		if _, known := w.summarize(); known != seen {
			t.Errorf("view complete: %v, known: %v", seen, known)
		}
	}
}
