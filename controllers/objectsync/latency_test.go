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
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/test/framework"
)

// observeLatency measures writes, from the change of their source.
func TestWhichLatencyIsMeasured(t *testing.T) {
	below, above, now := time.Unix(1, 0), time.Unix(3, 0), time.Unix(7, 0)
	decided := func(action plan.Action) outcome { return outcome{decision: plan.Decision{Action: action}} }
	up := func(action plan.Action) outcome {
		return outcome{decision: plan.Decision{Action: action}, up: true}
	}
	both := pendingChange{mailbox: above, target: below}
	for name, test := range map[string]struct {
		outcome outcome
		pending pendingChange
		want    map[string]float64
	}{
		"a create":                 {decided(plan.Create), both, map[string]float64{"down": 4}},
		"a deletion":               {decided(plan.Delete), pendingChange{mailbox: above}, map[string]float64{"down": 4}},
		"a repair":                 {decided(plan.Apply), pendingChange{target: below}, nil},
		"a change of a config":     {decided(plan.Create), pendingChange{since: below}, nil},
		"nothing to do":            {decided(plan.None), both, nil},
		"a name that is taken":     {decided(plan.Conflict), both, nil},
		"an upsynced object":       {up(plan.Create), both, map[string]float64{"up": 6}},
		"a repair in the mailbox":  {up(plan.Update), pendingChange{mailbox: above}, nil},
		"no upsync":                {up(plan.None), both, nil},
		"a status":                 {outcome{decision: plan.Decision{Action: plan.None}, statusReturned: true}, both, map[string]float64{"status": 6}},
		"an upsynced status":       {outcome{decision: plan.Decision{Action: plan.None}, up: true, statusReturned: true}, both, map[string]float64{"status": 6}},
		"a status that was undone": {outcome{decision: plan.Decision{Action: plan.None}, statusReturned: true}, pendingChange{mailbox: above}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMetrics(types.UID(unique("target")), plan.Resource{GroupVersionResource: configMapsV1}, false)
			defer m.use()()
			m.observeLatency(test.outcome, test.pending, now)
			got := map[string]float64{}
			for direction, histogram := range latenciesOf(t, string(m.labels.syncTarget), "configmaps") {
				got[direction] = histogram.GetSampleSum()
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

// latenciesOf returns the histograms of a target and resource by direction.
func latenciesOf(t testing.TB, syncTarget, resource string) map[string]*dto.Histogram {
	t.Helper()
	found := map[string]*dto.Histogram{}
	for _, one := range gather(t, syncLatencies, syncTarget, resource) {
		found[one.Labels["direction"]] = one.Histogram
	}
	return found
}

// gather returns the series of a target and resource.
func gather(t testing.TB, collector prometheus.Collector, syncTarget, resource string) []framework.Series {
	t.Helper()
	return slices.DeleteFunc(framework.Gather(t, collector), func(one framework.Series) bool {
		return one.Labels["sync_target"] != syncTarget || one.Labels["resource"] != resource
	})
}

// expectMeasured waits until the given number of writes was measured in each direction.
func (h *testHub) expectMeasured(resource string, want map[string]uint64) {
	h.t.Helper()
	h.until(fmt.Sprintf("%v are measured", want), func() bool {
		got := map[string]uint64{}
		for direction, histogram := range latenciesOf(h.t, string(h.owner.SyncTarget), resource) {
			got[direction] = histogram.GetSampleCount()
			if sum := histogram.GetSampleSum(); sum < 0 || sum > time.Hour.Seconds() {
				h.t.Errorf("%s took %v seconds", direction, sum)
			}
		}
		return maps.Equal(got, want)
	})
}

// expectNoMoreMeasured fails the test if more than the given writes are measured once the hub is idle.
func (h *testHub) expectNoMoreMeasured(resource string, want map[string]uint64) {
	h.t.Helper()
	h.waitUntilIdle()
	h.expectMeasured(resource, want)
}

// Each change is measured once. Its own event, a repair, and changes found after a restart are not measured.
func TestLatencyOfEachChange(t *testing.T) {
	h := newScalingHub(t, "")
	expect := func(want map[string]uint64) {
		t.Helper()
		h.expectMeasured("deployments.apps", want)
	}
	h.waitUntilIdle()
	h.deployment("a", "")
	h.expectOnTarget(deploymentsV1, "web", runsAs("a", 1))
	expect(map[string]uint64{"down": 1})
	h.deployment("b", "")
	h.expectOnTarget(deploymentsV1, "web", runsAs("b", 1))
	expect(map[string]uint64{"down": 2})
	h.reportStatus(5)
	expect(map[string]uint64{"down": 2, "status": 1})
	h.deployment("b", "replicas: 2, ")
	h.expectOnTarget(deploymentsV1, "web", runsAs("b", 2))
	expect(map[string]uint64{"down": 3, "status": 1})
	h.scale(3)
	h.expectOnTarget(deploymentsV1, "web", runsAs("b", 2))
	h.expectNoMoreMeasured("deployments.apps", map[string]uint64{"down": 3, "status": 1})

	h.restart()
	h.expectNoMoreMeasured("deployments.apps", map[string]uint64{})
	h.drop(deploymentsV1, h.namespace, "web")
	h.expectGoneFromTarget(deploymentsV1, "web")
	expect(map[string]uint64{"down": 1})
	h.configure()
	h.deployment("b", "")
	h.waitUntilIdle()
	h.configure(deploymentsTravel)
	h.expectOnTarget(deploymentsV1, "web", runsAs("b", 1))
	h.expectNoMoreMeasured("deployments.apps", map[string]uint64{"down": 1})
}

// reportStatus writes a status to the target's Deployment, and waits until the mailbox has it.
func (h *testHub) reportStatus(observed int) {
	h.t.Helper()
	patch := fmt.Appendf(nil, `{"status": {"collisionCount": %d}}`, observed)
	if _, err := administrator(h.t).Resource(deploymentsV1).Namespace(h.namespace).Patch(h.t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		h.t.Fatal(err)
	}
	h.until("the mailbox has the status", func() bool {
		status, _ := h.get(deploymentsV1, h.namespace, "web").Object["status"].(map[string]any)
		return fmt.Sprint(status["collisionCount"]) == fmt.Sprint(observed)
	})
}

func TestLatencyOfUpsync(t *testing.T) {
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "")}, "upsync: [{apiGroup: '', resources: [configmaps], namespaces: [NS], names: ['*']}]")
	h.waitUntilIdle()
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: "+h.namespace+"}, data: {a: b}}")
	h.expectInMailbox(configMapsV1, "first")
	h.expectNoMoreMeasured("configmaps", map[string]uint64{"up": 1})
	h.stop()
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: second, namespace: "+h.namespace+"}, data: {a: b}}")
	h.start()
	h.expectInMailbox(configMapsV1, "second")
	h.expectNoMoreMeasured("configmaps", map[string]uint64{})
	h.deleteOnTarget(configMapsV1, "first")
	h.until("the object is gone from the mailbox", func() bool { return h.configMapInMailbox("first") == nil })
	h.expectNoMoreMeasured("configmaps", map[string]uint64{"up": 1})
}

// Queue metrics are collected from running controllers only.
func TestQueueStats(t *testing.T) {
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "")}, configMapsTravel)
	syncTarget := string(h.owner.SyncTarget)
	read := func() (values []float64) {
		for _, one := range gather(t, collector, syncTarget, "configmaps") {
			values = append(values, one.Value)
		}
		return values
	}
	h.waitUntilIdle()
	if got := read(); !slices.Equal(got, []float64{0, 0, 0}) {
		t.Errorf("at rest: %v", got)
	}
	if problems, err := testutil.CollectAndLint(collector); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	h.stop()
	if got := read(); len(got) > 0 {
		t.Errorf("after the controller has stopped there are still %v", got)
	}
}
