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
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestSplitWords(t *testing.T) {
	tests := map[string]string{
		"":                   "",
		"kin":                "kin",
		"fetchKin":           "fetch kin",
		"Kin":                "kin",
		"HTTPServerOf2Hubs":  "http server of hubs",
		"targetUID":          "target uid",
		"APIExportReference": "api export reference",
		"kin_absence_test":   "kin absence test",
		"rollout":            "rollout",
		"v1alpha1":           "v alpha",
	}
	for text, want := range tests {
		if got := strings.Join(splitWords(text), " "); got != want {
			t.Errorf("splitWords(%q): %q, want %q", text, got, want)
		}
	}
}

func TestDeclaredNames(t *testing.T) {
	const code = `package one

import two "fmt"

type three[four any] struct {
	five, six int
	embedded
}

type seven interface{ eight(nine int) (ten error) }

const eleven, _ = 1, 2

var twelve = used

func (thirteen *three[X]) fourteen(fifteen ...string) {
fifty:
	for sixteen, seventeen := range fifteen {
		eighteen, used := sixteen, seventeen
		used.field = func(nineteen int) {}
		if twenty := eighteen; twenty != nil {
			break fifty
		}
	}
	switch thirty := any(fifteen).(type) {
	}
}
`
	want := strings.Fields("one two three four five six seven eight nine ten eleven twelve fourteen thirteen fifteen fifty " +
		"sixteen seventeen eighteen used nineteen twenty thirty")
	errs, err := (&vocabulary{whole: all(want)}).checkFile("one.go", []byte(code))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, found := range errs {
		got = append(got, strings.Fields(found.Error())[1])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("declared names:\n%q\nwant\n%q", got, want)
	}
}

func all(names []string) map[string]string {
	words := map[string]string{"embedded": "x", "field": "x", "X": "x"}
	for _, name := range names {
		words[name] = "another"
	}
	return words
}

func TestCheckFile(t *testing.T) {
	words, err := parseVocabulary("# a comment\n\nkin relatives: related\n=see: observe\n")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, code string
		want       []string
	}{
		{"nothing listed", "package p\n\nfunc seen() { foreseen := 1; _ = foreseen }\n", nil},
		{"a part of a name", "package p\n\nfunc fetchKin() {}\n", []string{`p.go:3: fetchKin has the word "kin": use related`}},
		{"a whole name", "package p\n\nfunc See() {}\n", []string{`p.go:3: See has the word "see": use observe`}},
		{"a part that is refused only as a whole", "package p\n\nfunc seeAlso() {}\n", nil},
		{"a use is no declaration", "package p\n\nvar x = other.Kin\n", nil},
		{"an exported field", "package p\n\ntype t struct {\n\tRelatives int\n}\n", []string{`p.go:4: Relatives has the word "relatives": use related`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			errs, err := words.checkFile("p.go", []byte(test.code))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, found := range errs {
				got = append(got, found.Error())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%q\nwant\n%q", got, test.want)
			}
		})
	}
}

func TestCheckFileWithoutGoCode(t *testing.T) {
	if _, err := (&vocabulary{}).checkFile("p.go", []byte("not Go")); err == nil {
		t.Error("a file that cannot be parsed passes")
	}
}

func TestPathNames(t *testing.T) {
	seen := map[string]bool{}
	var got []string
	for _, path := range []string{"controllers/kin/fetch_kin.go", "controllers/kin/doc.go"} {
		for _, one := range pathNames(path, seen) {
			got = append(got, one.text)
		}
	}
	if want := []string{"fetch_kin", "kin", "controllers", "doc"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
}

func TestParseVocabulary(t *testing.T) {
	tests := []struct{ name, text, wantErr string }{
		{"no replacement", "kin:\n", "line 1 does not have the form"},
		{"no colon", "# words\nkin related\n", "line 2 does not have the form"},
		{"twice", "kin: related\nkin: objects\n", "line 2: kin is listed twice"},
		{"a part and a whole name", "kin: related\n=kin: objects\n", ""},
		{"upper case", "Kin: related\n", "write Kin in lower case"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseVocabulary(test.text)
			if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("error %v, want %q", err, test.wantErr)
			}
		})
	}
}

func TestTheListIsValid(t *testing.T) {
	words, err := parseVocabulary(wordsFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(words.anywhere) < 50 {
		t.Errorf("the list has only %d words", len(words.anywhere))
	}
	enabled, err := parseVocabulary(strings.ReplaceAll(wordsFile, "#! ", ""))
	if err != nil {
		t.Errorf("with the pending words: %v", err)
	}
	for word, instead := range enabled.anywhere {
		if found, _ := enabled.find(instead); !strings.Contains(instead, " ") && found != "" {
			t.Errorf("%s is to be replaced by %s, which is listed itself", word, instead)
		}
	}
}

var reasonConstant = regexp.MustCompile(`(?m)^\s*(?:const )?(Reason[A-Z]\w*)\s*(?:\w+\s*)?= "(\w+)"`)

// A user finds each reason of a condition, an event or a failure on a page.
func TestReasonsAreExplained(t *testing.T) {
	repository := os.DirFS("../..")
	pages, err := fs.Glob(repository, "docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, page := range pages {
		content, err := fs.ReadFile(repository, page)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
	}
	explained := map[string]bool{}
	for _, word := range regexp.MustCompile(`\w+`).FindAllString(text.String(), -1) {
		explained[word] = true
	}
	found := 0
	for _, root := range []string{"apis", "cmd", "controllers", "provider"} {
		if err := fs.WalkDir(repository, root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := fs.ReadFile(repository, path)
			for _, constant := range reasonConstant.FindAllStringSubmatch(string(content), -1) {
				if found++; !explained[constant[2]] {
					t.Errorf("%s: no page explains the reason %s (%s)", path, constant[2], constant[1])
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if found < 100 {
		t.Errorf("only %d reasons were found", found)
	}
}
