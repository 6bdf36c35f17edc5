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
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestChecklistOfTheRepository(t *testing.T) {
	page, err := os.ReadFile("../../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, one := range parse(string(page)) {
		names[one.name] = true
	}
	if len(names) < len(checks)+3 {
		t.Errorf("the page has the items %v", names)
	}
	for name := range checks {
		if !names[name] {
			t.Errorf("the page has no item %s", name)
		}
	}
}

func TestChecklist(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	walk := func(publish bool) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), &out, root, "v0.1.0", publish)
		return out.String(), err
	}
	write("CONTRIBUTING.md", "# C\n\n## Make a release\n\n- [ ] **charts**: c\n- [ ] **changelog**: l\n- [ ] **commit**: o\n- [ ] **tag**: t\n- [ ] **krew**: send it\n  there\n\n## Next\n\n- [ ] **none**: n\n")
	write("charts/a/Chart.yaml", "version: 0.0.9\nappVersion: \"0.1.0\"\n")
	write("CHANGELOG.md", "# C\n\n## [Unreleased]\n")
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "--message=none")
	out, err := walk(false)
	if err != nil || strings.Count(out, "missing") != 4 || !strings.Contains(out, "by hand  krew: send it there\n") || strings.Contains(out, "none") {
		t.Errorf("%v:\n%s", err, out)
	}
	if _, err := walk(true); err == nil {
		t.Error("a release that lacks much may be published")
	}
	write("charts/a/Chart.yaml", "version: 0.1.0\nappVersion: \"0.1.0\"\n")
	write("CHANGELOG.md", "# C\n\n## [0.1.0] - 2026-12-01\n\n- First.\n")
	git("add", "--all")
	git("commit", "--quiet", "--message=first")
	git("tag", "v0.1.0")
	if out, err := walk(true); err != nil || strings.Contains(out, "missing") {
		t.Errorf("%v:\n%s", err, out)
	}
}
