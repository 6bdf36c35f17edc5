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
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/term"
)

// addFlagGroups adds flags to a command, whose help shows them in groups.
func addFlagGroups(command *cobra.Command, groups *cliflag.NamedFlagSets) {
	for _, name := range groups.Order {
		command.Flags().AddFlagSet(groups.FlagSets[name])
	}
	command.SetUsageFunc(func(command *cobra.Command) error {
		printUsage(command.OutOrStderr(), command, groups)
		return nil
	})
	command.SetHelpFunc(func(command *cobra.Command, _ []string) {
		out := command.OutOrStdout()
		fmt.Fprintf(out, "%s\n\n", command.Long)
		printUsage(out, command, groups)
	})
}

// printUsage prints the usage of a command.
func printUsage(out io.Writer, command *cobra.Command, groups *cliflag.NamedFlagSets) {
	fmt.Fprintf(out, "Usage:\n  %s\n\nExamples:\n%s\n", command.UseLine(), command.Example)
	shown := cliflag.NamedFlagSets{Order: slices.Clone(groups.Order), FlagSets: maps.Clone(groups.FlagSets)}
	if help := command.Flags().Lookup("help"); help != nil {
		shown.FlagSet("global").AddFlag(help)
	}
	cliflag.PrintSections(out, shown, columnsOf(out))
}

// columnsOf returns the maximum width of the help: the terminal's width, or else the value of COLUMNS. Zero means that lines
// are not wrapped.
func columnsOf(out io.Writer) int {
	if columns, _, err := term.TerminalSize(out); err == nil {
		return columns
	}
	columns, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil {
		return 0
	}
	return columns
}
