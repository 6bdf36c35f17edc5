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
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// repositoryURL shows files that are no pages.
const repositoryURL = "https://github.com/synchub-dev/synchub/"

//go:embed assets
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

// rendered is the data of the layout.
type rendered struct {
	*page
	Body       template.HTML
	Navigation []section
	// Root leads from the page to the first one, such as "../".
	Root string
	Edit string
}

// Link returns the link from the page to another.
func (r rendered) Link(to *page) string { return r.Root + target(to.Source) }

// files returns the files of the site by name. It is an error if a link of a page leads to no file, or to no heading.
func (s *site) files() (map[string][]byte, error) {
	style, err := assets.ReadFile("assets/style.css")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"style.css": style}
	var errs []error
	for _, p := range s.pages {
		errs = append(errs, s.rewriteLinks(p, files))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, p := range s.pages {
		var body, content bytes.Buffer
		if err := markdown.Renderer().Render(&body, p.source, p.document); err != nil {
			return nil, fmt.Errorf("render %s: %w", p.Source, err)
		}
		data := rendered{page: p, Body: template.HTML(body.String()), Navigation: s.navigation, //nolint:gosec // it is the repository's own
			Root: strings.Repeat("../", strings.Count(target(p.Source), "/")), Edit: repositoryURL + "blob/main/" + p.Source}
		if err := layout.Execute(&content, data); err != nil {
			return nil, fmt.Errorf("lay out %s: %w", p.Source, err)
		}
		files[target(p.Source)] = content.Bytes()
	}
	return files, nil
}

// isAbsolute matches links that lead out of the repository.
var isAbsolute = regexp.MustCompile(`^[a-z]+:`)

// rewriteLinks makes the links of a page lead to pages of the site, and those to other files to the repository. Pictures
// are added to the files.
func (s *site) rewriteLinks(p *page, files map[string][]byte) error {
	var errs []error
	_ = ast.Walk(p.document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var err error
		switch node := node.(type) {
		case *ast.Link:
			node.Destination, err = s.rewriteLink(p, node.Destination)
		case *ast.Image:
			node.Destination, err = s.addPicture(p, node.Destination, files)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.Source, err))
		}
		return ast.WalkContinue, nil
	})
	return errors.Join(errs...)
}

func (s *site) rewriteLink(p *page, destination []byte) ([]byte, error) {
	if isAbsolute.Match(destination) {
		return destination, nil
	}
	to, anchor, hasAnchor := strings.Cut(string(destination), "#")
	file := p.resolve(to)
	linked := s.pages[file]
	if linked == nil {
		info, err := fs.Stat(s.repository, file)
		if err != nil {
			return nil, fmt.Errorf("the link %s: %w", destination, err)
		}
		kind := "blob"
		if info.IsDir() {
			kind = "tree"
		}
		return []byte(repositoryURL + kind + "/main/" + file), nil
	}
	if hasAnchor && !linked.anchors[anchor] {
		return nil, fmt.Errorf("the link %s: %s has no such heading", destination, file)
	}
	if to == "" {
		return destination, nil
	}
	link, err := relative(p, target(file))
	if hasAnchor {
		link += "#" + anchor
	}
	return []byte(link), err
}

func (s *site) addPicture(p *page, destination []byte, files map[string][]byte) ([]byte, error) {
	if isAbsolute.Match(destination) {
		return nil, fmt.Errorf("the picture %s is not in the repository", destination)
	}
	file := p.resolve(string(destination))
	content, err := fs.ReadFile(s.repository, file)
	if err != nil {
		return nil, fmt.Errorf("the picture %s: %w", destination, err)
	}
	name := strings.TrimPrefix(file, "docs/")
	files[name] = content
	link, err := relative(p, name)
	return []byte(link), err
}

// relative returns the link from a page to a file of the site.
func relative(from *page, to string) (string, error) {
	link, err := filepath.Rel(path.Dir(target(from.Source)), to)
	return filepath.ToSlash(link), err
}
