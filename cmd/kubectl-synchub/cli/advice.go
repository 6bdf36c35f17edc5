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

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/suggest"
	"github.com/synchub-dev/synchub/provider/buildinfo"
)

// PluginVersion is the version of the plugin. Package main sets it.
var PluginVersion = buildinfo.Unstamped

// NewParentCommand returns a command that only has subcommands.
func NewParentCommand(use, short string, aliases []string, commands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use:     use,
		Aliases: aliases,
		Short:   short,
		Args:    OnlyCommands,
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(commands...)
	return command
}

// OnlyCommands refuses arguments of a command that only has subcommands.
func OnlyCommands(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return WithAdvice(command, fmt.Errorf("unknown command %q%s", args[0], suggest.Commands(command, args[0])))
}

// NoArguments refuses all arguments.
func NoArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return WithAdvice(command, fmt.Errorf("unexpected argument %q", args[0]))
}

// WithAdvice adds to an error the command that prints the usage.
func WithAdvice(command *cobra.Command, err error) error {
	return fmt.Errorf("%w; see `%s --help`", err, command.CommandPath())
}
