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

package scenario

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/synchub-dev/synchub/test/bench/figures"
)

func TestTogether(t *testing.T) {
	for given, want := range map[string]string{
		"":          "",
		"a":         "a",
		"a b":       "a b",
		"B":         "B",
		"a b C d":   "a b|C d",
		"a B C d e": "a|B|C d e",
	} {
		var scenarios []Scenario
		for name := range strings.FieldsSeq(given) {
			scenarios = append(scenarios, Scenario{Name: name, Afresh: name == strings.ToUpper(name)})
		}
		var parts []string
		for _, part := range Together(scenarios) {
			var names []string
			for _, one := range part {
				names = append(names, one.Name)
			}
			parts = append(parts, strings.Join(names, " "))
		}
		if got := strings.Join(parts, "|"); got != want {
			t.Errorf("%q is run as %q, want %q", given, got, want)
		}
	}
}

func TestBill(t *testing.T) {
	costs := newBill(500, 10)
	costs.note(directly, took{elapsed: 2 * time.Second, cpu: time.Second, servers: 4 * time.Second})
	costs.note(byHub, took{elapsed: 3 * time.Second, cpu: 2 * time.Second, servers: 5 * time.Second})
	for i, want := range []figures.Row{{Hub: []float64{3}, Direct: []float64{2}}, {Hub: []float64{4}, Direct: []float64{2}}, {Hub: []float64{10}, Direct: []float64{8}}} {
		row := costs.rows()[i]
		if !reflect.DeepEqual(row.Hub, want.Hub) || !reflect.DeepEqual(row.Direct, want.Direct) {
			t.Errorf("%s: hub %v, direct %v; want %v, %v", row.What, row.Hub, row.Direct, want.Hub, want.Direct)
		}
	}

	unknown := newBill(500, 10)
	unknown.note(directly, took{elapsed: time.Second, cpu: time.Second})
	unknown.note(byHub, took{elapsed: time.Second, cpu: time.Second})
	if rows := unknown.rows(); len(rows) != 2 {
		t.Errorf("%d rows where nobody tells what servers take, want 2", len(rows))
	}
}
