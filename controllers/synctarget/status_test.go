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

package synctarget

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// A heartbeat carries the version, the counts, the first failures by name, and the time of the oldest pending change.
func TestStatusTellsOfTheObjects(t *testing.T) {
	sum := objectsync.Summary{Synced: 7, Failed: 30, Former: 2, PendingSince: noon}
	for i := range sum.Failed {
		sum.Failures = append(sum.Failures, objectsync.ObjectFailure{
			Resource: plan.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}},
			Key:      types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("x%02d", sum.Failed-1-i)},
			Failure:  objectsync.Failure{Reason: plan.ReasonConflict, Message: "it is taken"},
		})
	}
	syncTarget := &edgev2alpha1.SyncTarget{}
	now := statusView{now: noon, Status: syncmanager.Status{ConfigsKnown: true}, observedState: observedState{mailbox: "m"}, health: targets.Health{Up: true, Reason: targets.ReasonConnected, Version: "v1.35.4", LastSeen: noon}, countObjects: func() (objectsync.Summary, bool) { return sum, true }}
	now.apply(syncTarget, &syncTargetState{})
	status := syncTarget.Status
	if status.Versions == nil || status.Versions.Kubernetes != "v1.35.4" || !status.PendingSince.Time.Equal(noon) {
		t.Errorf("got %+v", status)
	}
	if want := (edgev2alpha1.TargetCounts{Synced: 7, Failed: 30, Former: 2}); status.Counts == nil || *status.Counts != want {
		t.Errorf("the counts are %+v, want %+v", status.Counts, want)
	}
	var names []string
	for _, failure := range status.Failures {
		names = append(names, failure.Name)
	}
	if len(names) != edgev2alpha1.MaxTargetFailures || names[0] != "x00" || !slices.IsSorted(names) {
		t.Errorf("the failures are %v", names)
	}
	want := edgev2alpha1.ObjectFailure{Resource: "configmaps", Namespace: "shop", Name: "x00", Reason: plan.ReasonConflict, Message: "it is taken"}
	if !reflect.DeepEqual(status.Failures[0], want) {
		t.Errorf("got %+v, want %+v", status.Failures[0], want)
	}

	sum, now.now = objectsync.Summary{Synced: 37}, noon.Add(heartbeatInterval)
	now.health.LastSeen = now.now
	now.apply(syncTarget, &syncTargetState{})
	if got := syncTarget.Status; len(got.Failures) > 0 || got.PendingSince != nil || got.Counts.Failed != 0 {
		t.Errorf("later: got %+v", got)
	}
}

func TestSuspendedIsACondition(t *testing.T) {
	syncTarget := &edgev2alpha1.SyncTarget{}
	for _, suspend := range []bool{false, true, true, false} {
		syncTarget.Spec.Suspend = suspend
		(statusView{now: noon, health: up}).apply(syncTarget, &syncTargetState{})
		if got := meta.IsStatusConditionTrue(syncTarget.Status.Conditions, edgev2alpha1.ConditionSuspended); got != suspend {
			t.Errorf("suspend is %v, the condition %v", suspend, got)
		}
	}
}

// If a mailbox was bound again, the status contains why the hub removes nothing, and how a user can end that.
func TestReboundMailbox(t *testing.T) {
	syncTarget := &edgev2alpha1.SyncTarget{}
	// The status must not make a user delete another workspace.
	syncTarget.Status.Mailbox = &edgev2alpha1.MailboxStatus{Workspace: "root:synchub:others"}
	for i, rebound := range []bool{false, true, false} {
		(statusView{now: noon.Add(time.Duration(i) * time.Hour), health: up, Status: syncmanager.Status{ConfigsKnown: true, Rebound: rebound}, observedState: observedState{mailbox: "m", mailboxPath: "root:synchub:one"}}).apply(syncTarget, &syncTargetState{})
		syncer := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionSyncerReady)
		if got := strings.Contains(syncer.Message, "delete the workspace root:synchub:one"); got != rebound || got != (syncer.Reason == ReasonMailboxRebound) || syncer.Status != metav1.ConditionTrue {
			t.Errorf("%v: got %+v", rebound, syncer)
		}
	}
}

// Objects that kcp hides after a rejected claim are reported, with the remedy, for as long as they are hidden.
func TestHiddenObjects(t *testing.T) {
	syncTarget := &edgev2alpha1.SyncTarget{}
	for i, count := range []int{0, 2, 0} {
		hidden := absence.HiddenObjects{Count: count}
		if count > 0 {
			hidden.Example = absence.Candidate{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Key: types.NamespacedName{Namespace: "shop", Name: "till"}}
		}
		(statusView{now: noon.Add(time.Duration(i) * time.Hour), health: up, Status: syncmanager.Status{ConfigsKnown: true, Hidden: hidden}, observedState: observedState{mailbox: "m"}}).apply(syncTarget, &syncTargetState{})
		syncer := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionSyncerReady)
		want := "kcp does not show it 2 objects that are there, such as deployments.apps shop/till"
		if got := strings.Contains(syncer.Message, want); got != (count > 0) || got != (syncer.Reason == ReasonObjectsHidden) || syncer.Status != metav1.ConditionTrue {
			t.Errorf("%d: got %+v", count, syncer)
		}
	}
}

// A mailbox over its limits is reported at once. The numbers change only with heartbeats.
func TestMailboxLimitExceeded(t *testing.T) {
	syncTarget := &edgev2alpha1.SyncTarget{}
	for _, step := range []struct {
		beyond, reason string
		beats          bool
		want           string
	}{
		{"", "", false, ""},
		{"one", "Mailbox", false, "one"},
		{"two", "Mailbox", false, "one"},
		{"three", "Mailbox", true, "three"},
		{"four", "Resource", false, "four"},
		{"", "", false, ""},
	} {
		statusView{Status: syncmanager.Status{BeyondLimits: step.beyond, BeyondLimitsReason: step.reason}}.setMailboxLimitCondition(syncTarget, step.beats)
		got := ""
		if condition := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionMailboxLimitExceeded); condition != nil {
			got = condition.Message
			if condition.Reason != step.reason {
				t.Errorf("%+v: the reason is %s", step, condition.Reason)
			}
		}
		if got != step.want {
			t.Errorf("%+v: the condition is %q", step, got)
		}
	}
}

// A condition that restartGrace keeps also keeps its observedGeneration, since this replica has not tried the new spec.
func TestRestartGraceKeepsTheGeneration(t *testing.T) {
	l := newStatusSimulation()
	l.run(2*time.Minute, l.probeSucceeded)
	l.restart()
	l.Generation++
	l.view.health = connecting
	l.view.apply(l.SyncTarget, l.state)
	for _, kind := range []string{edgev2alpha1.ConditionReady, edgev2alpha1.ConditionHeartbeatHealthy, edgev2alpha1.ConditionSyncerReady} {
		if got := meta.FindStatusCondition(l.Status.Conditions, kind); got.Status != metav1.ConditionTrue || got.ObservedGeneration != l.Generation-1 {
			t.Errorf("%s is %s of generation %d, want %d", kind, formatCondition(*got), got.ObservedGeneration, l.Generation-1)
		}
	}
	l.probeSucceeded()
	l.view.apply(l.SyncTarget, l.state)
	if got := meta.FindStatusCondition(l.Status.Conditions, edgev2alpha1.ConditionReady); got.ObservedGeneration != l.Generation {
		t.Errorf("Ready is of generation %d", got.ObservedGeneration)
	}
}

// While nothing is synced the heartbeat continues without counts: old counts must not look current.
func TestNothingIsCountedWhileNothingIsSynced(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*edgev2alpha1.SyncTarget, *statusView)
		counts bool
		halt   string
	}{
		"synced":      {func(*edgev2alpha1.SyncTarget, *statusView) {}, true, ""},
		"suspended":   {func(s *edgev2alpha1.SyncTarget, _ *statusView) { s.Spec.Suspend = true }, false, ReasonSuspended},
		"drained":     {func(s *edgev2alpha1.SyncTarget, _ *statusView) { s.Spec.Drain = true }, false, ReasonDraining},
		"shared":      {func(_ *edgev2alpha1.SyncTarget, v *statusView) { v.conflictingTarget = &clusterIdentity{} }, false, ReasonSharedCluster},
		"unreachable": {func(_ *edgev2alpha1.SyncTarget, v *statusView) { v.health = unreachable }, true, targets.ReasonUnreachable},
		"too much":    {func(_ *edgev2alpha1.SyncTarget, v *statusView) { v.Evicted = true }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			syncTarget := &edgev2alpha1.SyncTarget{}
			now := statusView{now: noon, health: up, Status: syncmanager.Status{ConfigsKnown: true}, observedState: observedState{mailbox: "m"}, countObjects: func() (objectsync.Summary, bool) { return objectsync.Summary{Synced: 7, PendingSince: noon}, true }}
			now.apply(syncTarget, &syncTargetState{})
			now.countObjects = func() (objectsync.Summary, bool) { return objectsync.Summary{}, false }
			test.change(syncTarget, &now)
			now.apply(syncTarget, &syncTargetState{})
			if got := syncTarget.Status.Counts != nil; got != test.counts || got != (syncTarget.Status.PendingSince != nil) {
				t.Errorf("got %+v", syncTarget.Status)
			}
			syncer := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionSyncerReady)
			if got := notSyncedOf(syncTarget, "m"); got.Reason != test.halt || (syncer.Status == metav1.ConditionTrue) != (name == "synced") {
				t.Errorf("got %+v with %s", got, formatCondition(*syncer))
			}
			if got := notSyncedOf(syncTarget, ""); got.Reason != "" {
				t.Errorf("without a mailbox: got %+v", got)
			}
		})
	}
}

// A reconcile repairs every field of the status that a user has forged.
func TestAForgedStatusIsPutRight(t *testing.T) {
	forged := edgev2alpha1.SyncTargetStatus{
		Allocatable: &corev1.ResourceList{"cpu": resource.MustParse("1")}, Capacity: &corev1.ResourceList{"cpu": resource.MustParse("1")}, //nolint:staticcheck // deprecated, and forged
		Conditions: []metav1.Condition{
			{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Forged", ObservedGeneration: 99, LastTransitionTime: metav1.NewTime(noon.Add(time.Hour))},
			{Type: edgev2alpha1.ConditionSyncerReady, Status: metav1.ConditionTrue, Reason: ReasonSyncing, Message: "forged", LastTransitionTime: metav1.NewTime(noon)},
			{Type: edgev2alpha1.ConditionSyncerAuthorized, Status: metav1.ConditionTrue, Reason: ReasonAuthorized, ObservedGeneration: 99, LastTransitionTime: metav1.NewTime(noon)},
			{Type: edgev2alpha1.ConditionDrained, Status: metav1.ConditionTrue, Reason: ReasonDrained, LastTransitionTime: metav1.NewTime(noon)},
			{Type: edgev2alpha1.ConditionSuspended, Status: metav1.ConditionTrue, Reason: ReasonSuspended, LastTransitionTime: metav1.NewTime(noon)},
			{Type: edgev2alpha1.ConditionClusterShared, Status: metav1.ConditionTrue, Reason: ReasonOtherInventory, LastTransitionTime: metav1.NewTime(noon)},
			{Type: edgev2alpha1.ConditionMailboxLimitExceeded, Status: metav1.ConditionTrue, Reason: "Forged", LastTransitionTime: metav1.NewTime(noon)},
			{Type: edgev2alpha1.ConditionAPIsMissing, Status: metav1.ConditionTrue, Reason: "Forged", LastTransitionTime: metav1.NewTime(noon)},
			{Type: edgev2alpha1.ConditionStoreWentBack, Status: metav1.ConditionTrue, Reason: "Forged", LastTransitionTime: metav1.NewTime(noon)},
			{Type: edgev2alpha1.ConditionTunnelRefused, Status: metav1.ConditionTrue, Reason: "Forged", LastTransitionTime: metav1.NewTime(noon)},
		},
		Tunnel:                  &edgev2alpha1.TunnelStatus{URL: "https://mallory.example"},
		StoreWentBack:           &edgev2alpha1.StoreWentBackStatus{ID: "forged", DetectedAt: metav1.NewTime(noon), Removals: 9},
		SyncedResources:         []edgev2alpha1.SyncedResource{{Group: "*", Resource: "*", IdentityHash: "x"}},
		LastSyncerHeartbeatTime: &metav1.Time{Time: noon.Add(1000 * time.Hour)},
		VirtualWorkspaces:       []edgev2alpha1.VirtualWorkspace{{SyncerURL: "https://mallory.example"}}, //nolint:staticcheck // deprecated, and forged
		Versions:                &edgev2alpha1.TargetVersions{Kubernetes: "v0"},
		ClusterID:               "victim", ObservedClusterID: "victim",
		FormerClusters: []edgev2alpha1.FormerCluster{{ClusterID: "victim"}},
		Counts:         &edgev2alpha1.TargetCounts{Synced: 99}, Failures: []edgev2alpha1.ObjectFailure{{Name: "x"}}, PendingSince: &metav1.Time{Time: noon},
		Credentials: &edgev2alpha1.CredentialsStatus{ExpiresAt: &metav1.Time{Time: noon}, RenewedAt: &metav1.Time{Time: noon.Add(time.Hour)}, TokenHash: "forged"},
		Cleanup:     &edgev2alpha1.CleanupStatus{Removed: 99},
	}
	// The mailbox controller writes the field mailbox, and each write the fields hub and hubVersion.
	fields := reflect.ValueOf(forged)
	for i := range fields.NumField() {
		if name := fields.Type().Field(i).Name; fields.Field(i).IsZero() && name != "Mailbox" && name != "Hub" && name != "HubVersion" {
			t.Errorf("the test forges no %s", name)
		}
	}
	now := statusView{
		now: noon, Status: syncmanager.Status{ConfigsKnown: true, MissingAPIsKnown: true}, observedState: observedState{mailbox: "m"},
		health: targets.Health{Up: true, Reason: targets.ReasonConnected, Version: "v1.35.4", LastSeen: noon},
		token:  kubeconfig.Token{ExpiresAt: noon.Add(24 * time.Hour)}, hasToken: true,
		countObjects: func() (objectsync.Summary, bool) { return objectsync.Summary{Synced: 1}, true },
	}
	known := ledger.Entry{Cluster: ledger.Cluster{ID: "c"}, Resources: []ledger.Resource{{GroupResource: metav1.GroupResource{Resource: "secrets"}, Direct: true, State: "Accepted"}}}
	reconcile := func(status edgev2alpha1.SyncTargetStatus) edgev2alpha1.SyncTargetStatus {
		syncTarget := &edgev2alpha1.SyncTarget{Status: status}
		// A changed message alone may wait for a minute.
		now.apply(syncTarget, &syncTargetState{})
		now.setLedgerStatus(syncTarget, known, nil)
		for i := range syncTarget.Status.Conditions {
			syncTarget.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		slices.SortFunc(syncTarget.Status.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
		return syncTarget.Status
	}
	if got, want := reconcile(forged), reconcile(edgev2alpha1.SyncTargetStatus{}); !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("want %+v\ngot  %+v", want, got)
	}
}

// A heartbeat waits until the objects are counted. When it cannot wait longer, it is written without counts.
func TestTheHeartbeatWaitsForTheCounts(t *testing.T) {
	counts := false
	syncTarget := &edgev2alpha1.SyncTarget{}
	syncTarget.Status.LastSyncerHeartbeatTime = &metav1.Time{Time: noon}
	syncTarget.Status.Counts = &edgev2alpha1.TargetCounts{Synced: 3}
	now := statusView{health: up, Status: syncmanager.Status{ConfigsKnown: true}, observedState: observedState{mailbox: "m"}, countObjects: func() (objectsync.Summary, bool) { return objectsync.Summary{Synced: 7}, counts }}
	for _, step := range []struct {
		after  time.Duration
		counts bool
		beats  bool
		want   int32 // -1 for none
	}{
		{after: 70 * time.Second, want: 3}, {after: 75 * time.Second, counts: true, beats: true, want: 7},
		{after: 140 * time.Second, want: 7}, {after: 165 * time.Second, beats: true, want: -1}, {after: 230 * time.Second, counts: true, beats: true, want: 7},
	} {
		counts, now.now = step.counts, noon.Add(step.after)
		now.health.LastSeen = now.now
		requeueAfter := now.apply(syncTarget, &syncTargetState{since: noon.Add(-time.Hour)})
		got := int32(-1)
		if syncTarget.Status.Counts != nil {
			got = syncTarget.Status.Counts.Synced
		}
		if beats := syncTarget.Status.LastSyncerHeartbeatTime.Time.Equal(now.now); beats != step.beats || got != step.want {
			t.Errorf("after %s: a heartbeat: %v, counted %d, want %+v", step.after, beats, got, step)
		} else if !beats && (requeueAfter <= 0 || requeueAfter > countRetryInterval) {
			t.Errorf("after %s it is tried again in %s", step.after, requeueAfter)
		}
	}
}
