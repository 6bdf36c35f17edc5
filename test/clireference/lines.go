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
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
)

// Line is a command line that a page shows.
type Line struct {
	Page string
	Args []string
}

// Pages returns the Markdown files that show commands to users: README.md and docs/, without the design decisions.
func Pages(repository fs.FS) (map[string]string, error) {
	pages := map[string]string{}
	for _, pattern := range []string{"README.md", "charts/synchub/README.md", "charts/synchub-tunnel/README.md", "docs/*.md", "docs/reference/*.md"} {
		files, err := fs.Glob(repository, pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			content, err := fs.ReadFile(repository, file)
			if err != nil {
				return nil, err
			}
			pages[path.Clean(file)] = string(content)
		}
	}
	return pages, nil
}

// VerifyLines fails the test for each command line of the program on the pages that its commands do not accept. It does
// not run them. There must be some.
func VerifyLines(t *testing.T, repository fs.FS, program string, newRoot func() *cobra.Command) {
	t.Helper()
	pages, err := Pages(repository)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for name, page := range pages {
		for _, args := range linesOf(page, program) {
			count++
			if err := accepts(newRoot(), args); err != nil {
				t.Errorf("%s: %s %s: %v", name, program, strings.Join(args, " "), err)
			}
		}
	}
	if count == 0 {
		t.Errorf("no page shows a command of %s", program)
	}
}

func accepts(root *cobra.Command, args []string) error {
	command, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	for _, check := range []func() error{
		func() error { return command.ParseFlags(rest) },
		command.ValidateRequiredFlags,
		command.ValidateFlagGroups,
		func() error { return command.ValidateArgs(command.Flags().Args()) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

var (
	shellBlock    = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")
	indentedLine  = regexp.MustCompile(`(?m)^ {4,}(\S.*)$`)
	continuation  = regexp.MustCompile(`\\\n\s*`)
	variableWords = regexp.MustCompile(`^"?\$\{[A-Z]+\[@\]\}"?$`)
)

// linesOf returns the arguments of each line of code on a page that runs the program.
func linesOf(page, program string) (found [][]string) {
	page = continuation.ReplaceAllString(page, "")
	var code []string
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		code = append(code, strings.Split(block[1], "\n")...)
	}
	for _, line := range indentedLine.FindAllStringSubmatch(shellBlock.ReplaceAllString(page, ""), -1) {
		code = append(code, line[1])
	}
	for _, line := range code {
		if args, ok := strings.CutPrefix(strings.TrimSpace(line), program+" "); ok {
			found = append(found, words(args))
		}
	}
	return found
}

// words splits a line as a shell does, up to a comment, a redirection, a pipe or a following command. Quotes around a
// word go; a variable stays as it is, but one that stands for several words is left out.
func words(line string) (found []string) {
	for _, word := range fields(line) {
		if strings.ContainsAny(word[:1], "#|>&;") {
			break
		}
		if !variableWords.MatchString(word) {
			found = append(found, strings.NewReplacer(`"`, "", "'", "").Replace(word))
		}
	}
	return found
}

// fields splits at white space outside of quotes.
func fields(line string) []string {
	var quote rune
	return strings.FieldsFunc(line, func(r rune) bool {
		switch {
		case quote == r:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		}
		return quote == 0 && unicode.IsSpace(r)
	})
}
