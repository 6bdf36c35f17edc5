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

package ui

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/synchub-dev/synchub/provider/redact"
)

//go:embed templates
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// maxText bounds a text of a server or a user on the page.
const maxText = 1000

// view is the content of a page.
type view struct {
	Title string
	// Section is the entry of the navigation.
	Section string
	// template is the file that renders Content.
	template string
	Content  any
	// Problems are the reasons why content is missing or old.
	Problems []string
	// Version is the number of changes that the content includes.
	Version uint64

	status int
	// makesRequests is true if the content does not come from the watches only.
	makesRequests bool
	// IsStatic is true if the content is made on request only.
	IsStatic bool
}

// server renders the pages.
type server struct {
	workspaces []*workspace
	changes    *changes
	now        func() time.Time
	// streams limits the connections of live pages.
	streams chan struct{}
}

// maxStreams is the maximum number of live pages. Browsers open six connections to a server, and hidden pages have none.
const maxStreams = 32

func newServer(all []*workspace, changed *changes) http.Handler {
	s := &server{workspaces: all, changes: changed, now: time.Now, streams: make(chan struct{}, maxStreams)}
	assets, _ := fs.Sub(assetFiles, "assets")
	mux := http.NewServeMux()
	mux.Handle("/assets/", http.StripPrefix("/assets/", http.FileServerFS(assets)))
	mux.HandleFunc("/live", s.live)
	mux.HandleFunc("/", s.page)
	return mux
}

func (s *server) page(w http.ResponseWriter, r *http.Request) {
	shown := s.view(r.Context(), r.URL)
	content, err := render(shown, "page")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(shown.status)
	_, _ = w.Write(content) //nolint:gosec // a template has escaped it
}

// view returns the content of the page at an address.
func (s *server) view(ctx context.Context, address *url.URL) view {
	version := s.changes.version()
	shown := s.route(ctx, address)
	if shown.template == "" {
		shown = view{Title: "Not found", template: "notfound.html", status: http.StatusNotFound}
	}
	if shown.status == 0 {
		shown.status = http.StatusOK
	}
	shown.Version = version
	for _, w := range s.workspaces {
		shown.Problems = append(shown.Problems, w.problems()...)
	}
	return shown
}

// route returns the content of the page at an address. It is empty if there is no such page.
func (s *server) route(ctx context.Context, address *url.URL) view {
	query := address.Query()
	path := strings.Split(strings.Trim(address.Path, "/"), "/")
	switch section := path[0]; {
	case len(path) == 1 && section == "":
		return s.fleetPage(query)
	case len(path) == 1 && section == "placements":
		return s.placementsPage(query)
	case len(path) == 1 && section == "events":
		return s.eventsPage(query)
	case len(path) == 1 && section == "object":
		return s.objectPage(ctx, query)
	case address.Path == comparePath:
		return s.comparePage(ctx, query)
	case len(path) == 3 && section == "targets":
		return s.targetPage(path[1], path[2])
	case len(path) == 3 && section == "placements":
		return s.placementPage(ctx, path[1], path[2], query)
	default:
		return view{}
	}
}

// workspace returns the workspace of a name, or nil.
func (s *server) workspace(name string) *workspace {
	for _, w := range s.workspaces {
		if w.name == name {
			return w
		}
	}
	return nil
}

// count returns the number of workspaces that meet a condition.
func (s *server) count(isCounted func(*workspace) bool) (count int) {
	for _, w := range s.workspaces {
		if isCounted(w) {
			count++
		}
	}
	return count
}

// templates has one template for each file, with the layout.
var templates = parseTemplates()

func parseTemplates() map[string]*template.Template {
	layout := template.Must(template.New("layout.html").Funcs(template.FuncMap{"text": text, "state": newState}).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	parsed := map[string]*template.Template{}
	entries, _ := fs.Glob(templateFiles, "templates/*.html")
	for _, file := range entries {
		name := strings.TrimPrefix(file, "templates/")
		parsed[name] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, file))
	}
	return parsed
}

// text returns a text of a server or a user in a form that is safe to show: short, printable, and without credentials.
func text(foreign any) string { return redact.Truncate(fmt.Sprint(foreign), maxText) }

// state is a state with its class in the style sheet. The symbol distinguishes states without color.
type state struct{ Class, Name, Symbol string }

var symbols = map[string]string{"good": "✓", "bad": "✗", "warn": "!", "aside": "–", "wait": "…"}

func newState(class, name string) state {
	symbol, ok := symbols[class]
	if !ok {
		symbol = "?"
	}
	return state{class, name, symbol}
}

// render returns the whole page, or its part "main".
func render(shown view, part string) ([]byte, error) {
	var content bytes.Buffer
	err := templates[shown.template].ExecuteTemplate(&content, part, shown)
	return content.Bytes(), err
}
