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

package report

import (
	"math"
	"slices"
	"time"
)

// Row is one result of one scenario.
type Row struct {
	Scenario string `json:"scenario"`
	// What and Unit are the measured quantity and its unit: "s", "ms", "KiB", or empty for a plain number.
	What string `json:"what"`
	Unit string `json:"unit,omitempty"`
	// Hub and Direct hold a value for each round. Without a comparison, Direct is empty.
	Hub    []float64 `json:"hub"`
	Direct []float64 `json:"direct,omitempty"`
	// Limit is the maximum of the ratio or, without a comparison, of the value. It is nil if the row is only reported.
	Limit *float64 `json:"limit,omitempty"`
}

// Ratios returns, for each round, the hub's value divided by the direct one.
func (r Row) Ratios() []float64 {
	ratios := make([]float64, 0, len(r.Direct))
	for round, direct := range r.Direct {
		ratios = append(ratios, r.Hub[round]/direct)
	}
	return ratios
}

// Result returns the value that the limit applies to: the median of the ratios or, without a comparison, the maximum value.
func (r Row) Result() float64 {
	if len(r.Direct) > 0 {
		return Median(r.Ratios())
	}
	return Percentile(r.Hub, 100)
}

// Met reports whether the result is within the limit; ok is false if there is no limit.
func (r Row) Met() (met, ok bool) {
	if r.Limit == nil {
		return false, false
	}
	return r.Result() <= *r.Limit, true
}

// Median returns the median, which is the mean of the two middle values if their number is even; NaN if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	last := len(sorted) - 1
	return (sorted[last/2] + sorted[(last+1)/2]) / 2
}

// Percentile returns the smallest value that is at least as large as the given percentage of all values; NaN if there are
// none.
func Percentile(values []float64, percent float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// In converts durations to numbers of a unit.
func In(unit time.Duration, durations ...time.Duration) []float64 {
	values := make([]float64, len(durations))
	for i, duration := range durations {
		values[i] = float64(duration) / float64(unit)
	}
	return values
}
