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
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/synchub-dev/synchub/test/framework/servers"
)

// command is a command line of kubectl or of its plugin, in a context of the demo's kubeconfig.
type command struct {
	context string
	args    []string
}

// in returns the command with these arguments of kubectl. With "synchub" first, it is a command of the plugin.
func in(context string, args ...string) command { return command{context, args} }

// String returns what a user types after `. .demo/env`.
func (c command) String() string {
	words := []string{"kubectl"}
	for _, arg := range append(c.args, "--context", c.context) {
		if strings.ContainsAny(arg, "{} '\"$*") {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// show prints a command and its output.
func (d *demo) show(ctx context.Context, c command) error {
	d.screen.Println("$ " + c.String())
	output, err := d.execute(ctx, c)
	if err == nil && output != "" {
		d.screen.Println(output)
	}
	return err
}

// output runs a command, and returns its output.
func (d *demo) output(ctx context.Context, c command) (string, error) {
	ctx, cancel := limited(ctx, stepLimit)
	defer cancel()
	program, args := "kubectl", c.args
	if args[0] == "synchub" {
		program, args = "kubectl-synchub", args[1:]
	}
	process, err := servers.Start(d.options, "commands", filepath.Join(d.options.Bin, program),
		append(slices.Clip(args), "--kubeconfig", d.state.kubeconfig(), "--context", c.context), nil)
	if err != nil {
		return "", err
	}
	code, err := process.Wait(ctx)
	if err != nil {
		return "", errors.Join(because(ctx, err), process.Kill9())
	}
	output := strings.TrimRight(process.LogTail(maxOutputLines), "\n")
	if code != 0 {
		return "", fmt.Errorf("%s: exit code %d:\n%s", c, code, output)
	}
	return output, nil
}
