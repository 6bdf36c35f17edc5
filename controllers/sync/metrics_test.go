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

package sync

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/test/framework"
)

// seriesOf returns the values of all series about a SyncTarget, by their other labels.
func seriesOf(t testing.TB, syncTarget string) map[string]float64 {
	t.Helper()
	return framework.About(framework.Gather(t, actions, failing, latencies), "sync_target", syncTarget, "synchub_sync_")
}

func TestMetrics(t *testing.T) {
	resource := Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
	florin, guilder := newMetrics("florin", resource), newMetrics("guilder", resource)
	florin.reconciled(outcome{decision: decide.Decision{Action: decide.Create, Cause: decide.Missing}}, time.Second, nil)
	florin.reconciled(outcome{decision: decide.Decision{Action: decide.Create, Cause: decide.Missing}, up: true}, time.Second, errContended)
	florin.acknowledged(outcome{decision: decide.Decision{Action: decide.Create}}, change{mailbox: time.Unix(1, 0)}, time.Unix(2, 0))
	florin.failed("", ReasonForbidden)
	florin.failed("", ReasonConflict)
	florin.failed(ReasonConflict, ReasonForbidden)
	florin.failed(ReasonForbidden, "")
	guilder.failed("", ReasonForbidden)
	want := map[string]float64{
		"actions_total Create Missing down configmaps done": 1, "actions_total Create Missing up configmaps failed": 1, "latency_seconds down configmaps": 1,
		"failing_objects Forbidden configmaps": 1, "failing_objects Conflict configmaps": 0,
	}
	got := seriesOf(t, "florin")
	for labels, value := range want {
		if got[labels] != value {
			t.Errorf("%s: want %v, got %v", labels, value, got[labels])
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	florin.remove()
	if got := seriesOf(t, "florin"); len(got) > 0 {
		t.Errorf("after the controller ended there are still %v", got)
	}
	if got := seriesOf(t, "guilder"); len(got) != 1 {
		t.Errorf("another's are gone too: %v", got)
	}
	guilder.remove()
}
