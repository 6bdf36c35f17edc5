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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestReleaseNotes writes the notes of the next release, which the changelog has a section for.
func TestReleaseNotes(t *testing.T) {
	changelog := "# Changelog\n\nIts format.\n\n## [Unreleased]\n\n- Coming.\n\n## [0.2.0] - 2026-12-01\n\n- Second.\n\n### Security\n\n- Safer.\n\n## [0.1.0] - 2026-11-01\n"
	for _, test := range []struct {
		name, want, wantErr string
		args                []string
	}{
		{name: "a snapshot", want: "- Coming."},
		{name: "a tag", args: []string{"PUBLISH=1", "VERSION=v0.2.0"}, want: "- Second.\n\n### Security\n\n- Safer."},
		{name: "an empty section", args: []string{"PUBLISH=1", "VERSION=v0.1.0"}, wantErr: "no section [0.1.0], or nothing in it"},
		{name: "no section", args: []string{"PUBLISH=1", "VERSION=v0.3.0"}, wantErr: "no section [0.3.0]"},
		{name: "the beginning of a version", args: []string{"PUBLISH=1", "VERSION=v0.2"}, wantErr: "no section [0.2]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(changelog), 0o600); err != nil {
				t.Fatal(err)
			}
			makefile, err := filepath.Abs(filepath.Join(root, "Makefile"))
			if err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "--file=" + makefile, "release-notes"}, test.args...)...)
			command.Dir = dir
			out, err := command.CombinedOutput()
			if test.wantErr != "" {
				if err == nil || !strings.Contains(string(out), test.wantErr) {
					t.Errorf("%v: %s; want %q", err, out, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if notes := strings.TrimSpace(string(readFile(t, filepath.Join(dir, "dist", "release-notes.md")))); notes != test.want {
				t.Errorf("%q, want %q", notes, test.want)
			}
		})
	}
}

// TestArchivesHaveTheTimeOfTheCommit reads the configuration of goreleaser: otherwise each run makes other archives.
func TestArchivesHaveTheTimeOfTheCommit(t *testing.T) {
	var configuration struct {
		Builds []struct {
			ID           string `json:"id"`
			ModTimestamp string `json:"mod_timestamp"`
		} `json:"builds"`
		Archives []struct {
			ID    string `json:"id"`
			Files []struct {
				Src  string `json:"src"`
				Info struct {
					MTime string `json:"mtime"`
				} `json:"info"`
			} `json:"files"`
		} `json:"archives"`
	}
	if err := yaml.Unmarshal(readFile(t, filepath.Join(root, ".goreleaser.yaml")), &configuration); err != nil || len(configuration.Builds) != 2 || len(configuration.Archives) != 4 {
		t.Fatalf("%+v: %v", configuration, err)
	}
	for _, build := range configuration.Builds {
		if build.ModTimestamp != "{{ .Env.SOURCE_DATE_EPOCH }}" {
			t.Errorf("the program of %s has the time %q", build.ID, build.ModTimestamp)
		}
	}
	for _, archive := range configuration.Archives {
		for _, file := range archive.Files {
			if file.Info.MTime != "{{ .Env.DATE }}" {
				t.Errorf("%s of %s has the time %q", file.Src, archive.ID, file.Info.MTime)
			}
		}
	}
}
