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

package clireference

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the reference pages")

// IsUpdate reports whether the user wants tests to write what is committed, by -update.
func IsUpdate() bool { return *update }

// Verify fails the test unless the file is the page of the command. With -update it writes the file.
func Verify(t *testing.T, file string, root *cobra.Command, common *pflag.FlagSet) {
	t.Helper()
	page := Render(root, common)
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if line, want := difference(string(written), page); want != "" {
		t.Errorf("%s is not the page of the commands: run make generate. Line %d should be\n%s", file, line, want)
	}
}

// difference returns the first line that is not as wanted, and its number from 1. It returns nothing for equal texts.
func difference(text, wanted string) (number int, want string) {
	lines, wantedLines := strings.SplitAfter(text, "\n"), strings.SplitAfter(wanted, "\n")
	for i, want := range wantedLines {
		if i >= len(lines) || lines[i] != want {
			return i + 1, want
		}
	}
	if len(lines) > len(wantedLines) {
		return len(wantedLines) + 1, "the end of the page"
	}
	return 0, ""
}
