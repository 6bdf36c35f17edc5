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

package explain_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
)

var targetCases = map[string]testCase{
	"all is well": {
		change: func(*testing.T, *explain.Facts) {}, state: explain.OK, onTarget: explain.Present,
		texts: []string{"web is on florin, in sync with the mailbox", "selected by SyncerConfig/all spec.namespaceScope.resources[0]", "shows the cluster's status"},
	},
	"suspended": {
		change: func(_ *testing.T, f *explain.Facts) { spec(f).Suspend = true },
		step:   explain.StepSyncTarget, state: explain.Stopped, reason: "Suspended", texts: []string{"web is on florin: ", "synchub resume florin"},
	},
	"drained": {
		change: func(_ *testing.T, f *explain.Facts) { spec(f).Drain, f.Target.Value = true, nil },
		step:   explain.StepSyncTarget, state: explain.Stopped, reason: "Draining", onTarget: explain.Absent, texts: []string{"web is not on florin: ", "synchub uncordon florin"},
	},
	"deleted, and what was placed with it": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.SyncTarget.DeletionTimestamp = &metav1.Time{Time: now}
			spec(f).DeletionPolicy = edgev2alpha1.DeletionPolicyDelete
		},
		step: explain.StepSyncTarget, state: explain.Stopped, reason: "Deleting", texts: []string{"together with the hub's objects on the cluster"},
	},
	"deleted, and what was placed stays": {
		change: func(_ *testing.T, f *explain.Facts) { f.SyncTarget.DeletionTimestamp = &metav1.Time{Time: now} },
		step:   explain.StepSyncTarget, state: explain.Stopped, reason: "Deleting", texts: []string{"stay on the cluster"},
	},
	"cordoned, and there already": {
		change: func(_ *testing.T, f *explain.Facts) { spec(f).Unschedulable = true }, state: explain.OK, texts: []string{"cordoned"},
	},
	"cordoned, and not there": {
		change: func(_ *testing.T, f *explain.Facts) { spec(f).Unschedulable, f.Target.Value = true, nil },
		step:   explain.StepTarget, state: explain.Stopped, reason: "TargetCordoned", texts: []string{"synchub uncordon florin"},
	},
	"unreachable": {
		change: func(_ *testing.T, f *explain.Facts) {
			setCondition(status(f), edgev2alpha1.ConditionReady, metav1.ConditionFalse, "TargetUnreachable", "It does not answer.")
			setCondition(status(f), edgev2alpha1.ConditionHeartbeatHealthy, metav1.ConditionFalse, "TargetUnreachable", "It does not answer.")
		},
		step: explain.StepConnection, state: explain.Stopped, reason: "TargetUnreachable", texts: []string{"It does not answer"},
	},
	"just connecting": {
		change: func(_ *testing.T, f *explain.Facts) {
			setCondition(status(f), edgev2alpha1.ConditionHeartbeatHealthy, metav1.ConditionUnknown, "Connecting", "The hub connects.")
		},
		step: explain.StepConnection, state: explain.Waiting, reason: "Connecting",
	},
	"another SyncTarget of the cluster": {
		change: func(_ *testing.T, f *explain.Facts) {
			setCondition(status(f), edgev2alpha1.ConditionSyncerReady, metav1.ConditionFalse, "SharedCluster", "guilder is the same cluster.")
		},
		step: explain.StepConnection, state: explain.Stopped, reason: "SharedCluster",
	},
	"no hub runs": {
		change: func(_ *testing.T, f *explain.Facts) {
			status(f).LastSyncerHeartbeatTime = &metav1.Time{Time: now.Add(-time.Hour)}
			f.Target.Value = nil
		},
		step: explain.StepTarget, state: explain.Waiting, texts: []string{"look whether the hub runs"},
	},
	"no hub runs, and all was done": {
		change: func(_ *testing.T, f *explain.Facts) {
			status(f).LastSyncerHeartbeatTime = &metav1.Time{Time: now.Add(-time.Hour)}
		},
		state: explain.Unknown, texts: []string{"No hub has written anything"},
	},
	"no hub has said anything": {
		change: func(_ *testing.T, f *explain.Facts) { status(f).Conditions = nil }, state: explain.Unknown, texts: []string{"No hub has reported anything"},
	},
	"a mailbox that is being made": {
		change: func(_ *testing.T, f *explain.Facts) {
			setCondition(status(f), edgev2alpha1.ConditionMailboxReady, metav1.ConditionFalse, "Initializing", "It is being made.")
			status(f).Mailbox, f.Served.Err, f.Target.Value = nil, errDenied, nil
		},
		step: explain.StepMailbox, state: explain.Waiting, reason: "Initializing",
	},
	"a mailbox that cannot be looked into": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Served.Value, f.Served.Err, f.Object.Value = nil, errDenied, nil
		},
		state: explain.Unknown, onTarget: explain.Present, texts: []string{"cannot be looked into: you may not", "spec.mailboxAccess", "with the hub's mark"},
	},
	"the target cannot be asked": {
		change: func(_ *testing.T, f *explain.Facts) { f.Target.Value, f.Target.Err = nil, errDenied },
		state:  explain.Unknown, onTarget: explain.PresenceUnknown, texts: []string{"Whether web is on florin cannot be seen", "you may not", "--target-kubeconfig"},
	},
	"the target cannot be asked, but the hub counted the object": {
		change: counted(func(*explain.Facts) {}),
		state:  explain.OK, onTarget: explain.Present, texts: []string{"web is on florin, in sync with the mailbox", "the hub counted its objects there 60s ago", "you may not"},
	},
	"the target cannot be asked, and the object changed since the hub counted": {
		change: counted(func(f *explain.Facts) {
			f.Object.Value.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: &metav1.Time{Time: now}}})
		}),
		state: explain.Unknown, onTarget: explain.PresenceUnknown,
	},
	"the target cannot be asked, and the config changed since the hub counted": {
		change: counted(func(f *explain.Facts) { config(f).CreationTimestamp = metav1.Time{Time: now} }),
		state:  explain.Unknown, onTarget: explain.PresenceUnknown,
	},
	"the target cannot be asked, and a change waits": {
		change: counted(func(f *explain.Facts) { status(f).PendingSince = &metav1.Time{Time: now} }),
		state:  explain.Unknown, onTarget: explain.PresenceUnknown,
	},
	"the target cannot be asked, and not all failures are listed": {
		change: counted(func(f *explain.Facts) { status(f).Counts.Failed = 1 }),
		state:  explain.Unknown, onTarget: explain.PresenceUnknown,
	},
	"the target cannot be asked, and no config selects the object": {
		change: counted(func(f *explain.Facts) { f.Configs.Value.SyncerConfigs = nil }),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", onTarget: explain.PresenceUnknown,
	},
}

// counted makes the target unreadable, and the object one that the hub has counted.
func counted(change func(*explain.Facts)) func(*testing.T, *explain.Facts) {
	return func(_ *testing.T, f *explain.Facts) {
		f.Target = explain.Observed[*unstructured.Unstructured]{Err: errDenied}
		status(f).Counts = &edgev2alpha1.TargetCounts{Synced: 1}
		change(f)
	}
}
