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
	"context"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/describe"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/provider/wording"
)

const (
	// maxListed bounds the events that the page of an object requests of a mailbox, and maxObjectEvents the events that it shows.
	maxListed       = 500
	maxObjectEvents = 20
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

	// URL is empty if the object has no page.
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
		for _, event := range w.eventsAbout(func(about *corev1.ObjectReference) bool { return strings.Contains(about.Name, content.Search) }) {
			all = append(all, eventRow{workspace: w, event: event})
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
	about := &row.event.InvolvedObject
	row.Kind, row.Name, row.IsWarning = about.Kind, about.Name, row.event.Type == corev1.EventTypeWarning
	if about.Namespace != "" {
		row.Name = about.Namespace + "/" + about.Name
	}
	note := ""
	switch {
	case isKind(about, "EdgePlacement"):
		row.URL = placementURL(row.workspace.name, about.Name)
	case isKind(about, "SyncTarget"):
		row.URL = targetURL(row.workspace.name, about.Name)
		if target, ok := row.workspace.targets.get(about.Name); ok {
			note = describe.TargetNote(target, row.event)
		}
	default:
		object := objectOf(about)
		if placement := row.workspace.placementOf(object); placement != "" {
			row.URL = objectURL(objectQuery{Workspace: row.workspace.name, Placement: placement, Object: object})
		}
	}
	row.Cells = describe.EventCells(row.event, note, s.now())
}

// isKind reports whether an event is about an object of a kind of the hub's API.
func isKind(about *corev1.ObjectReference, kind string) bool {
	return about.Kind == kind && about.GroupVersionKind().Group == edgev2alpha1.GroupName
}

// objectOf returns the subject of an event. An event has the kind, and the resource is the usual plural of it: pages from watches make no
// requests for it.
func objectOf(about *corev1.ObjectReference) placed.Object {
	resource, _ := meta.UnsafeGuessKindToResource(about.GroupVersionKind())
	return placed.Object{GroupResource: resource.GroupResource(), NamespacedName: types.NamespacedName{Namespace: about.Namespace, Name: about.Name}}
}

// placementOf returns the first EdgePlacement, by name, whose status names the object as failed or in progress. It is empty if there is none.
func (w *workspace) placementOf(object placed.Object) (first string) {
	names := func(pairs []edgev2alpha1.PlacementPair) bool {
		return slices.ContainsFunc(pairs, func(pair edgev2alpha1.PlacementPair) bool { return placed.ObjectOf(pair) == object })
	}
	for _, placement := range w.placements.list() {
		if (first == "" || placement.Name < first) && (names(placement.Status.Failures) || names(placement.Status.Progressing)) {
			first = placement.Name
		}
	}
	return first
}

// objectEvents are the hub's events about one object, the newest first.
type objectEvents struct {
	Rows []eventRow
	// More is empty, or a sentence about older events.
	More string
	// Error is the reason why the events are missing.
	Error string
}

// objectEvents returns the events about an object: in its workload workspace by the watch that all pages share, and in a mailbox by a request.
func (s *server) objectEvents(ctx context.Context, w *workspace, query objectQuery) objectEvents {
	isAbout := func(about *corev1.ObjectReference) bool { return objectOf(about) == query.Object }
	var shown objectEvents
	var found []*corev1.Event
	if query.Placement != "" {
		found = w.eventsAbout(isAbout)
	} else {
		var err error
		if found, err = mailboxEvents(ctx, w, query, isAbout); err != nil {
			shown.Error = err.Error()
		}
	}
	if older := len(found) - maxObjectEvents; older > 0 {
		found = found[:maxObjectEvents]
		shown.More = wording.Count(older, "older event is not shown", "older events are not shown")
	}
	for _, event := range found {
		row := eventRow{workspace: w, event: event}
		s.fillEvent(&row)
		shown.Rows = append(shown.Rows, row)
	}
	return shown
}

// mailboxEvents lists the hub's events about an object in the mailbox of a SyncTarget, the newest first.
func mailboxEvents(ctx context.Context, w *workspace, query objectQuery, isAbout func(*corev1.ObjectReference) bool) (found []*corev1.Event, err error) {
	target, ok := w.targets.get(query.SyncTarget)
	if !ok || target.Status.Mailbox == nil || target.Status.Mailbox.Cluster == "" {
		return nil, nil
	}
	mailbox, err := w.options.ReaderIn(target.Status.Mailbox.Cluster)
	if err != nil {
		return nil, err
	}
	var list corev1.EventList
	err = mailbox.Client.List(ctx, &list, client.InNamespace(cmp.Or(query.Object.Namespace, corev1.NamespaceDefault)), client.Limit(maxListed),
		client.MatchingFields{"involvedObject.name": query.Object.Name, "reportingComponent": hubComponent})
	for i := range list.Items {
		if event := &list.Items[i]; isAbout(&event.InvolvedObject) {
			found = append(found, event)
		}
	}
	slices.SortFunc(found, newestFirst)
	return found, err
}
