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

package results

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Row is a row of a table of results.
type Row struct {
	Scenario, What string
	// Result is the median and, of several rounds, the range. Its unit is "x" if it is a ratio to the direct work.
	Result Quantity
	// Limit is nil if the row is only reported.
	Limit *Quantity
	// Hub and Direct are the raw figures behind the result, or nil.
	Hub, Direct *Quantity
}

// Quantity is a number with its unit, as the report of the benchmarks formats it. Without a range, Least and Greatest
// equal Value.
type Quantity struct {
	Value, Least, Greatest float64
	Unit                   string
}

const (
	tableStart = "| scenario | measured | result | to reach |"
	reported   = "reported"
	// rawCells is the index of the first raw figure in a row.
	rawCells = 5
)

// Parse returns the rows of all tables in the first section of a text, which is the newest release.
func Parse(text string) ([]Row, error) {
	var rows []Row
	sections, inTable := 0, false
	for number, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "## ") {
			sections++
		}
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case sections > 1:
			return rows, nil
		case strings.HasPrefix(line, tableStart):
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && !strings.HasPrefix(line, "| ---"):
			r, err := parseRow(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number+1, err)
			}
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("there is no table that starts with %q", tableStart)
	}
	return rows, nil
}

func parseRow(line string) (Row, error) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	if len(cells) < 4 {
		return Row{}, fmt.Errorf("%q has fewer than four cells", line)
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	r := Row{Scenario: cells[0], What: cells[1]}
	var err error
	if r.Result, err = parseQuantity(cells[2]); err != nil {
		return Row{}, fmt.Errorf("the result of %q: %w", r.What, err)
	}
	if cells[3] != reported {
		limit, err := parseQuantity(cells[3])
		if err != nil {
			return Row{}, fmt.Errorf("the limit of %q: %w", r.What, err)
		}
		r.Limit = &limit
	}
	for i, raw := range []**Quantity{&r.Hub, &r.Direct} {
		if len(cells) <= rawCells+i || cells[rawCells+i] == "" {
			continue
		}
		figure, err := parseQuantity(cells[rawCells+i])
		if err != nil {
			return Row{}, fmt.Errorf("a raw figure of %q: %w", r.What, err)
		}
		*raw = &figure
	}
	return r, nil
}

var errQuantity = errors.New("it is not like 1.02x (0.92 to 1.03), or 7.39 KiB")

// parseQuantity reads "1.02x (0.92 to 1.03)", "2x", "7.39 KiB" or "0".
func parseQuantity(text string) (Quantity, error) {
	number, spread, ranged := strings.Cut(text, " (")
	number, unit, _ := strings.Cut(number, " ")
	if ratio, ok := strings.CutSuffix(number, "x"); ok {
		number, unit = ratio, "x"
	}
	q := Quantity{Unit: unit}
	var err error
	if q.Value, err = strconv.ParseFloat(number, 64); err != nil {
		return Quantity{}, fmt.Errorf("%q: %w", text, errQuantity)
	}
	q.Least, q.Greatest = q.Value, q.Value
	if !ranged {
		return q, nil
	}
	least, greatest, ok := strings.Cut(strings.TrimSuffix(spread, ")"), " to ")
	var errLeast, errGreatest error
	q.Least, errLeast = strconv.ParseFloat(least, 64)
	q.Greatest, errGreatest = strconv.ParseFloat(greatest, 64)
	if !ok || errLeast != nil || errGreatest != nil {
		return Quantity{}, fmt.Errorf("%q: %w", text, errQuantity)
	}
	return q, nil
}

// Met reports whether the result is within the limit. A row that is only reported is met.
func (r Row) Met() bool { return r.Limit == nil || r.Result.Value <= r.Limit.Value }
