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
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

func TestNotesOf(t *testing.T) {
	const changelog = "# Changelog\n\nIts format.\n\n## [Unreleased]\n\n- Coming.\n\n### Security\n\n- Safer.\n\n## [0.2.0] - 2026-12-01\n\n- Second.\n\n" +
		"## [0.1.1]\n\n## [0.1.0] - 2026-11-01\n\n- First,\n  in two lines.\n"
	tests := []struct {
		name, version, want, wantErr string
	}{
		{name: "a snapshot", want: "- Coming.\n\n### Security\n\n- Safer.\n"},
		{name: "a tag", version: "v0.2.0", want: "- Second.\n"},
		{name: "a version", version: "0.2.0", want: "- Second.\n"},
		{name: "the last section", version: "v0.1.0", want: "- First,\n  in two lines.\n"},
		{name: "a section that says nothing", version: "v0.1.1", wantErr: "[0.1.1] of CHANGELOG.md says nothing"},
		{name: "no section", version: "v0.3.0", wantErr: "no section [0.3.0]"},
		{name: "the beginning of a version", version: "v0.1", wantErr: "no section [0.1]"},
		{name: "a commit after the tag", version: "v0.2.0-3-gabc", wantErr: "no section [0.2.0-3-gabc]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := notesOf(changelog, test.version)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("%q, %v; want %q", got, err, test.want)
			}
		})
	}
}

// TestNotesOfTheRepository reads the changelog of the repository, which has a section for the next release.
func TestNotesOfTheRepository(t *testing.T) {
	changelog, err := os.ReadFile("../../" + changelogFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notesOf(string(changelog), ""); err != nil {
		t.Error(err)
	}
}

// TestProgramsHaveTheTimeOfTheCommit reads the configuration of goreleaser: otherwise each run makes other archives.
func TestProgramsHaveTheTimeOfTheCommit(t *testing.T) {
	content, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var configuration struct {
		Builds []struct {
			ID           string `json:"id"`
			ModTimestamp string `json:"mod_timestamp"`
		} `json:"builds"`
	}
	if err := yaml.Unmarshal(content, &configuration); err != nil || len(configuration.Builds) != 2 {
		t.Fatalf("%+v: %v", configuration, err)
	}
	for _, build := range configuration.Builds {
		if build.ModTimestamp != "{{ .Env.SOURCE_DATE_EPOCH }}" {
			t.Errorf("the program of %s has the time %q", build.ID, build.ModTimestamp)
		}
	}
}

// packed returns a packaged chart with another one that it depends on.
func packed(t *testing.T, chartFile string, modified time.Time) []byte {
	t.Helper()
	var result bytes.Buffer
	compressor := gzip.NewWriter(&result)
	compressor.Comment = "Helm"
	to := tar.NewWriter(compressor)
	for _, file := range [][2]string{
		{"synchub/" + chartFile, "version: 0.1.0\nappVersion: 0.1.0\n"}, {"synchub/charts/other/Chart.yaml", "version: 9.9.9\n"}, {"synchub/values.yaml", "a: 1\n"},
	} {
		if err := to.WriteHeader(&tar.Header{Name: file[0], Mode: 0o644, Size: int64(len(file[1])), ModTime: modified}); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressor.Close(); err != nil {
		t.Fatal(err)
	}
	return result.Bytes()
}

func TestNormalize(t *testing.T) {
	created := time.Date(2026, 2, 3, 4, 5, 6, 0, time.FixedZone("CET", 3600))
	one, err := normalize(packed(t, "Chart.yaml", time.Unix(1, 0)), "v0.1.0", created)
	if err != nil {
		t.Fatal(err)
	}
	two, err := normalize(packed(t, "Chart.yaml", time.Unix(2, 0)), "", created)
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("the same chart makes two archives: %v", err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(one))
	if err != nil || reader.Comment != "Helm" {
		t.Fatalf("%+v, %v", reader, err)
	}
	header, err := tar.NewReader(reader).Next()
	if err != nil || header.Name != "synchub/Chart.yaml" || !header.ModTime.Equal(created) {
		t.Errorf("%+v, %v", header, err)
	}
}

func TestNormalizeRefuses(t *testing.T) {
	for want, test := range map[string]struct {
		packed  []byte
		version string
	}{
		"the release is 0.2.0": {packed(t, "Chart.yaml", time.Unix(1, 0)), "v0.2.0"},
		"no Chart.yaml":        {packed(t, "README.md", time.Unix(1, 0)), ""},
		"gzip":                 {[]byte("this is no archive"), ""},
	} {
		if _, err := normalize(test.packed, test.version, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"-created":        {"-notes=notes.md", "chart.tgz"},
		"-notes":          {"-created=2026-02-03T04:05:06Z", "chart.tgz"},
		"packaged charts": {"-created=2026-02-03T04:05:06Z", "-notes=notes.md"},
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
