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

package inputs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"synchub.dev/hack/capacity/model"
)

const root = "../../.."

// Every cost has a source, and every source is found.
func TestRead(t *testing.T) {
	costs, figures, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	value := reflect.ValueOf(costs)
	for i := range value.NumField() {
		if name := value.Type().Field(i).Name; value.Field(i).Float() <= 0 {
			t.Errorf("%s is %v", name, value.Field(i))
		}
	}
	for _, figure := range figures {
		if figure.Name == "" || figure.Value == "" || figure.Page == "" || figure.Place == "" {
			t.Errorf("a figure without a source: %+v", figure)
		}
	}
	// The order of magnitude, so that a unit cannot be lost.
	for name, within := range map[string][3]float64{
		"Process": {1e7, costs.Process, 1e9}, "Object": {5e3, costs.Object, 2e4}, "MailboxObject": {2e3, costs.MailboxObject, costs.Object},
		"Change": {1e-4, costs.Change, 5e-3}, "IdleCores": {1e-3, costs.IdleCores, 0.1}, "KcpMemory": {1e9, costs.KcpMemory, 1e11},
	} {
		if within[1] < within[0] || within[1] > within[2] {
			t.Errorf("%s is %g, not between %g and %g", name, within[1], within[0], within[2])
		}
	}
}

func TestEachNumberOfAPlaceIsRead(t *testing.T) {
	p := pages{texts: map[string]string{"page.md": "two kcps with 1,300\nmailboxes took 11.5 GiB."}}
	numbers, figure, err := source{name: "memory", page: "page.md", pattern: number + ` mailboxes took ` + number + ` GiB`}.read(&p)
	if err != nil || len(numbers) != 2 || numbers[0] != 1300 || numbers[1] != 11.5 {
		t.Errorf("numbers %v, error %v", numbers, err)
	}
	if want := (Figure{Name: "memory", Value: "1,300, 11.5", Page: "page.md", Place: "“1,300 mailboxes took 11.5 GiB”"}); figure != want {
		t.Errorf("figure %+v, want %+v", figure, want)
	}
}

func TestReadSaysWhatIsMissing(t *testing.T) {
	none := func(*model.Costs) []*float64 { return nil }
	p := pages{texts: map[string]string{"page.md": "5 MiB and 5 MiB"}}
	for _, c := range []struct {
		source
		want string
	}{
		{source{page: "page.md", pattern: number + " GiB", into: none}, "0 places"},
		{source{page: "page.md", pattern: number + " MiB", into: none}, "2 places"},
		{source{page: "other.md", pattern: number, into: none}, "other.md"},
		{source{scenario: "memory", pattern: "heap", into: none}, "no row of memory"},
	} {
		if _, _, err := c.read(&p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.source, err, c.want)
		}
	}
}

// A run without a scenario is no ground for a model.
func TestResultsWithoutAScenario(t *testing.T) {
	empty := t.TempDir()
	text := "| scenario | measured | result | to reach |\n| --- | --- | --- | --- |\n| edit | one edit | 1x | 2x |\n"
	if err := os.WriteFile(filepath.Join(empty, resultsPage), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(empty); err == nil {
		t.Error("no error")
	}
}
