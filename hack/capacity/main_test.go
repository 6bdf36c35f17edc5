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
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"synchub.dev/hack/capacity/inputs"
	"synchub.dev/hack/capacity/model"
	"synchub.dev/hack/capacity/spread"
)

const (
	page  = "../../docs/scaling.md"
	image = "../../docs/images/scaling.svg"
)

// flagsOf returns the options of the command with some flags. Without any they are those of `make capacity`.
func flagsOf(t *testing.T, arguments ...string) options {
	t.Helper()
	o := options{root: "../.."}
	flags := flag.NewFlagSet("capacity", flag.ContinueOnError)
	bind(&o, flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return o
}

// The figures of the page, and its chart, are those of the program and so of RESULTS.md. Writing the page again changes
// nothing.
func TestPageIsThatOfTheProgram(t *testing.T) {
	before, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "scaling.md")
	if err := os.WriteFile(copied, before, 0o600); err != nil { //nolint:gosec // The path is that of a test.
		t.Fatal(err)
	}
	o := flagsOf(t)
	o.page = copied
	o.chart = filepath.Join(t.TempDir(), "scaling.svg")
	if err := run(o, io.Discard); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(o.page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Error("docs/scaling.md has other figures than the program: run make capacity")
	}
	drawn, err := os.ReadFile(o.chart)
	if err != nil {
		t.Fatal(err)
	}
	if former, err := os.ReadFile(image); err != nil || !bytes.Equal(former, drawn) {
		t.Errorf("docs/images/scaling.svg (%v) is not the chart of the program: run make capacity", err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(drawn))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the image is no XML: %v", err)
		}
	}
}

func realModel(t *testing.T) model.Model {
	t.Helper()
	costs, _, err := inputs.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	return model.Model{Costs: costs, Limits: model.Documented, Assumptions: model.Assumed}
}

// The model finds about the memory of the whole hubs that were measured. They hold no garbage beyond what Go had left, so the
// parts are compared, not the limit.
func TestModelIsNearMeasuredHubs(t *testing.T) {
	results, err := os.ReadFile("../../RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row     string
		fleet   model.Fleet
		allowed float64
	}{
		{`resident, with 102 targets and 0 objects in sync \| (\d+) MiB`, model.Fleet{Clusters: 102, Resources: 1}, 0.15},
		{`300 targets with 10 resources each, while nothing happens: resident memory \| (\d+) MiB`, model.Fleet{Clusters: 300, Resources: 10}, 0.15},
	} {
		found := regexp.MustCompile(c.row).FindSubmatch(results)
		if found == nil {
			t.Errorf("RESULTS.md has no row like %q", c.row)
			continue
		}
		measured, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := realModel(t).OneActive(c.fleet).Memory.Base / (1 << 20); math.Abs(got-measured) > c.allowed*measured {
			t.Errorf("%+v: the model says %.0f MiB, and RESULTS.md %.0f MiB", c.fleet, got, measured)
		}
	}
}

// docs/sizing.md recommends limits for one hub. They are not below the model's.
func TestModelAgreesWithSizing(t *testing.T) {
	text, err := os.ReadFile("../../docs/sizing.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([\d,]+), (\d+) \| ([\d,]+) \| (\d+)([MG])i \|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) < 4 {
		t.Fatalf("%d rows were found", len(rows))
	}
	for _, row := range rows {
		number := func(text string) int {
			value, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		f := model.Fleet{Clusters: number(row[1]), Resources: number(row[2]), Objects: number(row[3]), ObjectBytes: model.SampleBytes, Selected: 1}
		given := float64(number(row[4])) * map[string]float64{"M": 1 << 20, "G": 1 << 30}[row[5]]
		// Sizing leaves to Go's own tenth what the model adds for it, and rounds.
		if need := realModel(t).OneActive(f).Memory.Limit(); need > given*1.15 {
			t.Errorf("%s: the model needs %s", row[0], size(need))
		}
	}
}

// The simulation is that of the version that the hub has.
func TestVersionOfTheSharder(t *testing.T) {
	version := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`sigs\.k8s\.io/multicluster-runtime (v\S+)`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no multicluster-runtime", file)
		}
		return string(found[1])
	}
	if own, hubs := version("go.mod"), version("../../go.mod"); own != hubs {
		t.Errorf("the simulation has multicluster-runtime %s, and the hub %s", own, hubs)
	}
}

func TestFlags(t *testing.T) {
	costs := realModel(t).Costs
	tables := func(arguments ...string) (string, error) {
		o := flagsOf(t, arguments...)
		p, err := newPlanner(o, costs)
		if err != nil {
			return "", err
		}
		made, err := p.tables(o)
		return strings.Join(made, "\n"), err
	}
	got, err := tables("-clusters=3,5", "-objects=7", "-edits=0.5", "-resources=2", "-mailboxes=all", "-shards=2")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| need | 3 clusters | 5 clusters |", "| objects | 21 | 35 |", "| edits a second | 2 | 3 |", "that hold all mailboxes | 2 |", "| 2: given |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the tables have no %q:\n%s", want, got)
		}
	}
	for _, wrong := range []string{"-clusters=many", "-clusters=0", "-selected=2", "-resources=0", "-mailboxes=none", "-shards=-1"} {
		if _, err := tables(wrong); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}

// A fleet that does not fit into replicas has no number of them.
func TestDoesNotFit(t *testing.T) {
	p := planner{Model: realModel(t), divider: spread.Simulation{Sharder: spread.Even{}, Names: spread.DeploymentPods}, replica: model.Replica{Memory: 64 << 20, Cores: 1}}
	made, err := p.plan(flagsOf(t).fleet(10))
	if err != nil || made.fits {
		t.Fatalf("%+v, %v", made, err)
	}
	if got := planTable("need", p.needs(), []plan{made}); !strings.Contains(got, "| does not fit |") {
		t.Errorf("the table is\n%s", got)
	}
}

func TestReplaceTables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	text := "# Page\n\n| one | a |\n| --- | --- |\n| x | 1 |\n| y | 2 |\n\nText.\n\n| two |\n| --- |\n| z |\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceTables(file, []string{"| one | b |\n| --- | --- |\n| x | 3 |\n"}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if want := "# Page\n\n| one | b |\n| --- | --- |\n| x | 3 |\n\nText.\n\n| two |\n| --- |\n| z |\n"; err != nil || string(got) != want {
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
