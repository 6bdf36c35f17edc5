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

package objectsync

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/test/framework"
)

// seriesOf returns the values of all series about a SyncTarget, by their other labels.
func seriesOf(t testing.TB, syncTarget string) map[string]float64 {
	t.Helper()
	return framework.SeriesWithLabel(framework.Gather(t, syncActions, failingObjects, syncLatencies), "sync_target", syncTarget, "synchub_sync_")
}

func TestMetrics(t *testing.T) {
	resource := plan.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
	florin, guilder := newMetrics("florin", resource), newMetrics("guilder", resource)
	florin.observeReconcile(outcome{decision: plan.Decision{Action: plan.Create, Cause: plan.Missing}}, time.Second, nil)
	florin.observeReconcile(outcome{decision: plan.Decision{Action: plan.Create, Cause: plan.Missing}, up: true}, time.Second, errFieldConflict)
	florin.observeLatency(outcome{decision: plan.Decision{Action: plan.Create}}, pendingChange{mailbox: time.Unix(1, 0)}, time.Unix(2, 0))
	florin.failureChanged("", ReasonForbidden)
	florin.failureChanged("", ReasonConflict)
	florin.failureChanged(ReasonConflict, ReasonForbidden)
	florin.failureChanged(ReasonForbidden, "")
	guilder.failureChanged("", ReasonForbidden)
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
