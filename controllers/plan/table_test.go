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

package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// combinations calls visit with every combination of the columns' values, and returns their number.
func combinations(columns [][]string, visit func(values []string)) int {
	count := 0
	var extend func(values []string)
	extend = func(values []string) {
		if len(values) == len(columns) {
			count++
			visit(slices.Clone(values))
			return
		}
		for _, value := range columns[len(values)] {
			extend(append(values, value))
		}
	}
	extend(nil)
	return count
}

// checkTable fails the test unless exactly one line of the table matches each combination of the columns' values, and the
// decision is the action and the cause at the end of the line.
func checkTable(t *testing.T, table string, columns [][]string, decided func(values []string) (plan.Decision, error)) {
	t.Helper()
	var lines [][]string
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "state" {
			if len(fields) != len(columns)+2 {
				t.Fatalf("malformed line: %s", line)
			}
			lines = append(lines, fields)
		}
	}
	used := make([]bool, len(lines))
	combinations(columns, func(values []string) {
		var found []int
		for number, line := range lines {
			if holds(line, values) {
				found = append(found, number)
			}
		}
		if len(found) != 1 {
			t.Fatalf("%v: %d lines of the table hold", values, len(found))
		}
		used[found[0]] = true
		got, err := decided(values)
		if err != nil {
			t.Fatalf("%v: %v", values, err)
		}
		if want := lines[found[0]][len(columns):]; string(got.Action) != want[0] || string(got.Cause) != want[1] {
			t.Errorf("%v: want %v, got %v", values, want, got)
		}
	})
	if number := slices.Index(used, false); number >= 0 {
		t.Errorf("no combination for the line %v", lines[number])
	}
}

// holds reports whether a line of a table matches the values. "-" stands for any value, and "|" separates several.
func holds(line, values []string) bool {
	for column, value := range values {
		if line[column] != "-" && !slices.Contains(strings.Split(line[column], "|"), value) {
			return false
		}
	}
	return true
}
