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
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// commandsWith returns the commands that have a flag, by their paths; all commands for the flag "".
func commandsWith(flag string) map[string]*cobra.Command {
	found := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(command *cobra.Command) {
		if flag == "" || command.Flags().Lookup(flag) != nil {
			found[strings.TrimPrefix(command.CommandPath(), "kubectl synchub ")] = command
		}
		for _, child := range command.Commands() {
			walk(child)
		}
	}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	walk(newCommand(streams))
	return found
}

// Help, completion and error of -o name the same formats, in each command that has the flag.
func TestOutputFormats(t *testing.T) {
	const objects = "json yaml kyaml name go-template go-template-file template templatefile jsonpath jsonpath-as-json jsonpath-file"
	want := map[string]string{
		"check": "json yaml", "explain": "json yaml", "drift": "json yaml wide", "status": "json yaml", "version": "json yaml", "init": "yaml",
		"diff": "json yaml", "diff placement": "json yaml", "diff location": "json yaml", "diff published-resource": "json yaml", "published-resource render": "json yaml",
		"get": objects + " custom-columns custom-columns-file wide", "get targets": objects + " wide",
	}
	for _, name := range []string{
		"register", "unregister", "rotate", "confirm-cluster", "confirm-restore", "stale-objects", "publish", "cordon", "uncordon", "suspend", "resume", "drain",
		"allow", "bind inventory", "bind compute", "unbind compute", "unbind inventory", "rollout pause", "rollout resume", "rollout undo",
	} {
		want[name] = objects
	}
	commands := commandsWith("output")
	for name := range commands {
		if want[name] == "" {
			t.Errorf("the formats of %s are not listed here", name)
		}
	}
	for name, words := range want {
		formats := strings.Fields(words)
		command := commands[name]
		if command == nil {
			t.Errorf("%s has no -o", name)
			continue
		}
		list := strings.Join(formats, ", ")
		if usage := command.Flags().Lookup("output").Usage; usage != "output format, one of: "+list {
			t.Errorf("the help of %s is %q", name, usage)
		}
		got := execute(t, "", append(append([]string{"__complete"}, strings.Fields(name)...), "-o", "")...)
		offered := strings.Split(got.out, "\n")
		if end := slices.IndexFunc(offered, func(line string) bool { return strings.HasPrefix(line, ":") }); end < 0 || !slices.Equal(offered[:end], formats) {
			t.Errorf("the completion of %s offers %q", name, offered)
		}
		output := command.Flags().Lookup("output").Value
		for _, format := range formats {
			_ = output.Set(format)
			if err := command.PreRunE(command, nil); err != nil {
				t.Errorf("%s refuses %s: %v", name, format, err)
			}
		}
		_ = output.Set("table")
		if err := command.PreRunE(command, nil); err == nil || err.Error() != `--output: "table" is none of `+list {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A letter means the same flag in each command, as in kubectl. Only commands that use a flag have it.
func TestFlagsMeanOneThing(t *testing.T) {
	letters := map[string]string{"n": "namespace", "l": "selector", "A": "all-namespaces", "f": "filename", "o": "output", "w": "watch", "y": "yes", "s": "server", "h": "help", "L": "label-columns"}
	for _, command := range commandsWith("") {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Shorthand != "" && letters[flag.Shorthand] != flag.Name {
				t.Errorf("%s: -%s is --%s", command.CommandPath(), flag.Shorthand, flag.Name)
			}
		})
	}
	for flag, want := range map[string][]string{
		"namespace":     {"diff", "explain", "get", "publish", "published-resource render", "register"},
		"field-manager": {"diff", "diff location", "diff placement"},
	} {
		if got := slices.Sorted(maps.Keys(commandsWith(flag))); !slices.Equal(got, want) {
			t.Errorf("these commands have --%s: %v", flag, got)
		}
	}
}

// The help of -f names the kind of object that the command expects in the files.
func TestFilesAreNamed(t *testing.T) {
	want := map[string]string{
		"diff": "manifests", "diff location": "Locations", "diff placement": "EdgePlacements", "diff published-resource": "PublishedResources",
		"explain": "PublishedResources", "publish": "CustomResourceDefinitions", "published-resource render": "PublishedResource",
	}
	commands := commandsWith("filename")
	for name, command := range commands {
		if usage := command.Flags().Lookup("filename").Usage; want[name] == "" || !strings.HasPrefix(usage, "files with "+want[name]) && !strings.HasPrefix(usage, "files with the "+want[name]) {
			t.Errorf("the help of %s -f is %q", name, usage)
		}
	}
	if len(commands) != len(want) {
		t.Errorf("these commands have -f: %v", slices.Sorted(maps.Keys(commands)))
	}
}
