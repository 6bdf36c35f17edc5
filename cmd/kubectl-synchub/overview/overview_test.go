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

package overview_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// syncTarget returns a SyncTarget with a heartbeat of the given age and the given condition Ready.
func syncTarget(name string, age time.Duration, ready metav1.ConditionStatus, reason string, change func(*edgev2alpha1.SyncTarget)) *edgev2alpha1.SyncTarget {
	made := &edgev2alpha1.SyncTarget{}
	made.Name, made.CreationTimestamp = name, metav1.NewTime(now.Add(-48*time.Hour))
	made.Status.LastSyncerHeartbeatTime = &metav1.Time{Time: now.Add(-age)}
	made.Status.Conditions = []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: ready, Reason: reason, Message: "message of " + name}}
	made.Status.Counts = &edgev2alpha1.TargetCounts{Synced: 12}
	made.Status.Versions = &edgev2alpha1.TargetVersions{Kubernetes: "v1.35.4"}
	if change != nil {
		change(made)
	}
	return made
}

// A change of a Ready SyncTarget may have been synced since the hub has counted, so only the lag at that time is known.
func TestLag(t *testing.T) {
	pending := func(s *edgev2alpha1.SyncTarget) {
		s.Status.PendingSince = &metav1.Time{Time: now.Add(-40 * time.Second)}
	}
	for ready, want := range map[metav1.ConditionStatus]time.Duration{"True": 10 * time.Second, "False": 40 * time.Second, "Unknown": 40 * time.Second} {
		if got := overview.RowOf(syncTarget("a", 30*time.Second, ready, "Reason", pending), now).Lag; got != want {
			t.Errorf("Ready %s: the lag is %v, want %v", ready, got, want)
		}
	}
	if got := overview.RowOf(syncTarget("a", 50*time.Second, "True", "Ready", pending), now).Lag; got != 0 {
		t.Errorf("a change after the count: the lag is %v", got)
	}
}

func TestRowOf(t *testing.T) {
	for name, test := range map[string]struct {
		of            *edgev2alpha1.SyncTarget
		state, reason string
		well          bool
	}{
		"all is well": {syncTarget("a", time.Minute, "True", "Ready", nil), "True", "Ready", true},
		"no hub has seen it": {
			&edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, "Unknown", overview.ReasonHubSilent, false},
		"green from long ago":     {syncTarget("a", time.Hour, "True", "Ready", nil), "Unknown", overview.ReasonHubSilent, false},
		"red from long ago":       {syncTarget("a", time.Hour, "False", "TargetUnreachable", nil), "False", "TargetUnreachable", false},
		"another cluster answers": {syncTarget("a", 0, "False", "ClusterChanged", func(s *edgev2alpha1.SyncTarget) { s.Status.ObservedClusterID = "b" }), "False", "ClusterChanged", false},
		"something fails":         {syncTarget("a", 0, "True", "Ready", func(s *edgev2alpha1.SyncTarget) { s.Status.Counts.Failed = 1 }), "True", "Ready", false},
		"something does not fit": {syncTarget("a", 0, "True", "Ready", func(s *edgev2alpha1.SyncTarget) {
			s.Status.SyncedResources = []edgev2alpha1.SyncedResource{{Resource: "widgets", State: edgev2alpha1.SyncedResourceIncompatible}}
		}), "True", "Ready", false},
		"a right is missing": {syncTarget("a", 0, "True", "Ready", func(s *edgev2alpha1.SyncTarget) {
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: edgev2alpha1.ConditionSyncerAuthorized, Status: "False", Reason: "MissingPermissions"})
		}), "True", "Ready", false},
		"a right may be missing": {syncTarget("a", 0, "True", "Ready", func(s *edgev2alpha1.SyncTarget) {
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: edgev2alpha1.ConditionSyncerAuthorized, Status: "Unknown", Reason: "UnknownPermissions"})
		}), "True", "Ready", true},
		"a mailbox is too large": {syncTarget("a", 0, "True", "Ready", func(s *edgev2alpha1.SyncTarget) {
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: edgev2alpha1.ConditionMailboxLimitExceeded, Status: "True", Reason: "MailboxLimitExceeded"})
		}), "True", "Ready", false},
		"cordoned":  {syncTarget("a", 0, "True", "Ready", func(s *edgev2alpha1.SyncTarget) { s.Spec.Unschedulable = true }), "True,Cordoned", "Ready", true},
		"suspended": {syncTarget("a", 0, "False", "Suspended", func(s *edgev2alpha1.SyncTarget) { s.Spec.Suspend = true }), "False,Suspended", "Suspended", false},
		"being drained": {syncTarget("a", 0, "False", "Draining", func(s *edgev2alpha1.SyncTarget) {
			s.Spec.Drain, s.Spec.Unschedulable = true, true
		}), "False,Draining", "Draining", false},
		"drained": {syncTarget("a", 0, "False", "Draining", func(s *edgev2alpha1.SyncTarget) {
			s.Spec.Drain = true
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: edgev2alpha1.ConditionDrained, Status: "True"})
		}), "False,Drained", "Draining", false},
		"being deleted": {syncTarget("a", 0, "False", "CleaningUp", func(s *edgev2alpha1.SyncTarget) { s.DeletionTimestamp = &metav1.Time{Time: now} }), "False,Deleting", "CleaningUp", false},
	} {
		t.Run(name, func(t *testing.T) {
			row := overview.RowOf(test.of, now)
			if row.State() != test.state || row.Reason != test.reason || row.IsHealthy() != test.well {
				t.Errorf("got %q because of %q, well: %v", row.State(), row.Reason, row.IsHealthy())
			}
		})
	}
}

// rows returns a fleet with all kinds of clusters, sorted by name.
func rows() []overview.Row {
	failing := func(count int32) func(*edgev2alpha1.SyncTarget) {
		return func(s *edgev2alpha1.SyncTarget) { s.Status.Counts.Failed = count }
	}
	waiting := func(since time.Duration) func(*edgev2alpha1.SyncTarget) {
		return func(s *edgev2alpha1.SyncTarget) { s.Status.PendingSince = &metav1.Time{Time: now.Add(-since)} }
	}
	var all []overview.Row
	for _, one := range []*edgev2alpha1.SyncTarget{
		syncTarget("down", time.Hour, "False", "TargetUnreachable", nil),
		syncTarget("failing-much", 0, "True", "Ready", failing(7)),
		syncTarget("failing-some", 0, "True", "Ready", failing(2)),
		syncTarget("late", 0, "True", "Ready", waiting(90*time.Second)),
		syncTarget("silent", time.Hour, "True", "Ready", nil),
		syncTarget("suspended", 0, "False", "Suspended", func(s *edgev2alpha1.SyncTarget) { s.Spec.Suspend = true }),
		syncTarget("well", 10*time.Second, "True", "Ready", nil),
	} {
		all = append(all, overview.RowOf(one, now))
	}
	return all
}

func TestSortWorstFirst(t *testing.T) {
	want := []string{"down", "silent", "suspended", "failing-much", "failing-some", "late", "well"}
	for range 20 {
		all := rows()
		slices.Reverse(all)
		overview.SortWorstFirst(all)
		var got []string
		for _, row := range all {
			got = append(got, row.Name)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestTable(t *testing.T) {
	table := overview.Table(rows(), now)
	for _, row := range table.Rows {
		if len(row.Cells) != len(table.ColumnDefinitions) {
			t.Errorf("a row has %d cells for %d columns", len(row.Cells), len(table.ColumnDefinitions))
		}
	}
	got := table.Rows[3].Cells
	want := []any{"late", "True", "12", "0", "90s", "v1.35.4", "0s", "2d", "Direct", "<none>", "<none>", "Ready"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	nobody := overview.Table([]overview.Row{overview.RowOf(&edgev2alpha1.SyncTarget{}, now)}, now).Rows[0].Cells
	for i, want := range map[int]any{2: "<none>", 3: "<none>", 4: "<none>", 5: "<none>", 6: "<none>", 7: "<none>"} {
		if nobody[i] != want {
			t.Errorf("column %d of a SyncTarget that nobody has seen is %v, want %v", i, nobody[i], want)
		}
	}
	// For an unreachable cluster it is unknown whether a change is pending, unless one already was.
	away := syncTarget("away", time.Minute, "False", "TargetUnreachable", nil)
	for _, want := range []string{"<none>", "30s"} {
		if got := overview.Table([]overview.Row{overview.RowOf(away, now)}, now).Rows[0].Cells[4]; got != want {
			t.Errorf("the lag of a cluster that is away is %v, want %v", got, want)
		}
		away.Status.PendingSince = &metav1.Time{Time: now.Add(-30 * time.Second)}
	}
}

func TestSummary(t *testing.T) {
	want := "7 clusters: 4 ready, 1 not ready, 1 unknown, 1 set aside. 84 objects synced, 9 failed, counted up to 10s ago. The oldest pending change waited for 90s."
	if got := overview.Summary(rows(), now); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	of := func(hubs ...string) string {
		var divided []overview.Row
		for _, hub := range hubs {
			divided = append(divided, overview.Row{Hub: hub})
		}
		return overview.Summary(divided, now)
	}
	if got := of("a", "a", ""); strings.Contains(got, "replica") {
		t.Errorf("of one replica: %s", got)
	}
	if got := of("b", "a", "b", ""); !strings.HasSuffix(got, " By replica of the hub: a 1, b 2.") {
		t.Errorf("of two replicas: %s", got)
	}
	if got := overview.Summary(nil, now); !strings.HasPrefix(got, "0 clusters: 0 ready. 0 objects") {
		t.Errorf("of no cluster: %s", got)
	}
}
