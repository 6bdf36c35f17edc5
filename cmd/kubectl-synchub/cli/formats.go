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
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// SetFormats makes the help of -o, its completion, and the error for another value name the same formats. The command must
// have the flag already.
func SetFormats(command *cobra.Command, formats []string) {
	flag := command.Flags().Lookup("output")
	flag.Usage = "output format, one of: " + strings.Join(formats, ", ")
	// A flag set of kubectl may have registered a completion. That offers the same formats.
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	command.PreRunE = func(*cobra.Command, []string) error { return checkFormat(flag.Value.String(), formats) }
}

// checkFormat returns an error unless a format is known or empty. A template follows its format after "=".
func checkFormat(format string, formats []string) error {
	name, _, _ := strings.Cut(format, "=")
	if name == "" || slices.Contains(formats, strings.ToLower(name)) {
		return nil
	}
	return fmt.Errorf("--output: %q is none of %s", format, strings.Join(formats, ", "))
}
