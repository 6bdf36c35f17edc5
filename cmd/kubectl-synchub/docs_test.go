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
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/controllers/plan/expression"
	"github.com/synchub-dev/synchub/test/clireference"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// docsPage returns the documentation page that these tests check.
func docsPage(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../docs/publishedresource.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// blocks returns the fenced code blocks of one kind.
func blocks(t *testing.T, kind string) []string {
	t.Helper()
	var found []string
	for _, block := range regexp.MustCompile("(?ms)^```"+kind+"\n(.*?)^```$").FindAllStringSubmatch(docsPage(t), -1) {
		found = append(found, block[1])
	}
	if len(found) == 0 {
		t.Fatalf("there is no block of %s", kind)
	}
	return found
}

func TestDocumentedCommandPrintsWhatThePageShows(t *testing.T) {
	requests := withCluster(t, http.NotFound)
	commands, outputs, errs := blocks(t, "sh"), blocks(t, "output"), blocks(t, "errors")
	t.Chdir("../..")
	if len(commands) != len(outputs) || len(commands) != len(errs) {
		t.Fatalf("%d commands, %d outputs, %d blocks of errors", len(commands), len(outputs), len(errs))
	}
	for i, command := range commands {
		args := strings.Fields(strings.ReplaceAll(command, "\\\n", " "))
		if len(args) < 2 || args[0] != "kubectl" || args[1] != "synchub" {
			t.Fatalf("%q does not run the plugin", command)
		}
		got := execute(t, "", args[2:]...)
		if got.err != nil {
			t.Fatal(got.err)
		}
		if got.out != outputs[i] {
			t.Errorf("it prints\n%s\nand the page shows\n%s", got.out, outputs[i])
		}
		if got.errs != errs[i] {
			t.Errorf("it prints on standard error\n%s\nand the page shows\n%s", got.errs, errs[i])
		}
	}
	if requests.Load() > 0 {
		t.Error("a cluster was asked")
	}
}

var indentedCommand = regexp.MustCompile(`(?m)^    kubectl synchub (.*)$`)

// The plugin accepts each command that stands on its own line on a page.
func TestDocumentedCommandsAreUnderstood(t *testing.T) {
	clireference.VerifyLines(t, os.DirFS("../.."), "kubectl synchub", func() *cobra.Command {
		return newCommand(genericiooptions.NewTestIOStreamsDiscard())
	})
}

var (
	quotedCommand = regexp.MustCompile("`kubectl synchub ([^`]*)`|\"kubectl synchub ([^\"]*)\"")
	verb          = regexp.MustCompile(`%[a-z]`)
	// otherProgram matches a command of the hub's program.
	otherProgram = regexp.MustCompile("`synchub [a-z]+")
)

// Each command that a message, a comment or a page names exists. Commands to run are complete.
func TestAdvisedCommandsWork(t *testing.T) {
	advised := 0
	for name, text := range readTexts(t) {
		if strings.HasPrefix(name, "cmd/kubectl-synchub/") && otherProgram.MatchString(text) {
			t.Errorf("%s: %s is no command of the plugin, whose users may not have the hub's program", name, otherProgram.FindString(text))
		}
		for _, found := range quotedCommand.FindAllStringSubmatch(text, -1) {
			advised++
			if err := isComplete(strings.Fields(verb.ReplaceAllString(found[1]+found[2], "florin"))); err != nil {
				t.Errorf("%s: %s: %v", name, found[0], err)
			}
		}
	}
	if advised < 20 {
		t.Errorf("only %d commands were found", advised)
	}
}

// readTexts returns the sources of the programs, and the pages.
func readTexts(t *testing.T) map[string]string {
	t.Helper()
	found, repository := map[string]string{}, os.DirFS("../..")
	isLeftOut := func(path string) bool {
		return slices.Contains([]string{"bin", "test", "docs/design", "CHANGELOG.md", "RESULTS.md"}, path) || strings.HasPrefix(path, ".") && path != "." || strings.HasSuffix(path, "_test.go")
	}
	if err := fs.WalkDir(repository, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case isLeftOut(path) && entry.IsDir():
			return fs.SkipDir
		case isLeftOut(path) || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".md"):
			return nil
		}
		content, err := fs.ReadFile(repository, path)
		found[path] = string(content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// isComplete returns an error for an invalid command line. A line that only names a command may lack its arguments.
func isComplete(line []string) error {
	command, left, err := newCommand(genericiooptions.NewTestIOStreamsDiscard()).Find(line)
	if err != nil || len(left) == 0 {
		return err
	}
	if err := command.ParseFlags(left); err != nil {
		return err
	}
	if err := command.ValidateFlagGroups(); err != nil {
		return err
	}
	flags := command.Flags()
	if slices.Contains([]string{"register", "rotate", "stale-objects"}, command.Name()) && !slices.ContainsFunc([]string{"target-kubeconfig", "kubeconfig-only", "tunnel"}, flags.Changed) {
		return errors.New("it needs --target-kubeconfig, --kubeconfig-only or --tunnel")
	}
	return command.ValidateArgs(flags.Args())
}

// Each example is a valid PublishedResource, or a part of the spec of one.
func TestDocumentedExamplesAreUnderstood(t *testing.T) {
	withCluster(t, http.NotFound)
	for i, example := range blocks(t, "yaml") {
		t.Run(fmt.Sprintf("example %d", i), func(t *testing.T) {
			input := example
			if !strings.HasPrefix(example, "apiVersion:") {
				input = publishedResource("example", withResource(t, example))
			}
			input += "---\n" + definitionFor(t, input)
			if got := runRender(t, input, "-f", "-"); got.err != nil {
				t.Errorf("%v in\n%s", got.err, input)
			}
		})
	}
}

// withResource completes a part of a spec, which mostly belongs to the databases of the page.
func withResource(t *testing.T, spec string) string {
	t.Helper()
	fields := fixtures.Decode[map[string]any](t, spec)
	if _, ok := fields["resource"]; ok {
		return spec
	}
	return "resource: {group: db.example.com, resource: databases, kind: Database, version: v1}\n" + spec
}

// definitionFor returns a CRD for the API of a PublishedResource.
func definitionFor(t *testing.T, input string) string {
	t.Helper()
	var published struct {
		Spec struct {
			Resource struct{ Group, Resource, Kind string }
		}
	}
	if err := yaml.Unmarshal([]byte(input), &published); err != nil {
		t.Fatal(err)
	}
	resource := published.Spec.Resource
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]q
  scope: Namespaced
  names: {plural: %[1]s, singular: one, kind: %[3]s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, resource.Resource, resource.Group, cmp.Or(resource.Kind, "Thing"))
}

// The example on the page equals the file that its command names.
func TestDocumentedExampleIsThatOfTheFile(t *testing.T) {
	file, err := os.ReadFile(examples + "databases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(blocks(t, "yaml"), string(file)) {
		t.Error("the page does not show databases.yaml as it is")
	}
}

func TestDocumentedFunctionsAreThoseThatThereAre(t *testing.T) {
	_, section, _ := strings.Cut(docsPage(t), "\n## Templates\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for row := range strings.Lines(section) {
		if strings.HasPrefix(row, "| ") {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row, -1) {
				listed = append(listed, name[1])
			}
		}
	}
	slices.Sort(listed)
	if want := expression.Functions(); !slices.Equal(listed, want) {
		t.Errorf("the page lists\n%q\nand there are\n%q", listed, want)
	}
}
