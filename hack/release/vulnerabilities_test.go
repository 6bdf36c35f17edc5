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

package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVulnerabilities runs make with programs in place of go and govulncheck.
func TestVulnerabilities(t *testing.T) {
	makefile, err := filepath.Abs(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	const notChecked = "NOT CHECKED"
	for _, test := range []struct {
		name, message string
		status        int
		fails         bool
		want          string
	}{
		{name: "nothing found"},
		{name: "something found", status: 3, fails: true},
		{name: "the database cannot be reached", status: 1, message: "govulncheck: fetching vulnerabilities: no such host", want: notChecked},
		{name: "the code cannot be loaded", status: 1, message: "govulncheck: loading packages: there are errors", fails: true, want: "loading packages"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			script(t, filepath.Join(dir, "go"), "exit 0")
			script(t, filepath.Join(dir, "bin", "govulncheck"), fmt.Sprintf("echo %q >&2\nexit %d", test.message, test.status))
			command := exec.CommandContext(t.Context(), "make", "--file="+makefile, "vulnerabilities")
			command.Dir, command.Env = dir, append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, err := command.CombinedOutput()
			if (err != nil) != test.fails || !strings.Contains(string(out), test.want) || strings.Contains(string(out), notChecked) != (test.want == notChecked) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// script writes a program.
func script(t *testing.T, path, commands string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+commands+"\n"), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
}
