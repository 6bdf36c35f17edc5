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
	"context"
	"fmt"
	gosync "sync"
	"sync/atomic"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// reportedConfigs counts the objects of the only config at each reported change, like the controller that writes the config's
// status.
type reportedConfigs struct {
	changed  chan struct{}
	reported atomic.Pointer[string]
}

// startReporter restarts the hub with a reportedConfigs.
func startReporter(t *testing.T, h *testHub) *reportedConfigs {
	t.Helper()
	r := &reportedConfigs{changed: make(chan struct{}, 1)}
	h.stop()
	h.onChange = func() {
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}
	h.start()
	controller := h.controllers[configMapsV1]
	ctx, cancel := context.WithCancel(t.Context())
	var running gosync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.changed:
				r.reported.Store(new(countsOf(controller)))
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r
}

func countsOf(controller *Controller) string {
	summaries := map[string]*ConfigSummary{}
	controller.Status.SummarizeConfigs(summaries)
	var sum ConfigSummary
	for _, one := range summaries {
		sum.Selected += one.Selected
		sum.Synced += one.Synced
		sum.ExcludedByUpsync = append(sum.ExcludedByUpsync, one.ExcludedByUpsync...)
	}
	return fmt.Sprintf("%d selected, %d synced, %d excluded", sum.Selected, sum.Synced, len(sum.ExcludedByUpsync))
}

// Every change of a config's objects is reported, also a change that needs no write.
func TestEveryChangeOfTheSummaryIsReported(t *testing.T) {
	t.Parallel()
	const late = "\nupsync: [{apiGroup: '', resources: [configmaps], namespaces: [NS], names: [late]}]"
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "")}, configMapsTravel+late)
	r := startReporter(t, h)
	expect := func(after, want string) {
		t.Helper()
		suite.WaitUntil(t, "after "+after+" the status has "+want, func() bool {
			got := r.reported.Load()
			return got != nil && *got == want
		})
	}
	for i := range 10 {
		h.putConfigMap(fmt.Sprintf("copied-%d", i), "a: b")
		expect("one that is copied", fmt.Sprintf("%d selected, %d synced, 0 excluded", i+1, i+1))
	}
	h.putConfigMap("late", "a: b")
	expect("one that upsync selects", "10 selected, 10 synced, 1 excluded")
	h.drop(configMapsV1, h.namespace, "late")
	expect("the end of that", "10 selected, 10 synced, 0 excluded")

	h.configure("suspend: true\n" + configMapsTravel + late)
	h.putConfigMap("waiting", "a: b")
	expect("one while the config is suspended", "11 selected, 10 synced, 0 excluded")
	h.drop(configMapsV1, h.namespace, "copied-0")
	expect("the end of a copied one", "10 selected, 9 synced, 0 excluded")
	put(t, h.withNamespace("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS, name: late}}"))
	expect("one on the target", "11 selected, 9 synced, 0 excluded")
	if err := framework.Delete(t.Context(), suite.Target(t).Config, configMapsV1, h.namespace, "late"); err != nil {
		t.Fatal(err)
	}
	expect("the end of that", "10 selected, 9 synced, 0 excluded")
}
