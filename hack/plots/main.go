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

// Command plots draws charts of the newest results of the benchmarks. It reads a table as `make bench` writes it: in RESULTS.md, or in
// logs/bench.md of a new run.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/synchub-dev/synchub/hack/chart"
	"github.com/synchub-dev/synchub/hack/results"
)

func main() {
	from := flag.String("from", "RESULTS.md", "the file with the table of results")
	out := flag.String("out", "docs/images", "the directory for the charts")
	flag.Parse()
	if err := run(*from, *out); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

func run(from, out string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("read the results: %w", err)
	}
	rows, err := results.Parse(string(text))
	if err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("create the directory for charts: %w", err)
	}
	for _, one := range charts {
		picked, err := pick(one, rows)
		if err != nil {
			return fmt.Errorf("%s: %w", one.file, err)
		}
		if len(picked) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(out, one.file), chart.Dots(one.title, axis(one, picked), picked), 0o644); err != nil {
			return fmt.Errorf("write a chart: %w", err)
		}
	}
	return nil
}

// pick returns the rows of a chart. A run can leave out scenarios: the chart has none of their lines. If a scenario lacks the expected
// row, it was changed, and the line must follow.
func pick(c resultChart, rows []results.Row) (picked []chart.Row, err error) {
	var headings []chart.Row
	for _, l := range c.lines {
		if l.scenario == "" {
			headings = []chart.Row{{Label: l.label}}
			continue
		}
		what := regexp.MustCompile(l.what)
		ran, found := false, []chart.Row(nil)
		for _, row := range rows {
			if row.Scenario != l.scenario {
				continue
			}
			ran = true
			if groups := what.FindStringSubmatchIndex(row.What); groups != nil {
				drawn, err := c.row(row)
				if err != nil {
					return nil, fmt.Errorf("%q: %w", row.What, err)
				}
				drawn.Label = string(what.ExpandString(nil, l.label, row.What, groups))
				found = append(found, drawn)
			}
		}
		if ran && found == nil {
			return nil, fmt.Errorf("the scenario %s has no row like %s", l.scenario, l.what)
		}
		if found != nil {
			picked, headings = append(append(picked, headings...), found...), nil
		}
	}
	return picked, nil
}

// ratio draws the ratio to the direct work.
func ratio(row results.Row) (chart.Row, error) {
	r := row.Result
	if r.Unit != "x" {
		return chart.Row{}, fmt.Errorf("it is no ratio: its unit is %q", r.Unit)
	}
	drawn := chart.Row{Number: fmt.Sprintf("%.2f×", r.Value), Least: r.Least, Value: r.Value, Greatest: r.Greatest, Limit: math.NaN()}
	if row.Limit != nil {
		drawn.Limit = row.Limit.Value
	}
	return drawn, nil
}

// share draws a quantity in percent of its limit.
func share(row results.Row) (chart.Row, error) {
	r := row.Result
	if row.Limit == nil || row.Limit.Unit != r.Unit {
		return chart.Row{}, fmt.Errorf("it has no limit of the unit %s", r.Unit)
	}
	short := func(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
	value := r.Value / row.Limit.Value * 100
	number := fmt.Sprintf("%s of %s %s", short(r.Value), short(row.Limit.Value), r.Unit)
	return chart.Row{Number: number, Value: value, Greatest: value, Limit: 100}, nil
}

// axis returns an axis with some space beside the least and the greatest number.
func axis(c resultChart, rows []chart.Row) chart.Axis {
	axis := c.axis
	least, greatest := axis.Mark, axis.Mark
	for _, row := range rows {
		if row.Number != "" {
			least, greatest = min(least, row.Least), max(greatest, row.Greatest)
		}
		if row.Limit > greatest {
			greatest = row.Limit
		}
	}
	if greatest-least < 10*axis.Step/5 {
		axis.Step /= 5
	}
	axis.Least = max(0, math.Floor(least/axis.Step-0.1)*axis.Step)
	axis.Greatest = math.Ceil(greatest/axis.Step+0.1) * axis.Step
	return axis
}
