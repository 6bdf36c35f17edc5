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

package site

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// tableRows returns the cells of all tables of a file, row by row.
func tableRows(t *testing.T, file string) (rows [][]string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// measured returns the figures of the newest release in RESULTS.md, by the start of a row's second cell.
func measured(t *testing.T, label string) string {
	t.Helper()
	for _, row := range tableRows(t, "../../RESULTS.md") {
		if len(row) > 2 && strings.HasPrefix(row[1], label) {
			return row[2]
		}
	}
	t.Errorf("RESULTS.md has no row %q", label)
	return ""
}

// A fact has one figure: the pages about sizing repeat the figures of RESULTS.md.
func TestSizingHasTheFiguresOfResults(t *testing.T) {
	checked := 0
	for _, row := range tableRows(t, "../../docs/sizing.md") {
		label, figure := "", ""
		if len(row) == 3 && row[2] != "" && strings.HasSuffix(row[1], "iB") {
			label, figure = row[2], row[1]
		} else if colon := strings.LastIndex(row[0], ": "); colon > 0 {
			label, figure = row[0][:colon], row[0][colon+2:]
		}
		if label == "" {
			continue
		}
		checked++
		if want := measured(t, label); figure != want {
			t.Errorf("%s: the page says %s, and RESULTS.md %s", label, figure, want)
		}
	}
	if checked < 4 {
		t.Errorf("only %d figures were found", checked)
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// YAML on pages has no mistakes. Other tests apply what they can to real servers.
func TestDocumentedYAMLParses(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, name := range pages {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(content), -1) {
			for document := range strings.SplitSeq(block[1], "\n---\n") {
				count++
				var decoded map[string]any
				if err := yaml.UnmarshalStrict([]byte(document), &decoded); err != nil {
					t.Errorf("%s: %v in\n%s", name, err, document)
				}
			}
		}
	}
	if count < 20 {
		t.Errorf("only %d documents were found", count)
	}
}

// The README installs as the page does, which explains each command.
func TestTheReadmeInstallsAsThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(readme), "\n## Install\n")
	if !found {
		t.Fatal("the README has no section Install")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	commands := regexp.MustCompile(`(?m)^    .*$`).FindAllString(section, -1)
	if len(commands) < 4 {
		t.Errorf("the README has only the commands %q", commands)
	}
	for _, command := range commands {
		if !strings.Contains(string(page), command+"\n") {
			t.Errorf("docs/install.md does not have the README's %q", strings.TrimSpace(command))
		}
	}
}
