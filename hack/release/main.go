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
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const changelogFile = "CHANGELOG.md"

// settings are the flags and the arguments of the command.
type settings struct {
	// version is the tag of the release; empty for a snapshot.
	version string
	// created is the time of the commit.
	created time.Time
	// notes is the file to write the notes to.
	notes string
	// charts are the packaged charts.
	charts []string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func parse(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	created := flags.String("created", "", "time of the commit, in RFC 3339")
	flags.StringVar(&s.version, "version", "", "tag of the release; without it, the notes are those of what is not released yet")
	flags.StringVar(&s.notes, "notes", "", "file to write the release notes to")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	var err error
	if s.created, err = time.Parse(time.RFC3339, *created); err != nil {
		return s, fmt.Errorf("-created: %w", err)
	}
	if s.notes == "" || flags.NArg() == 0 {
		return s, errors.New("-notes and the packaged charts are needed")
	}
	s.charts = flags.Args()
	return s, nil
}

func run(args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	changelog, err := os.ReadFile(changelogFile)
	if err != nil {
		return fmt.Errorf("run this in the root of the repository: %w", err)
	}
	notes, err := notesOf(string(changelog), s.version)
	if err != nil {
		return err
	}
	for _, chart := range s.charts {
		if err := normalizeFile(chart, s.version, s.created); err != nil {
			return fmt.Errorf("%s: %w", chart, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(s.notes), 0o755); err != nil {
		return err
	}
	return os.WriteFile(s.notes, []byte(notes), 0o644)
}

// normalizeFile replaces a packaged chart by the one that [normalize] returns.
func normalizeFile(path, version string, created time.Time) error {
	packed, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if packed, err = normalize(packed, version, created); err != nil {
		return err
	}
	return os.WriteFile(path, packed, 0o644) //nolint:gosec // whoever runs it names the file
}
