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
)

func TestPick(t *testing.T) {
	rows := []row{
		{scenario: "edit", what: "a: p50"}, {scenario: "edit", what: "a: p99"}, {scenario: "long", what: "heap"},
		{scenario: "restart", what: "99 objects"}, {scenario: "restart", what: "999 objects"}, {scenario: "restart", what: "writes"},
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
			text += "=" + p.row.what
		}
		got = append(got, text)
	}
	if want := []string{"compared", "median=a: p50", "restart with 99=99 objects", "restart with 999=999 objects"}; !slices.Equal(got, want) {
		t.Errorf("picked %q, want %q", got, want)
	}
}

func TestPickFindsThatAScenarioWasChanged(t *testing.T) {
	_, err := pick([]line{{"median", "edit", ": p50$"}}, []row{{scenario: "edit", what: "a: mean"}})
	if !errors.Is(err, errNoRow) {
		t.Errorf("error %v, want %v", err, errNoRow)
	}
}

func TestNoChartOfOtherScenarios(t *testing.T) {
	images, err := drawAll([]row{{scenario: "fleet-idle", what: "300 targets: processor", result: quantity{2, 2, 2, "%"}, limit: &quantity{5, 5, 5, "%"}},
		{scenario: "fleet-idle", what: "300 targets: resident memory", result: quantity{2, 2, 2, "MiB"}, limit: &quantity{5, 5, 5, "MiB"}}})
	if got := slices.Collect(maps.Keys(images)); err != nil || !slices.Equal(got, []string{"results-budgets.svg"}) {
		t.Errorf("charts %q, %v", got, err)
	}
}
