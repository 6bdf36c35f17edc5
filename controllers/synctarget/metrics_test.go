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
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// The info metric shows the name of a SyncTarget under its current UID until the SyncTarget is untracked.
func TestInfo(t *testing.T) {
	info.Reset()
	defer info.Reset()
	controller := NewController(Options{Registry: startRegistry(t), Sync: syncmanager.New(syncmanager.Options{}), Ledger: ledger.New(ledger.Options{}), Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
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
