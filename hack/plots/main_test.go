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
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/hack/chart"
	"github.com/synchub-dev/synchub/hack/results"
)

const root = "../.."

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The committed charts show the numbers of RESULTS.md, and are XML.
func TestChartsAreUpToDate(t *testing.T) {
	out := t.TempDir()
	if err := run(filepath.Join(root, "RESULTS.md"), out); err != nil {
		t.Fatal(err)
	}
	for _, c := range charts {
		drawn := read(t, filepath.Join(out, c.file))
		if drawn != read(t, filepath.Join(root, "docs/images", c.file)) {
			t.Errorf("docs/images/%s is not the chart of RESULTS.md: run make plots", c.file)
		}
		decoder := xml.NewDecoder(strings.NewReader(drawn))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s is no XML: %v", c.file, err)
			}
		}
	}
}

func limit(value float64, unit string) *results.Quantity {
	return &results.Quantity{Value: value, Unit: unit}
}

// A chart has the lines of the scenarios that ran, below their headings.
func TestPick(t *testing.T) {
	x := results.Quantity{Value: 1.25, Least: 1, Greatest: 2, Unit: "x"}
	c := resultChart{row: ratio, lines: []line{
		{label: "compared"}, {"median", "edit", ": p50$"}, {"restart with $1", "restart", `^(\d+) objects`}, {label: "not run"}, {"burst", "burst", "elapsed"},
	}}
	picked, err := pick(c, []results.Row{
		{Scenario: "edit", What: "a: p50", Result: x, Limit: limit(2, "x")}, {Scenario: "edit", What: "a: p99", Result: x},
		{Scenario: "restart", What: "99 objects", Result: x}, {Scenario: "restart", What: "999 objects", Result: x}, {Scenario: "restart", What: "writes"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range picked {
		got = append(got, row.Label+"="+row.Number)
	}
	if want := "compared=|median=1.25×|restart with 99=1.25×|restart with 999=1.25×"; strings.Join(got, "|") != want {
		t.Errorf("picked %q, want %q", got, want)
	}
	image := string(chart.Dots("A title", axis(c, picked), picked))
	for _, want := range []string{">A title<", ">compared<", ">median<", ">1.25×<", `class="limit mark"`, `<circle class="good"`} {
		if !strings.Contains(image, want) {
			t.Errorf("the chart has no %s", want)
		}
	}
}

func TestRowsThatCannotBeDrawn(t *testing.T) {
	for want, test := range map[string]struct {
		row func(results.Row) (chart.Row, error)
		results.Row
	}{
		"has no row like : p50$":  {ratio, results.Row{What: "a: mean"}},
		"is no ratio":             {ratio, results.Row{What: "a: p50", Result: results.Quantity{Unit: "KiB"}}},
		"no limit of the unit KB": {share, results.Row{What: "a: p50", Result: results.Quantity{Unit: "KB"}, Limit: limit(1, "MB")}},
	} {
		test.Scenario = "edit"
		if _, err := pick(resultChart{row: test.row, lines: []line{{"median", "edit", ": p50$"}}}, []results.Row{test.Row}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestShare(t *testing.T) {
	row, err := share(results.Row{Result: results.Quantity{Value: 3, Unit: "MiB"}, Limit: limit(4, "MiB")})
	if err != nil || row.Number != "3 of 4 MiB" || row.Value != 75 || row.Limit != 100 {
		t.Errorf("%+v, %v", row, err)
	}
}

// What is above its limit is red.
func TestAboveTheLimit(t *testing.T) {
	rows := []chart.Row{{Label: "slow", Number: "3×", Least: 3, Value: 3, Greatest: 3, Limit: 2}}
	if image := string(chart.Dots("", chart.Axis{Mark: 1, Greatest: 4, Step: 1}, rows)); !strings.Contains(image, `<circle class="bad"`) {
		t.Errorf("the chart is\n%s", image)
	}
}
