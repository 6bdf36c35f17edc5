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
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/synchub-dev/synchub/hack/screen"
)

const failureLines = 30

func main() {
	purpose := flag.String("for", "", "build the tools for a purpose: "+strings.Join(purposes, ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *purpose, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "buildtools:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, purpose string, names []string) error {
	binDir, toolsDir, err := directories()
	if err != nil {
		return err
	}
	chosen, err := choose(purpose, names)
	if err != nil {
		return err
	}
	missing, err := outdated(toolsDir, binDir, chosen)
	if err != nil {
		return err
	}
	show := screen.New(os.Stdout)
	for i, p := range missing {
		step := fmt.Sprintf("[%d/%d] building %s %s", i+1, len(missing), p.name, p.version)
		if err := show.Step(step, func() error { return build(ctx, toolsDir, binDir, p) }); err != nil {
			return err
		}
	}
	return nil
}

// directories returns bin/ and hack/tools/ of the repository. The command must run in its root.
func directories() (binDir, toolsDir string, err error) {
	root, err := os.Getwd()
	if err != nil {
		return "", "", fmt.Errorf("find the repository: %w", err)
	}
	toolsDir = filepath.Join(root, "hack", "tools")
	if _, err := os.Stat(toolsDir); err != nil {
		return "", "", fmt.Errorf("run this in the root of the repository: %w", err)
	}
	binDir = filepath.Join(root, "bin")
	if err := os.MkdirAll(binDir, 0o755); err != nil {
		return "", "", fmt.Errorf("create the directory for tools: %w", err)
	}
	return binDir, toolsDir, nil
}

// outdated returns the tools whose binary is missing or was built from another pin.
func outdated(toolsDir, binDir string, chosen []tool) ([]pinned, error) {
	var result []pinned
	for _, t := range chosen {
		p, err := pinTool(toolsDir, t)
		if err != nil {
			return nil, err
		}
		current, err := p.isCurrent(binDir)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", p.binary(binDir), err)
		}
		if !current {
			result = append(result, p)
		}
	}
	return result, nil
}

// build builds a tool and then renames it into bin/, so that it never overwrites a running program in place.
func build(ctx context.Context, toolsDir, binDir string, p pinned) error {
	temporary := fmt.Sprintf("%s.%d.new", p.binary(binDir), os.Getpid())
	defer os.Remove(temporary) //nolint:errcheck // after a success it is not there any more

	var output bytes.Buffer
	command := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-buildvcs=false", "-ldflags", p.flags, "-o", temporary, p.pkg)
	command.Dir = filepath.Join(toolsDir, p.dir)
	// A Go workspace around the repository must not replace the tool's own module.
	command.Env = append(os.Environ(), "GOWORK=off")
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("build %s %s: %w\n%s", p.name, p.version, err, lastLines(output.String(), failureLines))
	}
	if err := os.Rename(temporary, p.binary(binDir)); err != nil {
		return fmt.Errorf("put %s into bin/: %w", p.name, err)
	}
	return p.recordBuilt(binDir)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
