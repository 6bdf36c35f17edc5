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
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/synchub-dev/synchub/hack/screen"
)

const failureLines = 30

// buildsAtATime limits the memory of builds: the linker takes 1.8 GB for kcp.
const buildsAtATime = 2

// compilerFlags omit what the linker flags of all tools drop, which takes a fifth of the time to compile.
const compilerFlags = "all=-dwarf=false"

// batches groups tools that one command can build: tools of one module with the same flags. The command links one program
// while it compiles the next, and reads the module's packages once.
func batches(missing []pinned) [][]pinned {
	var all [][]pinned
	for _, p := range missing {
		if last := len(all) - 1; last >= 0 && all[last][0].dir == p.dir && all[last][0].flags == p.flags {
			all[last] = append(all[last], p)
		} else {
			all = append(all, []pinned{p})
		}
	}
	return all
}

// build builds batches side by side: one downloads or links while another one compiles.
func (i installer) build(ctx context.Context, show *screen.Screen, missing []pinned) error {
	all := batches(missing)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(buildsAtATime)
	for n, batch := range all {
		step := fmt.Sprintf("[%d/%d] building %s %s", n+1, len(all), names(batch), batch[0].version)
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err() // another one failed
			}
			return show.Step(step, func() error { return i.buildBatch(ctx, batch) })
		})
	}
	return group.Wait()
}

func names(tools []pinned) string {
	all := make([]string, len(tools))
	for n, p := range tools {
		all[n] = p.name
	}
	return strings.Join(all, ", ")
}

// buildBatch builds tools and then renames them into bin/, so that it never overwrites a running program in place.
func (i installer) buildBatch(ctx context.Context, batch []pinned) error {
	directory, err := os.MkdirTemp(i.binDir, ".build-")
	if err != nil {
		return fmt.Errorf("create a directory to build in: %w", err)
	}
	defer os.RemoveAll(directory) //nolint:errcheck // if it cannot be removed, it is just a leftover in bin/

	output := filepath.Join(directory, batch[0].name)
	if len(batch) > 1 {
		// go names each program after the last element of its package.
		output = directory + string(filepath.Separator)
	}
	args := []string{"build", "-mod=readonly", "-buildvcs=false", "-gcflags", compilerFlags, "-ldflags", batch[0].flags, "-o", output}
	for _, p := range batch {
		args = append(args, p.pkg)
	}
	var text bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = filepath.Join(i.toolsDir, batch[0].dir)
	// A Go workspace around the repository must not replace the tool's own module.
	command.Env = append(os.Environ(), "GOWORK=off")
	command.Stdout, command.Stderr = &text, &text
	if err := command.Run(); err != nil {
		return fmt.Errorf("build %s %s: %w\n%s", names(batch), batch[0].version, err, lastLines(text.String(), failureLines))
	}
	for _, p := range batch {
		if err := os.Rename(filepath.Join(directory, p.name), p.binary(i.binDir)); err != nil {
			return fmt.Errorf("put %s into bin/: %w", p.name, err)
		}
		if err := p.recordInstalled(i.binDir); err != nil {
			return err
		}
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
