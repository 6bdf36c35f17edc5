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
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/describe"
)

// eventsContent is the page with the events of all workspaces.
type eventsContent struct {
	Search string
	Rows   []eventRow
	Pager  pager
}

type eventRow struct {
	workspace *workspace
	event     *corev1.Event

	Kind, Name, URL string
	// Cells are the type, reason, age and message.
	Cells     []string
	IsWarning bool
}

// WorkspaceName returns the workspace of the object.
func (r eventRow) WorkspaceName() string { return r.workspace.name }

func (s *server) eventsPage(query url.Values) view {
	content := eventsContent{Search: query.Get("q")}
	var all []eventRow
	for _, w := range s.workspaces {
		for _, kind := range []string{"SyncTarget", "EdgePlacement"} {
			for _, event := range w.eventsAbout(kind, "") {
				if strings.Contains(event.InvolvedObject.Name, content.Search) {
					all = append(all, eventRow{workspace: w, event: event})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b eventRow) int { return newestFirst(a.event, b.event) })
	content.Pager = newPager(url.URL{Path: "/events"}, query, "page", "events", len(all), pageSize)
	content.Rows = itemsOf(content.Pager, all)
	for i := range content.Rows {
		s.fillEvent(&content.Rows[i])
	}
	return view{Title: "Events", Section: "events", template: "events.html", Content: content}
}

func (s *server) fillEvent(row *eventRow) {
	object := row.event.InvolvedObject
	row.Kind, row.Name, row.IsWarning = object.Kind, object.Name, row.event.Type == corev1.EventTypeWarning
	note := ""
	if object.Kind == "EdgePlacement" {
		row.URL = placementURL(row.workspace.name, object.Name)
	} else {
		row.URL = targetURL(row.workspace.name, object.Name)
		if target, ok := row.workspace.targets.get(object.Name); ok {
			note = describe.TargetNote(target, row.event)
		}
	}
	row.Cells = describe.EventCells(row.event, note, s.now())
}
