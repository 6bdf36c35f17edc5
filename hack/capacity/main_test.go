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
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/hack/results"
)

const root = "../.."

// parse returns the options of the command with some flags. Without any flag they are the options of `make capacity`.
func parse(t *testing.T, arguments ...string) (o options) {
	t.Helper()
	flags := flag.NewFlagSet("capacity", flag.ContinueOnError)
	bind(&o, flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return o
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func measuredCosts(t *testing.T) costs {
	t.Helper()
	c, _, err := readCosts(root)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The figures of the page, and its chart, are the program's and so follow from RESULTS.md.
func TestPageAndChartAreUpToDate(t *testing.T) {
	page, image := filepath.Join(root, "docs/scaling.md"), filepath.Join(root, "docs/images/scaling.svg")
	o := parse(t)
	o.page, o.chart = filepath.Join(t.TempDir(), "scaling.md"), filepath.Join(t.TempDir(), "scaling.svg")
	if err := os.WriteFile(o.page, []byte(read(t, page)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(root, o, io.Discard); err != nil {
		t.Fatal(err)
	}
	for committed, made := range map[string]string{page: o.page, image: o.chart} {
		if read(t, committed) != read(t, made) {
			t.Errorf("%s is out of date: run make capacity", committed)
		}
	}
}

// The model finds about the memory of whole hubs that were measured. They held no garbage beyond what Go had left, so their base is compared.
func TestModelIsNearMeasuredHubs(t *testing.T) {
	c, measured := measuredCosts(t), read(t, filepath.Join(root, resultsPage))
	for row, f := range map[string]fleet{
		`resident, with 102 targets and 0 objects in sync \| (\d+) MiB`:                           {clusters: 102, resources: 1},
		`300 targets with 10 resources each, while nothing happens: resident memory \| (\d+) MiB`: {clusters: 300, resources: 10},
	} {
		found := regexp.MustCompile(row).FindStringSubmatch(measured)
		if found == nil {
			t.Fatalf("%s has no row like %q", resultsPage, row)
		}
		want, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.oneActive(f).base / mebi; math.Abs(got-want) > 0.15*want {
			t.Errorf("%+v: the model returns %.0f MiB, and %.0f MiB were measured", f, got, want)
		}
	}
}

// docs/sizing.md recommends limits for one hub. They are not below the model's.
func TestModelAgreesWithSizing(t *testing.T) {
	c := measuredCosts(t)
	rows := regexp.MustCompile(`(?m)^\| ([\d,]+), (\d+) \| ([\d,]+) \| (\d+)([MG])i \|$`).FindAllStringSubmatch(read(t, filepath.Join(root, "docs/sizing.md")), -1)
	if len(rows) < 4 {
		t.Fatalf("%d rows were found", len(rows))
	}
	for _, row := range rows {
		var numbers [5]float64
		for i := 1; i < len(numbers); i++ {
			number, err := strconv.ParseFloat(strings.ReplaceAll(row[i], ",", ""), 64)
			if err != nil {
				t.Fatal(err)
			}
			numbers[i] = number
		}
		f := fleet{clusters: numbers[1], resources: numbers[2], objects: numbers[3] / numbers[1], objectBytes: sampleBytes, selected: 1}
		given := numbers[4] * map[string]float64{"M": mebi, "G": gibi}[row[5]]
		// Sizing leaves to Go's own tenth what the model adds for it, and rounds.
		if need := c.oneActive(f).memory; need > given*1.15 {
			t.Errorf("%s: the model needs %s", row[0], size(need))
		}
	}
}

func TestFlags(t *testing.T) {
	var out bytes.Buffer
	if err := run(root, parse(t, "-clusters=3,5", "-objects=7", "-edits=0.5", "-resources=2", "-shards=2"), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| need | 3 clusters | 5 clusters |", "| objects | 21 | 35 |", "| edits a second | 2 | 3 |", "| 2: given |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the tables have no %q:\n%s", want, out.String())
		}
	}
	for _, wrong := range []string{"-clusters=many", "-clusters=0", "-selected=2", "-resources=0", "-shards=-1", "-objects=-1", "-edits=-1"} {
		if err := run(root, parse(t, wrong), io.Discard); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}

// A fleet that does not fit into replicas has no number of them.
func TestDoesNotFit(t *testing.T) {
	o := parse(t, "-memory-limit=0.06", "-clusters=10")
	var out bytes.Buffer
	if err := run(root, o, &out); err != nil || !strings.Contains(out.String(), "| does not fit |") {
		t.Errorf("%v, the tables are\n%s", err, out.String())
	}
}

func TestReplaceTables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("# Page\n\n| one | a |\n| --- | --- |\n| x | 1 |\n| y | 2 |\n\nText.\n\n| two |\n| --- |\n| z |\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceTables(file, []string{"| one | b |\n| --- | --- |\n| x | 3 |\n"}); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, file), "# Page\n\n| one | b |\n| --- | --- |\n| x | 3 |\n\nText.\n\n| two |\n| --- |\n| z |\n"; got != want {
		t.Errorf("the page is %q, want %q", got, want)
	}
	if err := replaceTables(file, []string{"| three |\n| --- |\n"}); err == nil {
		t.Error("no error about a table that the page does not have")
	}
}

func TestFormats(t *testing.T) {
	for got, want := range map[string]string{
		count(0): "0", count(999.6): "1,000", count(1234567): "1,234,567",
		size(1): "1 MiB", size(512 << 20): "512 MiB", size(2 * gibi): "2 GiB", size(2.25 * gibi): "2.3 GiB", size(17.4 * gibi): "18 GiB",
		duration(0.2): "1 s", duration(99): "99 s", duration(100): "2 min", duration(7200): "2.0 h",
		cores(0.01): "under 0.1", cores(1.25): "1.2",
		orDefault(0): "default", orDefault(gibi): "1073741824 (1 GiB)", quantity(gibi): "1Gi", quantity(1.5 * gibi): "1536Mi", unlessDefault(5, 5): "default", unlessDefault(1999.5, 5): "2000",
		link("RESULTS.md"): "[RESULTS.md](../RESULTS.md)", link("docs/sizing.md"): "[sizing.md](sizing.md)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Each number around the text is read, and a text that is missing or there twice is an error.
func TestSources(t *testing.T) {
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "page.md"), []byte("two kcps with 1,300\nmailboxes took 11.5 GiB, 5 MiB and 5 MiB"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []results.Row{{Scenario: "edit", What: "20 objects: p50", Result: results.Quantity{Value: 3, Unit: "KiB"}}, {Scenario: "edit", What: "ratio", Result: results.Quantity{Value: 3, Unit: "x"}}}
	var first, last float64
	for _, test := range []struct {
		page, pattern string
		want          [2]float64
	}{
		{"page.md", "# mailboxes took # GiB", [2]float64{1300, 23}},
		{"page.md", "# TiB", [2]float64{}},
		{"page.md", "# MiB", [2]float64{}},
		{"other.md", "#", [2]float64{}},
		{"edit", "# objects…", [2]float64{20, 6144}},
		{"edit", "objects…", [2]float64{}},
		{"edit", "ratio", [2]float64{}},
		{"memory", "heap", [2]float64{}},
	} {
		first, last = 0, 0
		_, err := source{page: test.page, pattern: test.pattern, scale: 2, into: []*float64{&first, &last}}.read(directory, rows)
		if (err == nil) != (test.want[0] != 0) || [2]float64{first, last} != test.want {
			t.Errorf("%s in %s: %v and %v, %v", test.pattern, test.page, first, last, err)
		}
	}
}
