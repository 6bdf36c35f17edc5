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

package main

import (
	"fmt"
	"strings"
)

// unreleased is the name of the changelog's section for a snapshot.
const unreleased = "Unreleased"

// notesOf returns the section of a changelog for a version, without its heading. An empty version stands for the section of what
// is not released yet. It is an error if there is no such section, or if it says nothing.
func notesOf(changelog, version string) (string, error) {
	name := strings.TrimPrefix(version, "v")
	if name == "" {
		name = unreleased
	}
	var section strings.Builder
	found := false
	for line := range strings.Lines(changelog) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			if found {
				break
			}
			found = titleOf(heading) == name
			continue
		}
		if found {
			section.WriteString(line)
		}
	}
	if !found {
		return "", fmt.Errorf("%s has no section [%s]: rename [%s] to it, with the date, and commit that before the tag", changelogFile, name, unreleased)
	}
	notes := strings.TrimSpace(section.String())
	if notes == "" {
		return "", fmt.Errorf("the section [%s] of %s says nothing", name, changelogFile)
	}
	return notes + "\n", nil
}

// titleOf returns the version in a heading such as "[0.1.0] - 2026-12-01".
func titleOf(heading string) string {
	version, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
	return strings.Trim(version, "[]")
}
