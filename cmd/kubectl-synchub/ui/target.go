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
	corev1 "k8s.io/api/core/v1"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/describe"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
)

// targetContent is the page of one SyncTarget.
type targetContent struct {
	overview.Row
	WorkspaceName string
	Health        healthName
	Sections      []section
}

func (s *server) targetPage(workspaceName, name string) view {
	w := s.workspace(workspaceName)
	if w == nil {
		return view{}
	}
	target, ok := w.targets.get(name)
	if !ok {
		return view{}
	}
	now := s.now()
	content := targetContent{Row: overview.RowOf(target, now), WorkspaceName: w.name}
	content.Health = healthNames[content.Row.Health()]
	var events []corev1.Event
	for _, event := range w.eventsAbout(func(about *corev1.ObjectReference) bool { return isKind(about, "SyncTarget") && about.Name == name }) {
		events = append(events, *event)
	}
	content.Sections = sectionsOf(describe.Target(target, events, now), func(row describe.Row) string {
		if row.Object == nil {
			return ""
		}
		return objectURL(objectQuery{Workspace: w.name, SyncTarget: row.SyncTarget, Object: *row.Object})
	})
	return view{Title: name, Section: "clusters", template: "target.html", Content: content}
}

// newestFirst orders events.
func newestFirst(a, b *corev1.Event) int {
	return describe.EventTime(b).Compare(describe.EventTime(a).Time)
}
