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
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// page is one Markdown file.
type page struct {
	// Source is the name of the file in the repository, and Title its first heading.
	Source, Title string
	// Headings are those of the second level, for the list beside the page.
	Headings []heading
	source   []byte
	document ast.Node
	anchors  map[string]bool
}

type heading struct{ Anchor, Title string }

// markdown allows raw HTML, since the sources are those of the repository.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(codeRenderer{}, 100))),
)

func parsePage(name string, source []byte) (*page, error) {
	p := &page{Source: name, source: source, anchors: map[string]bool{}}
	context := parser.NewContext(parser.WithIDs(&githubIDs{anchors: p.anchors}))
	p.document = markdown.Parser().Parse(text.NewReader(source), parser.WithContext(context))
	for node := p.document.FirstChild(); node != nil; node = node.NextSibling() {
		h, ok := node.(*ast.Heading)
		if !ok {
			continue
		}
		title := textOf(h, source)
		switch {
		case h.Level == 1 && p.Title == "":
			p.Title = title
		case h.Level == 2:
			id, _ := h.AttributeString("id")
			anchor, _ := id.([]byte)
			p.Headings = append(p.Headings, heading{Anchor: string(anchor), Title: title})
		}
	}
	if p.Title == "" {
		return nil, fmt.Errorf("%s has no title: begin it with a heading of the first level", name)
	}
	return p, nil
}

// resolve returns the file in the repository that a destination on the page leads to.
func (p *page) resolve(destination string) string {
	if destination == "" {
		return p.Source
	}
	return path.Join(path.Dir(p.Source), destination)
}

// textOf returns the text below a node, without markup.
func textOf(node ast.Node, source []byte) string {
	var found strings.Builder
	_ = ast.Walk(node, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if part, ok := node.(*ast.Text); ok && entering {
			found.Write(part.Segment.Value(source))
			if part.SoftLineBreak() {
				found.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return found.String()
}

var notInAnchor = regexp.MustCompile(`[^-_ a-z0-9]`)

// githubIDs gives headings the anchors that they have on GitHub, so that links work in both places.
type githubIDs struct{ anchors map[string]bool }

func (ids *githubIDs) Generate(value []byte, _ ast.NodeKind) []byte {
	base := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(string(value))), ""), " ", "-")
	anchor := base
	for i := 1; ids.anchors[anchor]; i++ {
		anchor = fmt.Sprintf("%s-%d", base, i)
	}
	ids.anchors[anchor] = true
	return []byte(anchor)
}

func (ids *githubIDs) Put(value []byte) { ids.anchors[string(value)] = true }

// codeRenderer renders code blocks. Diagrams are drawn on GitHub; here, without scripts, they are folded text.
type codeRenderer struct{}

func (codeRenderer) RegisterFuncs(register renderer.NodeRendererFuncRegisterer) {
	register.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		language := string(node.(*ast.FencedCodeBlock).Language(source))
		before, after := "<pre>", "</pre>\n"
		switch language {
		case "mermaid":
			before, after = "<details><summary>Diagram, as text</summary><pre>", "</pre></details>\n"
		case "output":
			before = `<pre class="output">`
		}
		_, _ = w.WriteString(before + "<code>")
		for i := range node.Lines().Len() {
			line := node.Lines().At(i)
			_, _ = w.Write(util.EscapeHTML(line.Value(source)))
		}
		_, _ = w.WriteString("</code>" + after)
		return ast.WalkSkipChildren, nil
	})
}
