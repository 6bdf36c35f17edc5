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

// Command verifylicences fails unless all code in the project's programs has a licence that permits redistribution.
// It reads the licence files in the root of each module, and next to the used packages of the module.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// programs are the packages whose dependencies count. platforms are the platforms that the project builds for.
const programs = "./cmd/..."

var platforms = []string{"linux", "darwin", "windows"}

// module is a module with packages that the programs use.
type module struct {
	path, version string
	// root is the directory of the module. directories are those of its used packages.
	root        string
	directories []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	modules, err := verify(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "verifylicences:", err)
		os.Exit(1)
	}
	fmt.Printf("verifylicences: %d modules, all under a licence of the list\n", modules)
}

func verify(ctx context.Context) (modules int, err error) {
	var listed strings.Builder
	for _, platform := range platforms {
		output, err := list(ctx, platform)
		if err != nil {
			return 0, err
		}
		listed.Write(output)
	}
	used := modulesIn(listed.String())
	var errs []error
	for _, m := range used {
		if err := m.verify(); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", m.path, m.version, err))
		}
	}
	return len(used), errors.Join(errs...)
}

// list lists the packages of the programs on a platform, each with its module, in columns.
func list(ctx context.Context, platform string) ([]byte, error) {
	const columns = "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}\t{{.Dir}}"
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-f", columns, programs)
	command.Env = append(os.Environ(), "GOOS="+platform)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of the programs on %s: %w", platform, err)
	}
	return output, nil
}

// modulesIn parses the output of go list. Packages of the standard library have no module.
func modulesIn(listed string) []*module {
	byPath := map[string]*module{}
	for line := range strings.Lines(listed) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != 4 {
			continue
		}
		m := byPath[columns[0]]
		if m == nil {
			m = &module{path: columns[0], version: columns[1], root: columns[2]}
			byPath[m.path] = m
		}
		m.directories = append(m.directories, columns[3])
	}
	return slices.SortedFunc(maps.Values(byPath), func(a, b *module) int { return strings.Compare(a.path, b.path) })
}

// licenceFile matches the names of licence files.
var licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([-._].*)?$`)

// templateFile matches the names of templates for the headers of source files, which are no licences.
var templateFile = regexp.MustCompile(`(?i)^licen[cs]e[-._]template`)

// verify returns an error unless the module's root has a licence file, and all licence files between the root and the
// used packages have a licence from the list.
func (m *module) verify() error {
	found := false
	for _, directory := range m.onTheWay() {
		entries, err := os.ReadDir(directory)
		if err != nil {
			return fmt.Errorf("look for licences: %w", err)
		}
		for _, entry := range entries {
			if !entry.Type().IsRegular() || !licenceFile.MatchString(entry.Name()) || templateFile.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
				continue
			}
			file := filepath.Join(directory, entry.Name())
			text, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("read a licence: %w", err)
			}
			if _, err := recognise(string(text)); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			found = found || directory == m.root
		}
	}
	if !found {
		return fmt.Errorf("there is no licence file in %s", m.root)
	}
	return nil
}

// onTheWay returns the directories from the root of the module to its used packages, without duplicates.
func (m *module) onTheWay() []string {
	directories := map[string]struct{}{m.root: {}}
	for _, directory := range m.directories {
		for len(directory) > len(m.root) {
			directories[directory] = struct{}{}
			directory = filepath.Dir(directory)
		}
	}
	return slices.Sorted(maps.Keys(directories))
}
