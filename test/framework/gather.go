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

package framework

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Series is one series of a metric.
type Series struct {
	Metric string
	Labels map[string]string
	// Value is the value of a gauge or a counter, or the number of observations of a histogram.
	Value     float64
	Histogram *dto.Histogram
}

// Gather returns the present series of the collectors.
func Gather(t testing.TB, collectors ...prometheus.Collector) []Series {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []Series
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			one := Series{Metric: family.GetName(), Labels: map[string]string{}, Histogram: metric.GetHistogram()}
			one.Value = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			for _, label := range metric.GetLabel() {
				one.Labels[label.GetName()] = label.GetValue()
			}
			all = append(all, one)
		}
	}
	return all
}

// SeriesWithLabel returns the values of the series in which a label has the value. The keys are the metric's name without
// the prefix, and the values of the other labels that are not empty.
func SeriesWithLabel(all []Series, label, value, prefix string) map[string]float64 {
	found := map[string]float64{}
	for _, one := range all {
		if one.Labels[label] != value {
			continue
		}
		parts := []string{strings.TrimPrefix(one.Metric, prefix)}
		for _, other := range slices.Sorted(maps.Keys(one.Labels)) {
			if other != label && one.Labels[other] != "" {
				parts = append(parts, one.Labels[other])
			}
		}
		found[strings.Join(parts, " ")] = one.Value
	}
	return found
}
