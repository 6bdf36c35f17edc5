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
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/targets"
)

var (
	connecting   = targets.Health{Reason: targets.ReasonConnecting, Message: "not yet"}
	up           = targets.Health{Up: true, Reason: targets.ReasonConnected, Message: "it answers"}
	unreachable  = targets.Health{Reason: targets.ReasonUnreachable, Message: "refused"}
	unauthorized = targets.Health{Reason: targets.ReasonUnauthorized, Message: "expired"}
	missing      = &blocker{ReasonCredentialsMissing, "no Secret"}
)

// formatCondition returns status, reason and message of a condition.
func formatCondition(condition metav1.Condition) string {
	return string(condition.Status) + " " + condition.Reason + ": " + condition.Message
}

func TestConditions(t *testing.T) {
	const (
		noMailbox = "False MailboxNotReady: The mailbox workspace is not ready."
		paused    = "False Suspended: Nothing is synced while spec.suspend is true."
		syncing   = "True Syncing: The hub syncs the target with its mailbox; status.counts and status.failures show the progress."
		ready     = "True Ready: The hub syncs the target with its mailbox."
	)
	for name, test := range map[string]struct {
		// mailbox is the status of the condition MailboxReady, empty if there is none. where is false while the status does not
		// name the mailbox.
		mailbox                  metav1.ConditionStatus
		where, suspended         bool
		health                   targets.Health
		problem                  *blocker
		known                    bool
		heartbeat, syncer, ready string
	}{
		"all is well": {
			mailbox: "True", where: true, health: up, known: true,
			heartbeat: "True Connected: it answers", syncer: syncing, ready: ready,
		},
		"new, without a mailbox": {
			health:    connecting,
			heartbeat: "Unknown Connecting: not yet", syncer: noMailbox, ready: "Unknown Connecting: not yet",
		},
		"connecting": {
			mailbox: "True", where: true, health: connecting,
			heartbeat: "Unknown Connecting: not yet", syncer: "Unknown Connecting: not yet", ready: "Unknown Connecting: not yet",
		},
		"up, without a mailbox": {
			health:    up,
			heartbeat: "True Connected: it answers", syncer: noMailbox, ready: noMailbox,
		},
		"up, the mailbox is being made": {
			mailbox: "False", health: up,
			heartbeat: "True Connected: it answers", syncer: noMailbox, ready: noMailbox,
		},
		"up, the mailbox is not ready any more": {
			mailbox: "False", where: true, health: up, known: true,
			heartbeat: "True Connected: it answers", syncer: syncing, ready: noMailbox,
		},
		"up, the mailbox was never reported": {
			where: true, health: up, known: true,
			heartbeat: "True Connected: it answers", syncer: syncing, ready: noMailbox,
		},
		"up, the mailbox was not read yet": {
			mailbox: "True", where: true, health: up,
			heartbeat: "True Connected: it answers", syncer: "False Starting: The hub has not read the mailbox yet.", ready: "False Starting: The hub has not read the mailbox yet.",
		},
		"unreachable": {
			mailbox: "True", where: true, health: unreachable, known: true,
			heartbeat: "False TargetUnreachable: refused", syncer: "False TargetUnreachable: refused", ready: "False TargetUnreachable: refused",
		},
		"unauthorized": {
			mailbox: "True", where: true, health: unauthorized, known: true,
			heartbeat: "False Unauthorized: expired", syncer: "False Unauthorized: expired", ready: "False Unauthorized: expired",
		},
		"without credentials": {
			mailbox: "True", where: true, problem: missing,
			heartbeat: "Unknown CredentialsMissing: no Secret", syncer: "Unknown CredentialsMissing: no Secret", ready: "Unknown CredentialsMissing: no Secret",
		},
		"with credentials that are refused": {
			mailbox: "True", where: true, problem: &blocker{ReasonCredentialsRefused, "a program"},
			heartbeat: "Unknown CredentialsRefused: a program", syncer: "False CredentialsRefused: a program", ready: "Unknown CredentialsRefused: a program",
		},
		"without anything": {
			problem:   missing,
			heartbeat: "Unknown CredentialsMissing: no Secret", syncer: noMailbox, ready: "Unknown CredentialsMissing: no Secret",
		},
		"suspended": {
			mailbox: "True", where: true, suspended: true, health: up,
			heartbeat: "True Connected: it answers", syncer: paused, ready: paused,
		},
		"suspended and unreachable": {
			mailbox: "True", where: true, suspended: true, health: unreachable,
			heartbeat: "False TargetUnreachable: refused", syncer: paused, ready: "False TargetUnreachable: refused",
		},
		"suspended, without a mailbox": {
			suspended: true, health: up,
			heartbeat: "True Connected: it answers", syncer: paused, ready: paused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			syncTarget := &edgev2alpha1.SyncTarget{}
			syncTarget.Spec.Suspend = test.suspended
			if test.mailbox != "" {
				syncTarget.Status.Conditions = []metav1.Condition{{Type: edgev2alpha1.ConditionMailboxReady, Status: test.mailbox, Reason: "R"}}
			}
			view := statusView{observedState: observedState{problem: test.problem}, Status: syncmanager.Status{ConfigsKnown: test.known}}
			if test.where {
				view.mailbox = "c"
			}
			heartbeat := heartbeatCondition(test.health, test.problem)
			syncer := syncerReadyCondition(syncTarget, view, test.health)
			for _, check := range []struct {
				condition           metav1.Condition
				conditionType, want string
			}{
				{heartbeat, edgev2alpha1.ConditionHeartbeatHealthy, test.heartbeat},
				{syncer, edgev2alpha1.ConditionSyncerReady, test.syncer},
				{readyCondition(syncTarget, heartbeat, syncer), edgev2alpha1.ConditionReady, test.ready},
			} {
				if got := formatCondition(check.condition); check.condition.Type != check.conditionType || got != check.want {
					t.Errorf("%s: want %s\ngot  %s: %s", check.conditionType, check.want, check.condition.Type, got)
				}
			}
		})
	}
}

func TestAdvanceHeartbeat(t *testing.T) {
	seen := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	ago := func(age time.Duration) *metav1.Time { return &metav1.Time{Time: seen.Add(-age)} }
	for name, test := range map[string]struct {
		last *metav1.Time
		// first is when the first heartbeat of this replica is due, from now.
		first time.Duration
		// written is true if the heartbeat is written. next is when the next one is due.
		written bool
		next    time.Duration
	}{
		"the first":                              {nil, 0, true, time.Minute},
		"the same again":                         {ago(0), 0, false, time.Minute},
		"a while later":                          {ago(20 * time.Second), 0, false, 40 * time.Second},
		"just before a minute":                   {ago(time.Minute - time.Millisecond), 0, false, time.Second},
		"after a minute":                         {ago(time.Minute), 0, true, time.Minute},
		"after a day":                            {ago(24 * time.Hour), 0, true, time.Minute},
		"another replica's clock was far ahead":  {ago(-time.Hour), 0, true, time.Minute},
		"another replica's clock was just ahead": {ago(-time.Second), 0, true, time.Minute},
		"the first of this hub is due later":     {ago(time.Hour), 20 * time.Second, false, 20 * time.Second},
		"there was none before this hub's":       {nil, 20 * time.Second, true, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			status := &edgev2alpha1.SyncTargetStatus{LastSyncerHeartbeatTime: test.last.DeepCopy()}
			want := test.last
			if test.written {
				want = &metav1.Time{Time: seen}
			}
			next := advanceHeartbeat(status, targets.Health{Up: true, LastSeen: seen}, seen.Add(test.first), seen)
			if next != test.next || !status.LastSyncerHeartbeatTime.Equal(want) {
				t.Errorf("want %v and the next after %v\ngot  %v and the next after %v", want, test.next, status.LastSyncerHeartbeatTime, next)
			}
		})
	}
}
