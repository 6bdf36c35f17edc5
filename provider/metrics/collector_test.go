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

package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/synchub-dev/synchub/provider/metrics"
)

func TestRunningComponentsAreReadAtEachScrape(t *testing.T) {
	described := prometheus.NewDesc("test_value", "The sum of all running components.", []string{"parity"}, nil)
	collector := metrics.New(func(running []int, metrics chan<- prometheus.Metric) {
		sums := map[string]int{}
		for _, one := range running {
			sums[[]string{"even", "odd"}[one%2]] += one
		}
		for parity, sum := range sums {
			metrics <- prometheus.MustNewConstMetric(described, prometheus.GaugeValue, float64(sum), parity)
		}
	}, described)
	expect := func(when, want string) {
		t.Helper()
		if want != "" {
			want = "# HELP test_value The sum of all running components.\n# TYPE test_value gauge\n" + want
		}
		if err := testutil.CollectAndCompare(collector, strings.NewReader(want)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	expect("nothing runs", "")
	removeOne, removeTwo, removeThree := collector.Add(1), collector.Add(2), collector.Add(3)
	expect("three run", "test_value{parity=\"even\"} 2\ntest_value{parity=\"odd\"} 4\n")
	removeTwo()
	removeThree()
	removeThree()
	expect("two have ended", "test_value{parity=\"odd\"} 1\n")
	removeOne()
	expect("all have ended", "")
}
