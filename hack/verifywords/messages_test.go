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
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Vale checks comments and pages, but not the texts of messages. They keep to the same idioms.
func TestMessagesHaveNoIdioms(t *testing.T) {
	const root = "../.."
	idioms := readIdioms(t, root)
	checked := 0
	for _, directory := range []string{"apis", "cmd", "controllers", "provider"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for place, text := range messages(t, path) {
				checked++
				for _, idiom := range idioms {
					if found := idiom.FindString(text); found != "" {
						t.Errorf("%s has %q: %.150q", place, found, text)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if checked < 1000 {
		t.Errorf("only %d messages were found", checked)
	}
}

func readIdioms(t *testing.T, root string) []*regexp.Regexp {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "hack/vale/synchub/Idioms.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var rule struct {
		Swap map[string]string `json:"swap"`
	}
	if err := yaml.Unmarshal(content, &rule); err != nil {
		t.Fatal(err)
	}
	var idioms []*regexp.Regexp
	for pattern := range rule.Swap {
		idioms = append(idioms, regexp.MustCompile(`(?i)\b(?:`+pattern+`)\b`))
	}
	if len(idioms) == 0 {
		t.Fatal("no idioms were found")
	}
	return idioms
}

// messages returns the string literals of a file that have several words, by their places.
func messages(t *testing.T, path string) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && len(strings.Fields(text)) > 1 {
			texts[fmt.Sprint(files.Position(literal.Pos()))] = text
		}
		return true
	})
	return texts
}

func TestMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(path, []byte("package p\n\nvar a, b = \"one\", `two\nwords`\n\n// not a message\nvar c = \"of \" + \"the list\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for place, text := range messages(t, path) {
		got = append(got, filepath.Base(place)+" "+text)
	}
	slices.Sort(got)
	if want := []string{"p.go:3:19 two\nwords", "p.go:7:17 the list"}; !slices.Equal(got, want) {
		t.Errorf("the messages are %q, want %q", got, want)
	}
}
