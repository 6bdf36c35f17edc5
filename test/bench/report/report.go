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
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// Report holds the results of a run.
type Report struct {
	// Commit is the measured commit, Machine the machine, and Quick is true for a run with few objects and rounds.
	Commit  string    `json:"commit"`
	Machine string    `json:"machine"`
	Date    time.Time `json:"date"`
	Quick   bool      `json:"quick"`
	Rows    []Row     `json:"rows"`
}

// WriteJSON writes the report as JSON.
func (r Report) WriteJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// WriteTable writes the report as a table: ratios first, then the raw values.
func (r Report) WriteTable(to io.Writer) error {
	out := tabwriter.NewWriter(to, 0, 0, 1, ' ', 0)
	how := ""
	if r.Quick {
		how = ", quick"
	}
	fmt.Fprintf(out, "Commit %s, %s, on %s%s.\n\n", r.Commit, r.Date.UTC().Format(time.DateOnly), r.Machine, how)
	fmt.Fprintf(out, "| scenario\t| measured\t| result\t| to reach\t| \t| hub\t| direct\t|\n")
	fmt.Fprintf(out, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(out, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n",
			row.Scenario, row.What, row.result(), row.limit(), row.outcome(), spread(row.Hub, row.Unit), spread(row.Direct, row.Unit))
	}
	return out.Flush()
}

func (r Row) result() string {
	if len(r.Direct) == 0 {
		return number(r.Result(), r.Unit)
	}
	ratios := r.Ratios()
	if len(ratios) == 1 {
		return number(ratios[0], "x")
	}
	return fmt.Sprintf("%s (%s to %s)", number(r.Result(), "x"), number(slices.Min(ratios), ""), number(slices.Max(ratios), ""))
}

func (r Row) limit() string {
	switch {
	case r.Limit == nil:
		return "reported"
	case len(r.Direct) > 0:
		return number(*r.Limit, "x")
	default:
		return number(*r.Limit, r.Unit)
	}
}

func (r Row) outcome() string {
	met, ok := r.Met()
	switch {
	case !ok:
		return ""
	case met:
		return "met"
	default:
		return "**missed**"
	}
}

// spread returns the median of the values and, if there are several, the minimum and the maximum.
func spread(values []float64, unit string) string {
	switch len(values) {
	case 0:
		return ""
	case 1:
		return number(values[0], unit)
	default:
		return fmt.Sprintf("%s (%s to %s)", number(Median(values), unit), number(slices.Min(values), ""), number(slices.Max(values), ""))
	}
}

// number formats a value with three digits, or with all digits before the point.
func number(value float64, unit string) string {
	digits := 2
	switch size := math.Abs(value); {
	case value == math.Trunc(value) || size >= 100:
		digits = 0
	case size >= 10:
		digits = 1
	case size < 0.1:
		digits = 4
	}
	text := fmt.Sprintf("%.*f", digits, value)
	switch unit {
	case "", "x":
		return text + unit
	default:
		return text + " " + unit
	}
}
