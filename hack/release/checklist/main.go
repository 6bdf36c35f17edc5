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

// Command checklist walks through the checklist of a release in CONTRIBUTING.md. It checks the items that a program can check, and prints
// the remaining ones.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	version := flag.String("version", "", "version of the release, such as v0.1.0")
	publish := flag.Bool("publish", false, "fail unless all items that can be checked are done")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, ".", *version, *publish); err != nil {
		fmt.Fprintln(os.Stderr, "checklist:", err)
		os.Exit(1)
	}
}

// item is an item of the checklist.
type item struct{ name, text string }

// itemLine matches an item in CONTRIBUTING.md.
var itemLine = regexp.MustCompile(`(?m)^- \[ \] \*\*(\w+)\*\*: (.*(?:\n  .*)*)`)

// parse returns the items of the page.
func parse(page string) (items []item) {
	_, section, _ := strings.Cut(page, "\n## Make a release\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, found := range itemLine.FindAllStringSubmatch(section, -1) {
		items = append(items, item{found[1], strings.Join(strings.Fields(found[2]), " ")})
	}
	return items
}

// release is what the checks are about.
type release struct {
	ctx     context.Context
	root    string
	version string
}

// tag returns the version without v, as charts and images have it.
func (r release) tag() string { return strings.TrimPrefix(r.version, "v") }

// checks are the items that a program can check, by name. Each returns what is missing, or nothing.
var checks = map[string]func(release) (string, error){
	"charts": release.charts, "changelog": release.changelog, "commit": release.commit, "tag": release.tagged,
}

func run(ctx context.Context, out io.Writer, root, version string, publish bool) error {
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		return err
	}
	missing := 0
	for _, one := range parse(string(page)) {
		state := "by hand"
		if check := checks[one.name]; check != nil {
			problem, err := check(release{ctx, root, version})
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", one.name, err)
			case problem == "":
				state = "done"
			default:
				state, one.text = "missing", problem
				missing++
			}
		}
		if _, err := fmt.Fprintf(out, "%-8s %s: %s\n", state, one.name, one.text); err != nil {
			return err
		}
	}
	if publish && missing > 0 {
		return fmt.Errorf("%s cannot be published: see the items above that are missing", version)
	}
	return nil
}

func (r release) charts() (string, error) {
	files, err := filepath.Glob(filepath.Join(r.root, "charts", "*", "Chart.yaml"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		var chart struct{ Version, AppVersion string }
		if err := yaml.Unmarshal(content, &chart); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		if chart.Version != r.tag() || chart.AppVersion != r.tag() {
			return fmt.Sprintf("%s has another version or appVersion than %s: change it and commit that before the tag", file, r.tag()), nil
		}
	}
	return "", nil
}

func (r release) changelog() (string, error) {
	content, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	if !regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(r.tag()) + `\] - \d{4}-\d{2}-\d{2}$`).Match(content) {
		return fmt.Sprintf("CHANGELOG.md has no section [%s] with a date: rename [Unreleased] to it", r.tag()), nil
	}
	return "", nil
}

func (r release) commit() (string, error) {
	changed, err := r.git("status", "--porcelain")
	if err != nil || changed == "" {
		return "", err
	}
	return "some files are not committed: see `git status`", nil
}

func (r release) tagged() (string, error) {
	tags, err := r.git("tag", "--points-at", "HEAD")
	if err != nil {
		return "", err
	}
	for tag := range strings.SplitSeq(tags, "\n") {
		if tag == r.version {
			return "", nil
		}
	}
	return "the commit does not have the tag " + r.version, nil
}

func (r release) git(args ...string) (string, error) {
	command := exec.CommandContext(r.ctx, "git", args...)
	command.Dir = r.root
	out, err := command.Output()
	return string(bytes.TrimSpace(out)), err
}
