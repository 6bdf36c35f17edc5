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
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"synchub.dev/hack/plots/results"
	"synchub.dev/hack/plots/theme"
)

const (
	resultsFile = "../../RESULTS.md"
	images      = "../../docs/images"
)

// The committed charts are those of RESULTS.md, and drawing them twice gives the same bytes.
func TestChartsAreThoseOfTheResults(t *testing.T) {
	for range 2 {
		out := t.TempDir()
		if err := run(resultsFile, out); err != nil {
			t.Fatal(err)
		}
		for _, c := range charts {
			drawn, err := os.ReadFile(filepath.Join(out, c.file))
			if err != nil {
				t.Fatal(err)
			}
			committed, err := os.ReadFile(filepath.Join(images, c.file))
			if err != nil || !bytes.Equal(drawn, committed) {
				t.Errorf("docs/images/%s (%v) is not the chart of RESULTS.md: run make plots", c.file, err)
			}
		}
	}
}

// Each number of the chart is in it as text, and each color has one for a dark ground.
func TestRatioChart(t *testing.T) {
	rows := []results.Row{
		{What: "one edit", Result: results.Quantity{Value: 1.02, Least: 0.92, Greatest: 1.03, Unit: "x"}, Limit: &results.Quantity{Value: 2, Unit: "x"}},
		{What: "an edit: p99", Result: results.Quantity{Value: 3.84, Least: 3.84, Greatest: 3.84, Unit: "x"}, Limit: &results.Quantity{Value: 2, Unit: "x"}},
	}
	lines := []selected{{label: "Compared"}, {label: "one edit", row: &rows[0]}, {label: "beside a burst", row: &rows[1]}}
	p, err := ratioChart("A title", lines)
	if err != nil {
		t.Fatal(err)
	}
	image, err := theme.SVG(300, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">A title<", ">Compared<", ">one edit<", ">1.02×<", ">beside a burst<", ">3.84×<", "Red: above the limit.", ">4×<"} {
		if !strings.Contains(string(image), want) {
			t.Errorf("the image has no %s", want)
		}
	}
	for _, pair := range theme.OnDark {
		if color := fmt.Sprintf("#%02X%02X%02X", pair.Light.R, pair.Light.G, pair.Light.B); strings.Count(string(image), color) < 3 {
			t.Errorf("nothing in the image has the color %s", color)
		}
	}
	decoder := xml.NewDecoder(bytes.NewReader(image))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the image is no XML: %v", err)
		}
	}
}

func TestRatioChartNeedsRatios(t *testing.T) {
	r := results.Row{What: "an object", Result: results.Quantity{Value: 7, Least: 7, Greatest: 7, Unit: "KiB"}}
	if _, err := ratioChart("A title", []selected{{label: "one", row: &r}}); err == nil || !strings.Contains(err.Error(), `"an object" is no ratio`) {
		t.Errorf("error %v", err)
	}
}

func TestBudgetChartNeedsLimits(t *testing.T) {
	r := results.Row{What: "an object", Result: results.Quantity{Value: 7, Least: 7, Greatest: 7, Unit: "KiB"}}
	if _, err := budgetChart("A title", []selected{{label: "one", row: &r}}); err == nil || !strings.Contains(err.Error(), `"one" has no limit`) {
		t.Errorf("error %v", err)
	}
}

// A bar has the length of its line's share, though bars are drawn from the last line to the first.
func TestShares(t *testing.T) {
	first := results.Row{Result: results.Quantity{Value: 1, Unit: "KiB"}, Limit: &results.Quantity{Value: 4, Unit: "KiB"}}
	last := results.Row{Result: results.Quantity{Value: 3, Unit: "MiB"}, Limit: &results.Quantity{Value: 4, Unit: "MiB"}}
	texts, values, err := shares([]selected{{label: "first", row: &first}, {label: "last", row: &last}})
	if err != nil || texts[0].number != "1 of 4 KiB" || texts[1].number != "3 of 4 MiB" || values[0] != 75 || values[1] != 25 {
		t.Errorf("%v, %v, %v", texts, values, err)
	}
}
