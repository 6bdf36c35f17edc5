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

package clireference

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/util/homedir"
)

// Render returns the page of a command and of all below it. Flags that a command has of common are in a section of
// their own, and not repeated; common may be nil.
func Render(root *cobra.Command, common *pflag.FlagSet) string {
	page := &page{common: common}
	page.write("# %s\n\n", root.CommandPath())
	page.write("%s\n\n", prose(description(root)))
	page.write("`make generate` makes this page from the help of the commands.\n")
	if root.HasAvailableSubCommands() {
		page.index(root)
	} else {
		page.usage(root)
	}
	for _, command := range root.Commands() {
		page.commands(command)
	}
	if common != nil {
		page.write("\n## Common flags\n\n")
		page.flags(common)
	}
	return page.String()
}

type page struct {
	strings.Builder
	common *pflag.FlagSet
}

func (p *page) write(format string, args ...any) { _, _ = fmt.Fprintf(p, format, args...) }

// index lists the commands below one.
func (p *page) index(command *cobra.Command) {
	p.write("\n| command | |\n| --- | --- |\n")
	for _, below := range command.Commands() {
		if below.IsAvailableCommand() {
			p.write("| [%s](#%s) | %s |\n", below.CommandPath(), anchor(below), cell(below.Short))
		}
	}
}

// commands writes the sections of a command and of those below it.
func (p *page) commands(command *cobra.Command) {
	if !command.IsAvailableCommand() {
		return
	}
	p.write("\n## %s\n\n%s\n", command.CommandPath(), prose(description(command)))
	if command.HasAvailableSubCommands() {
		p.index(command)
	}
	p.usage(command)
	for _, below := range command.Commands() {
		p.commands(below)
	}
}

// usage writes how a command is used, unless it only has commands below it.
func (p *page) usage(command *cobra.Command) {
	if !command.HasAvailableSubCommands() {
		p.write("\n```text\n%s\n```\n", command.UseLine())
	}
	if command.HasExample() {
		p.write("\n```sh\n%s\n```\n", dedent(command.Example))
	}
	own, hasCommon := p.ownFlags(command)
	if own.HasAvailableFlags() {
		p.write("\n")
		p.flags(own)
	}
	if hasCommon {
		p.write("\nIt has the [common flags](#common-flags) too.\n")
	}
}

// ownFlags returns the flags of a command without the common ones, and whether it has all of those. If it has only
// some of them, they are its own.
func (p *page) ownFlags(command *cobra.Command) (own *pflag.FlagSet, hasCommon bool) {
	all := command.NonInheritedFlags()
	hasCommon = p.common != nil
	if hasCommon {
		p.common.VisitAll(func(flag *pflag.Flag) { hasCommon = hasCommon && all.Lookup(flag.Name) != nil })
	}
	own = pflag.NewFlagSet(command.Name(), pflag.ContinueOnError)
	all.VisitAll(func(flag *pflag.Flag) {
		if !hasCommon || p.common.Lookup(flag.Name) == nil {
			own.AddFlag(flag)
		}
	})
	return own, hasCommon
}

func (p *page) flags(flags *pflag.FlagSet) {
	p.write("| flag | default | description |\n| --- | --- | --- |\n")
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(flag)
		name := "`--" + flag.Name + "`"
		if flag.Shorthand != "" {
			name = "`-" + flag.Shorthand + "`, " + name
		}
		p.write("| %s | %s | %s |\n", strings.TrimSpace(name+" "+cell(kind)), defaultOf(flag), cell(usage))
	})
}

// defaultOf returns the default of a flag, without the current user's home directory, and nothing for an empty
// one.
func defaultOf(flag *pflag.Flag) string {
	switch flag.DefValue {
	case "", "0", "0s", "[]", "false":
		return ""
	}
	value := flag.DefValue
	if home := homedir.HomeDir(); home != "" && strings.HasPrefix(value, home+"/") {
		value = "$HOME" + strings.TrimPrefix(value, home)
	}
	return "`" + strings.ReplaceAll(value, "|", `\|`) + "`"
}

func description(command *cobra.Command) string {
	if command.Long != "" {
		return command.Long
	}
	return command.Short + "."
}

// anchor returns the anchor of the section of a command.
func anchor(command *cobra.Command) string {
	return strings.ReplaceAll(strings.ToLower(command.CommandPath()), " ", "-")
}

// markdown escapes characters that mean something in Markdown, though texts for a terminal have them as they are.
var markdown = strings.NewReplacer("*", `\*`, "<", `\<`)

func prose(text string) string { return markdown.Replace(strings.TrimSpace(text)) }

func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(prose(text), "|", `\|`), "\n", " ")
}

// dedent removes the indentation of examples.
func dedent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(line, "  "), " ")
	}
	return strings.Join(lines, "\n")
}
