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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// files returns a repository of an index and the pages given, by name.
func files(pages map[string]string) fstest.MapFS {
	repository := fstest.MapFS{}
	for name, content := range pages {
		repository[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return repository
}

const index = "# Documentation\n\n## Guides\n\n- [One](one.md): the first, not [two](two.md)\n- [Two](two.md#part)\n- [Again](one.md)\n- [Elsewhere](https://example.com)\n"

func TestSite(t *testing.T) {
	site, err := load(files(map[string]string{
		"docs/README.md": index,
		"docs/one.md":    "# One `name`\n\n## A part, with *signs*!\n\n[Here](#a-part-with-signs), [there](two.md#part), [code](../hack/x.go), [all](../hack), ![](images/a.svg)\n\n```mermaid\na --> b\n```\n",
		"docs/two.md":    "# Two\n\n## Part\n\n## Part\n\n[second](#part-1)\n\n| a |\n| --- |\n| [one](one.md) |\n",
		"README.md":      "# synchub\n\n[Docs](docs/README.md), [two](docs/two.md)\n",
		"hack/x.go":      "package x", "docs/images/a.svg": "<svg/>",
		"docs/design/README.md": "# Decisions\n", "docs/design/0001.md": "# 0001\n\n[up](../one.md) [all](README.md)\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	made, err := site.files()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkLinks(made); err != nil {
		t.Error(err)
	}
	for file, parts := range map[string][]string{
		"one.html": {
			`<title>One name · synchub</title>`, `<h2 id="a-part-with-signs">`, `href="#a-part-with-signs"`, `href="two.html#part"`, `src="images/a.svg"`,
			`href="https://github.com/synchub-dev/synchub/blob/main/hack/x.go"`, `href="https://github.com/synchub-dev/synchub/tree/main/hack"`,
			`<summary>Diagram, as text</summary><pre><code>a --&gt; b`, `<a href="one.html" aria-current="page">One name</a>`, `<a href="two.html">Two</a>`,
		},
		"two.html":         {`<h2 id="part-1">`, `<td><a href="one.html">`},
		"overview.html":    {`href="index.html"`},
		"design/0001.html": {`href="../one.html"`, `href="index.html"`, `href="../style.css"`},
		"images/a.svg":     {`<svg/>`},
	} {
		for _, part := range parts {
			if !strings.Contains(string(made[file]), part) {
				t.Errorf("%s lacks %s:\n%s", file, part, made[file])
			}
		}
	}
	if got := strings.Count(string(made["two.html"]), `<a href="one.html">One name</a>`); got != 1 {
		t.Errorf("the navigation has a page %d times", got)
	}
}

func TestSiteRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		pages map[string]string
		want  string
	}{
		"no index":               {map[string]string{"docs/one.md": "# One"}, "there is no docs/README.md"},
		"a page without a title": {map[string]string{"docs/README.md": "text"}, "docs/README.md has no title"},
		"a page on no list":      {map[string]string{"docs/README.md": "# All", "docs/reference/one.md": "# One"}, "lists no docs/reference/one.md"},
		"a link to no file":      {map[string]string{"docs/README.md": "# All\n\n[one](one.md)"}, "docs/README.md: the link one.md"},
		"a link to no heading":   {map[string]string{"docs/README.md": "# All\n\n[here](#there)"}, "no such heading"},
		"no picture":             {map[string]string{"docs/README.md": "# All\n\n![](a.svg)"}, "the picture a.svg"},
		"a picture elsewhere":    {map[string]string{"docs/README.md": "# All\n\n![](https://example.com/a.png)"}, "is not in the repository"},
		"a link in HTML":         {map[string]string{"docs/README.md": "# All\n\n<a href=\"one.md\">one</a>"}, "the link one.md leads nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			site, err := load(files(test.pages))
			if err == nil {
				var made map[string][]byte
				if made, err = site.files(); err == nil {
					err = checkLinks(made)
				}
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// The pages of the repository make a site.
func TestRepository(t *testing.T) {
	out := filepath.Join(t.TempDir(), "site")
	if err := build("../..", out); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(out, "reference", "values.html")); err != nil {
		t.Error(err)
	}
}
