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
	"reflect"
	"strings"
	"testing"
)

// sample has the table as `make bench` writes it, with padded cells, and an older section.
const sample = `# Results

## Unreleased

| scenario | measured     | result               | to reach |            | hub  | direct |
| ---      | ---          | ---                  | ---      | ---        | ---  | ---    |
| edit     | one edit     | 1.02x (0.92 to 1.03) | 2x       | met        | 5 ms | 5 ms   |
| busy     | an edit: p99 | 3.84x                | 2x       | **missed** | 9 ms | 3 ms   |
| memory   | an object    | 7.39 KiB             | reported |            |      |        |

| figure | who |
| --- | --- |
| 1.28x | others |

| scenario | measured | result | to reach |
| --- | --- | --- | --- |
| fleet-idle | processor | 2.25 % of a core | 5 % of a core |

## 0.0.1

| scenario | measured | result | to reach |
| --- | --- | --- | --- |
| edit | one edit | 9x | 2x |
`

func TestParse(t *testing.T) {
	rows, err := Parse(sample)
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{
		{Scenario: "edit", What: "one edit", Result: Quantity{1.02, 0.92, 1.03, "x"}, Limit: &Quantity{2, 2, 2, "x"}, Hub: &Quantity{5, 5, 5, "ms"}},
		{Scenario: "busy", What: "an edit: p99", Result: Quantity{3.84, 3.84, 3.84, "x"}, Limit: &Quantity{2, 2, 2, "x"}, Hub: &Quantity{9, 9, 9, "ms"}},
		{Scenario: "memory", What: "an object", Result: Quantity{7.39, 7.39, 7.39, "KiB"}},
		{Scenario: "fleet-idle", What: "processor", Result: Quantity{2.25, 2.25, 2.25, "% of a core"}, Limit: &Quantity{5, 5, 5, "% of a core"}},
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("rows\n%+v, want\n%+v", rows, want)
	}
}

func TestParseErrors(t *testing.T) {
	const head = "| scenario | measured | result | to reach |\n| --- | --- | --- | --- |\n"
	for input, want := range map[string]string{
		"# Results\n":                                      "there is no table",
		head + "| edit | one edit |\n":                     "line 3: ",
		head + "| edit | one | fast | 2x |\n":              `"fast" is not like`,
		head + "| edit | one | 1x | soon |\n":              `"soon" is not like`,
		head + "| edit | one | 1x (2 or 3) | 2x |\n":       "1x (2 or 3)",
		head + "| edit | one | 1x | 2x | met | fast | |\n": `"fast" is not like`,
	} {
		if _, err := Parse(input); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", input, err, want)
		}
	}
}
