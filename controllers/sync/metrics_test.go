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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/sync/decide"
)

// seriesOf returns the values of all series about a SyncTarget, by their other labels.
func seriesOf(t testing.TB, syncTarget string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(actions, failing, latencies)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			isAbout := func(label *dto.LabelPair) bool {
				return label.GetName() == "sync_target" && label.GetValue() == syncTarget
			}
			if !slices.ContainsFunc(metric.GetLabel(), isAbout) {
				continue
			}
			var labels []string
			for _, label := range metric.GetLabel() {
				if !isAbout(label) {
					labels = append(labels, label.GetValue())
				}
			}
			found[strings.Join(labels, " ")] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return found
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
		"Create Missing down configmaps done": 1, "Create Missing up configmaps failed": 1, "down configmaps": 1,
		"Forbidden configmaps": 1, "Conflict configmaps": 0,
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
