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

package main

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"synchub.dev/hack/plots/results"
)

func TestPick(t *testing.T) {
	rows := []results.Row{
		{Scenario: "edit", What: "a: p50"}, {Scenario: "edit", What: "a: p99"}, {Scenario: "long", What: "heap"},
		{Scenario: "restart", What: "99 objects"}, {Scenario: "restart", What: "999 objects"}, {Scenario: "restart", What: "writes"},
	}
	lines := []line{
		{label: "compared"}, {"median", "edit", ": p50$"}, {"restart with $1", "restart", `^(\d+) objects`},
		{label: "not run"}, {"burst", "burst", "elapsed"},
	}
	picked, err := pick(lines, rows)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range picked {
		text := p.label
		if p.row != nil {
			text += "=" + p.row.What
		}
		got = append(got, text)
	}
	if want := []string{"compared", "median=a: p50", "restart with 99=99 objects", "restart with 999=999 objects"}; !slices.Equal(got, want) {
		t.Errorf("picked %q, want %q", got, want)
	}
}

func TestPickFindsThatAScenarioWasChanged(t *testing.T) {
	_, err := pick([]line{{"median", "edit", ": p50$"}}, []results.Row{{Scenario: "edit", What: "a: mean"}})
	if !errors.Is(err, errNoRow) {
		t.Errorf("error %v, want %v", err, errNoRow)
	}
}

func TestNoChartOfOtherScenarios(t *testing.T) {
	images, err := drawAll([]results.Row{{Scenario: "fleet-idle", What: "300 targets: processor", Result: results.Quantity{Value: 2, Least: 2, Greatest: 2, Unit: "%"}, Limit: &results.Quantity{Value: 5, Least: 5, Greatest: 5, Unit: "%"}},
		{Scenario: "fleet-idle", What: "300 targets: resident memory", Result: results.Quantity{Value: 2, Least: 2, Greatest: 2, Unit: "MiB"}, Limit: &results.Quantity{Value: 5, Least: 5, Greatest: 5, Unit: "MiB"}}})
	if got := slices.Collect(maps.Keys(images)); err != nil || !slices.Equal(got, []string{"results-budgets.svg"}) {
		t.Errorf("charts %q, %v", got, err)
	}
}
