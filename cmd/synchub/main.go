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

// Command synchub is the hub, which keeps many Kubernetes clusters in sync with their kcp mailbox workspaces.
// "synchub run" runs the controllers, "synchub init" prepares the provider workspace in kcp, and "synchub wait-for-api" is a
// step of the Helm chart. The package parses flags and wires them; package controllers contains the hub itself.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	// Root certificates where the system has none, as in the container image.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/synchub-dev/synchub/provider/buildinfo"
	"github.com/synchub-dev/synchub/provider/redact"
)

// Set by the linker; see the Makefile.
var (
	version = buildinfo.Unstamped
	commit  = "unknown"
	date    = "unknown"
)

func main() {
	version = buildinfo.Version(version)
	// A second signal ends the process immediately.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "synchub: "+printableLines(err.Error()))
		os.Exit(1)
	}
}

// printableLines returns a text that is safe to print on a terminal. Servers write parts of errors.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = redact.Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "synchub",
		Short: "Keep many Kubernetes clusters in sync with kcp",
		Long: "synchub is one hub that keeps many Kubernetes clusters in sync with kcp. Each cluster has a mailbox workspace:\n" +
			"objects that users create there go down to the cluster, and status comes back up. Nothing is installed in the clusters.",
		// The root command has its own RunE and Args, so that it can report an unknown command in one sentence.
		Args:                  onlyCommands,
		RunE:                  func(command *cobra.Command, _ []string) error { return command.Help() },
		DisableFlagsInUseLine: true,
		SilenceUsage:          true,
		SilenceErrors:         true,
	}
	command.SetFlagErrorFunc(withAdvice)
	command.AddCommand(newRunCommand(), newInitCommand(), newWaitForAPICommand(), newVersionCommand())
	return command
}

func onlyCommands(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return withAdvice(command, fmt.Errorf("unknown command %q", args[0]))
}

func noArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return withAdvice(command, fmt.Errorf("unexpected argument %q", args[0]))
}

// withAdvice adds to an error the command that prints the usage.
func withAdvice(command *cobra.Command, err error) error {
	return fmt.Errorf("%w; see `%s --help`", err, command.CommandPath())
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(command.OutOrStdout(), "synchub %s (commit %s, built %s)\n", version, commit, date)
			return err
		},
	}
}
