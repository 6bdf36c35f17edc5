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
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
)

// The info metric shows the name of a SyncTarget under its current UID until the SyncTarget is untracked.
func TestInfo(t *testing.T) {
	info.Reset()
	defer info.Reset()
	controller := New(Options{Registry: startRegistry(t), Sync: newSyncManager(), Ledger: ledger.New(ledger.Options{}), Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
	named := func(name string) (request mcreconcile.Request) {
		request.ClusterName, request.NamespacedName = multicluster.ClusterName("workspace"), types.NamespacedName{Name: name}
		return request
	}
	expect := func(when string, uids ...string) {
		t.Helper()
		want := "# HELP synchub_sync_target_info 1 for each SyncTarget, with its name and the logical cluster of its inventory workspace.\n# TYPE synchub_sync_target_info gauge\n"
		for _, uid := range uids {
			name, _, _ := strings.Cut(uid, "-")
			want += "synchub_sync_target_info{inventory=\"workspace\",name=\"" + name + "\",sync_target=\"" + uid + "\"} 1\n"
		}
		if len(uids) == 0 {
			want = ""
		}
		if err := testutil.CollectAndCompare(info, strings.NewReader(want)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	expect("at first")
	controller.track(named("florin"), "florin-1")
	controller.track(named("florin"), "florin-1")
	controller.track(named("guilder"), "guilder-1")
	expect("two were seen", "florin-1", "guilder-1")
	controller.track(named("florin"), "florin-2")
	expect("one was made again", "florin-2", "guilder-1")
	controller.untrack(named("florin"))
	controller.untrack(named("never"))
	expect("one was lost", "guilder-1")
}

// The metric has only the hub's own conditions, and none that users add to the status.
func TestConditionStates(t *testing.T) {
	controller := New(Options{Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
	defer runningControllers.Add(controller)()
	targetlabels.Set("uid", "florin", "workspace")
	defer targetlabels.Forget("uid")
	state := &syncTargetState{}
	controller.store.entries["uid"] = &entry{state: state}
	controller.store.setConditions(state, []metav1.Condition{
		{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse}, {Type: edgev2alpha1.ConditionDrained, Status: metav1.ConditionTrue},
		{Type: "Forged", Status: metav1.ConditionTrue}, {Type: edgev2alpha1.ConditionSuspended, Status: "Forged"},
	})
	const want = `
# HELP synchub_sync_target_condition 1 for the status that a condition of a SyncTarget has. None: the SyncTarget has no such condition.
# TYPE synchub_sync_target_condition gauge
synchub_sync_target_condition{condition="Drained",inventory="workspace",name="florin",status="True",sync_target="uid"} 1
synchub_sync_target_condition{condition="Ready",inventory="workspace",name="florin",status="False",sync_target="uid"} 1
`
	if err := testutil.CollectAndCompare(runningControllers, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
