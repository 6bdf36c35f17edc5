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
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
	"github.com/synchub-dev/synchub/provider/wording"
)

// pageSize is the number of rows on a page of a table.
const pageSize = 100

// fleetContent is the page with all SyncTargets.
type fleetContent struct {
	Summary string
	Healths []healthLink
	// Search is a part of the names to show.
	Search, Health string
	// Columns and the cells of rows are as in the command get targets.
	Columns        []string
	WithWorkspaces bool
	Rows           []fleetRow
	Pager          pager
}

// healthLink is the number of SyncTargets in a group, with the address of the page that shows only these.
type healthLink struct {
	healthName
	Count    int
	URL      string
	Selected bool
}

// healthName is the name of a group of SyncTargets, and its class in the style sheet.
type healthName struct{ Name, Class string }

var healthNames = map[overview.Health]healthName{
	overview.NotReady:    {"Not ready", "bad"},
	overview.SetAside:    {"Set aside", "aside"},
	overview.HasProblems: {"With problems", "warn"},
	overview.Healthy:     {"Healthy", "good"},
}

type fleetRow struct {
	overview.Row
	workspace *workspace

	Health healthName
	URL    string
	// Cells are those after the name.
	Cells []string
}

// WorkspaceName returns the workspace of the SyncTarget.
func (r fleetRow) WorkspaceName() string { return r.workspace.name }

// Trouble returns what needs attention, in the order of health. It is empty for a healthy SyncTarget.
func (r fleetRow) Trouble() string {
	if problem := r.Problem(); problem != "" {
		return problem
	}
	if failures := r.FailureLines(); len(failures) > 0 {
		return failures[0]
	}
	if r.Incompatible > 0 {
		return wording.Count(r.Incompatible, "resource", "resources") + " that the hub cannot sync"
	}
	return ""
}

func (s *server) fleetPage(query url.Values) view {
	address := url.URL{Path: "/"}
	content := fleetContent{Search: query.Get("q"), Health: query.Get("health"), WithWorkspaces: s.count(func(w *workspace) bool { return w.isInventory }) > 1}
	all := s.fleetRows(content.Search)
	rows := make([]overview.Row, 0, len(all))
	counts := map[string]int{}
	for _, row := range all {
		rows = append(rows, row.Row)
		counts[row.Health.Class]++
	}
	content.Summary = overview.Summary(rows, s.now())
	for health := overview.NotReady; health <= overview.Healthy; health++ {
		link := healthLink{healthName: healthNames[health]}
		link.Count, link.Selected = counts[link.Class], content.Health == link.Class
		selected := link.Class
		if link.Selected {
			selected = ""
		}
		link.URL = withParameter(address, url.Values{"q": query["q"]}, "health", selected)
		content.Healths = append(content.Healths, link)
	}
	if content.Health != "" {
		all = slices.DeleteFunc(all, func(row fleetRow) bool { return content.Health != row.Health.Class })
	}
	content.Pager = newPager(address, query, "page", "clusters", len(all), pageSize)
	content.Columns, content.Rows = s.fleetTable(itemsOf(content.Pager, all))
	return view{Title: "Clusters", Section: "clusters", template: "fleet.html", Content: content}
}

// fleetRows returns the SyncTargets of all workspaces whose name has a text, the worst first.
func (s *server) fleetRows(search string) (all []fleetRow) {
	now := s.now()
	for _, w := range s.workspaces {
		for _, target := range w.targets.list() {
			if !strings.Contains(target.Name, search) {
				continue
			}
			row := overview.RowOf(target, now)
			all = append(all, fleetRow{Row: row, workspace: w, Health: healthNames[row.Health()], URL: targetURL(w.name, target.Name)})
		}
	}
	slices.SortFunc(all, func(a, b fleetRow) int {
		return cmp.Or(overview.CompareHealth(a.Row, b.Row), cmp.Compare(a.workspace.name, b.workspace.name))
	})
	return all
}

// fleetTable fills in the cells of rows, and returns their columns: those that the command get targets prints without -o wide.
func (s *server) fleetTable(rows []fleetRow) ([]string, []fleetRow) {
	plain := make([]overview.Row, 0, len(rows))
	for _, row := range rows {
		plain = append(plain, row.Row)
	}
	table := overview.Table(plain, s.now())
	var columns []string
	for i, column := range table.ColumnDefinitions {
		// The template writes the name, which is a link.
		if column.Priority > 0 || i == 0 {
			continue
		}
		columns = append(columns, column.Name)
		for j := range rows {
			rows[j].Cells = append(rows[j].Cells, table.Rows[j].Cells[i].(string))
		}
	}
	return columns, rows
}

func targetURL(workspace, name string) string {
	return "/targets/" + url.PathEscape(workspace) + "/" + url.PathEscape(name)
}
