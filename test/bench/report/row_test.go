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

package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/synchub-dev/synchub/test/bench/report"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{2, 1}, 1.5},
		{[]float64{3, 9, 1}, 3},
		{[]float64{4, 1, 3, 9}, 3.5},
	} {
		if got := report.Median(test.values); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.values, got, test.want)
		}
	}
	if got := report.Median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing is %v", got)
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for name, test := range map[string]struct {
		values  []float64
		percent float64
		want    float64
	}{
		"median of one":        {[]float64{7}, 50, 7},
		"median of two":        {[]float64{9, 7}, 50, 7},
		"median of three":      {[]float64{9, 1, 7}, 50, 7},
		"99th of a hundred":    {hundred, 99, 99},
		"100th of a hundred":   {hundred, 100, 100},
		"99th of fewer":        {[]float64{3, 1, 2}, 99, 3},
		"the least of several": {[]float64{3, 1, 2}, 0, 1},
	} {
		before := slices.Clone(test.values)
		if got := report.Percentile(test.values, test.percent); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
		if !slices.Equal(before, test.values) {
			t.Errorf("%s: the values were moved", name)
		}
	}
	if got := report.Percentile(nil, 50); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestRow(t *testing.T) {
	for name, test := range map[string]struct {
		row     report.Row
		result  float64
		met, ok bool
	}{
		"each round by its own":  {report.Row{Hub: []float64{2, 30, 4}, Direct: []float64{1, 10, 4}, Limit: new(2.0)}, 2, true, true},
		"a ratio that is missed": {report.Row{Hub: []float64{3}, Direct: []float64{1}, Limit: new(2.9)}, 3, false, true},
		"a count that is met":    {report.Row{Hub: []float64{0, 0, 0}, Limit: new(0.0)}, 0, true, true},
		"a count that is missed": {report.Row{Hub: []float64{0, 1, 0}, Limit: new(0.0)}, 1, false, true},
		"only reported":          {report.Row{Hub: []float64{5}}, 5, false, false},
	} {
		met, ok := test.row.Met()
		if result := test.row.Result(); result != test.result || met != test.met || ok != test.ok {
			t.Errorf("%s: got %v, %v, %v", name, result, met, ok)
		}
	}
}

func TestReport(t *testing.T) {
	results := report.Report{
		Commit: "abc", Machine: "a machine", Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Quick: true,
		Rows: []report.Row{
			{Scenario: "burst", What: "elapsed", Unit: "s", Hub: []float64{12.34, 11, 13}, Direct: []float64{10, 10, 10}, Limit: new(1.15)},
			{Scenario: "requests", What: "create", Hub: []float64{1}, Limit: new(1.0)},
			{Scenario: "memory", What: "base", Unit: "MiB", Hub: []float64{70.123}},
		},
	}
	var table bytes.Buffer
	if err := results.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(table.String())
	want := strings.Fields(`Commit abc, 2026-01-02, on a machine, quick.
		| scenario | measured | result | to reach | | hub | direct |
		| --- | --- | --- | --- | --- | --- | --- |
		| burst | elapsed | 1.23x (1.10 to 1.30) | 1.15x | **missed** | 12.3 s (11 to 13) | 10 s (10 to 10) |
		| requests | create | 1 | 1 | met | 1 | |
		| memory | base | 70.1 MiB | reported | | 70.1 MiB | |`)
	if !slices.Equal(got, want) {
		t.Errorf("the table is\n%s", table.String())
	}

	var written bytes.Buffer
	if err := results.WriteJSON(&written); err != nil {
		t.Fatal(err)
	}
	var read report.Report
	if err := json.Unmarshal(written.Bytes(), &read); err != nil || !reflect.DeepEqual(read, results) {
		t.Errorf("read again it is %+v, %v", read, err)
	}
}
