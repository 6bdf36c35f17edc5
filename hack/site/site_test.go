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

package site

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// built is where `make docs` builds the site before it runs these tests.
const built = "../../dist/site"

// page has the identifiers and the links of a page.
type page struct {
	identifiers map[string]bool
	links       []string
}

// Each link of the site leads to a file of it and to an element there, in the layout and in search too, and nothing is loaded from
// elsewhere.
func TestLinks(t *testing.T) {
	site := os.DirFS(built)
	pages := map[string]page{}
	err := fs.WalkDir(site, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		content, err := fs.ReadFile(site, name)
		if err != nil {
			return err
		}
		pages[name], err = readPage(content)
		return err
	})
	if err != nil || len(pages) < 50 {
		t.Fatalf("%d pages, %v: run make docs", len(pages), err)
	}
	pages["search-index.js"] = readSearchIndex(t, site)
	for name, from := range pages {
		for _, link := range from.links {
			to, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if to.IsAbs() {
				continue
			}
			file := name
			if to.Path != "" {
				file = path.Join(path.Dir(name), to.Path)
			}
			if _, err := fs.Stat(site, file); err != nil {
				t.Errorf("%s: the link %s leads to no file", name, link)
			} else if to.Fragment != "" && !pages[file].identifiers[to.Fragment] {
				t.Errorf("%s: the link %s leads to no heading", name, link)
			}
		}
	}
}

func readPage(content []byte) (page, error) {
	read := page{identifiers: map[string]bool{}}
	tokens := html.NewTokenizer(bytes.NewReader(content))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			if err := tokens.Err(); !errors.Is(err, io.EOF) {
				return read, err
			}
			return read, nil
		}
		token := tokens.Token()
		for _, attribute := range token.Attr {
			switch {
			case kind == html.EndTagToken:
			case attribute.Key == "id":
				read.identifiers[attribute.Val] = true
			case attribute.Key == "src" || token.Data == "link" && attribute.Key == "href":
				// A host of its own would make the link no path.
				read.links = append(read.links, strings.Replace(attribute.Val, "://", "/", 1))
			case attribute.Key == "href":
				read.links = append(read.links, attribute.Val)
			}
		}
	}
}

func readSearchIndex(t *testing.T, site fs.FS) (index page) {
	t.Helper()
	content, err := fs.ReadFile(site, "search-index.js")
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct{ URL, Page, Text string }
	script := strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(string(content), "window.searchIndex = ")), ";")
	if err := json.Unmarshal([]byte(script), &entries); err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Page == "" {
			t.Errorf("the entry of %s has no title", entry.URL)
		}
		index.links = append(index.links, entry.URL)
	}
	return index
}

// What is wrong in a page fails the build.
func TestMistakesFail(t *testing.T) {
	for name, test := range map[string]struct{ file, content, want string }{
		"a page without a title": {"docs/README.md", "text", "docs/README.md has no title"},
		"a page on no list":      {"docs/reference/one.md", "# One", "docs/README.md does not list docs/reference/one.md"},
		"a link to no file":      {"README.md", "# All\n\n[one](docs/one.md)", "README.md: the link docs/one.md leads to no file"},
		"no picture":             {"README.md", "# All\n\n![a](docs/images/a.svg)", "README.md: the picture docs/images/a.svg is not in docs/images"},
		"a picture elsewhere":    {"README.md", "# All\n\n![a](https://example.com/a.png)", "is not in docs/images"},
		"no description":         {"README.md", "# All\n\n![](docs/images/b.svg)", "the picture docs/images/b.svg has no description"},
		"no mistake":             {"README.md", "# All\n\n[Docs](docs/README.md#documentation), [b](docs/images/b.svg)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			files := map[string]string{
				"README.md": "# synchub", "RESULTS.md": "# Results", "CHANGELOG.md": "# Changelog", "CONTRIBUTING.md": "# Contributing",
				"docs/README.md": "# Documentation", "docs/reference/.keep": "", "docs/design/README.md": "# Decisions", "docs/images/b.svg": "<svg/>",
			}
			files[test.file] = test.content
			for file, content := range files {
				write(t, filepath.Join(root, file), content)
			}
			if err := os.CopyFS(filepath.Join(root, "hack/site"), os.DirFS(".")); err != nil {
				t.Fatal(err)
			}
			hugo, err := filepath.Abs("../../bin/hugo")
			if err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), hugo, "--config=hack/site/hugo.yaml", "--destination=site")
			command.Dir = root
			output, err := command.CombinedOutput()
			if (err != nil) != (test.want != "") || !strings.Contains(string(output), test.want) {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
