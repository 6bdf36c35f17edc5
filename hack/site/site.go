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
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// indexFile is the first page, and lists all others.
const indexFile = "docs/README.md"

// site holds the pages of a repository.
type site struct {
	repository fs.FS
	// pages are by the name of their source.
	pages map[string]*page
	// navigation is that of indexFile.
	navigation []section
}

// section is a part of the navigation.
type section struct {
	Title string
	Pages []*page
}

// sources are the patterns of the files that become pages. The design decisions are listed by their own index.
var sources = []string{"README.md", "RESULTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "docs/reference/*.md", "docs/design/*.md"}

// load reads and parses all pages.
func load(repository fs.FS) (*site, error) {
	s := &site{repository: repository, pages: map[string]*page{}}
	for _, pattern := range sources {
		names, err := fs.Glob(repository, pattern)
		if err != nil {
			return nil, fmt.Errorf("list the pages: %w", err)
		}
		for _, name := range names {
			content, err := fs.ReadFile(repository, name)
			if err != nil {
				return nil, fmt.Errorf("read a page: %w", err)
			}
			if s.pages[name], err = parsePage(name, content); err != nil {
				return nil, err
			}
		}
	}
	index := s.pages[indexFile]
	if index == nil {
		return nil, fmt.Errorf("there is no %s: run this in the root of the repository", indexFile)
	}
	s.navigation = s.readNavigation(index)
	return s, s.checkNavigation()
}

// readNavigation returns the lists of a page, each under its heading. A page counts once, in the first list that has it.
func (s *site) readNavigation(index *page) (navigation []section) {
	listed := map[*page]bool{index: true}
	title := ""
	for node := index.document.FirstChild(); node != nil; node = node.NextSibling() {
		switch node := node.(type) {
		case *ast.Heading:
			title = textOf(node, index.source)
		case *ast.List:
			section := section{Title: title}
			for item := node.FirstChild(); item != nil; item = item.NextSibling() {
				linked := s.pages[index.resolve(firstLink(item))]
				if linked != nil && !listed[linked] {
					listed[linked] = true
					section.Pages = append(section.Pages, linked)
				}
			}
			navigation = append(navigation, section)
		}
	}
	return navigation
}

// checkNavigation returns an error for each page for users that the index does not list.
func (s *site) checkNavigation() error {
	var errs []error
	for name, page := range s.pages {
		dir := path.Dir(name)
		forUsers := dir == "docs" || dir == "docs/reference"
		isListed := slices.ContainsFunc(s.navigation, func(section section) bool { return slices.Contains(section.Pages, page) })
		if forUsers && name != indexFile && !isListed {
			errs = append(errs, fmt.Errorf("%s lists no %s", indexFile, name))
		}
	}
	return errors.Join(errs...)
}

// firstLink returns the destination of the first link below a node, without its anchor.
func firstLink(node ast.Node) (destination string) {
	_ = ast.Walk(node, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := node.(*ast.Link); ok && entering {
			destination, _, _ = strings.Cut(string(link.Destination), "#")
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return destination
}

// target returns the name of a page's file in the site: docs/README.md is index.html, docs/design/README.md is
// design/index.html.
func target(source string) string {
	name := strings.TrimPrefix(source, "docs/")
	switch {
	case source == "README.md":
		return "overview.html"
	case path.Base(name) == "README.md":
		return path.Join(path.Dir(name), "index.html")
	default:
		return strings.TrimSuffix(strings.ToLower(path.Join(path.Dir(name), path.Base(name))), ".md") + ".html"
	}
}
