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
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/metrics"
	"github.com/synchub-dev/synchub/test/framework"
)

// seriesOf returns the values of all series about a SyncTarget, by their other labels.
func seriesOf(t testing.TB, syncTarget string) map[string]float64 {
	t.Helper()
	return framework.SeriesWithLabel(framework.Gather(t, syncActions, failingObjects, syncLatencies), "sync_target", syncTarget, "synchub_sync_")
}

func TestMetrics(t *testing.T) {
	resource := plan.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
	florin, guilder := newMetrics("florin", resource, false), newMetrics("guilder", resource, false)
	releaseFlorin, releaseGuilder := florin.use(), guilder.use()
	florin.observeReconcile(outcome{decision: plan.Decision{Action: plan.Create, Cause: plan.Missing}}, time.Second, nil)
	florin.observeReconcile(outcome{decision: plan.Decision{Action: plan.Create, Cause: plan.Missing}, up: true}, time.Second, errFieldConflict)
	florin.observeLatency(outcome{decision: plan.Decision{Action: plan.Create}}, pendingChange{mailbox: time.Unix(1, 0)}, time.Unix(2, 0))
	florin.failureChanged("", plan.ReasonForbidden)
	florin.failureChanged("", plan.ReasonConflict)
	florin.failureChanged(plan.ReasonConflict, plan.ReasonForbidden)
	florin.failureChanged(plan.ReasonForbidden, "")
	guilder.failureChanged("", plan.ReasonForbidden)
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
	releaseFlorin()
	if got := seriesOf(t, "florin"); len(got) > 0 {
		t.Errorf("after the controller ended there are still %v", got)
	}
	if got := seriesOf(t, "guilder"); len(got) != 1 {
		t.Errorf("the series of another SyncTarget are gone too: %v", got)
	}
	releaseGuilder()
}

// Controllers that share series add to the same values. Only the last one deletes the series.
func TestSharedSeries(t *testing.T) {
	named := func(name string) plan.Resource {
		return plan.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: name}}
	}
	created := outcome{decision: plan.Decision{Action: plan.Create, Cause: plan.Missing}}
	for name, test := range map[string]struct {
		former, latter *controllerMetrics
		both, left     map[string]float64
	}{
		"two resources together": {
			newMetrics("shared", named("configmaps"), true), newMetrics("shared", named("secrets"), true),
			map[string]float64{"actions_total Create Missing down done": 2, "failing_objects Forbidden": 3, "latency_seconds down": 2},
			map[string]float64{"actions_total Create Missing down done": 2, "failing_objects Forbidden": 1, "latency_seconds down": 2},
		},
		"two resources": {
			newMetrics("shared", named("configmaps"), false), newMetrics("shared", named("secrets"), false),
			map[string]float64{
				"actions_total Create Missing down configmaps done": 1, "failing_objects Forbidden configmaps": 2, "latency_seconds down configmaps": 1,
				"actions_total Create Missing down secrets done": 1, "failing_objects Forbidden secrets": 1, "latency_seconds down secrets": 1,
			},
			map[string]float64{"actions_total Create Missing down secrets done": 1, "failing_objects Forbidden secrets": 1, "latency_seconds down secrets": 1},
		},
		"a controller that follows another one": {
			newMetrics("shared", named("configmaps"), false), newMetrics("shared", named("configmaps"), false),
			map[string]float64{"actions_total Create Missing down configmaps done": 2, "failing_objects Forbidden configmaps": 3, "latency_seconds down configmaps": 2},
			map[string]float64{"actions_total Create Missing down configmaps done": 2, "failing_objects Forbidden configmaps": 1, "latency_seconds down configmaps": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			releaseFormer, releaseLatter := test.former.use(), test.latter.use()
			for _, m := range []*controllerMetrics{test.former, test.latter} {
				m.observeReconcile(created, time.Second, nil)
				m.observeLatency(created, pendingChange{mailbox: time.Unix(1, 0)}, time.Unix(2, 0))
				m.failureChanged("", plan.ReasonForbidden)
			}
			test.former.failureChanged("", plan.ReasonForbidden)
			if got := seriesOf(t, "shared"); !maps.Equal(got, test.both) {
				t.Errorf("want of both %v, got %v", test.both, got)
			}
			releaseFormer()
			if got := seriesOf(t, "shared"); !maps.Equal(got, test.left) {
				t.Errorf("want of one %v, got %v", test.left, got)
			}
			releaseLatter()
			if got := seriesOf(t, "shared"); len(got) > 0 {
				t.Errorf("after both ended there are still %v", got)
			}
		})
	}
}

// busyDecisions are the decisions about a resource with objects in both directions and some failures.
var busyDecisions = []outcome{
	{decision: plan.Decision{Action: plan.None, Cause: plan.InSync}}, {decision: plan.Decision{Action: plan.Create, Cause: plan.Missing}},
	{decision: plan.Decision{Action: plan.Apply, Cause: plan.Changed}}, {decision: plan.Decision{Action: plan.Apply, Cause: plan.Drifted}},
	{decision: plan.Decision{Action: plan.VerifyAbsence, Cause: plan.Cause(plan.SourceNotFound)}}, {decision: plan.Decision{Action: plan.Delete, Cause: plan.Cause(plan.SourceNotFound)}},
	{decision: plan.Decision{Action: plan.Delete, Cause: plan.Cause(plan.Deselected)}}, {decision: plan.Decision{Action: plan.None, Cause: plan.Cause(plan.Terminating)}},
	{decision: plan.Decision{Action: plan.None, Cause: plan.InSync}, up: true}, {decision: plan.Decision{Action: plan.Create, Cause: plan.Missing}, up: true},
	{decision: plan.Decision{Action: plan.Update, Cause: plan.Changed}, up: true}, {decision: plan.Decision{Action: plan.Delete, Cause: plan.Cause(plan.SourceNotFound)}, up: true},
}

// beBusy returns a controller of a resource without objects, and records all decisions and latencies of a busy one.
func beBusy(syncTarget types.UID, resource string, aggregate bool) (controller *Controller, release func()) {
	m := newMetrics(syncTarget, plan.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: resource}}, aggregate)
	release = m.use()
	for _, decided := range busyDecisions {
		m.observeReconcile(decided, time.Second, nil)
	}
	for _, failed := range []plan.Action{plan.Create, plan.Apply, ""} {
		m.observeReconcile(outcome{decision: plan.Decision{Action: failed}}, time.Second, errFieldConflict)
	}
	for _, direction := range []string{directionDown, directionUp, directionStatus} {
		m.latencies.WithLabelValues(direction).Observe(1)
	}
	m.failureChanged("", plan.ReasonInvalid)
	m.failureChanged("", plan.ReasonConflict)
	return &Controller{
		Options: Options{Clock: clock.RealClock{}}, target: &targetView{}, reporter: &reporter{metrics: m}, enqueuer: &enqueuer{changes: newPendingChanges()},
	}, release
}

// seriesOfABusyResource is the number of series that docs/metrics.md gives, without the two series of caches, and without the
// series of unverified objects, which usually does not exist.
const seriesOfABusyResource = 56 - 2 - 1

// The series of a SyncTarget grow with the number of resources only if they are labelled by resource.
func TestNumberOfSeries(t *testing.T) {
	const syncTargets, resources = 3, 4
	for aggregate, want := range map[bool]int{false: syncTargets * resources * seriesOfABusyResource, true: syncTargets * seriesOfABusyResource} {
		var running []*Controller
		var releases []func()
		for syncTarget := range syncTargets {
			for resource := range resources {
				controller, release := beBusy(types.UID(fmt.Sprint("counted-", syncTarget)), fmt.Sprint("things-", resource), aggregate)
				running, releases = append(running, controller), append(releases, release)
			}
		}
		if got := countedSeries(t, running); got != want {
			t.Errorf("with aggregate=%v there are %d series, not %d", aggregate, got, want)
		}
		for _, release := range releases {
			release()
		}
		if got := countedSeries(t, nil); got != 0 {
			t.Errorf("with aggregate=%v %d series are left", aggregate, got)
		}
	}
}

// countedSeries returns the number of samples that Prometheus scrapes about the SyncTargets of this test.
func countedSeries(t *testing.T, running []*Controller) (series int) {
	t.Helper()
	queues := metrics.New(collectQueueStats, queueDepth, pendingObjects, pendingSeconds, unverifiedObjects)
	for _, controller := range running {
		queues.Add(controller)
	}
	for _, one := range framework.Gather(t, syncActions, failingObjects, syncLatencies, queues) {
		switch {
		case !strings.HasPrefix(one.Labels["sync_target"], "counted-"):
		case one.Histogram != nil:
			// The histogram's buckets with +Inf, its sum and its count.
			series += len(one.Histogram.GetBucket()) + 3
		default:
			series++
		}
	}
	return series
}
