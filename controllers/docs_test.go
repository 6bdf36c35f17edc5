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

package controllers

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The pages of the design name files of the code. This test finds names of files that were moved.
func TestDesignNamesFilesThatExist(t *testing.T) {
	pages, err := filepath.Glob("../docs/design/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	file, named := regexp.MustCompile("`((?:apis|cmd|controllers|provider|test|hack)/[A-Za-z0-9_./-]+)`"), 0
	for _, page := range pages {
		text, err := os.ReadFile(page) //nolint:gosec // a page of this repository
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range file.FindAllStringSubmatch(string(text), -1) {
			named++
			if _, err := os.Stat(filepath.Join("..", match[1])); err != nil { //nolint:gosec // a path below this repository
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
	if named == 0 {
		t.Error("no page names a file")
	}
}

// The page of the metrics lists the values of the label cause. Every state but Selected is one, too.
func TestMetricsPageListsCauses(t *testing.T) {
	read := func(file string, parts *regexp.Regexp) (found []string) {
		text, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range parts.FindAllStringSubmatch(string(text), -1) {
			found = append(found, match[1])
		}
		return found
	}
	causes := read("plan/decision.go", regexp.MustCompile(`(?m)^\t\w+ +(?:Cause|State) += "(\w+)"$`))
	causes = slices.DeleteFunc(causes, func(cause string) bool { return cause == "Selected" })
	paragraph := read("../docs/metrics.md", regexp.MustCompile("(?s)\n(`cause` is one of .*?)\\. "))
	if len(causes) < 10 || len(paragraph) != 1 {
		t.Fatalf("%d causes, and %d paragraphs about them", len(causes), len(paragraph))
	}
	var listed []string
	for _, match := range regexp.MustCompile("`([A-Z]\\w+)`").FindAllStringSubmatch(paragraph[0], -1) {
		listed = append(listed, match[1])
	}
	slices.Sort(causes)
	slices.Sort(listed)
	if !slices.Equal(causes, listed) {
		t.Errorf("docs/metrics.md lists the causes %v, and there are %v", listed, causes)
	}
}
