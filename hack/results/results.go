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

// Package results reads the tables of RESULTS.md, as `make bench` writes them.
package results

import (
	"errors"
	"fmt"
	"regexp"
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
	// Hub is the hub's own figure behind the result, or nil.
	Hub *Quantity
}

// Quantity is a number with its unit. Without a range, Least and Greatest equal Value.
type Quantity struct {
	Value, Least, Greatest float64
	Unit                   string
}

const tableStart = "| scenario | measured | result | to reach |"

// Indices of the cells of a row.
const (
	scenario = iota
	measured
	result
	limit
	_
	hub
	leastCells = limit + 1
)

// Parse returns the rows of all tables of results in the first section of a text, which is the newest release.
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
			row, err := parseRow(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number+1, err)
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("there is no table that starts with %q", tableStart)
	}
	return rows, nil
}

func parseRow(line string) (row Row, err error) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	if len(cells) < leastCells {
		return row, fmt.Errorf("%q has fewer than %d cells", line, leastCells)
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	parse := func(cell int) *Quantity {
		parsed, parseErr := parseQuantity(cells[cell])
		err = errors.Join(err, parseErr)
		return &parsed
	}
	row = Row{Scenario: cells[scenario], What: cells[measured], Result: *parse(result)}
	if cells[limit] != "reported" {
		row.Limit = parse(limit)
	}
	if len(cells) > hub && cells[hub] != "" {
		row.Hub = parse(hub)
	}
	return row, err
}

var quantity = regexp.MustCompile(`^(\d[\d.]*)(x| [^(]+?)?(?: \((\d[\d.]*) to (\d[\d.]*)\))?$`)

// parseQuantity reads "1.02x (0.92 to 1.03)", "2x", "7.39 KiB" or "0".
func parseQuantity(text string) (q Quantity, err error) {
	found := quantity.FindStringSubmatch(text)
	if found == nil {
		return q, fmt.Errorf("%q is not like 1.02x (0.92 to 1.03), or 7.39 KiB", text)
	}
	q.Unit = strings.TrimSpace(found[2])
	if found[3] == "" {
		found[3], found[4] = found[1], found[1]
	}
	for number, digits := range map[*float64]string{&q.Value: found[1], &q.Least: found[3], &q.Greatest: found[4]} {
		parsed, parseErr := strconv.ParseFloat(digits, 64)
		*number, err = parsed, errors.Join(err, parseErr)
	}
	return q, err
}
