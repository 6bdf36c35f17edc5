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
